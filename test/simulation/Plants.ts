/**
 * Plants: bugs for the simulator to find, each a change of one place of the source as it is
 * loaded, and a seed that finds it. A simulator that does not find them finds nothing.
 */

export interface Plant {
  readonly file: string
  readonly from: string
  readonly to: string
  /** The first seed of ten minutes that breaks a promise. */
  readonly seed: number
}

export const plants: { readonly [name: string]: Plant } = {
  "answers a command before its rune is durable": {
    file: "src/core/event-actor/CommitScope.ts",
    from: "if (isDurable) this.landed(unit)\n",
    to: "if (isDurable) this.landed(unit); else if (item instanceof Ask) this.answer(unit, item)\n",
    seed: 1
  },
  "counts a failed run twice": {
    file: "src/agents/machines/WorkerMachine.ts",
    from: "totalErrors: data.totalErrors + 1,",
    to: "totalErrors: data.totalErrors + (data.totalErrors === 1 ? 2 : 1),",
    seed: 2
  },
  "counts an interrupted run": {
    file: "src/agents/machines/WorkerMachine.ts",
    from: 'SessionExited: to("BuildingPrompt", { set: "clear" })',
    to: 'SessionExited: to("BuildingPrompt", { set: "count" })',
    seed: 2
  },
  "does not carry again what was cut short": {
    file: "src/agents/machines/TurnMachine.ts",
    from: "unfinished: again ? data.unfinished : []",
    to: "unfinished: again && data.pendingCalls.length === 0 ? data.unfinished : []",
    seed: 9
  },
  "carries twice": {
    file: "src/agents/machines/Inbox.ts",
    from: "waiting: data.waiting.filter((message) => !carried.has(message.messageId)),",
    to: "waiting: data.waiting,",
    seed: 2
  },
  "starts a run before the last is gone": {
    file: "src/agents/run/RunSupervisor.ts",
    from: "      yield* this.gone\n",
    to: "",
    seed: 28
  },
  "stop does not wait for its processes": {
    file: "src/agents/actors/AgentScope.ts",
    from: "        yield* this.gone\n        return { eventId, message: `${fullName} is stopped; no",
    to: "        return { eventId, message: `${fullName} is stopped; no",
    seed: 3
  },
  "a reload starts what a person had stopped": {
    file: "src/projects/AgentRegistry.ts",
    from: "record.worker.now.data.stoppedBy === THE_FILE",
    to: "record.worker.now.data.stoppedBy !== null",
    seed: 3
  },
  "a timer begins again with the daemon": {
    file: "src/core/event-actor/Timers.ts",
    from: "return monotonic() - Math.max(0, clock.currentTimeMillisUnsafe() - since)",
    to: "return monotonic()",
    seed: 80
  },
  "a wait is too short": {
    file: "src/core/event-actor/Timers.ts",
    from: "const wait = entry.began + entry.after - this.time.monotonic()",
    to: "const wait = (entry.began + entry.after - this.time.monotonic()) / 2",
    seed: 91
  },
  "a broken file keeps the daemon from coming back": {
    file: "src/app/Daemon.ts",
    from: "if (!isUnreadable && !isKnown) return yield* refused",
    to: "if (!isUnreadable) return yield* refused",
    seed: 3
  },
  "a clock that is set back keeps a mail back": {
    file: "src/alerts/Outbox.ts",
    from: "return at > now + SLOWEST ? now : at",
    to: "return at",
    seed: 120
  },
  "a mail is called sent before it is taken": {
    file: "src/alerts/Alerter.ts",
    from: 'result._tag === "Success"\n          ? Outbox.sent(attempt, result.success, now)',
    to: 'result._tag === "Success" || attempt.messageId !== ""\n          ? Outbox.sent(attempt, { to: [], rejected: [], response: "" }, now)',
    seed: 2
  },
  "a mail has another id each time": {
    file: "src/alerts/Outbox.ts",
    from: 'alertIds(batch).join(",")',
    to: '`${batch.failure?.attempt ?? 0} ${alertIds(batch).join(",")}`',
    seed: 1
  },
  "nobody is mailed of a suspended conversation": {
    file: "src/alerts/AlertPolicy.ts",
    from: '"session.suspended": agentKinds["session.suspended"],',
    to: "",
    seed: 8
  },
  "the log is given up at the first error": {
    file: "src/core/event-log/SqliteLog.ts",
    from: "this.tries = Math.ceil(giveUpAfter / 20)",
    to: "this.tries = 3",
    seed: 6
  },
  "interrupts count as a person's, whoever made them": {
    file: "src/agents/machines/TurnMachine.ts",
    from: "event.keep === true || drops !== undefined",
    to: "drops !== undefined",
    seed: 3
  },
  "a start forgets what was spent": {
    file: "src/core/event-log/StreamReader.ts",
    from: "if (rune.eventId <= eventId) continue",
    to: 'if (rune.eventId <= eventId || rune.kind === "agent.usage") continue',
    seed: 225
  },
  "alerts begin at the log's end": {
    file: "src/alerts/Alerter.ts",
    from: "const after = yield* outbox.look((state) => Effect.succeed(state.cursor))",
    to: "const after = yield* log.head",
    seed: 221
  },
  "a parent hears of the end of another's sub-agent": {
    file: "src/projects/ConversationActor.ts",
    from: "Math.max(ended.get(agent) ?? 0, spawned.get(agent)?.eventId ?? 0)",
    to: "ended.get(agent) ?? 0",
    seed: 342
  },
  "a follower misses a rune": {
    file: "src/board/LogReader.ts",
    from: 'rune.visibility !== "secret"',
    to: 'rune.visibility !== "secret" && rune.eventId % 97 !== 0',
    seed: 206
  },
  "a floor's prompt tells what came since": {
    file: "src/channels/Floor.ts",
    from: "post.seq > spoke && post.seq <= told",
    to: "post.seq > spoke",
    seed: 2040
  },
  "a task is given out beside what it depends on": {
    file: "src/goals/Plan.ts",
    from: 'filter((state) => state !== "completed").length',
    to: 'filter((state) => state !== "completed" && size + n < 2).length',
    seed: 27
  },
  "an agent is given two tasks of a goal": {
    file: "src/goals/GoalActor.ts",
    from: "busy: busy || taken.has(agent) || this.around.worksForAnother(agent),",
    to: "busy,",
    seed: 18
  },
  "a folder of which git cannot tell where it stands has no commit": {
    file: "src/goals/TaskRunner.ts",
    from: "if (head === null && isInGit) {",
    to: "if (head === null && isInGit && Result.isSuccess(read)) {",
    seed: 122
  },
  "former tries stay in the inbox of an agent that comes back": {
    file: "src/goals/TaskRunner.ts",
    from: "yield* this.reclaim\n",
    to: "\n",
    seed: 177
  },
  "a task that waits again is looked at in a circle": {
    file: "src/goals/TaskRunner.ts",
    from: 'state === "running" && this.carried.has(messageId!)',
    to: 'state === "running"',
    seed: 111
  },
  "a worktree goes with what is not merged": {
    file: "src/agents/workplace/Worktree.ts",
    from: "if (lost !== undefined) return lost\n",
    to: "\n",
    seed: 36
  },
  "what conflicts is called merged": {
    file: "src/goals/GitMerge.ts",
    from: '"up-to-date" : "conflict"',
    to: '"up-to-date" : "merged"',
    seed: 54
  },
  "nobody is mailed of a blocked goal": {
    file: "src/alerts/AlertPolicy.ts",
    from: '"plan.blocked": goalKinds["plan.blocked"],',
    to: "",
    seed: 2
  },
  "a goal is shown as it was found at the start": {
    file: "src/goals/Goals.ts",
    from: "stand: goal?.state.stand ?? record.stand,",
    to: "stand: record.stand,",
    seed: 16
  },
  "a try that failed is waited for again": {
    file: "src/goals/TaskRunner.ts",
    from: "tryOf(goal.goalId, node.task.id, node.attempts + 1)",
    to: "tryOf(goal.goalId, node.task.id, 1)",
    seed: 27
  },
  "an answer is posted though the floor had gone": {
    file: "src/channels/ChannelReports.ts",
    from: 'return withhold(transaction, input, answer.text, "the floor had gone")',
    to: 'return answer.text === "" ? undefined : void transaction.record("channel.posted", { messageId: `late~${turnId}`, by: "agent", from: agent, text: bounded(answer.text), turnId }, "ended")',
    seed: 22
  },
  "an agent is told again what it has answered": {
    file: "src/channels/ChannelState.ts",
    from: "return { spoke: told }",
    to: "return {}",
    seed: 14
  },
  "a floor that is over is held still": {
    file: "src/channels/ChannelActor.ts",
    from: "if (from !== null) presence.release(conversation, from, this)",
    to: "",
    seed: 6
  },
  "a post is acknowledged without its rune": {
    file: "src/channels/Commands.ts",
    from: "const text = bounded(input.text)\n",
    to: "const text = bounded(input.text)\n  if (transaction.channel.head % 3 === 2) return `Posted in #${name}.`\n",
    seed: 6
  },
  "a floor that times out untold counts as told": {
    file: "src/channels/ChannelReports.ts",
    from: "else untold(transaction, agent, turnId)",
    to: 'else transaction.move(agent, { _tag: "TurnTimedOut", turnId })',
    seed: 6
  },
  "a post overtakes the prompt of its floor": {
    file: "src/channels/Commands.ts",
    from: '  if (!isBetween && !view.carries(agent, prompt ?? "")) return false\n',
    to: "",
    seed: 225
  },
  "a post is heard past one that waits": {
    file: "src/channels/Commands.ts",
    from: "    (post) => post.seq <= told || !isFor(post, agent) || injected.some(({ seq }) => seq === post.seq)",
    to: "    (post) => post.seq <= told || true || injected.some(({ seq }) => seq === post.seq)",
    seed: 225
  },
  "a budget ends nothing": {
    file: "src/agents/actors/AgentActor.ts",
    from: "if (exhausted === undefined) return decided",
    to: "if (exhausted === undefined || exhausted !== undefined) return decided",
    seed: 256
  },
  "a session that is forgotten is met again": {
    file: "src/plates/PlateRegistry.ts",
    from: "    this.remember(plate.stand.data)\n",
    to: "",
    seed: 10_003
  },
  "what is forgotten comes back with the next daemon": {
    file: "src/plates/Recovery.ts",
    from: "if (stand === null || isBroken || isRun || stand.data.forgotten) {",
    to: "if (stand === null || isBroken) {",
    seed: 10_002
  },
  "a start is taken from the spool before it is in the log": {
    file: "src/api/http/Spool.ts",
    from: "yield* plates.keep(dropped).pipe(",
    to: "yield* plates.hook(dropped.body, dropped.origin).pipe(",
    seed: 10_001
  },
  "an old interrupt ends a dialog that is noted": {
    file: "src/plates/PlateMachine.ts",
    from: "const asking = { ...data, turnAt: Math.max(data.turnAt, asOf) }",
    to: "const asking = data",
    seed: 10_011
  },
  "a result of another input ends the turn": {
    file: "src/runs/claude/ClaudeStream.ts",
    from: "    if (turn.own || inputs.length > 0) return inputs.length === 0\n",
    to: "    if (turn.own) return inputs.length === 0\n",
    seed: 20_003
  },
  "a run that was stopped before it was up speaks of its turn": {
    file: "src/agents/run/RunEvents.ts",
    from: "() => Effect.sync(() => live.end())",
    to: "() => Effect.void",
    seed: 20_130
  },
  "what is left of a chunk is lost": {
    file: "src/config/LineSplitter.ts",
    from: "this.rest += this.decoder.decode(chunk.subarray(from), { stream: true })",
    to: 'this.rest = ""',
    seed: 20_001
  },
  "a program that a signal ended has succeeded": {
    file: "src/runs/command/CommandBackend.ts",
    from: 'if (status.signal !== null) return { _tag: "Error", detail: `killed by ${status.signal}` }',
    to: 'if (status.signal !== null) return { _tag: "Success" }',
    seed: 20_032
  },
  "an input is written twice": {
    file: "src/runs/line/LineRun.ts",
    from: "this.write(this.attempt.protocol.give({ turnId, uuid: id, text, files, paths }))",
    to: "const given = this.attempt.protocol.give({ turnId, uuid: id, text, files, paths })\n      this.write(given)\n      this.write(given)",
    seed: 20_002
  },
  "a program is over before its output is read": {
    file: "src/runs/command/CommandBackend.ts",
    from: "    yield* drained\n",
    to: "",
    seed: 20_001
  },
  "what an answer of a model cost is told again with the next": {
    file: "src/model-agent/ModelTurn.ts",
    from: "    this.owed = []\n    return owed",
    to: "    return owed",
    seed: 30001
  },
  "an input that no model has answered stays in its conversation, and comes again": {
    file: "src/model-agent/ModelHistory.ts",
    from: "while (unanswered(sound)) sound.pop()",
    to: "",
    seed: 30005
  },
  "a silent API is waited for": {
    file: "src/model-agent/ProviderHttp.ts",
    from: "Effect.timeoutOrElse(pull, { duration: endpoint.silence,",
    to: 'Effect.timeoutOrElse(pull, { duration: "1 hour",',
    seed: 30005
  },
  "an API's bytes are decoded piece by piece": {
    file: "src/model-agent/ProviderHttp.ts",
    from: "heard(endpoint),\n    Stream.decodeText(),",
    to: "heard(endpoint),\n    Stream.map((bytes) => new TextDecoder().decode(bytes)),",
    seed: 30001
  },
  "a turn that is interrupted leaves its calls without results": {
    file: "src/model-agent/ModelTurn.ts",
    from: "if (this.open) yield* this.results\n      else",
    to: "if (this.open) yield* this.calls.settle\n      else",
    seed: 30011
  },
  "a call's id comes twice in a conversation": {
    file: "src/model-agent/ModelTurn.ts",
    from: "taken.has(id) || id",
    to: "id",
    seed: 30002
  },
  "what a prompt has cost is told twice": {
    file: "src/runs/acp/AcpRun.ts",
    from: "const events = [...doubt, ...cost, ...this.updates.finish(end)]",
    to: "const events = [...doubt, ...cost, ...cost, ...this.updates.finish(end)]",
    seed: 22_002
  },
  "an API's words come as they are, with the key": {
    file: "src/model-agent/ProviderFault.ts",
    from: '    .replaceAll(key, "[redacted]")\n',
    to: "    .replaceAll(key, key)\n",
    seed: 30_001
  },
  "a conversation's file is written without the results of calls": {
    file: "src/model-agent/ModelSession.ts",
    from: "both(add(text), () => void (history = [...history, message]))",
    to: 'both(add(message.role === "tool" ? "" : text), () => void (history = [...history, message]))',
    seed: 30_037
  },
  "a plate is registered before it is in the log": {
    file: "src/plates/Plates.ts",
    from: 'const { refused } = yield* this.put(plate, {\n      _tag: "Registered",',
    to: 'const refused = undefined as any\n    plate.tell({\n      _tag: "Registered",',
    seed: 10_004
  },
  "a stop is answered before it is in the log": {
    file: "src/plates/Plates.ts",
    from: 'yield* this.put(plate, { _tag: "ProcessExited", at,',
    to: 'plate.tell({ _tag: "ProcessExited", at,',
    seed: 10_004
  },
  "an answer to a dialog is given before it is in the log": {
    file: "src/plates/Approvals.ts",
    from: "      request.taken = true\n",
    to: "      request.taken = true\n      yield* Deferred.succeed(request.answer, decision)\n",
    seed: 10_005
  },
  "an answer goes to the oldest dialog that waits": {
    file: "src/plates/Approvals.ts",
    from: "const exact = this.open.get(id)\n",
    to: "const exact = this.open.has(id) ? this.open.values().next().value : undefined\n",
    seed: 10_036
  },
  "the first input is given again by the next daemon": {
    file: "src/runs/line/LineRun.ts",
    from: "const isNew = attempt.history === undefined",
    to: "const isNew = true",
    seed: 27_502
  },
  "programs work on for ever": {
    file: "src/app/Platform.ts",
    from: "lease: orphanGrace,",
    to: "lease: Duration.days(1),",
    seed: 27_505
  },
  "an exit that a keeper has recorded is lost": {
    file: "src/runs/keeper/KeeperProgram.ts",
    from: "if (exit !== undefined) this.exitedWith(exit)",
    to: "if (exit !== undefined) this.exitedWith({ code: null, signal: null })",
    seed: 27_501
  },
  "what was told has no place in the log": {
    file: "src/agents/run/RunEvents.ts",
    from: "run: this.runId, ...this.place, ...(said",
    to: "run: this.runId, ...(said",
    seed: 27_503
  },
  "a process is known by its pid alone": {
    file: "src/plates/ProcessLiveness.ts",
    from: "known.some(({ pid, start }) => this.registry.processes.isAlive({ pid, start: start! }))",
    to: "known.some(({ pid }) => this.registry.processes.identify(pid).start !== 0)",
    seed: 10_022
  },
  "a time of a schedule is not settled by its run": {
    file: "src/schedules/ScheduleState.ts",
    from: "upTo: asked && entry.once === null ? entry.upTo : Math.max(entry.upTo, due),",
    to: "upTo: entry.upTo,",
    seed: 50_004
  },
  "a merge leaves a work out": {
    file: "src/goals/Goals.ts",
    from: "const works = ReviewGate.worksOf(goal.plan)",
    to: "const works = ReviewGate.worksOf(goal.plan).slice(0, 1)",
    seed: 233
  }
}
