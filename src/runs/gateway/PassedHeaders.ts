/** PassedHeaders: which headers the gateway passes on, and the header of its own answers. Imports nothing from Effect. */
import type * as http from "node:http"

/** Header of an answer that the gateway itself gives because it could not reach the provider or the server. */
export const UNREACHABLE = "agentd-unreachable"

const KEYS = new Set(["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"])
/** Headers that apply only to one connection (hop-by-hop), and headers that could name another host. */
const OWN = new Set([
  "host",
  "connection",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host"
])

/** Builds the headers of the outgoing request: the agent's own, without keys and hop-by-hop headers, plus the key. */
export const headersOf = (
  given: http.IncomingHttpHeaders,
  key: { readonly [name: string]: string } | null
): http.OutgoingHttpHeaders => {
  const dropped = (name: string) => OWN.has(name) || (key !== null && KEYS.has(name))
  return { ...Object.fromEntries(Object.entries(given).filter(([name]) => !dropped(name))), ...key }
}

/** The headers of an answer. `isChanged`: true if its length may change. */
export const answerHeaders = (theirs: http.IncomingHttpHeaders, isChanged: boolean): http.OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(theirs).filter(([name]) => !OWN.has(name) && !(isChanged && name === "content-length"))
  )
