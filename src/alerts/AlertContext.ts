/**
 * AlertContext: what the alerter must be told by those who know the projects:
 * where their mail goes and the story behind an alert.
 *
 * Asked anew for each alert and each attempt, so that a changed config counts
 * from the next one on.
 */
import { Context, Effect, Layer } from "effect"
import type { MailConfig } from "../config/Config.ts"
import type { Alert } from "./AlertPolicy.ts"

export class AlertContext extends Context.Service<
  AlertContext,
  {
    /** The mail section in force for a stream's project, else the user's own; undefined: none is configured. */
    readonly mailFor: (stream: string) => Effect.Effect<MailConfig | undefined>
    /** The name of the stream's project. */
    readonly projectName: (stream: string) => Effect.Effect<string | undefined>
    /** The events that led to an alert, oldest first; empty where there is nothing to tell. */
    readonly why: (alert: Alert) => Effect.Effect<ReadonlyArray<{ readonly at: number; readonly text: string }>>
    /** A text with its commands as they must be typed. */
    readonly typed: (text: string) => string
  }
>()("agentd/alerts/AlertContext") {
  /** For tests: the same address for everything, and no history. */
  static readonly layerTest = (mail: () => MailConfig | undefined): Layer.Layer<AlertContext> =>
    Layer.succeed(AlertContext, {
      mailFor: () => Effect.sync(mail),
      projectName: () => Effect.succeed("demo"),
      why: () => Effect.succeed([]),
      typed: (text) => text
    })
}
