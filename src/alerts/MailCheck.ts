/** MailCheck: checks whether the configured mail servers would accept a mail from agentd, without sending one. */
import { Effect } from "effect"
import type { MailConfig } from "../config/Config.ts"
import { Mailer } from "./Mailer.ts"

/** A finding of `agentd doctor`. */
interface Check {
  readonly name: string
  readonly level: "ok" | "fail"
  readonly detail: string
  readonly remedy: string | null
}

/** Checks all servers, concurrently. */
export const checks = Effect.fnUntraced(function* (mails: ReadonlyArray<MailConfig>) {
  const mailer = yield* Mailer
  return yield* Effect.forEach(
    mails,
    (mail) =>
      mailer.probe(mail).pipe(
        Effect.map((detail): Check => ({ name: "mail server", level: "ok", detail, remedy: null })),
        Effect.catch(({ message, remedy }) =>
          Effect.succeed<Check>({
            name: "mail server",
            level: "fail",
            detail: `no mail can be sent: ${message}`,
            remedy: `${remedy} Then try it with a mail: agentd alert test`
          })
        )
      ),
    { concurrency: 4 }
  )
})
