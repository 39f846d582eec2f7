/**
 * AlertContext: what the alerter must be told by those who know the projects:
 * where their mail goes and the story behind an alert.
 *
 * Asked anew for each alert and each attempt, so that a changed config counts
 * from the next one on.
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
    /** The mail section in force for a stream's project, else the user's own; undefined: none is configured. */
    readonly mailFor: (stream: string) => Effect.Effect<MailConfig | undefined>
    /** How people are told besides by mail, as the user's own file says now; undefined: no way is configured, or the file cannot be read. */
    readonly notify: Effect.Effect<NotifyConfig | undefined>
    readonly projectName: (stream: string) => Effect.Effect<string | undefined>
    /** Facts of the moment about a rune of which channels may tell. */
    readonly facts: (rune: Rune) => Effect.Effect<Facts>
    /** The events that led to an alert, oldest first; empty where there is nothing to tell. */
    readonly why: (alert: Alert) => Effect.Effect<ReadonlyArray<{ readonly at: number; readonly text: string }>>
    /** A text with its commands as they must be typed. */
    readonly typed: (text: string) => string
  }
>()("agentd/alerts/AlertContext") {
  /** For tests: the same address for everything, and no history. */
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
