/**
 * Pairing: the page's key, and the proofs that are made with it. The page signs its requests, and the daemon proves
 * that its answers are genuine.
 *
 * Guarantees: the key is stored so that no script can read it, and is never sent. Every answer without the daemon's
 * proof is rejected, and so is each unproven item of a stream. A request for an action is sent only once.
 */
import * as Proof from "../domain/PageProof.ts"

export interface Problem {
  readonly error: string
  readonly remedy: string
  /** HTTP status of the answer; 0 if there was no answer. */
  readonly status: number
  /** True if another program answers at the daemon's port. */
  readonly isForeign?: true
}

export class Refused extends Error {
  readonly problem: Problem
  constructor(problem: Problem) {
    super(problem.error)
    this.problem = problem
  }
}

export const GONE: Problem = {
  error: "The daemon does not answer.",
  remedy: "On its machine: agentd start",
  status: 0
}

export const FOREIGN: Problem = {
  error: "Another program has agentd's port. It got no secret, and none of its answers is shown.",
  remedy:
    "On the daemon's machine: agentd doctor. If it finds no such program, this page belongs to another daemon: agentd open",
  status: 0,
  isForeign: true
}

const TAKEN: Problem = {
  error: "This page's access was revoked.",
  remedy: "On the daemon's machine: agentd open",
  status: 401
}

interface Held {
  readonly id: string
  readonly key: CryptoKey
}

interface Session extends Proof.Session {
  readonly key: CryptoKey
  n: number
}

const bytesOf = (text: string) => new TextEncoder().encode(text)
const base64 = (data: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(data)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")
const unbase64 = (text: string) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.codePointAt(0) ?? 0)

const keyOf = (raw: BufferSource) =>
  crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"])
const sign = (key: CryptoKey, text: string) => crypto.subtle.sign("HMAC", key, bytesOf(text))
const proof = async (key: CryptoKey, text: string) => base64(await sign(key, text))
const hash = async (body: BufferSource) => base64(await crypto.subtle.digest("SHA-256", body))
const word = () => base64(crypto.getRandomValues(new Uint8Array(16)).buffer)

const STORE = "pages"
const KEY = "key"
/** Runs a request on the browser's database. The database returns the key only as an object that can sign. */
const kept = <A>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<A>) =>
  new Promise<A>((resolve, reject) => {
    const open = indexedDB.open("agentd", 1)
    open.addEventListener("upgradeneeded", () => void open.result.createObjectStore(STORE))
    open.addEventListener("error", () => reject(open.error!))
    open.addEventListener("success", () => {
      const all = open.result.transaction(STORE, mode)
      const asked = act(all.objectStore(STORE))
      all.addEventListener("complete", () => (open.result.close(), resolve(asked.result)))
      all.addEventListener("abort", () => reject(all.error!))
    })
  })

let held: Held | undefined
let session: Promise<Session> | undefined

export const isPaired = (): boolean => held !== undefined
/** Loads the page's key from the store. */
export const begin = async (): Promise<void> => {
  // remove the token that earlier versions stored here
  localStorage.removeItem("agentd-token")
  void globalThis.caches?.delete("token").catch(() => undefined)
  held = await kept("readonly", (store) => store.get(KEY) as IDBRequest<Held | undefined>).catch(() => undefined)
}

/** Options for every request, with which nothing between the page and the daemon may cache or redirect it. */
const PLAIN = { cache: "no-store", credentials: "omit", redirect: "error" } as const

const reached = async (path: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(path, { ...PLAIN, ...init }).catch(() => undefined)
  if (response === undefined) throw new Refused(GONE)
  return response
}

const problemOf = (status: number, body: unknown): Problem => {
  const { error, remedy } = (body ?? {}) as { readonly error?: unknown; readonly remedy?: unknown }
  return {
    status,
    error: typeof error === "string" ? error : `The daemon answered with ${status}.`,
    remedy: typeof remedy === "string" ? remedy : "Load the page again."
  }
}

/**
 * Pairs the page by a link's code. The code itself is not sent, only a handle derived from it. The daemon returns the
 * page's key, encrypted with the code.
 */
export const claim = async (code: string): Promise<void> => {
  const own = await keyOf(bytesOf(code))
  const page = word()
  const body = JSON.stringify({ handle: await proof(own, Proof.text("handle")), page })
  // credentials are allowed, although there are none: otherwise the browser would not clear this origin's data
  const response = await reached("/access/claim", { method: "POST", body, credentials: "same-origin" })
  const answer: unknown = await response.json().catch(() => undefined)
  if (!response.ok) throw new Refused(problemOf(response.status, answer))
  const { daemon, id, proof: proven, sealed } = (answer ?? {}) as { readonly [name: string]: unknown }
  if (![daemon, id, proven, sealed].every((text) => typeof text === "string")) throw new Refused(FOREIGN)
  const names = [id as string, page, daemon as string]
  const pad = new Uint8Array(await sign(own, Proof.text("seal", ...names)))
  const key = await keyOf(unbase64(sealed as string).map((byte, at) => byte ^ pad[at]!))
  if ((await proof(key, Proof.text("granted", ...names))) !== proven) throw new Refused(FOREIGN)
  held = { id: id as string, key }
  session = undefined
  await kept("readwrite", (store) => store.put(held, KEY))
}

/** Opens a session with the daemon, which must first prove that it is the daemon. */
const hello = async ({ id, key }: Held): Promise<Session> => {
  const page = word()
  const response = await reached(`/access/hello?id=${id}&page=${page}`, {})
  const answer: unknown = await response.json().catch(() => undefined)
  const { daemon, isGranted, proof: proven } = (answer ?? {}) as { readonly [name: string]: unknown }
  if (typeof daemon !== "string" || typeof isGranted !== "boolean") throw new Refused(FOREIGN)
  if ((await proof(key, Proof.text("hello", id, page, daemon, isGranted))) !== proven) throw new Refused(FOREIGN)
  if (!isGranted) throw new Refused(TAKEN)
  return { id, page, daemon, n: 0, key: await keyOf(await sign(key, Proof.text("session", id, page, daemon))) }
}

const sessionOf = (): Promise<Session> => {
  if (held === undefined) return Promise.reject(new Refused(TAKEN))
  const made = (session ??= hello(held))
  made.catch(() => (session === made ? (session = undefined) : undefined))
  return made
}

export interface Answer {
  /** The text of an answer that is complete; empty if the answer is a stream. */
  readonly text: string
  readonly bytes?: ArrayBuffer
  /** The Content-Security-Policy header, if the answer is a file of the page. */
  readonly policy: string
  /** The body of the answer, if it is a stream. */
  readonly stream?: ReadableStream<Uint8Array<ArrayBuffer>>
  /**
   * Checks and removes the proof of a stream's next item. Throws if the item is not the one that the daemon sent next.
   */
  readonly item: (text: string) => Promise<string>
}

export interface Question {
  readonly method?: "GET" | "POST"
  readonly body?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** Sends a signed request. Throws if the request is refused, or if the answer has no valid proof. */
export const ask = async (path: string, question: Question = {}, isAgain = false): Promise<Answer> => {
  const { body = "", headers = {}, method = "GET", signal } = question
  const made = sessionOf()
  const { key, ...own } = await made
  const n = ++(await made).n
  const asked = { method, path, after: headers["last-event-id"] ?? "" }
  const signature = { n, body: await hash(bytesOf(body)) }
  const mac = await proof(key, Proof.requestText(asked, signature))
  const response = await reached(path, {
    method,
    ...(method === "POST" ? { body } : {}),
    ...(signal === undefined ? {} : { signal }),
    headers: { ...headers, authorization: Proof.header({ ...own, ...signature, mac }) }
  })
  const { status } = response
  const proven = response.headers.get(Proof.PROOF)
  const policy = response.headers.get(Proof.POLICY) ?? ""
  const proves = async (hash: string) => proven === (await proof(key, Proof.answerText(n, status, hash, policy)))
  /** Ends the session, so that the next request opens a new one. Returns the error to throw. */
  const lost = (problem: Problem) => {
    if (session === made) session = undefined
    return new Refused(problem)
  }
  let place = 0
  const item = async (text: string) => {
    const at = text.indexOf("\n") + 1
    const rest = text.slice(at)
    if (text.slice(0, at) !== `:${await proof(key, Proof.text("item", n, place++, rest))}\n`) throw lost(FOREIGN)
    return rest
  }
  if (response.body !== null && (await proves("stream"))) return { text: "", policy, stream: response.body, item }
  const whole = await response.arrayBuffer().catch(() => undefined)
  if (whole === undefined) throw new Refused(GONE)
  if (!(await proves(await hash(whole)))) throw lost(FOREIGN)
  const text = new TextDecoder().decode(whole)
  if (response.ok) return { text, bytes: whole, policy, item }
  const refusal = JSON.parse(text) as { readonly field?: unknown }
  const isOver = refusal.field === Proof.OVER || refusal.field === Proof.UNSURE
  if (!isOver && status !== 401) throw new Refused(problemOf(status, refusal))
  const refused = lost(problemOf(status, refusal))
  if (refusal.field === Proof.OVER && !isAgain) return ask(path, question, true)
  throw refused
}
