/**
 * HashChain: one chain of hashes per stream, H(previous ‖ header ‖ H(payload)).
 *
 * Only the payload's hash enters the chain, so the chain stays valid when a payload is erased or archived. The chain
 * detects damage and naive edits. A program that can rewrite the whole file can also recompute all hashes.
 *
 * Two formats of header exist, and both must be supported permanently, because stored runes keep their hashes. Format 1
 * hashes the rune's position in the log and the cause's position. Format 2 omits the position. It hashes `seq`, the
 * cause by stream and seq, and the machines that the rune moves. Pure. At run time this module uses no npm packages,
 * because the log's thread loads it.
 */
import { hash } from "node:crypto"
import type { Cause } from "./Rune.ts"

/** The hash that precedes the first rune of a stream. */
export const GENESIS = "0".repeat(64)

/** All parts of a rune, except its payload and its hash. */
export interface Header {
  readonly format: number
  readonly eventId: number
  readonly seq: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from: string | null
  readonly to: string | null
  readonly trigger: string | null
  readonly cause: Cause | null
  /** The eventId of the cause, which only format 1 hashes; null in format 2. */
  readonly causeId: number | null
  readonly moves: ReadonlyArray<string>
  readonly visibility: string
}

/** SHA-256, in hex, of the payload's text exactly as it is stored. */
export const hashPayload = (text: string): string => hash("sha256", text, "hex")

/** The header text of format 2, from values that are already JSON. */
export const joinHeader = (
  stream: string,
  seq: number,
  at: number,
  kind: string,
  actor: string,
  from: string,
  to: string,
  trigger: string,
  cause: string,
  moves: string,
  visibility: string
): string =>
  `["rune/2",${stream},${seq},${at},${kind},${actor},${from},${to},${trigger},${cause},${moves},${visibility}]`

export const quote = (name: string | null): string => (name === null ? "null" : JSON.stringify(name))

export const movesText = (moves: ReadonlyArray<string>): string => (moves.length === 0 ? "[]" : JSON.stringify(moves))

/** The header as a JSON array. Two different headers never have the same text, even if their formats differ. */
export const headerText = (header: Header): string =>
  header.format === 1
    ? JSON.stringify([
        header.eventId,
        header.stream,
        header.at,
        header.kind,
        header.actor,
        header.from,
        header.to,
        header.trigger,
        header.causeId,
        header.visibility
      ])
    : joinHeader(
        quote(header.stream),
        header.seq,
        header.at,
        quote(header.kind),
        quote(header.actor),
        quote(header.from),
        quote(header.to),
        quote(header.trigger),
        header.cause === null ? "null" : `[${quote(header.cause.stream)},${header.cause.seq}]`,
        movesText(header.moves),
        quote(header.visibility)
      )

export const chain = (previous: string, header: string, payloadHash: string): string =>
  hash("sha256", `${previous}\n${header}\n${payloadHash}`, "hex")

export const hashRune = (previous: string, header: Header, payloadHash: string): string =>
  chain(previous, headerText(header), payloadHash)
