/**
 * `agentd log --text`: prints the output of agents and agentd's decisions about them as log lines; with -f, new lines
 * are printed, too.
 *
 * Guarantees: however long the log is, only the requested lines are held in memory. No text from agents can control the
 * terminal. Without -f the command ends by itself, and works without the daemon, too.
 */
import { agentOf } from "../../board/ConversationView.ts"
import { Clock, Console, Effect, Stream } from "effect"
import type { Rune } from "../../core/event-log/Rune.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { following } from "./Following.ts"
import { Invocation } from "../parse/Invocation.ts"
import { definedOf, onSource, refused, type Source } from "./LogSource.ts"
import { type Chosen, chosen } from "./LogsChoice.ts"
import { type Entry, KINDS, lineOf, LogsView, Names, type Style, valueOf, type What } from "./LogsView.ts"
import { atOf, type TimeExpression } from "../parse/TimeExpression.ts"
import { plain } from "../render/Output.ts"
import { READS, runNamed, runsOf } from "./Runs.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

export interface Input {
  readonly names: ReadonlyArray<string>
  readonly follow: boolean
  readonly lines: number | undefined
  readonly grep: RegExp | undefined
  readonly since: TimeExpression | undefined
  readonly until: TimeExpression | undefined
  readonly level: number | undefined
  readonly only: What | undefined
  readonly run: string | undefined
  readonly style: Style
  readonly utc: boolean
  readonly ascii: boolean
}

/** Number of existing lines that are printed with -f. */
const FOLLOWED = 10
/**
 * Maximum and minimum number of newest runes that are read at once. The number is limited because runes can be long,
 * and the daemon keeps all of them in memory.
 */
const MOST = 2_000
const LEAST = 200
/** Number of newest runes in which a run is searched for. */
const OF_RUNS = 10_000

class Newest {
  private kept: Array<Entry> = []
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  add(entries: ReadonlyArray<Entry>): void {
    for (const entry of entries) this.kept.push(entry)
    if (this.kept.length > 2 * this.most + 1_000) this.kept = this.kept.slice(-this.most)
  }

  get all(): ReadonlyArray<Entry> {
    return this.most === 0 ? [] : this.kept.slice(-this.most)
  }
}

interface Asked {
  readonly input: Input
  readonly chosen: Chosen
  readonly since: number | undefined
  readonly until: number | undefined
  /** Ids of the requested runs; undefined: all runs are requested. */
  readonly runs: ReadonlySet<string> | undefined
  readonly print: (entries: ReadonlyArray<Entry>) => Effect.Effect<void>
}

const isAsked = ({ chosen, input, runs, since, until }: Asked, entry: Entry): boolean =>
  chosen.nameOf(entry.conversation, entry.agent) !== undefined &&
  (since === undefined || entry.at >= since) &&
  (until === undefined || entry.at <= until) &&
  (input.level === undefined || entry.level <= input.level) &&
  (input.only === undefined || entry.what === input.only) &&
  (runs === undefined || (entry.run !== null && runs.has(entry.run))) &&
  (input.grep === undefined || input.grep.test(entry.text))

/** True if all lines of the selected agents are requested. The newest lines are then at the end of the log. */
const isWhole = ({ input, runs, until }: Asked): boolean =>
  until === undefined &&
  runs === undefined &&
  input.level === undefined &&
  input.only === undefined &&
  input.grep === undefined

/**
 * Reads the log and prints the matching lines. `after`: only runes after this eventId can match; undefined if unknown.
 */
const read = Effect.fnUntraced(function* (source: Source, asked: Asked, after: number | undefined) {
  const { chosen, input, since } = asked
  const selection = definedOf({ agent: chosen.only, since, after, kinds: KINDS })
  const most = input.lines ?? (input.follow ? FOLLOWED : undefined)
  let [last, printed] = [0, 0]
  /** Reads runes, and passes all matching lines to `take`. `isAll` in the result: true if the whole log was read. */
  const feed = Effect.fnUntraced(function* (
    tail: number | undefined,
    take: (entries: ReadonlyArray<Entry>) => Effect.Effect<void>
  ) {
    const view = new LogsView()
    let [count, newest]: [number, Rune | undefined] = [0, undefined]
    const some = (entries: ReadonlyArray<Entry>) => {
      const kept = entries.filter((entry) => isAsked(asked, entry))
      printed += kept.length
      return kept.length === 0 ? Effect.void : take(kept)
    }
    yield* Stream.runForEach(source.log({ ...selection, ...(tail === undefined ? {} : { tail }) }), (rune) => {
      count++
      newest = rune
      last = Math.max(last, rune.eventId)
      return chosen.nameOf(rune.stream, agentOf(rune)) === undefined ? Effect.void : some(view.feed(rune))
    })
    if (!input.follow && newest !== undefined) yield* some(view.flush(newest))
    return { view, isAll: tail === undefined || count < tail }
  })
  if (most === undefined) {
    const { view } = yield* feed(undefined, asked.print)
    return { view, last, printed }
  }
  let tail = isWhole(asked) ? Math.max(LEAST, 4 * most) : undefined
  for (;;) {
    printed = 0
    const newest = new Newest(most)
    const { isAll, view } = yield* feed(tail !== undefined && tail <= MOST ? tail : undefined, (entries) =>
      Effect.sync(() => newest.add(entries))
    )
    if (isAll || newest.all.length >= most) {
      yield* asked.print(newest.all)
      return { view, last, printed }
    }
    tail = tail === undefined ? undefined : tail * 4
  }
})

/**
 * The runs that --run selects among the runs of the selected agents, and the eventId directly before the first of them.
 */
const runsNamed = Effect.fnUntraced(function* (source: Source, chosen: Chosen, name: string) {
  const reads = yield* Effect.forEach(READS, (kinds) =>
    Stream.runCollect(source.log(definedOf({ agent: chosen.only, kinds, tail: OF_RUNS })))
  )
  const rows = runsOf(reads, OF_RUNS).filter(
    ({ agent, conversation }) => chosen.nameOf(conversation, agent) !== undefined
  )
  const found = runNamed(rows, name)
  if (found.length > 0)
    return {
      ids: new Set(found.map(({ run }) => run)),
      after: Math.min(...found.map(({ beginsWith }) => beginsWith)) - 1
    }
  return yield* new VerbFailed({
    message: `No run "${plain(name)}" is known.`,
    remedy: "List all runs: agentd log --runs",
    exitCode: ExitCode.failed
  })
})

const printing = Effect.fnUntraced(function* (input: Input, chosen: Chosen) {
  const { colour, json } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const { ascii, style, utc } = input
  const names = chosen.only === undefined ? new Names(chosen.names) : undefined
  return (entries: ReadonlyArray<Entry>) => {
    const lines = entries.map((entry) => {
      const name = chosen.nameOf(entry.conversation, entry.agent) ?? entry.agent
      return json || style === "json"
        ? jsonOf(valueOf(entry, name))
        : lineOf(entry, name, { style, utc, now, colour, ascii, names })
    })
    return lines.length === 0 ? Effect.void : Console.log(lines.join("\n"))
  }
})

/** Prints the existing lines, and returns the eventId after which new runes are to be read. */
const shown = Effect.fnUntraced(function* (source: Source, input: Input) {
  const { caller } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const chosenAgents = chosen(input.names, yield* source.homes, caller.config)
  const runs = input.run === undefined ? undefined : yield* runsNamed(source, chosenAgents, input.run)
  const asked: Asked = {
    input,
    chosen: chosenAgents,
    since: input.since === undefined ? undefined : atOf(input.since, now),
    until: input.until === undefined ? undefined : atOf(input.until, now),
    runs: runs?.ids,
    print: yield* printing(input, chosenAgents)
  }
  const head = yield* source.head
  const { last, printed, view } = yield* read(source, asked, runs?.after)
  if (printed === 0 && chosenAgents.unknown.length > 0) return yield* refused(chosenAgents)
  return { asked, view, after: Math.max(head, last) }
})

const AWAY = "The output continues when the daemon is back."

export const run = Effect.fnUntraced(function* (input: Input) {
  const { after, asked, view } = yield* onSource((source) => shown(source, input), input.follow)
  if (!input.follow) return
  const { chosen, print } = asked
  const take = (rune: Rune) =>
    chosen.nameOf(rune.stream, agentOf(rune)) === undefined
      ? Effect.void
      : print(view.feed(rune).filter((entry) => isAsked(asked, entry)))
  return yield* following(definedOf({ agent: chosen.only, kinds: KINDS }), after, take, (message) =>
    Console.error(`agentd: ${plain(message)} ${AWAY}`)
  )
})
