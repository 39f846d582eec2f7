/**
 * ListenerStatus: the addresses on which the daemon serves HTTP, and the reason if it cannot. Written by the HTTP
 * server, and read by `status` and `doctor`.
 */
import { Context, Effect, Latch, Layer, Ref, Schema } from "effect"

export const Report = Schema.Struct({
  /** Path of the unix socket; null while the server does not listen there. */
  socket: Schema.NullOr(Schema.String),
  /** The port on 127.0.0.1; null if no port is configured. */
  port: Schema.NullOr(Schema.Int),
  listening: Schema.Boolean,
  /**
   * The reason why the server does not listen on the port, with a remedy; null if it listens, or if no port is
   * configured.
   */
  problem: Schema.NullOr(
    Schema.Struct({
      message: Schema.String,
      remedy: Schema.String,
      /** True if a program of another user has the port. */
      foreign: Schema.optionalKey(Schema.Boolean),
      /** Time since which the problem has existed, in ms since the epoch. */
      since: Schema.optionalKey(Schema.Finite)
    })
  ),
  /** Service workers of other programs, each with the page that found the worker at its origin. */
  workers: Schema.optionalKey(Schema.Array(Schema.String))
})
export type Report = typeof Report.Type
export type Problem = NonNullable<Report["problem"]>

export class ListenerStatus extends Context.Service<
  ListenerStatus,
  {
    readonly report: Effect.Effect<Report>
    readonly update: (change: Partial<Report>) => Effect.Effect<void>
    /** Requests that the server listens on a port even if the config names none. */
    readonly ask: Effect.Effect<void>
    /** Waits until a port is requested for the first time (`ask`). */
    readonly asked: Effect.Effect<void>
    /** Opens a free port for one page, and returns it. */
    readonly openPage: Effect.Effect<number, Problem>
    /** Sets the effect that `openPage` runs. The server calls this when it is ready. */
    readonly opensPages: (open: Effect.Effect<number, Problem>) => Effect.Effect<void>
    /** Records why the daemon cannot listen on the port of a page; null if it can. */
    readonly page: (port: number, problem: Problem | null) => Effect.Effect<void>
  }
>()("agentd/http/Listening") {}

export const layer: Layer.Layer<ListenerStatus> = Layer.effect(
  ListenerStatus,
  Effect.gen(function* () {
    const ref = yield* Ref.make<Report>({ socket: null, port: null, listening: false, problem: null })
    const pages = new Map<number, Problem>()
    let opens: Effect.Effect<number, Problem> = Effect.fail({
      message: "the daemon does not listen on its port yet",
      remedy: "Try again in a moment."
    })
    const asked = yield* Latch.make(false)
    return ListenerStatus.of({
      report: Effect.map(Ref.get(ref), (report) => ({
        ...report,
        problem: report.problem ?? [...pages.values()][0] ?? null
      })),
      update: (change) => Ref.update(ref, (report) => ({ ...report, ...change })),
      ask: asked.open,
      asked: asked.await,
      openPage: Effect.suspend(() => opens),
      opensPages: (open) => Effect.sync(() => void (opens = open)),
      page: (port, problem) =>
        Effect.sync(() => void (problem === null ? pages.delete(port) : pages.set(port, problem)))
    })
  })
)

/** The listener's status as a finding of `doctor`. */
export const check = ({ listening, port, problem, socket, workers = [] }: Report) => {
  const finding = (level: "ok" | "warn" | "fail", detail: string, remedy: string | null) => ({
    name: "http",
    level,
    detail,
    remedy
  })
  if (problem !== null) return finding(problem.foreign === true ? "fail" : "warn", problem.message, problem.remedy)
  if (workers.length > 0)
    return finding(
      "fail",
      `a browser had a service worker that is not agentd's, at a page's own origin: ${workers.join(", ")}`,
      "Another program had the port while that page was loaded. Revoke the page's access and open it again: agentd access revoke ID, then: agentd open"
    )
  if (port === null) return finding("ok", `${socket ?? "no socket"}; no port is listened on`, null)
  return listening
    ? finding("ok", `http://127.0.0.1:${port} and ${socket ?? "no socket"}`, null)
    : finding("warn", `it does not listen on port ${port} yet`, "Look again in a moment.")
}
