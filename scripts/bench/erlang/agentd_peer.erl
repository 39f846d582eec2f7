%% The peers of the benches `core` and `durable`: a gen_statem that makes, hashes and
%% keeps the same rune as the core (in ets; durable: in a disk_log that syncs in groups
%% and answers after the sync), and a bare one. Its supervisor is OTP's.
%%
%%     erl -noshell -run agentd_peer main bare|rune|durable FILE
%%
%% Prints one line for each figure: what, a space, the figure. A first pass warms up.
-module(agentd_peer).
-behaviour(gen_statem).
-export([main/1, start_link/1, init/1, callback_mode/0, handle_event/4]).

%% Runes that are kept, as the core's log in memory does.
-define(KEPT, 16384).
-define(LOOKS, 300).

start_link(Arg) -> gen_statem:start_link(?MODULE, Arg, []).
callback_mode() -> handle_event_function.

%% One init for two behaviours: a supervisor's, and a gen_statem's.
init({sup, Flags, Specs}) -> {ok, {Flags, Specs}};
init({notify, Pid}) -> Pid ! {up, self()}, {ok, up, new(bare, none)};
init({Kind, Writer}) -> {ok, up, new(Kind, Writer)}.

new(bare, _) -> #{mode => bare, n => 0};
new(rune, Writer) -> #{mode => rune, n => 0, prev => binary:copy(<<"0">>, 64), writer => Writer}.

handle_event(_, crash, _, _) -> error(crash);
handle_event(cast, {hop, 0, To}, _, D) -> To ! done, {keep_state, D};
handle_event(cast, {hop, N, To}, _, D = #{next := Next}) ->
    D1 = work(D), gen_statem:cast(Next, {hop, N - 1, To}), {keep_state, D1};
handle_event(cast, {next, P}, _, D) -> {keep_state, D#{next => P}};
%% Durable: goes on when its own rune is synced, so that nothing piles up at the writer.
handle_event(cast, busy, _, D = #{writer := W}) when is_pid(W) ->
    spin(100), {keep_state, make(D, {again, self()})};
handle_event(cast, busy, _, D) -> spin(100), D1 = work(D), gen_statem:cast(self(), busy), {keep_state, D1};
handle_event(cast, hello, _, D) -> {keep_state, work(D)};
%% Durable: answered by the writer after its sync.
handle_event({call, From}, hello, _, D = #{writer := W}) when is_pid(W) -> {keep_state, make(D, From)};
handle_event({call, From}, hello, _, D) -> D1 = work(D), {keep_state, D1, [{reply, From, maps:get(n, D1)}]}.

work(D = #{mode := bare, n := N}) -> D#{n => N + 1};
work(D) -> make(D, none).

%% The header as JSON text, the payload as JSON text, two hashes.
make(D = #{n := N, prev := Prev, writer := Writer}, From) ->
    Seq = counters_next(),
    At = os:system_time(millisecond),
    Payload = <<"{\"event\":{\"_tag\":\"Withdrawn\",\"messageId\":\"", (integer_to_binary(N))/binary, "\"}}">>,
    Header = iolist_to_binary([<<"[\"rune/2\",\"bench\",">>, integer_to_binary(Seq), $,, integer_to_binary(At),
        <<",\"inbox.withdrawn\",\"counter/a\",\"Open\",\"Open\",\"Withdrawn\",null,[],\"internal\"]">>]),
    PH = binary:encode_hex(crypto:hash(sha256, Payload)),
    H = binary:encode_hex(crypto:hash(sha256, [Prev, $\n, Header, $\n, PH])),
    Rune = {Seq, <<"bench">>, At, <<"inbox.withdrawn">>, <<"counter/a">>, <<"Open">>, <<"Open">>, <<"Withdrawn">>, null,
        <<"internal">>, Payload, PH, H},
    case Writer of
        none -> ets:insert(runes, {Seq rem ?KEPT, Rune});
        _ -> Writer ! {append, Rune, From}
    end,
    D#{n => N + 1, prev => H}.

counters_next() -> atomics:add_get(persistent_term:get(runes), 1, 1).

%% Group commit: what waits is logged, synced once, and answered.
writer(Parent, File) ->
    file:delete(File),
    {ok, L} = disk_log:open([{name, File}, {file, File}, {format, external}, {repair, false}]),
    Parent ! {writer, self()},
    written(L).
written(L) ->
    receive
        {append, R, F} ->
            {Rs, Fs} = drain([term_to_binary(R)], froms(F, []), 1),
            ok = disk_log:blog_terms(L, lists:reverse(Rs)), ok = disk_log:sync(L),
            [answer(From) || From <- lists:reverse(Fs)],
            written(L)
    end.
drain(Rs, Fs, C) when C >= 512 -> {Rs, Fs};
drain(Rs, Fs, C) ->
    receive {append, R, F} -> drain([term_to_binary(R) | Rs], froms(F, Fs), C + 1) after 0 -> {Rs, Fs} end.
answer({again, P}) -> gen_statem:cast(P, busy);
answer(From) -> gen_statem:reply(From, ok).
froms(none, Fs) -> Fs;
froms(F, Fs) -> [F | Fs].

spin(0) -> ok;
spin(M) -> spin(M - 1).
repeat(0, _) -> ok;
repeat(N, F) -> F(), repeat(N - 1, F).
now_ns() -> erlang:monotonic_time(nanosecond).
time(F) -> T = now_ns(), F(), now_ns() - T.
say(What, Figure) -> io:format("~s ~p~n", [What, Figure]).
quantile(List, Q) -> S = lists:sort(List), lists:nth(min(length(S), trunc(Q * length(S)) + 1), S).
rate(N, F) -> N * 1.0e9 / time(F).
started(Kind, Writer) -> {ok, P} = start_link({Kind, Writer}), P.
call(P) -> gen_statem:call(P, hello, infinity).
killed(Ps) -> [begin unlink(P), exit(P, kill) end || P <- Ps].

main([What, File]) ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    ets:new(runes, [named_table, public, set]),
    persistent_term:put(runes, atomics:new(1, [])),
    Quiet = fun(_, _) -> ok end,
    case What of
        "bare" -> memory(Quiet, bare, 50000), memory(fun say/2, bare, 200000), spawning(fun say/2), restarts(fun say/2);
        "rune" -> memory(Quiet, rune, 50000), memory(fun say/2, rune, 100000);
        "durable" -> durable(fun say/2, File)
    end,
    halt(0).

memory(Say, Kind, N) ->
    P = started(Kind, none),
    Say("tell", rate(N, fun() -> repeat(N, fun() -> gen_statem:cast(P, hello) end), call(P) end)),
    Say("ask", rate(N div 2, fun() -> repeat(N div 2, fun() -> call(P) end) end)),
    Me = self(),
    Hops = fun(Count) ->
        Ps = [started(Kind, none) || _ <- lists:seq(1, Count)],
        lists:foldl(fun(X, Prev) -> gen_statem:cast(X, {next, Prev}), X end, lists:last(Ps), Ps),
        Rate = rate(N, fun() -> gen_statem:cast(hd(Ps), {hop, N, Me}), receive done -> ok end end),
        killed(Ps), Rate
    end,
    Say("hop, ping-pong", Hops(2)),
    Say("hop, ring of 1,000", Hops(1000)),
    Busy = [started(Kind, none) || _ <- lists:seq(1, 16)],
    [repeat(50, fun() -> gen_statem:cast(X, busy) end) || X <- Busy],
    Ts = looks(P),
    Say("bystander ask p50", quantile(Ts, 0.5) / 1000),
    Say("bystander ask p99", quantile(Ts, 0.99) / 1000),
    killed([P | Busy]).

looks(P) -> [begin timer:sleep(1), time(fun() -> call(P) end) end || _ <- lists:seq(1, ?LOOKS)].

supervisor(Strategy, Child) ->
    Flags = #{strategy => Strategy, intensity => 1000000, period => 1},
    {ok, Sup} = supervisor:start_link(?MODULE, {sup, Flags, [Child]}),
    Sup.

spawning(Say) ->
    Sup = supervisor(simple_one_for_one, #{id => child, start => {?MODULE, start_link, []}}),
    N = 50000,
    erlang:garbage_collect(), Before = erlang:memory(total),
    Say("spawn", rate(N, fun() -> repeat(N, fun() -> {ok, _} = supervisor:start_child(Sup, [{bare, none}]) end) end)),
    erlang:garbage_collect(Sup),
    Say("idle", (erlang:memory(total) - Before) / N),
    unlink(Sup), exit(Sup, kill).

restarts(Say) ->
    Sup = supervisor(one_for_one, #{id => child, start => {?MODULE, start_link, [{notify, self()}]}}),
    First = receive {up, P} -> P end,
    Ts = lists:nthtail(500, lists:reverse(crashes(First, 3000, []))),
    Say("restart p50", quantile(Ts, 0.5) / 1000),
    Say("restart p99", quantile(Ts, 0.99) / 1000),
    unlink(Sup), exit(Sup, kill).
crashes(_, 0, Ts) -> Ts;
crashes(P, N, Ts) ->
    T = now_ns(), gen_statem:cast(P, crash), Next = receive {up, X} -> X end,
    crashes(Next, N - 1, [now_ns() - T | Ts]).

durable(Say, File) ->
    Me = self(),
    W = spawn_link(fun() -> writer(Me, File) end),
    receive {writer, W} -> ok end,
    P = started(rune, W),
    repeat(300, fun() -> call(P) end),
    N = 20000,
    Say("tell", rate(N, fun() -> repeat(N, fun() -> gen_statem:cast(P, hello) end), call(P) end)),
    A = 1500,
    L = [time(fun() -> call(P) end) || _ <- lists:seq(1, A)],
    Say("ask", A * 1.0e9 / lists:sum(L)), Say("ask p50", quantile(L, 0.5) / 1000),
    Ps = [started(rune, W) || _ <- lists:seq(1, 64)],
    Each = 300,
    Say("ask, 64 askers", rate(64 * Each, fun() ->
        Ss = [spawn_link(fun() -> repeat(Each, fun() -> call(X) end), Me ! {fin, self()} end) || X <- Ps],
        [receive {fin, S} -> ok end || S <- Ss] end)),
    Alone = looks(P),
    Say("alone p50", quantile(Alone, 0.5) / 1000), Say("alone p99", quantile(Alone, 0.99) / 1000),
    Busy = [started(rune, W) || _ <- lists:seq(1, 16)],
    [repeat(50, fun() -> gen_statem:cast(X, busy) end) || X <- Busy],
    Ts = looks(P),
    Say("bystander p50", quantile(Ts, 0.5) / 1000), Say("bystander p99", quantile(Ts, 0.99) / 1000),
    killed(Busy), unlink(W), exit(W, kill), file:delete(File).
