/**
 * `agentd wait NAME… --for WORD`: returns when everything that is named has this status; for scripts.
 *
 * Guarantees: the command subscribes once and does not poll; it ends at once if the status can never be reached; if
 * the daemon goes away, it waits as long as another daemon can still come.
 */
import { Clock, Effect, Stream } from "effect"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { after } from "../../domain/BoardRow.ts"
import { unstarted } from "../../config/ProjectName.ts"
import { isOver, predicate, type Word } from "../../domain/Words.ts"
import { call, type Client, DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import { lostAnswer } from "../../api/rpc/LostAnswer.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { nameOf } from "../sessions/Board.ts"
import { type Aim, isLabelled, isPattern, listed } from "../sessions/Choose.ts"
import type { Targets } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { nobody } from "../parse/Names.ts"
import { status } from "../daemon/DaemonLife.ts"
import { age } from "../render/Output.ts"
import type { Paths } from "../parse/Paths.ts"
import * as Patience from "../parse/Patience.ts"
import { ambiguous, isUnstarted, type Unclear } from "../parse/Resolve.ts"

export interface Input {
  readonly names: ReadonlyArray<string>
  readonly labels: ReadonlyArray<string>
  readonly aim: Aim
  /** ms; undefined: no limit. */
  readonly timeout: number | undefined
}

/** Status words that satisfy each aim. */
const MET: { readonly [aim in Aim]: ReadonlyArray<Word> } = {
  idle: ["idle", "stopped", "done"],
  done: ["done"],
  "needs-you": ["needs you"],
  failed: ["failed"],
  working: ["working"]
}

const homeOf = ({ project }: BoardRow): string => project

/** A status that a kind never reaches. Only a sub-agent can be done: when the agent that began it has ended it. */
const NEVER: { readonly [kind in BoardRow["kind"]]?: Aim } = { agent: "done", channel: "failed", project: "failed" }

/** Whether the wait cannot end by itself: the row stays as it is until a person acts, or never comes to rest. */
const isNever = ({ kind, mode, parent, state, word }: BoardRow, aim: Aim): boolean => {
  const rests = aim === "idle" || aim === "done"
  if ((aim === NEVER[kind] && parent === undefined) || (rests && mode === "loop")) return true
  // a message from another agent or a schedule can still arrive for it
  if (kind === "agent" && word === "stopped" && aim === "needs-you") return false
  if (word === "done" || word === "stopped" || word === "paused" || (word === "failed" && kind === "goal")) return true
  // an agent that waits for a free place starts by itself
  return (
    kind === "agent" && (state === "Stopped" ? word !== "waiting" : word === "failed" && (rests || aim === "working"))
  )
}

/** Compares the named rows with the aim. `config`: config file of the caller's project. */
export const standing = (
  all: ReadonlyArray<BoardRow>,
  { labels, names }: Targets,
  aim: Aim,
  config: string | null = null
): {
  /** The rows of each name; without names, one list with all rows. */
  readonly found: ReadonlyArray<ReadonlyArray<BoardRow>>
  readonly unknown: ReadonlyArray<string>
  readonly left: ReadonlyArray<BoardRow>
  readonly never: ReadonlyArray<BoardRow>
} => {
  const rows = all.filter((row) => row.kind !== "matter" && isLabelled(row, labels))
  const found = names.length === 0 ? [rows] : names.map((name) => listed(rows, name, config))
  const left = [...new Set(found.flat())].filter(({ word }) => !MET[aim].includes(word))
  return {
    found,
    unknown: (names.length === 0 ? labels : names).filter((_, at) => (found[at] ?? rows).length === 0),
    left,
    never: left.filter((row) => isNever(row, aim))
  }
}

/** Why the wait is not possible: an unknown or ambiguous name. `before`: the rows that the names matched last. */
export const unclear = (
  rows: ReadonlyArray<BoardRow>,
  names: ReadonlyArray<string>,
  { found, unknown }: Pick<ReturnType<typeof standing>, "found" | "unknown">,
  config: string | null,
  before: ReadonlyArray<BoardRow> = []
): Unclear | undefined => {
  const several = names.findIndex((name, at) => !isPattern(name) && new Set(found[at]!.map(homeOf)).size > 1)
  if (several !== -1) return ambiguous(names[several]!, "thing", found[several]!)
  if (unknown.length === 0) return undefined
  const remedy = "See what there is: agentd ps --all"
  const [lost] = before.filter(({ id }) => !rows.some((row) => row.id === id))
  const home = rows.find(({ conversation, kind }) => kind === "project" && conversation === lost?.conversation)
  if (lost !== undefined)
    return { message: `${nameOf(lost)} no longer exists: ${home?.says ?? "it was removed"}.`, remedy }
  const own = unknown.find((name) => !name.includes("/"))
  if (own !== undefined && isUnstarted(rows, config)) return unstarted(config, own)
  return { message: `Nothing is called ${unknown.map((name) => `"${name}"`).join(", ")}.`, remedy }
}

/** The error for a row that can never reach the aim. */
const never = (row: BoardRow, aim: Aim): Unclear => ({
  message: `${nameOf(row)} ${predicate({ word: row.word }, 0)}${row.says === "" ? "" : `: ${row.says}`}. ${isOver(row.word) ? "It" : row.mode === "loop" ? "It works in a loop, and" : row.kind === "agent" && aim === "done" ? "It takes one message after the other, and" : "It"} will not be ${aim} by itself.`,
  remedy: row.kind === "agent" ? `See why: agentd why ${row.called}` : "See it: agentd ps"
})

const late = (timeout: number, row: BoardRow | undefined) =>
  new VerbFailed({
    message: `After ${age(timeout)} ${row === undefined ? "its status is not known" : `${nameOf(row)} ${predicate({ word: row.word }, 0)}`}.`,
    remedy: "Wait longer with --timeout, or see it: agentd ps",
    exitCode: ExitCode.failed
  })

/** Interval of attempts to reach a daemon that is away or not ready. */
const AGAIN = "200 millis"

/** Waits until the daemon has replayed its log: before that, its board is incomplete. */
const folded = (client: Client): Effect.Effect<void, Effect.Error<ReturnType<Client["Status"]>>> =>
  Effect.flatMap(client.Status(), ({ daemon }) =>
    daemon.phase === "ready" ? Effect.void : Effect.andThen(Effect.sleep(AGAIN), folded(client))
  )

/** Waits until another daemon answers; fails with `error` if none comes. */
const back = ({ socket, state }: Paths, error: DaemonUnreachable) =>
  Effect.raceFirst(
    Effect.retry(status(socket), Backoff.waits(Backoff.constant(AGAIN))),
    Effect.andThen(Patience.untilIdle(state, true), Effect.fail(error))
  )

export const run = Effect.fnUntraced(function* ({ aim, labels, names, timeout }: Input) {
  const { caller, paths } = yield* Invocation
  const wrong = nobody({ labels, names }, "wait")
  if (wrong !== undefined) return yield* new VerbFailed(wrong)
  const began = yield* Clock.currentTimeMillis
  let rows: ReadonlyMap<string, BoardRow> = new Map()
  /** The names in full, valid from any folder, once it is known what they refer to. */
  let whole = names
  let meant: ReadonlyArray<BoardRow> = []
  /** Whether the daemon has been ready once. */
  let isOn = false
  let isMet = false
  const stand = () => standing([...rows.values()], { labels, names: whole }, aim, caller.config)
  const once = call(paths.socket, (client) => {
    rows = new Map()
    return client.BoardNews({ follow: true }).pipe(
      Stream.runForEachWhile((news) =>
        Effect.gen(function* () {
          rows = after(rows, news)
          const found = stand()
          const [final] = found.never
          const trouble =
            unclear([...rows.values()], whole, found, caller.config, meant) ?? (final && never(final, aim))
          if (trouble !== undefined) return yield* new VerbFailed({ ...trouble, exitCode: ExitCode.failed })
          whole = whole.map((name, at) =>
            found.found[at]!.length === 1 && !isPattern(name) ? found.found[at]![0]!.called || name : name
          )
          meant = found.found.flat()
          isMet = found.left.length === 0
          return !isMet
        })
      ),
      // the daemon replays its log while it already sends board news
      (following) =>
        Effect.andThen(
          Effect.map(folded(client), () => void (isOn = true)),
          following
        ),
      Effect.andThen(Effect.suspend(() => (isMet ? Effect.void : new DaemonUnreachable(lostAnswer(paths.socket)))))
    )
  })
  const watching: typeof once = Effect.catchTag(once, "DaemonUnreachable", (error) =>
    isOn
      ? Effect.andThen(
          back(paths, error),
          Effect.suspend(() => watching)
        )
      : Effect.fail(error)
  )
  const waited =
    timeout === undefined
      ? watching
      : Effect.timeoutOrElse(watching, {
          duration: timeout,
          orElse: () => late(timeout, stand().left[0])
        })
  yield* waited
  const waitedFor = (yield* Clock.currentTimeMillis) - began
  const told = [...names, ...labels.map((label) => `label ${label}`)].join(", ")
  yield* print({ names, labels, for: aim, waited: waitedFor }, () => [`${told}: ${aim}, after ${age(waitedFor)}.`])
})
