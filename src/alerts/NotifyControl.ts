/**
 * NotifyControl: lists, checks and tests the channels in the user's own config.
 *
 * Guarantees: a check sends no message; each problem is reported with a remedy; no report contains a secret.
 */
import { Clock, Effect } from "effect"
import { nameOf } from "./AlertChannel.ts"
import { AlertContext } from "./AlertContext.ts"
import { LiveOutbox } from "./LiveOutbox.ts"
import { Mailer } from "./Mailer.ts"
import * as Outbox from "./Outbox.ts"
import * as Route from "./Route.ts"
import * as BatchSender from "./BatchSender.ts"
import { channelsFor, NOTICE_KINDS, type ChannelConfig, type NotifyConfig } from "../config/NotifyConfig.ts"
import type { NotifyRow } from "../domain/AlertMessages.ts"
import { CommandRefused, refuse } from "../domain/Messages.ts"
import type { Check } from "../board/DaemonMessages.ts"

/** Number of channels that are checked at the same time, so that the user need not wait long. */
const MAX_AT_ONCE = 4

const checked = (name: string, config: ChannelConfig) =>
  Effect.flatMap(BatchSender.implementation(config), (channel) =>
    BatchSender.bounded({ config, name }, channel.check(config))
  ).pipe(
    Effect.map((detail) => ({ ok: true, detail, remedy: null })),
    Effect.catch(({ message, remedy }) => Effect.succeed({ ok: false, detail: message, remedy }))
  )

const rowOf = Effect.fnUntraced(function* (notify: NotifyConfig, name: string, config: ChannelConfig) {
  const { batches } = (yield* (yield* LiveOutbox).seen) ?? Outbox.initial
  const mine = batches.filter((batch) => batch.channel === name && batch.back === undefined)
  const row: NotifyRow = {
    name,
    type: nameOf(config),
    kinds: NOTICE_KINDS.filter((kind) => channelsFor(notify, kind).includes(name)),
    ...(yield* checked(name, config)),
    waiting: mine.reduce((sum, { alerts, more }) => sum + alerts.size + more, 0),
    error: mine.findLast(({ failure }) => failure !== null)?.failure?.error ?? null,
    quiet: Route.isHeld(notify, "", yield* Clock.currentTimeMillis)
  }
  return row
})

/** The channels, in the order of the config. */
export const rows = Effect.gen(function* () {
  const notify = yield* (yield* AlertContext).notify
  if (notify === undefined) return []
  return yield* Effect.forEach(Object.entries(notify.channels), ([name, config]) => rowOf(notify, name, config), {
    concurrency: MAX_AT_ONCE
  })
})

/** Findings for `agentd doctor`. */
export const checks = Effect.map(rows, (all): ReadonlyArray<Check> =>
  all.map(({ detail, name, ok, remedy }) => ({
    name: `notify ${name}`,
    level: ok ? "ok" : "fail",
    detail: ok ? detail : `it notifies nobody: ${detail}`,
    remedy: remedy === null ? null : `${remedy} Then try it: agentd alert test ${name}`
  }))
)

const unknown = (name: string, notify: NotifyConfig | undefined, userConfig: string) => {
  const names = Object.keys(notify?.channels ?? {})
  return new CommandRefused({
    code: "not_found",
    ...(names.length === 0
      ? {
          message: "No channel is configured.",
          remedy: `Add "notify" to ${userConfig}: docs/notifications.md has examples, agentd schema --user all there is.`
        }
      : {
          message: `There is no channel "${name}"; there are ${names.join(", ")}.`,
          remedy: "List them: agentd alert channels"
        })
  })
}

/** Sends a test message by the channel immediately, even in quiet hours. */
export const test = (userConfig: string) =>
  Effect.fnUntraced(function* (name: string) {
    const { notify, typed } = yield* AlertContext
    const found = yield* notify
    const config = found?.channels[name]
    if (config === undefined) return yield* unknown(name, found, userConfig)
    const host = (yield* Mailer).host()
    const now = yield* Clock.currentTimeMillis
    const message = {
      id: `test-${now}`,
      host,
      title: `A test from agentd on ${host}`.slice(0, 60),
      body: `You asked for it with: agentd alert test ${name}`,
      command: typed("agentd alert channels"),
      urgency: "now",
      notices: [],
      more: 0
    } as const
    const { response } = yield* Effect.flatMap(BatchSender.implementation(config), (channel) =>
      BatchSender.bounded({ config, name }, channel.send(config, message))
    ).pipe(
      Effect.mapError(({ message, remedy }) => refuse("unavailable", `${name} did not accept it: ${message}`, remedy))
    )
    return { message: `${name} accepted it: ${response}` }
  })
