/**
 * HashChain: one chain of hashes per stream, H(previous ‖ header ‖ H(payload)).
 *
 * The payload enters by its hash alone, so a payload can be erased or archived
 * and the chain stays whole. Detects damage and naive edits; whoever can rewrite
 * the whole file can rewrite its hashes too. Pure.
 */
import { hash } from "node:crypto"

/** What precedes the first rune of a stream. */
export const GENESIS = "0".repeat(64)

/** Everything of a rune but its payload and its hash. */
export interface Header {
  readonly eventId: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from: string | null
  readonly to: string | null
  readonly trigger: string | null
  readonly cause: number | null
  readonly visibility: string
}

/** Of the payload's text exactly as it is stored. */
export const hashPayload = (text: string): string => hash("sha256", text, "hex")

/** A JSON array: no two headers have the same text. */
const headerText = (header: Header): string =>
  JSON.stringify([
    header.eventId,
    header.stream,
    header.at,
    header.kind,
    header.actor,
    header.from,
    header.to,
    header.trigger,
    header.cause,
    header.visibility
  ])

export const hashRune = (previous: string, header: Header, payloadHash: string): string =>
  hash("sha256", `${previous}\n${headerText(header)}\n${payloadHash}`, "hex")
