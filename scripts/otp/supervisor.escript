#!/usr/bin/env escript
%%! +S 1
%% Runs scenarios (see test/world/supervision/otp/Scenario.ts) on the supervisor of a real OTP, and prints one line per step:
%% result | what happened to the children | the tree.
%%
%% Restart windows are measured in seconds, which would take too long. So the supervisor that runs here is OTP's own
%% code with one call replaced: its monotonic time is the number of seconds that the scenario has let pass.
-mode(compile).
-export([init/1, start_sup/3, start_worker/2, start_worker/3, worker/2]).

main(["--release"]) -> io:format("~s ~s~n", [erlang:system_info(otp_release), stdlib()]);
main([File]) ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    ets:new(clock, [named_table, public]),
    turnable_clock(),
    {ok, Scenarios} = file:consult(File),
    lists:foreach(fun scenario/1, Scenarios).

stdlib() -> filename:basename(code:lib_dir(stdlib)).

turnable_clock() ->
    Beam = code:which(supervisor),
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {Turned, 1} = turn(Forms, 0),
    {ok, supervisor, Binary} = compile:forms(Turned, []),
    code:unstick_mod(supervisor),
    {module, supervisor} = code:load_binary(supervisor, Beam, Binary).

turn({call, At, {remote, _, {atom, _, erlang}, {atom, _, monotonic_time}}, [{integer, _, 1}]}, Count) ->
    Args = [{atom, At, clock}, {atom, At, seconds}, {integer, At, 2}],
    {{call, At, {remote, At, {atom, At, ets}, {atom, At, lookup_element}}, Args}, Count + 1};
turn(Form, Count) when is_tuple(Form) ->
    {Parts, Total} = turn(tuple_to_list(Form), Count),
    {list_to_tuple(Parts), Total};
turn([Head | Tail], Count) ->
    {Head1, Count1} = turn(Head, Count),
    {Tail1, Count2} = turn(Tail, Count1),
    {[Head1 | Tail1], Count2};
turn(Other, Count) -> {Other, Count}.

scenario({Flags, Children, Steps}) ->
    [ets:new(T, [named_table, public]) || T <- [plans, pids, counter]],
    ets:new(log, [named_table, public, ordered_set]),
    ets:insert(clock, {seconds, 0}),
    Started = start_sup(top, Flags, Children),
    show(case Started of {ok, _} -> ok; _ -> failed end),
    lists:foreach(fun(Step) -> show(step(Step)) end, Steps),
    case pid(top) of
        undefined -> ok;
        Pid -> exit(Pid, shutdown), gone(Pid)
    end,
    show(stopped),
    io:format("end~n"),
    [ets:delete(T) || T <- [plans, pids, counter, log]].

%% Children.

init({Flags, Children}) -> {ok, {Flags, [spec(C) || C <- Children]}}.

spec({worker, template, Restart, Significant, Shutdown, Stops}) ->
    #{id => template, start => {?MODULE, start_worker, [template, Stops]}, restart => Restart,
      significant => Significant, shutdown => Shutdown};
spec({worker, Id, Restart, Significant, Shutdown, Stops}) ->
    #{id => Id, start => {?MODULE, start_worker, [Id, Stops]}, restart => Restart,
      significant => Significant, shutdown => Shutdown};
spec({supervisor, Id, Restart, Significant, Flags, Children}) ->
    #{id => Id, start => {?MODULE, start_sup, [Id, Flags, Children]}, restart => Restart,
      significant => Significant, type => supervisor}.

start_sup(Id, Flags, Children) ->
    case supervisor:start_link(?MODULE, {Flags, Children}) of
        {ok, Pid} -> ets:insert(pids, {Id, Pid}), {ok, Pid};
        Error -> Error
    end.

start_worker(template, Stops, Id) -> start_worker(Id, Stops).

start_worker(Id, Stops) ->
    case plan(Id) of
        ok -> proc_lib:start_link(?MODULE, worker, [Id, Stops]);
        error -> log(["error ", name(Id)]), {error, planned};
        ignore -> log(["ignore ", name(Id)]), ignore
    end.

plan(Id) ->
    case ets:lookup(plans, Id) of
        [{_, [Next | Rest]}] -> ets:insert(plans, {Id, Rest}), Next;
        _ -> ok
    end.

worker(Id, Stops) ->
    process_flag(trap_exit, true),
    log(["start ", name(Id)]),
    ets:insert(pids, {Id, self()}),
    proc_lib:init_ack({ok, self()}),
    Reason = lives(Stops),
    log(["stop ", name(Id)]),
    exit(Reason).

lives(Stops) ->
    receive
        {die, R} -> R;
        {'EXIT', _, _} when Stops =:= never -> lives(Stops);
        {'EXIT', _, R} when Stops =:= slowly -> timer:sleep(2), R;
        {'EXIT', _, R} -> R
    end.

%% Steps.

step({plan, Id, Starts}) -> ets:insert(plans, {Id, Starts}), ok;
step({pass, Seconds}) -> ets:update_counter(clock, seconds, Seconds), ok;
step({die, Sup, Ids}) ->
    %% All at once: the supervisor gets every exit, in this order, before it reacts to any.
    Busy = pid(Sup),
    Busy =:= undefined orelse sys:suspend(Busy),
    Pids = [{Pid, Reason} || {Id, Reason} <- Ids, (Pid = pid(Id)) =/= undefined],
    [begin dies(Pid, Reason), gone(Pid) end || {Pid, Reason} <- Pids],
    Busy =:= undefined orelse sys:resume(Busy),
    ok;
step({add, Sup, Id}) when is_atom(Id) ->
    %% OTP's instances have no ids, but agentd's have: an id that is already alive is refused.
    call(Sup, fun(P) -> case pid(Id) of undefined -> supervisor:start_child(P, [Id]); Pid -> {error, {already_started, Pid}} end end);
step({add, Sup, Spec}) -> call(Sup, fun(P) -> supervisor:start_child(P, spec(Spec)) end);
step({terminate_instance, Sup, Id}) ->
    call(Sup, fun(P) -> case pid(Id) of undefined -> {error, not_found}; Pid -> supervisor:terminate_child(P, Pid) end end);
step({terminate, Sup, Id}) -> call(Sup, fun(P) -> supervisor:terminate_child(P, Id) end);
step({restart, Sup, Id}) -> call(Sup, fun(P) -> supervisor:restart_child(P, Id) end);
step({delete, Sup, Id}) -> call(Sup, fun(P) -> supervisor:delete_child(P, Id) end).

dies(Pid, kill) -> exit(Pid, kill);
dies(Pid, Reason) -> Pid ! {die, Reason}.

call(Sup, Fun) ->
    case pid(Sup) of
        undefined -> ended;
        Pid ->
            try Fun(Pid) of
                ok -> ok;
                {ok, undefined} -> ignored;
                {ok, _} -> ok;
                {error, {already_started, _}} -> already_started;
                {error, Reason} when Reason =:= already_present; Reason =:= running; Reason =:= restarting;
                                     Reason =:= not_found; Reason =:= simple_one_for_one -> Reason;
                {error, {bad_combination, _}} -> invalid;
                {error, _} -> failed
            catch exit:_ -> ended
            end
    end.

pid(Id) ->
    case ets:lookup(pids, Id) of
        [{_, Pid}] -> case is_process_alive(Pid) of true -> Pid; false -> undefined end;
        [] -> undefined
    end.

gone(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, _, _, _} -> ok end.

%% Output.

log(Line) -> ets:insert(log, {ets:update_counter(counter, n, 1, {n, 0}), iolist_to_binary(Line)}).

show(Result) ->
    Tree = quiet(none, 0),
    Lines = [Line || {_, Line} <- ets:tab2list(log)],
    ets:delete_all_objects(log),
    io:format("~s | ~s | ~s~n", [Result, lists:join(", ", Lines), Tree]).

%% A step is done when the log and the tree have not changed in five rounds.
quiet(Seen, 5) -> element(2, Seen);
quiet(Seen, Times) ->
    erlang:yield(),
    case {ets:info(log, size), tree(top)} of
        Seen -> quiet(Seen, Times + 1);
        Other -> quiet(Other, 0)
    end.

tree(Id) ->
    case pid(Id) of
        undefined -> <<"ended">>;
        Pid ->
            try supervisor:which_children(Pid) of
                Children -> iolist_to_binary([name(Id), "(", lists:join(" ", rows(Children)), ")"])
            catch exit:_ -> <<"ended">>
            end
    end.

rows([{undefined, _, _, _} | _] = Instances) ->
    lists:sort([iolist_to_binary([instance(Pid), ":running"]) || {_, Pid, _, _} <- Instances]);
rows(Children) -> [row(Child) || Child <- lists:reverse(Children)].

row({Id, undefined, _, _}) -> [name(Id), ":down"];
row({Id, restarting, _, _}) -> [name(Id), ":restarting"];
row({Id, _, worker, _}) -> [name(Id), ":running"];
row({Id, _, supervisor, _}) -> [name(Id), ":", tree(Id)].

instance(Pid) ->
    case ets:match(pids, {'$1', Pid}) of
        [[Id]] -> name(Id);
        _ -> "restarting"
    end.

name(Id) -> atom_to_list(Id).
