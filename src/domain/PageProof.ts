/**
 * PageProof: strings that the web page and the daemon sign with a shared key (HMAC-SHA256) to authenticate each other.
 * Pure.
 *
 * The first key is the code in a pairing link. The page sends a handle derived from the code, and receives a key of its
 * own, encrypted with the code. For each session, both sides derive a session key from the page's key and a random
 * value from each side. The session key signs each request and each answer.
 */

/** Returns the string to sign for a purpose. Different purposes or parts never give the same string. */
export const text = (
  purpose: "handle" | "name" | "seal" | "granted" | "hello" | "session" | "request" | "answer" | "item",
  ...parts: ReadonlyArray<string | number | boolean>
): string => JSON.stringify(["agentd", purpose, ...parts])

/** A session between page and daemon, identified by the page's id and a random value from each side. */
export interface Session {
  readonly id: string
  readonly page: string
  readonly daemon: string
}

export interface Signature extends Session {
  /** Number of the request in its session, which is never used twice. */
  readonly n: number
  /** SHA-256 hash of the request body. */
  readonly body: string
  readonly mac: string
}

export interface Asked {
  readonly method: string
  /** Path of the request URL with its query. */
  readonly path: string
  /** Position in a stream after which the answer continues; empty: from the stream's beginning. */
  readonly after: string
}

export const requestText = ({ after, method, path }: Asked, { body, n }: Pick<Signature, "n" | "body">): string =>
  text("request", n, method, path, after, body)

/** `policy`: the content-security-policy header, which limits what the page can load and do. */
export const answerText = (n: number, status: number, hash: string, policy: string): string =>
  text("answer", n, status, hash, policy)

export const POLICY = "content-security-policy"
export const SCHEME = "Agentd"
/** Name of the header with the signature of an answer. */
export const PROOF = "x-agentd-proof"
/**
 * Value of `field` in the error for an unknown session, if the request only reads. The page then repeats the request in
 * a new session.
 */
export const OVER = "session"
/**
 * Value of `field` in the error for an unknown session, if the request changes something. The page does not repeat the
 * request, because the daemon may have executed it.
 */
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
