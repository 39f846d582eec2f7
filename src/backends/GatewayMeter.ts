/**
 * GatewayMeter: a run whose tokens the gateway counts: what passed it is told as the run's spending, and what the
 * agent itself says of that is not; with it what the answers said of the account's limits.
 *
 * Guarantees: what has passed is told before the end of its turn, and of its run; else within a moment. A gateway
 * that was started anew begins its sums anew: nothing is told twice.
 */
import { Effect, Stream } from "effect"
import type { Run, RunEvent } from "./Backend.ts"
import type { Count, ModelTokens } from "../gateway/Gateway.ts"
import type { ToldWindows } from "../gateway/LimitHeaders.ts"

const LOOK = "250 millis"

const ENDS: ReadonlySet<RunEvent["_tag"]> = new Set(["TurnCompleted", "TurnInterrupted", "TurnError", "Exited"])

const NONE: Omit<ModelTokens, "model"> = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

/** In the place of what the agent says itself. */
const NOTHING: RunEvent = { _tag: "Usage", inputTokens: 0, outputTokens: 0 }

/** A sum that became smaller has begun anew. */
const since = (now: number, before: number): number => (now < before ? now : now - before)

/** Each sum as the difference to the one before. */
const differences = () => {
  const told = new Map<string, ModelTokens>()
  return (all: ReadonlyArray<ModelTokens>): ReadonlyArray<RunEvent> =>
    all.flatMap((now): ReadonlyArray<RunEvent> => {
      const { model } = now
      const before = told.get(model) ?? NONE
      told.set(model, now)
      const inputTokens = since(now.input, before.input)
      const outputTokens = since(now.output, before.output)
      if (inputTokens + outputTokens === 0) return []
      const cacheRead = since(now.cacheRead, before.cacheRead)
      const cacheWrite = since(now.cacheWrite, before.cacheWrite)
      return [{ _tag: "Usage", inputTokens, outputTokens, cacheRead, cacheWrite, ...(model === "" ? {} : { model }) }]
    })
}

/** The windows, where they are others than they were told to be. */
const changes = () => {
  let before = ""
  return (told: ToldWindows | undefined): ReadonlyArray<RunEvent> => {
    const now = JSON.stringify(told ?? null)
    if (told === undefined || now === before) return []
    before = now
    return [{ _tag: "Windows", ...told }]
  }
}

/** The counts of a run's route. */
export type Passed = Pick<Count, "told" | "tokens">

/** `passed`: all that has passed since the run began; undefined: nobody counts. What passed before it was taken up counts no more. */
export const metered = (run: Run, passed: Effect.Effect<Passed> | undefined, isTakenUp = false): Run => {
  if (passed === undefined) return run
  const [all, change] = [differences(), changes()]
  let isFirst = isTakenUp
  const difference = (sums: ReadonlyArray<ModelTokens>) => {
    const spent = all(sums)
    // an earlier daemon told of it
    if (!isFirst) return spent
    isFirst = false
    return []
  }
  const look = Effect.map(passed, ({ told, tokens = [] }) => [...change(told), ...difference(tokens)])
  const own = run.events.pipe(
    // told together with the end, lest a budget cuts off what is done
    Stream.mapArrayEffect((events) => {
      const said = events.map((event) => (event._tag === "Usage" ? NOTHING : event))
      const at = said.findIndex(({ _tag }) => ENDS.has(_tag))
      const all = at < 0 ? Effect.succeed(said) : Effect.map(look, (spent) => said.toSpliced(at, 0, ...spent))
      return Effect.map(all, ([first = NOTHING, ...rest]) => [first, ...rest] as const)
    })
  )
  const looks = Stream.tick(LOOK).pipe(
    Stream.mapEffect(() => look),
    Stream.flatMap(Stream.fromIterable)
  )
  return { ...run, events: Stream.merge(own, looks, { haltStrategy: "left" }) }
}
