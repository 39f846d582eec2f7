%% The actor figures of scripts/bench/actor.ts, by gen_server under a supervisor.
%% Prints one line for each: what, a space, the figure.
-module(agentd_bench).
-behaviour(gen_server).
-export([main/0, start_link/1, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start_link(Arg) -> gen_server:start_link(?MODULE, Arg, []).

init({sup, Flags, Specs}) -> {ok, {Flags, Specs}};
init({notify, Pid}) -> Pid ! {up, self()}, {ok, 0};
init(_) -> {ok, 0}.

handle_call(crash, _From, _N) -> error(crash);
handle_call(_Msg, _From, N) -> {reply, N + 1, N + 1}.
handle_cast({busy, M}, N) -> spin(M), gen_server:cast(self(), {busy, M}), {noreply, N + 1};
handle_cast(_Msg, N) -> {noreply, N + 1}.
handle_info(_Msg, N) -> {noreply, N}.

spin(0) -> ok;
spin(M) -> spin(M - 1).

supervisor(Strategy, Specs) ->
    Flags = #{strategy => Strategy, intensity => 1000000, period => 1},
    {ok, Sup} = supervisor:start_link(?MODULE, {sup, Flags, Specs}),
    Sup.

child(Arg) -> #{id => child, start => {?MODULE, start_link, [Arg]}, restart => permanent}.
dynamic() -> supervisor(simple_one_for_one, [#{id => child, start => {?MODULE, start_link, []}}]).
spawned(Sup) -> {ok, Pid} = supervisor:start_child(Sup, [plain]), Pid.

stop(Sup) ->
    unlink(Sup),
    Ref = monitor(process, Sup),
    exit(Sup, shutdown),
    receive {'DOWN', Ref, _, _, _} -> ok end.

repeat(0, _) -> ok;
repeat(N, F) -> F(), repeat(N - 1, F).

now_ns() -> erlang:monotonic_time(nanosecond).
time(F) -> T = now_ns(), F(), now_ns() - T.
say(What, Figure) -> io:format("~s ~p~n", [What, Figure]).
quantile(List, Q) ->
    Sorted = lists:sort(List),
    lists:nth(min(length(Sorted), trunc(Q * length(Sorted)) + 1), Sorted).

main() ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    %% The first pass warms up.
    measure(fun(_, _) -> ok end),
    measure(fun say/2),
    halt(0).

measure(Say) ->
    Sup = dynamic(),
    Pid = spawned(Sup),
    N = 300000,
    Say("tell", N * 1.0e9 / time(fun() ->
        repeat(N, fun() -> gen_server:cast(Pid, hello) end),
        gen_server:call(Pid, hello, infinity)
    end)),
    A = 100000,
    Say("ask", A * 1.0e9 / time(fun() -> repeat(A, fun() -> gen_server:call(Pid, hello) end) end)),
    stop(Sup),
    spawning(Say),
    restarts(Say),
    bystander(Say).

spawning(Say) ->
    Sup = dynamic(),
    N = 20000,
    erlang:garbage_collect(),
    Before = erlang:memory(total),
    Say("spawn", N * 1.0e9 / time(fun() -> repeat(N, fun() -> spawned(Sup) end) end)),
    erlang:garbage_collect(Sup),
    Say("idle", (erlang:memory(total) - Before) / N),
    stop(Sup).

restarts(Say) ->
    Sup = supervisor(one_for_one, [child({notify, self()})]),
    First = receive {up, P} -> P end,
    Times = crashes(First, 500, []),
    Say("restart p50", quantile(Times, 0.5) / 1000),
    Say("restart p99", quantile(Times, 0.99) / 1000),
    stop(Sup).

crashes(_Pid, 0, Times) -> Times;
crashes(Pid, N, Times) ->
    T = now_ns(),
    (catch gen_server:call(Pid, crash)),
    Next = receive {up, P} -> P end,
    crashes(Next, N - 1, [now_ns() - T | Times]).

bystander(Say) ->
    Sup = dynamic(),
    Pid = spawned(Sup),
    Busy = [spawned(Sup) || _ <- lists:seq(1, 16)],
    [repeat(1000, fun() -> gen_server:cast(B, {busy, 100}) end) || B <- Busy],
    Times = [begin
        timer:sleep(1),
        time(fun() -> gen_server:call(Pid, hello) end)
    end || _ <- lists:seq(1, 300)],
    Say("bystander ask p99", quantile(Times, 0.99) / 1000),
    Say("bystander told p99", quantile(Times, 0.99) / 1000),
    stop(Sup).
