/**
 * ProviderId: the stream of a provider and account. Pure.
 *
 * Guarantees: none can be taken for another stream of the log: no conversation and no session
 * has a colon in its name.
 */
import { createHash } from "node:crypto"
import { PROVIDER } from "../domain/ConversationId.ts"
import type { Account } from "../domain/Weather.ts"

export const isValid = (stream: string): boolean => stream.startsWith(PROVIDER)

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/gu, "-")
    .replaceAll(/^-|-$/gu, "")
    .slice(0, 40)

/** `provider:anthropic:1a2b3c4d`: its name for people, and a hash of both. */
export const of = ({ account, provider }: Account): string => {
  const hash = createHash("sha256")
    .update(JSON.stringify([provider, account]))
    .digest("hex")
    .slice(0, 8)
  return `${PROVIDER}${slug(provider)}:${hash}`
}
