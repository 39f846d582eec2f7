/**
 * ControlHandlers: what each procedure of the control protocol does.
 *
 * Guarantees: inputs are checked first; calls under way are counted and bounded;
 * nothing here holds state of its own but that count.
 */
import { Clock, Effect, Stream } from "effect"
import { Fleet } from "../agents/Fleet.ts"
import { workerAddress } from "../agents/Recovery.ts"
import * as Why from "../agents/Why.ts"
import { type AgentInfo, type Caller, CommandRefused } from "../domain/Messages.ts"
import { type Decision, Plates } from "../plates/Plates.ts"
import { RuneLog, type StorageError } from "../runes/RuneLog.ts"
import { DaemonControl } from "./DaemonControl.ts"
import { bounded, checkCaller, checkNamed, checkSelection, checkText } from "./Inputs.ts"
import { actorsOf, open, select } from "./LogReader.ts"
import { Control, Limits, type LogSelection, type StateCount, type VerifyEvent } from "./Protocol.ts"

/** So many moves of an agent are enough to say why it is where it is. */
const WHY_RUNES = 400

/** Counts the calls under way and refuses those beyond the limit. */
const makeAdmission = () => {
  let open = 0
  const acquire = Effect.suspend(() => {
    if (open >= Limits.calls) {
      return Effect.fail(
        new CommandRefused({
          message: `${Limits.calls} calls are under way already.`,
          remedy: "Try again in a moment; end some `agentd log -f`."
        })
      )
    }
    open++
    return Effect.void
  })
  const release = Effect.sync(() => {
    open--
  })
  return {
    call: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        acquire,
        () => effect,
        () => release
      ),
    stream: <A, E, R>(stream: Stream.Stream<A, E, R>) =>
      Stream.unwrap(
        Effect.as(
          Effect.acquireRelease(acquire, () => release),
          stream
        )
      )
  }
}

export const countStates = (agents: ReadonlyArray<AgentInfo>): ReadonlyArray<StateCount> => {
  const counts = new Map<string, StateCount>()
  for (const { state, restsOn } of agents) {
    const before = counts.get(state)
    counts.set(state, {
      state,
      agents: (before?.agents ?? 0) + 1,
      restsOn: Math.max(before?.restsOn ?? 0, restsOn)
    })
  }
  return [...counts.values()].toSorted((a, b) => a.state.localeCompare(b.state))
}

/** The log's check of itself, with a sign of life each second. */
const verifying = (log: RuneLog["Service"]): Stream.Stream<VerifyEvent, StorageError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const started = yield* Clock.currentTimeMillis
      const runes = yield* log.head
      const beat = Stream.tick("1 second").pipe(
        Stream.drop(1),
        Stream.mapEffect(() => Clock.currentTimeMillis),
        Stream.map((now): VerifyEvent => ({ _tag: "Progress", elapsed: now - started }))
      )
      const verdict = Stream.fromEffect(log.verify).pipe(
        Stream.map((found): VerifyEvent => ({ _tag: "Verdict", ...found }))
      )
      return Stream.concat(
        Stream.succeed<VerifyEvent>({ _tag: "Started", runes }),
        Stream.merge(verdict, beat, { haltStrategy: "left" })
      )
    })
  )

const reading = (log: RuneLog["Service"], fleet: Fleet["Service"]) =>
  Effect.fnUntraced(function* (input: LogSelection) {
    yield* checkSelection(input)
    const agent = input.agent === undefined ? undefined : yield* fleet.agent(input.agent, input.caller)
    const stream = agent?.conversation ?? input.stream
    const selection = {
      ...(input.after === undefined ? {} : { after: input.after }),
      ...(input.since === undefined ? {} : { since: input.since }),
      ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
      ...(stream === undefined ? {} : { stream })
    }
    return select(log, selection, agent === undefined ? undefined : actorsOf(agent.agent), input)
  })

const explaining = (log: RuneLog["Service"], fleet: Fleet["Service"]) =>
  Effect.fnUntraced(function* (name: string, caller: Caller) {
    const agent = yield* fleet.agent(name, caller)
    const selection = { stream: agent.conversation, actor: workerAddress(agent.agent), kinds: Why.kinds }
    const runes = yield* log.tail(selection, WHY_RUNES)
    return { agent, ...Why.why(runes.filter(open), agent) }
  })

/** A session that is refused something is told something. */
const decisionOf = (behavior: "allow" | "deny", reason: string): Decision =>
  behavior === "allow" ? { behavior } : { behavior, message: reason.trim() || "Refused by the user." }

export const layer = Control.toLayer(
  Effect.gen(function* () {
    const fleet = yield* Fleet
    const log = yield* RuneLog
    const plates = yield* Plates
    const daemon = yield* DaemonControl
    const admit = makeAdmission()

    const command = <A, E>(
      input: { readonly name: string; readonly caller: Caller },
      run: (name: string, caller: Caller) => Effect.Effect<A, E>
    ) => admit.call(Effect.andThen(checkNamed(input), run(input.name, input.caller)))

    return Control.of({
      Status: () =>
        Effect.gen(function* () {
          const status = yield* daemon.status
          const now = yield* Clock.currentTimeMillis
          return {
            daemon: status,
            uptime: Math.max(0, now - status.startedAt),
            projects: yield* fleet.projects,
            states: countStates(yield* fleet.agents)
          }
        }),
      Register: ({ caller, config }) =>
        admit.call(
          bounded("config", config, Limits.pathLength).pipe(
            Effect.andThen(checkCaller(caller)),
            Effect.andThen(fleet.register(config, caller))
          )
        ),
      Projects: () => fleet.projects,
      Agents: () => fleet.agents,
      Agent: (input) => command(input, fleet.agent),
      Start: (input) => command(input, fleet.start),
      Stop: (input) => command(input, fleet.stop),
      Restart: (input) => command(input, fleet.restart),
      Interrupt: (input) => command(input, fleet.interrupt),
      Send: (input) =>
        command(input, (name, caller) =>
          Effect.andThen(checkText(input.text), fleet.send(name, { text: input.text, urgent: input.urgent }, caller))
        ),
      Plates: ({ all }) => plates.list({ closed: all }),
      Plate: ({ name }) => admit.call(Effect.andThen(bounded("name", name, Limits.nameLength), plates.find(name))),
      ForgetPlate: (input) => command(input, plates.forget),
      Answer: (input) =>
        command(input, (name, caller) =>
          Effect.andThen(
            bounded("reason", input.reason, Limits.reasonLength),
            plates.answer(name, decisionOf(input.decision, input.reason), caller)
          )
        ),
      Log: (input) => admit.stream(Stream.unwrap(reading(log, fleet)(input))),
      Why: (input) => command(input, explaining(log, fleet)),
      Verify: () => admit.stream(verifying(log)),
      AlertTest: () => admit.call(daemon.alertTest),
      Shutdown: ({ by, reason }) =>
        Effect.gen(function* () {
          yield* bounded("reason", reason, Limits.reasonLength)
          yield* bounded("by", by, Limits.nameLength)
          const { pid } = yield* daemon.status
          yield* daemon.shutdown(reason, by)
          return { pid }
        }),
      Doctor: () => daemon.checks
    })
  })
)
