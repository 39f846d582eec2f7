/**
 * PageProof: what a page and the daemon prove to each other, as texts under a key that both have (HMAC-SHA256). Pure.
 *
 * A link's code is the first key: the page shows the code's handle, and is sent its own key sealed by the code. Of that
 * key and a word of each side a session's key is made, which proves each request and each answer.
 */

/** The text of one purpose; no other purpose or parts have the same one. */
export const text = (
  purpose: "handle" | "name" | "seal" | "granted" | "hello" | "session" | "request" | "answer" | "item",
  ...parts: ReadonlyArray<string | number | boolean>
): string => JSON.stringify(["agentd", purpose, ...parts])

/** The name of a session: a page's own word and the daemon's. */
export interface Session {
  readonly id: string
  readonly page: string
  readonly daemon: string
}

export interface Signature extends Session {
  /** Of the session's requests; no two have the same. */
  readonly n: number
  /** SHA-256 of the body. */
  readonly body: string
  readonly mac: string
}

export interface Asked {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Where a stream goes on. */
  readonly after: string
}

export const requestText = ({ after, method, path }: Asked, { body, n }: Pick<Signature, "n" | "body">): string =>
  text("request", n, method, path, after, body)

/** `policy`: what the page may load and do, as its answer's header says it. */
export const answerText = (n: number, status: number, hash: string, policy: string): string =>
  text("answer", n, status, hash, policy)

export const POLICY = "content-security-policy"
export const SCHEME = "Agentd"
/** The header of an answer that proves it. */
export const PROOF = "x-agentd-proof"
/** `field` of a refusal that the daemon does not know the session: what only reads is asked again in another one … */
export const OVER = "session"
/** … and what acts is not: it may have been done. */
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
