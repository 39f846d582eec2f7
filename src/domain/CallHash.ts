/**
 * CallHash: the hash that identifies what a person decides: the SHA-256 of one call with everything that it would do.
 * Pure.
 *
 * Guarantees: any change of the call changes the hash. The order of field names does not.
 */
import { createHash } from "node:crypto"
import { canonical } from "../runs/CanonicalJson.ts"

export interface HashedCall {
  /** The agent or the session that asks. */
  readonly agent: string
  readonly run: string
  readonly call: string
  readonly tool: string
  readonly folder: string
  /** Parsed once: exactly this value is shown, hashed and run. */
  readonly input: unknown
}

/** With fewer digits, somebody could construct another call with the same prefix. */
export const SHORTEST = 32
/** Maximum size of an input that a person can approve, in bytes of JSON. The agent must split larger ones. */
export const MAX_INPUT = 1024 * 1024

/** Undefined for an input that cannot be written as JSON, such as one that is nested too deeply. */
export const hashOf = ({ agent, call, folder, input, run, tool }: HashedCall): string | undefined => {
  try {
    const text = canonical({ agent, call, folder, input: input ?? null, run, tool })
    return createHash("sha256").update(`agentd.call.1\n${text}`).digest("hex")
  } catch {
    return undefined
  }
}

/** The form that is shown and typed. */
export const short = (hash: string): string => hash.slice(0, SHORTEST)

export const names = (typed: string, hash: string): boolean => typed.length >= SHORTEST && hash.startsWith(typed)

/** Why an answer does not apply to a call; undefined if its hash matches the call. */
export const refusalOf = (
  id: string,
  typed: string | undefined,
  hash: string | undefined,
  how = `agentd approve ${id}`
): { readonly message: string; readonly remedy: string } | undefined => {
  if (hash === undefined)
    return {
      message: `What ${id} would do is not known whole: an earlier agentd was asked.`,
      remedy: `Deny it, and the agent can ask again: agentd deny ${id}`
    }
  if (typed === undefined)
    return {
      message: `An approval names what was seen, and this one of ${id} names nothing.`,
      remedy: `See the whole of it, and approve it then: ${how}`
    }
  if (names(typed, hash)) return undefined
  return {
    message: `What ${id} would do is not what was seen: the hash is another one. Nothing was approved.`,
    remedy: `See it as it is now: ${how}`
  }
}
