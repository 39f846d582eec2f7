/** `agentd log`: the rune log, one rune a line; `-f` goes on with what comes. */
import { Clock, Console, Effect, Stream } from "effect"
import { call, type Client } from "../rpc/ControlClient.ts"
import { didYouMean } from "../config/ConfigProblem.ts"
import type { Caller } from "../domain/Messages.ts"
import { DAEMON_STREAM, type Rune } from "../event-log/Rune.ts"
import { hint, Invocation } from "./Invocation.ts"
import { clock, cut, paint, plain, stateColour } from "./Output.ts"
import type { Moment } from "./Moment.ts"

/** Shown when nobody says how many. */
const NEWEST = 50
/** So much of a payload says what it is about, where no terminal says how wide it is. */
const PAYLOAD = 160

export interface Input {
  readonly follow: boolean
  readonly stream: string | undefined
  readonly agent: string | undefined
  readonly since: Moment | undefined
  readonly kinds: ReadonlyArray<string>
  readonly lines: number | undefined
}

/** Long, or said by the columns before it. */
const LEFT_OUT = new Set(["_tag", "at", "prompt", "initial"])

/** `Error: exit code 3` for a tagged value, else its JSON. */
const told = (value: unknown): string => {
  if (typeof value === "string") return value
  if (typeof value !== "object" || value === null || !("_tag" in value)) return JSON.stringify(value)
  const { _tag, ...rest } = value
  const facts = Object.values(rest).map((fact) => (typeof fact === "string" ? fact : JSON.stringify(fact)))
  return [String(_tag), ...facts].join(": ")
}

/** The machine event's fields, else the payload's: on one line. */
const short = ({ payload }: Rune): string => {
  const { event } = payload
  const fields = typeof event === "object" && event !== null ? event : payload
  if ("text" in fields && typeof fields.text === "string") return plain(fields.text)
  const parts = Object.entries(fields)
    .filter(([name, value]) => !LEFT_OUT.has(name) && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => `${name}=${told(value)}`)
  return plain(parts.join(" "))
}

export const lineOf = (
  rune: Rune,
  now: number,
  options: { readonly colour: boolean; readonly columns: number | null }
) => {
  const { colour, columns } = options
  const move = rune.to === null ? "" : rune.from === rune.to || rune.from === null ? rune.to : `${rune.from}→${rune.to}`
  const parts = [
    [clock(rune.at, now), "dim"],
    [plain(`${rune.stream}/${rune.actor}`), undefined],
    [rune.kind, "bold"],
    [move, rune.to === null ? undefined : stateColour(rune.to)],
    [rune.trigger ?? "", undefined]
  ] as const
  const shown = parts.filter(([text]) => text !== "")
  const used = shown.reduce((width, [text]) => width + text.length + 2, 0)
  const payload = cut(short(rune), columns === null ? PAYLOAD : Math.max(20, columns - used))
  return [...shown.map(([text, as]) => paint(colour, as, text)), paint(colour, "dim", payload)].join("  ").trimEnd()
}

/** A kind that the daemon does not write is likely a slip; an older one may have, so it is asked for all the same. */
const checkKinds = Effect.fnUntraced(function* (client: Client, asked: ReadonlyArray<string>) {
  const kinds = yield* client.Kinds()
  for (const kind of asked.filter((each) => !kinds.includes(each))) {
    const near = didYouMean(kind, kinds)
    const family = kinds.filter((each) => each.startsWith(`${kind.split(".")[0]}.`))
    const meant = near === undefined ? "" : ` Did you mean "${near}"?`
    const some = near !== undefined || family.length === 0 ? "" : ` There are: ${family.join(", ")}.`
    yield* Console.error(`agentd: no rune is of a kind "${plain(kind)}".${meant}${some}`)
  }
})

/** Said when nothing was found in a stream: whether there is one. */
const checkStream = Effect.fnUntraced(function* (client: Client, stream: string, caller: Caller) {
  const some = yield* Stream.runCollect(client.Log({ stream, tail: 1, follow: false, caller }))
  if (some.length > 0) return
  const streams = [DAEMON_STREAM, ...(yield* client.Conversations()).map(({ conversation }) => conversation)]
  const near = didYouMean(stream, streams)
  const meant = near === undefined ? "" : ` Did you mean "${near}"?`
  const where = yield* hint("agentd conversation ls --all, agentd plates --all")
  yield* Console.error(
    `agentd: no stream "${plain(stream)}" has runes.${meant}\n  → See which there are: ${where}; and daemon.`
  )
})

export const run = Effect.fnUntraced(function* (input: Input) {
  const { caller, colour, columns, json, paths } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const since =
    input.since === undefined ? undefined : input.since._tag === "At" ? input.since.at : now - input.since.millis
  const tail = input.lines ?? (since === undefined ? NEWEST : undefined)
  const { kinds, stream } = input
  let printed = 0
  yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      if (kinds.length > 0) yield* checkKinds(client, kinds)
      const runes = client.Log({
        follow: input.follow,
        caller,
        ...(stream === undefined ? {} : { stream }),
        ...(input.agent === undefined ? {} : { agent: input.agent }),
        ...(kinds.length === 0 ? {} : { kinds }),
        ...(since === undefined ? {} : { since }),
        ...(tail === undefined ? {} : { tail })
      })
      yield* Stream.runForEach(runes, (rune) => {
        printed++
        return Console.log(json ? JSON.stringify(rune) : lineOf(rune, now, { colour, columns }))
      })
      if (printed === 0 && stream !== undefined) yield* checkStream(client, stream, caller)
    })
  )
})
