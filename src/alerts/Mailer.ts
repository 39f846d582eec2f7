/** Mailer: sends mail and names the machine that it comes from. A Context.Reference, with SMTP as its default. */
import { Context, type Effect, type FileSystem } from "effect"
import { hostname } from "node:os"
import type { MailConfig } from "../config/Config.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import type { SendError } from "./SendError.ts"
import * as Smtp from "./Smtp.ts"

export interface MailerShape {
  readonly host: () => string
  /** Sends a mail. Returns when the server has accepted it. */
  readonly send: (
    mail: MailConfig,
    message: Smtp.Message,
    timeouts?: Smtp.Timeouts
  ) => Effect.Effect<Smtp.Receipt, SendError, FileSystem.FileSystem | Redact>
  /** Checks whether the server would accept a mail, without sending one. Returns a message for display. */
  readonly probe: (
    mail: MailConfig,
    timeouts?: Smtp.Timeouts
  ) => Effect.Effect<string, SendError, FileSystem.FileSystem | Redact>
}

export const Mailer = Context.Reference<MailerShape>("agentd/alerts/Mailer", {
  defaultValue: () => ({ host: hostname, send: Smtp.send, probe: Smtp.probe })
})
