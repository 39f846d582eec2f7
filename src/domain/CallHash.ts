/**
 * CallHash: the SHA-256 hash of a tool call and its whole input. A user's approval names this hash, so the approval
 * cannot apply to another call. Pure.
 *
 * Guarantees: any change to the call changes the hash. The order of field names does not matter.
 */
import { createHash } from "node:crypto"
import { canonical } from "../runs/CanonicalJson.ts"

export interface HashedCall {
  /** The agent or session that requests approval. */
  readonly agent: string
  readonly run: string
  readonly call: string
  readonly tool: string
  readonly folder: string
  /** The parsed input of the call. The JSON is parsed only once: the same value is shown, hashed and run. */
  readonly input: unknown
}

/**
 * Minimum number of hash digits that an approval must give. With fewer digits, an attacker could construct another call
 * whose hash begins with the same digits.
 */
export const SHORTEST = 32
/** Maximum size of an input that a user can approve, in bytes of JSON. The agent must split a larger call. */
export const MAX_INPUT = 1024 * 1024

/** The hash in hex digits. Undefined: the input cannot be written as JSON, for example if it is nested too deeply. */
export const hashOf = ({ agent, call, folder, input, run, tool }: HashedCall): string | undefined => {
  try {
    const text = canonical({ agent, call, folder, input: input ?? null, run, tool })
    return createHash("sha256").update(`agentd.call.1\n${text}`).digest("hex")
  } catch {
    return undefined
  }
}

/** Shortens a hash to the form that the user sees and types. */
export const short = (hash: string): string => hash.slice(0, SHORTEST)

export const names = (typed: string, hash: string): boolean => typed.length >= SHORTEST && hash.startsWith(typed)

/** Compares the hash in an approval (`typed`) with the call's hash. Returns an error if they differ, else undefined. */
export const refusalOf = (
  id: string,
  typed: string | undefined,
  hash: string | undefined,
  how = `agentd approve ${id}`
): { readonly message: string; readonly remedy: string } | undefined => {
  if (hash === undefined)
    return {
      message: `The whole content of ${id} is not known: an older agentd received the request.`,
      remedy: `Deny it; the agent can then ask again: agentd deny ${id}`
    }
  if (typed === undefined)
    return {
      message: `An approval names what was seen, and this one of ${id} names nothing.`,
      remedy: `See the whole of it, and approve it then: ${how}`
    }
  if (names(typed, hash)) return undefined
  return {
    message: `${id} has changed since it was shown: its hash is different. Nothing was approved.`,
    remedy: `See its current content: ${how}`
  }
}
