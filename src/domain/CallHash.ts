/**
 * CallHash: the name of what a person decides: the SHA-256 of one call with all that it would do.
 * Pure.
 *
 * Guarantees: whatever changes of the call changes the hash, and the order of names does not.
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
  /** Parsed once: this very value is shown, hashed, and handed back as what may run. */
  readonly input: unknown
}

/** Fewer digits could be met by a call that was made for it. */
export const SHORTEST = 32
/** A person decides no longer input, in bytes of JSON: the agent does it in smaller pieces. */
export const MAX_INPUT = 1024 * 1024

/** Undefined for an input that has no JSON, as one that is nested too deeply. */
export const hashOf = ({ agent, call, folder, input, run, tool }: HashedCall): string | undefined => {
  try {
    const text = canonical({ agent, call, folder, input: input ?? null, run, tool })
    return createHash("sha256").update(`agentd.call.1\n${text}`).digest("hex")
  } catch {
    return undefined
  }
}

/** As it is shown and typed. */
export const short = (hash: string): string => hash.slice(0, SHORTEST)

export const names = (typed: string, hash: string): boolean => typed.length >= SHORTEST && hash.startsWith(typed)

/** Why an answer does not go to a call; undefined where the answer names what is asked. */
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
