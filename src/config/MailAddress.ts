/**
 * MailAddress: mail addresses in their usual form: no quotes, no comments, and no characters that could end a mail
 * header.
 */
import { Schema } from "effect"
import { matching } from "./Fields.ts"

const ADDRESS = String.raw`[^\s<>,;:"@()\\\[\]]+@[^\s<>,;:"@()\\\[\]]+`

export const MailAddress = Schema.String.check(
  matching(new RegExp(`^${ADDRESS}$`, "u"), "must be one mail address such as ada@example.org")
)

/** A mail address, optionally with a name. */
export const Sender = Schema.String.check(
  matching(
    new RegExp(String.raw`^(${ADDRESS}|[^<>"\\\u0000-\u001f\u007f]{1,100} <${ADDRESS}>)$`, "u"),
    'must be a mail address such as agentd@example.org or "agentd <agentd@example.org>"'
  )
)
