/**
 * MailText: builds the mail of a batch: its alerts, the events that led to each alert, and the last output lines of
 * each agent.
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

/** Number of output runes that are read to find the last lines. */
const OUTPUT_RUNES = 20
const OUTPUT_LINES = 40
/** Maximum number of earlier error lines that are added if the last lines contain no error. */
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
  // the error can be followed by many lines of other output
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
