/**
 * Mailer: how a mail leaves the machine, and what the machine is called in it. A reference:
 * by SMTP, unless somebody says otherwise.
 */
import { Context, type Effect, type FileSystem } from "effect"
import { hostname } from "node:os"
import type { MailConfig } from "../config/Config.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import type { SendError } from "./SendError.ts"
import * as Smtp from "./Smtp.ts"

export interface MailerShape {
  readonly host: () => string
  /** Returns when the server has taken it. */
  readonly send: (
    mail: MailConfig,
    message: Smtp.Message,
    timeouts?: Smtp.Timeouts
  ) => Effect.Effect<Smtp.Receipt, SendError, FileSystem.FileSystem | Redact>
  /** Asks the server whether it would take a mail, and sends none; answers in words. */
  readonly probe: (
    mail: MailConfig,
    timeouts?: Smtp.Timeouts
  ) => Effect.Effect<string, SendError, FileSystem.FileSystem | Redact>
}

export const Mailer = Context.Reference<MailerShape>("agentd/alerts/Mailer", {
  defaultValue: () => ({ host: hostname, send: Smtp.send, probe: Smtp.probe })
})
