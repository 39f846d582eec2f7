/**
 * ProviderId: the name of the stream of a provider and account. Pure.
 *
 * Guarantees: no such name can be mistaken for another stream of the log, because names of conversations and sessions
 * have no colon.
 */
import { createHash } from "node:crypto"
import { PROVIDER } from "../domain/ConversationId.ts"
import type { Account } from "../domain/ProviderStatus.ts"

export const isValid = (stream: string): boolean => stream.startsWith(PROVIDER)

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/gu, "-")
    .replaceAll(/^-|-$/gu, "")
    .slice(0, 40)

/** Such as `provider:anthropic:1a2b3c4d`: the provider's readable name, and a hash of provider and account. */
export const of = ({ account, provider }: Account): string => {
  const hash = createHash("sha256")
    .update(JSON.stringify([provider, account]))
    .digest("hex")
    .slice(0, 8)
  return `${PROVIDER}${slug(provider)}:${hash}`
}
