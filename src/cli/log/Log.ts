/** `agentd log`: prints the rune log, one rune per line; with -f it also prints new runes. */
import { Clock, Console, Effect, Stream } from "effect"
import { call, type Client } from "../../api/rpc/ControlClient.ts"
import { didYouMean } from "../../config/DidYouMean.ts"
import type { Caller } from "../../domain/Messages.ts"
import { DAEMON_STREAM } from "../../core/event-log/Rune.ts"
import type { LogSelection } from "../../board/DaemonMessages.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { hint, Invocation } from "../parse/Invocation.ts"
import { lineOf, type LogInput, selectionOf } from "./LogView.ts"
import { plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/**
 * Warns of a rune kind that the daemon does not write, which is probably a typo. The command continues, because an
 * older daemon might have written runes of this kind.
 */
const checkKinds = Effect.fnUntraced(function* (client: Client, asked: ReadonlyArray<string>) {
  const kinds = yield* client.Kinds()
  const unknown = asked.filter((each) => !kinds.includes(each))
  for (const kind of unknown) {
    const near = didYouMean(kind, kinds)
    const family = kinds.filter((each) => each.startsWith(`${kind.split(".")[0]}.`))
    const meant = near === undefined ? "" : ` Did you mean "${near}"?`
    const some = near !== undefined || family.length === 0 ? "" : ` Similar kinds: ${family.join(", ")}.`
    yield* Console.error(`agentd: there is no kind of rune "${plain(kind)}".${meant}${some}`)
  }
  return unknown
})

/** Explains an empty result on standard error: all matching runes are internal, or the stream does not exist. */
const checkNone = Effect.fnUntraced(function* (client: Client, asked: LogSelection, caller: Caller) {
  const any = (of: Partial<LogSelection>) =>
    Stream.runCollect(client.Log({ ...of, internal: true, tail: 1, follow: false, caller }))
  if (asked.internal !== true && (yield* any(asked)).length > 0)
    return yield* Console.error("agentd: all matching runes are internal. To show them, add --internal.")
  const { stream } = asked
  if (stream === undefined || (yield* any({ stream })).length > 0) return
  const streams = [DAEMON_STREAM, ...(yield* client.Conversations()).map(({ conversation }) => conversation)]
  const near = didYouMean(stream, streams)
  const meant = near === undefined ? "" : ` Did you mean "${near}"?`
  const where = yield* hint("agentd project ls --conversations --all, agentd ps --plates --all")
  yield* Console.error(
    `agentd: no stream "${plain(stream)}" has runes.${meant}\n  → List the streams: ${where}. The daemon's own stream is called daemon.`
  )
})

export const run = Effect.fnUntraced(function* (input: LogInput) {
  const { caller, colour, columns, json, paths } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const { kinds } = input
  let printed = 0
  yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const unknown = kinds.length > 0 ? yield* checkKinds(client, kinds) : []
      const asked = selectionOf(input, caller, now)
      yield* Stream.runForEach(client.Log(asked), (rune) => {
        printed++
        return Console.log(json ? jsonOf(rune) : lineOf(rune, now, { colour, columns }))
      })
      if (printed === 0 && kinds.length > 0 && unknown.length === kinds.length)
        return yield* new VerbFailed({
          message: "No rune has this kind.",
          remedy: "List the kinds: agentd docs reference/runes",
          exitCode: ExitCode.failed
        })
      if (printed === 0 && asked.tail !== 0) yield* checkNone(client, asked, caller)
    })
  )
})
