/**
 * PageProof: texts that a page and the daemon sign under a shared key (HMAC-SHA256), to prove themselves to each other.
 * Pure.
 *
 * A link's code is the first key. The page shows the code's handle, and receives its own key, sealed with the code. A
 * session's key is derived from that key and a random word of each side. It proves each request and each answer.
 */

/** The text to sign for one purpose; no other purpose or other parts produce the same text. */
export const text = (
  purpose: "handle" | "name" | "seal" | "granted" | "hello" | "session" | "request" | "answer" | "item",
  ...parts: ReadonlyArray<string | number | boolean>
): string => JSON.stringify(["agentd", purpose, ...parts])

/** A session is named by a word of the page and a word of the daemon. */
export interface Session {
  readonly id: string
  readonly page: string
  readonly daemon: string
}

export interface Signature extends Session {
  /** Number of the request within its session, never used twice. */
  readonly n: number
  /** SHA-256 of the body. */
  readonly body: string
  readonly mac: string
}

export interface Asked {
  readonly method: string
  /** Path with the query. */
  readonly path: string
  /** Position at which a stream continues. */
  readonly after: string
}

export const requestText = ({ after, method, path }: Asked, { body, n }: Pick<Signature, "n" | "body">): string =>
  text("request", n, method, path, after, body)

/** `policy`: the answer's content-security-policy header, which says what the page may load and do. */
export const answerText = (n: number, status: number, hash: string, policy: string): string =>
  text("answer", n, status, hash, policy)

export const POLICY = "content-security-policy"
export const SCHEME = "Agentd"
/** Header that proves an answer. */
export const PROOF = "x-agentd-proof"
/** `field` of a refusal because the daemon does not know the session. The page repeats a read in a new session … */
export const OVER = "session"
/** … but not a write: it might have been carried out. */
export const UNSURE = "act"

export const header = ({ body, daemon, id, mac, n, page }: Signature): string =>
  `${SCHEME} ${[id, page, daemon, n, body, mac].join(" ")}`

const FORM = /^Agentd ([\w-]{1,64}) ([\w-]{22,64}) ([\w-]{22,64}\.\d{1,15}) (\d{1,15}) ([\w-]{43}) ([\w-]{43})$/

export const signatureIn = (value: string | undefined): Signature | undefined => {
  const found = FORM.exec(value ?? "")
  if (found === null) return undefined
  const [, id = "", page = "", daemon = "", n = "", body = "", mac = ""] = found
  return { id, page, daemon, n: Number(n), body, mac }
}
