/**
 * HostNews: follows the rows of a host over one connection that is held, for as long as somebody looks.
 *
 * Guarantees: a host that does not answer is tried again for ever, another machine at most every 30 s.
 */
import { Clock, Effect, Stream } from "effect"
import { call, type DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import { isFar } from "../../config/Host.ts"
import type { BoardNews } from "../../domain/BoardMessages.ts"
import type { HostRows } from "./HostRows.ts"
import { lastSeen, noted } from "./LastSeen.ts"

/** Interval in ms between attempts to reach a host, which is doubled for another machine. */
const AGAIN = 1_000
const AGAIN_FAR = 30_000

/** Time in ms for which a list waits for a host. */
export const LIMIT = 3_000
export const late = { message: "there was no answer within 3 s.", remedy: "Try it alone, with --host." }

export interface Lost extends Partial<Pick<DaemonUnreachable, "reason">> {
  readonly message: string
  readonly remedy: string
}

export interface Following<R> {
  /** State directory of this machine's daemon. */
  readonly state: string
  /** `isFirst`: the first news of a connection, with all rows of the host. */
  readonly heard: (news: Pick<BoardNews, "gone" | "rows">, isFirst: boolean) => Effect.Effect<unknown, never, R>
  /** `seen`: when the host has last answered, in ms since the epoch; 0: unknown. */
  readonly lost: (lost: Lost, seen: number) => Effect.Effect<unknown, never, R>
}

export const follow = <R>(host: HostRows, { heard, lost, state }: Following<R>) => {
  const { address, name } = host
  let pause = AGAIN
  let last = 0
  const connected = Effect.gen(function* () {
    let isFirst = true
    const ended = yield* call(address, (client) =>
      Stream.runForEach(client.BoardNews({ follow: true }), (news) =>
        Effect.gen(function* () {
          host.client = client
          if (isFirst && name !== null) yield* noted(state, name)
          yield* heard(host.hear(news, isFirst), isFirst)
          isFirst = false
        })
      )
    ).pipe(
      Effect.match({
        onSuccess: (): Lost => ({ message: "The daemon has ended.", remedy: "Start it again: agentd start" }),
        onFailure: (error): Lost => ({
          message: error.message,
          remedy: "remedy" in error ? error.remedy : "",
          ...("reason" in error ? { reason: error.reason } : {})
        })
      })
    )
    host.client = undefined
    if (!isFirst) {
      last = yield* Clock.currentTimeMillis
      pause = AGAIN
    }
    yield* lost(ended, last > 0 ? last : yield* lastSeen(state, name))
    yield* Effect.sleep(pause)
    if (isFar(address)) pause = Math.min(AGAIN_FAR, pause * 2)
  })
  return connected.pipe(Effect.forever, Effect.ensuring(Effect.sync(() => (host.client = undefined))))
}

/** Says that a host of several has not answered yet. */
export const lateness = <R>(host: HostRows, { lost, state }: Following<R>) =>
  Effect.sleep(LIMIT).pipe(
    Effect.andThen(lastSeen(state, host.name)),
    Effect.flatMap((seen) => (host.client !== undefined || host.isSilent ? Effect.void : lost(late, seen)))
  )
