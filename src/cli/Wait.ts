/**
 * `agentd wait NAME… --for WORD`: returns when all that is named is so; for scripts.
 *
 * Guarantees: it asks once and is told of changes; what will never be so ends it at once; while the daemon is away it
 * waits for it.
 */
import { Clock, Effect, Stream } from "effect"
import type { BoardRow } from "../domain/BoardMessages.ts"
import { after } from "../domain/BoardRow.ts"
import { predicate, type Word } from "../domain/Words.ts"
import { call } from "../rpc/ControlClient.ts"
import { nameOf } from "./Board.ts"
import { type Aim, isLabelled, means } from "./Choose.ts"
import type { Targets } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, print } from "./Invocation.ts"
import { nobody } from "./Names.ts"
import { age } from "./Output.ts"

export interface Input {
  readonly names: ReadonlyArray<string>
  readonly labels: ReadonlyArray<string>
  readonly aim: Aim
  /** ms; undefined: for ever. */
  readonly timeout: number | undefined
}

/** Words that are as good as what is waited for. */
const MET: { readonly [aim in Aim]: ReadonlyArray<Word> } = {
  idle: ["idle", "done"],
  done: ["done"],
  "needs-you": ["needs you"],
  failed: ["failed"],
  working: ["working"]
}

/** How it stands with the rows that are named. */
export const standing = (
  rows: ReadonlyArray<BoardRow>,
  { labels, names }: Targets,
  aim: Aim
): {
  readonly unknown: ReadonlyArray<string>
  readonly left: ReadonlyArray<BoardRow>
  readonly never: ReadonlyArray<BoardRow>
} => {
  const meant = rows.filter(
    (row) =>
      row.kind !== "matter" && isLabelled(row, labels) && (names.length === 0 || names.some((name) => means(name, row)))
  )
  const left = meant.filter(({ word }) => !MET[aim].includes(word))
  return {
    unknown:
      meant.length === 0 && names.length === 0
        ? labels
        : names.filter((name) => !meant.some((row) => means(name, row))),
    left,
    // whoever waits for work to end would wait for ever
    never: aim === "failed" || aim === "needs-you" ? [] : left.filter(({ word }) => word === "failed")
  }
}

const unknown = (names: ReadonlyArray<string>) =>
  new VerbFailed({
    message: `Nothing is called ${names.map((name) => `"${name}"`).join(", ")}.`,
    remedy: "See what there is: agentd ps --all",
    exitCode: ExitCode.failed
  })

const never = (row: BoardRow) =>
  new VerbFailed({
    message: `${nameOf(row)} has failed: ${row.says}`,
    remedy: row.kind === "agent" ? `See why: agentd why ${row.called}` : "See it: agentd ps",
    exitCode: ExitCode.failed
  })

export const run = Effect.fnUntraced(function* ({ aim, labels, names, timeout }: Input) {
  const { paths } = yield* Invocation
  const wrong = nobody({ labels, names }, "wait")
  if (wrong !== undefined) return yield* new VerbFailed(wrong)
  const began = yield* Clock.currentTimeMillis
  let rows: ReadonlyMap<string, BoardRow> = new Map()
  const watching = call(paths.socket, (client) => {
    rows = new Map()
    return client.BoardNews({ follow: true }).pipe(
      Stream.runForEachWhile((news) =>
        Effect.gen(function* () {
          rows = after(rows, news)
          const found = standing([...rows.values()], { labels, names }, aim)
          if (found.unknown.length > 0) return yield* unknown(found.unknown)
          const [lost] = found.never
          if (lost !== undefined) return yield* never(lost)
          return found.left.length > 0
        })
      )
    )
  })
  const waited =
    timeout === undefined
      ? watching
      : Effect.timeoutOrElse(watching, {
          duration: timeout,
          orElse: () => {
            const [first] = standing([...rows.values()], { labels, names }, aim).left
            const what =
              first === undefined
                ? "it is not known how it stands"
                : `${nameOf(first)} ${predicate({ word: first.word }, 0)}`
            return Effect.fail(
              new VerbFailed({
                message: `After ${age(timeout)} ${what}.`,
                remedy: "Wait longer with --timeout, or see it: agentd ps",
                exitCode: ExitCode.failed
              })
            )
          }
        })
  yield* waited
  const waitedFor = (yield* Clock.currentTimeMillis) - began
  const told = [...names, ...labels.map((label) => `label ${label}`)].join(", ")
  yield* print({ names, labels, for: aim, waited: waitedFor }, () => [`${told}: ${aim}, after ${age(waitedFor)}.`])
})
