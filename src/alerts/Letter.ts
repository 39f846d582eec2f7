/**
 * Letter: the mail of a batch: its alerts with the story behind each, and the last lines of whom they tell.
 */
import { Effect } from "effect"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { Redact } from "../core/event-log/Redact.ts"
import { AlertContext } from "./AlertContext.ts"
import type { Alert } from "./Alert.ts"
import * as Mail from "./Mail.ts"
import type * as Outbox from "./Outbox.ts"

/** Runes of output that are read for the last lines. */
const OUTPUT_RUNES = 20
const OUTPUT_LINES = 40
/** Of its errors, where the last lines hold none. */
const ERROR_LINES = 20

const readOutput = reader({ "run.output": agentKinds["run.output"] })

const isError = ({ source }: { readonly source: string | undefined }): boolean => source === "stderr"

const lastLines = Effect.fnUntraced(function* (alert: Alert) {
  const log = yield* EventLog
  const runes = yield* log.tail({ stream: alert.stream, actor: alert.actor, kinds: ["run.output"] }, OUTPUT_RUNES)
  const lines = runes
    .flatMap((rune) => readOutput(rune)?.payload ?? [])
    .filter(({ runId }) => alert.runId === null || runId === alert.runId)
    .flatMap(({ source, text }) => text.split("\n").map((line) => ({ source, line })))
  const [before, last] = [lines.slice(0, -OUTPUT_LINES), lines.slice(-OUTPUT_LINES)]
  // what went wrong may stand before a flood of other words
  const errors = last.some(isError) ? [] : before.filter(isError).slice(-ERROR_LINES)
  return [...errors, ...last].map(({ line }) => line)
})

export const of = Effect.fnUntraced(function* (batch: Outbox.Batch, host: string) {
  const from = yield* AlertContext
  const { text } = yield* Redact
  const told = yield* Effect.forEach(
    [...batch.alerts.values()],
    Effect.fnUntraced(function* ({ alert }, index) {
      const project = (yield* from.projectName(alert.of ?? alert.stream)) ?? alert.stream
      if (index >= Mail.MAX_TOLD) return { alert, project, why: [], output: [] }
      return { alert, project, why: yield* from.why(alert), output: yield* lastLines(alert) }
    })
  )
  return Mail.render({ told, more: batch.more, host, redact: text, typed: from.typed })
})
