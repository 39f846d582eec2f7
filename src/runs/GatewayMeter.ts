/**
 * GatewayMeter: reports the token usage of a run whose tokens the gateway counts. The gateway's sums replace the usage
 * that the agent reports. It also reports the account limits that the provider's answers contain.
 *
 * Guarantees: Usage is reported before the end of its turn and of its run, otherwise within about 250 ms. If a run
 * answers and no request has passed the gateway, a notice says that it is not metered. The gateway and its sums survive
 * the daemon: the next daemon reports the requests that passed while no daemon ran.
 */
import { Effect, Stream } from "effect"
import type { Run, RunEvent } from "./Backend.ts"
import type { Count } from "./gateway/Gateway.ts"
import type { ToldWindows } from "./gateway/LimitHeaders.ts"

const LOOK = "250 millis"

const ENDS: ReadonlySet<RunEvent["_tag"]> = new Set(["TurnCompleted", "TurnInterrupted", "TurnError", "Exited"])

/** Returns an empty usage event that replaces the usage reported by the agent. */
const nothing = ({ place }: RunEvent): RunEvent => ({
  _tag: "Usage",
  inputTokens: 0,
  outputTokens: 0,
  ...(place === undefined ? {} : { place })
})

/** Reports the token sums if they have changed since the last report. */
const sums = () => {
  let before = ""
  return ({ opened, tokens = [] }: Passed): ReadonlyArray<RunEvent> => {
    const now = JSON.stringify([opened, tokens])
    if (opened === undefined || tokens.length === 0 || now === before) return []
    before = now
    return [{ _tag: "Passed", route: opened, tokens }]
  }
}

/** Reports the limit windows if they have changed since the last report. */
const changes = () => {
  let before = ""
  return (told: ToldWindows | undefined): ReadonlyArray<RunEvent> => {
    const now = JSON.stringify(told ?? null)
    if (told === undefined || now === before) return []
    before = now
    return [{ _tag: "Windows", ...told }]
  }
}

const ABOUT = "its metering at the gateway"
const BYPASSED: RunEvent = {
  _tag: "Notice",
  text: "it answered, but none of its requests passed the gateway: no usage is counted, and its limits have no effect. Check that its program uses the address that agentd gives it",
  lasting: { about: ABOUT, isOver: false }
}
const FOUND: RunEvent = {
  _tag: "Notice",
  text: "its requests pass the gateway",
  lasting: { about: ABOUT, isOver: true }
}

/** Reports once if a run answers although no request passed the gateway, and once when a request has passed later. */
const watch = () => {
  let [hasTurns, isTold, hasPassed] = [false, false, false]
  const hears = (said: ReadonlyArray<RunEvent>): void => {
    hasTurns ||= said.some(({ _tag }) => _tag === "TurnStarted")
  }
  const tells = (said: ReadonlyArray<RunEvent>, { tokens = [] }: Passed): ReadonlyArray<RunEvent> => {
    const was = hasPassed
    hasPassed ||= tokens.length > 0
    if (isTold && hasPassed && !was) return [FOUND]
    const answered = said.some(
      (event) =>
        event._tag === "TurnCompleted" ||
        // a command has no turns: its successful exit counts as its answer
        (event._tag === "Exited" && event.outcome._tag === "Success" && !hasTurns)
    )
    if (!answered || hasPassed || isTold) return []
    isTold = true
    return [BYPASSED]
  }
  return { hears, tells }
}

/** Reports each failed request that the program retries by itself. */
const failures = () => {
  let before = 0
  return ({ failing }: Passed): ReadonlyArray<RunEvent> => {
    const was = before
    before = failing?.times ?? 0
    if (failing === undefined || before === was) return []
    const { since, times, words } = failing
    const often = times === 1 ? "a request" : `${times} requests in a row`
    return [{ _tag: "Notice", text: `${often} of its model failed: the last one ${words}`, retries: { since } }]
  }
}

/** The gateway's counts for a run's route. */
export type Passed = Partial<Pick<Count, "failing" | "opened" | "told" | "tokens">>

/**
 * Returns the counts since the route was opened. `isOver`: true if the run has ended, so that the gateway need not wait
 * for more counts.
 */
export type PassedBy = (isOver: boolean) => Effect.Effect<Passed>

/** Adds the gateway's counts to a run's events. `passed`: undefined if the run has no gateway. */
export const metered = (run: Run, passed: PassedBy | undefined): Run => {
  if (passed === undefined) return run
  const [all, change, bypass, fail] = [sums(), changes(), watch(), failures()]
  const looked = (said: ReadonlyArray<RunEvent>) =>
    Effect.map(passed(said.some(({ _tag }) => _tag === "Exited")), (counts) => [
      ...change(counts.told),
      ...all(counts),
      ...bypass.tells(said, counts),
      ...fail(counts)
    ])
  const look = looked([])
  const own = run.events.pipe(
    // Usage is reported together with the turn's end. Otherwise a budget could interrupt a turn that is already
    // complete.
    Stream.mapArrayEffect((events) => {
      bypass.hears(events)
      const said = events.map((event) => (event._tag === "Usage" ? nothing(event) : event))
      const at = said.findIndex(({ _tag }) => ENDS.has(_tag))
      const all = at < 0 ? Effect.succeed(said) : Effect.map(looked(said), (spent) => said.toSpliced(at, 0, ...spent))
      return Effect.map(all, ([first = said[0]!, ...rest]) => [first, ...rest] as const)
    })
  )
  const looks = Stream.tick(LOOK).pipe(
    Stream.mapEffect(() => look),
    Stream.flatMap(Stream.fromIterable)
  )
  return { ...run, events: Stream.merge(own, looks, { haltStrategy: "left" }) }
}
