/**
 * AlertContext: the data that the alerter gets from the modules that know the projects: mail settings, the channels of
 * `notify`, and the events that led to an alert.
 *
 * The alerter reads this data again for each alert and each attempt, so that a changed config applies to the next alert
 * or attempt.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { MailConfig } from "../config/Config.ts"
import type { NotifyConfig } from "../config/NotifyConfig.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { Alert } from "./Alert.ts"
import type { Facts } from "./Notice.ts"

export class AlertContext extends Context.Service<
  AlertContext,
  {
    /** The mail section in force for a stream's project, or else the user's own. Undefined if none is configured. */
    readonly mailFor: (stream: string) => Effect.Effect<MailConfig | undefined>
    /** The current `notify` section of the user's own config; undefined if there is none, or it cannot be read. */
    readonly notify: Effect.Effect<NotifyConfig | undefined>
    readonly projectName: (stream: string) => Effect.Effect<string | undefined>
    /** Current facts about a rune, for the notice that channels send. */
    readonly facts: (rune: Rune) => Effect.Effect<Facts>
    /** The events that led to an alert, oldest first; empty if there are none. */
    readonly why: (alert: Alert) => Effect.Effect<ReadonlyArray<{ readonly at: number; readonly text: string }>>
    /** Rewrites the commands in a message to the form that the user must type. */
    readonly typed: (text: string) => string
  }
>()("agentd/alerts/AlertContext") {
  /** For tests: the same mail address for every project, and no events that led to an alert. */
  static readonly layerTest = (
    mail: () => MailConfig | undefined,
    notify: () => NotifyConfig | undefined = () => undefined,
    facts: (rune: Rune) => Partial<Facts> = () => ({})
  ): Layer.Layer<AlertContext> =>
    Layer.succeed(AlertContext, {
      mailFor: () => Effect.sync(mail),
      notify: Effect.sync(notify),
      projectName: () => Effect.succeed("demo"),
      facts: (rune) =>
        Effect.map(Clock.currentTimeMillis, (now) => ({ project: "demo", host: "lab", now, ...facts(rune) })),
      why: () => Effect.succeed([]),
      typed: (text) => text
    })
}
