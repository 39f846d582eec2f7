/**
 * `agentd wait NAME… --for STATUS`: waits until all selected items have this status; for scripts.
 *
 * Guarantees: the command uses one subscription and does not poll. It ends at once if an item can never reach the
 * status. If the daemon ends, the command waits as long as another daemon can still start.
 */
import { Clock, Effect, Stream } from "effect"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { after } from "../../domain/BoardRow.ts"
import { unstarted } from "../../config/ProjectName.ts"
import { isOver, predicate, type Word } from "../../domain/StatusWords.ts"
import { call, type Client, DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import { lostAnswer } from "../../api/rpc/ConnectionLost.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { nameOf } from "../sessions/Board.ts"
import { type Aim, isLabelled, isPattern, listed } from "../sessions/RowFilter.ts"
import type { Targets } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { nobody } from "../parse/Names.ts"
import { status } from "../daemon/DaemonLife.ts"
import { age } from "../render/Output.ts"
import type { Paths } from "../parse/Paths.ts"
import * as StartupWait from "../parse/StartupWait.ts"
import { ambiguous, isUnstarted, type Unclear } from "../parse/NamePatterns.ts"

export interface Input {
  readonly names: ReadonlyArray<string>
  readonly labels: ReadonlyArray<string>
  readonly aim: Aim
  /** Maximum wait in ms; undefined if there is no limit. */
  readonly timeout: number | undefined
}

/** Status words that satisfy each value of --for. */
const MET: { readonly [aim in Aim]: ReadonlyArray<Word> } = {
  idle: ["idle", "stopped", "done"],
  done: ["done"],
  "needs-you": ["needs you"],
  failed: ["failed"],
  working: ["working"]
}

const homeOf = ({ project }: BoardRow): string => project

/**
 * For each kind: a status that items of this kind never reach. A sub-agent is an exception: it is done when its parent
 * has ended it.
 */
const NEVER: { readonly [kind in BoardRow["kind"]]?: Aim } = { agent: "done", channel: "failed", project: "failed" }

/**
 * True if the row will not reach the status by itself: it keeps its present status until the user acts, or its agent
 * works in a loop and so is never idle.
 */
const isNever = ({ kind, mode, parent, state, word }: BoardRow, aim: Aim): boolean => {
  const rests = aim === "idle" || aim === "done"
  if ((aim === NEVER[kind] && parent === undefined) || (rests && mode === "loop")) return true
  // a message from another agent or a schedule can still arrive for a stopped agent
  if (kind === "agent" && word === "stopped" && aim === "needs-you") return false
  if (word === "done" || word === "stopped" || word === "paused" || (word === "failed" && kind === "goal")) return true
  // an agent that waits for a free run slot starts by itself
  return (
    kind === "agent" && (state === "Stopped" ? word !== "waiting" : word === "failed" && (rests || aim === "working"))
  )
}

/**
 * Finds the selected rows, and compares them with the status to wait for. `config`: config file of the caller's
 * project.
 */
export const standing = (
  all: ReadonlyArray<BoardRow>,
  { labels, names }: Targets,
  aim: Aim,
  config: string | null = null
): {
  /** For each name, the rows that match; without names, one list with all rows. */
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

/**
 * The reason why the command cannot wait: an unknown or ambiguous name; otherwise undefined. `before`: the rows that
 * matched the names before.
 */
export const unclear = (
  rows: ReadonlyArray<BoardRow>,
  names: ReadonlyArray<string>,
  { found, unknown }: Pick<ReturnType<typeof standing>, "found" | "unknown">,
  config: string | null,
  before: ReadonlyArray<BoardRow> = []
): Unclear | undefined => {
  const several = names.findIndex((name, at) => !isPattern(name) && new Set(found[at]!.map(homeOf)).size > 1)
  if (several !== -1) return ambiguous(names[several]!, "item", found[several]!)
  if (unknown.length === 0) return undefined
  const remedy = "List all names: agentd ps --all"
  const [lost] = before.filter(({ id }) => !rows.some((row) => row.id === id))
  const home = rows.find(({ conversation, kind }) => kind === "project" && conversation === lost?.conversation)
  if (lost !== undefined)
    return { message: `${nameOf(lost)} no longer exists: ${home?.says ?? "the item was removed"}.`, remedy }
  const own = unknown.find((name) => !name.includes("/"))
  if (own !== undefined && isUnstarted(rows, config)) return unstarted(config, own)
  return { message: `Nothing is called ${unknown.map((name) => `"${name}"`).join(", ")}.`, remedy }
}

/** The error for a row that can never reach the status. */
const never = (row: BoardRow, aim: Aim): Unclear => ({
  message: `${nameOf(row)} ${predicate({ word: row.word }, 0)}${row.says === "" ? "" : `: ${row.says}`}. ${isOver(row.word) ? "It" : row.mode === "loop" ? "It works in a loop, so it" : row.kind === "agent" && aim === "done" ? "An agent answers one message after the other, so it" : "It"} will not be ${aim} by itself.`,
  remedy: row.kind === "agent" ? `See why: agentd why ${row.called}` : "See its status: agentd ps"
})

const late = (timeout: number, row: BoardRow | undefined) =>
  new VerbFailed({
    message: `After ${age(timeout)} ${row === undefined ? "the status is still unknown" : `${nameOf(row)} ${predicate({ word: row.word }, 0)}`}.`,
    remedy: "Set a longer --timeout, or see the status: agentd ps",
    exitCode: ExitCode.failed
  })

/** Interval between attempts to reach a daemon that is not running or not ready. */
const AGAIN = "200 millis"

/** Waits until the daemon has read its log, because its board is incomplete until then. */
const folded = (client: Client): Effect.Effect<void, Effect.Error<ReturnType<Client["Status"]>>> =>
  Effect.flatMap(client.Status(), ({ daemon }) =>
    daemon.phase === "ready" ? Effect.void : Effect.andThen(Effect.sleep(AGAIN), folded(client))
  )

/** Waits until another daemon answers. Fails with `error` if no daemon starts. */
const back = ({ socket, state }: Paths, error: DaemonUnreachable) =>
  Effect.raceFirst(
    Effect.retry(status(socket), Backoff.waits(Backoff.constant(AGAIN))),
    Effect.andThen(StartupWait.untilIdle(state, true), Effect.fail(error))
  )

export const run = Effect.fnUntraced(function* ({ aim, labels, names, timeout }: Input) {
  const { caller, paths } = yield* Invocation
  const wrong = nobody({ labels, names }, "wait")
  if (wrong !== undefined) return yield* new VerbFailed(wrong)
  const began = yield* Clock.currentTimeMillis
  let rows: ReadonlyMap<string, BoardRow> = new Map()
  /** Full names, which are valid from any folder. Set as soon as the selected items are known. */
  let whole = names
  let meant: ReadonlyArray<BoardRow> = []
  /** True when the daemon has been ready at least once. */
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
      // the daemon already sends board updates while it reads its log
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
