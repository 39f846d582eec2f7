/**
 * Pairing: gives pages access by a link, and checks the proofs by which a page and the daemon recognize each other in
 * each request and answer.
 *
 * Guarantees: a program between page and daemon, or in the daemon's place, learns no key. It cannot forge, change or
 * repeat a request or an answer. A request counts only once, and only for this daemon. A page's key is never logged. It
 * is sent once, encrypted with the code of the page's link; the code itself is never sent.
 */
import { createHash, createHmac, randomBytes } from "node:crypto"
import { Effect, Stream } from "effect"
import { HttpBody, HttpServerResponse } from "effect/http"
import type { Access, Claimed, Grant } from "../../access/Access.ts"
import * as Proof from "../../domain/PageProof.ts"
import { type Refusal, refusal } from "./Refusal.ts"
import { same } from "./Tokens.ts"

type Response = HttpServerResponse.HttpServerResponse

/** Maximum number of sessions per page that are kept; requests of older sessions are refused. */
const SESSIONS = 64
/** How much lower a request's number may be than the highest number of its session so far. */
const BEHIND = 1_000

const mac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest()
const proof = (key: Buffer, text: string): string => mac(key, text).toString("base64url")
export const hashOf = (body: string | Uint8Array): string => createHash("sha256").update(body).digest("base64url")

const word = (): string => randomBytes(16).toString("base64url")

/** Numbers of the requests that have arrived in a session. */
class Seen {
  private newest = 0
  private readonly numbers = new Set<number>()

  /**
   * Records a request's number. Returns false if the request has been seen before, or if its number is too low to tell.
   */
  take(n: number): boolean {
    if (n <= this.newest - BEHIND || this.numbers.has(n)) return false
    this.numbers.add(n)
    this.newest = Math.max(this.newest, n)
    if (this.numbers.size > 2 * BEHIND)
      for (const old of this.numbers) if (old <= this.newest - BEHIND) this.numbers.delete(old)
    return true
  }
}

/** Sessions of a page, by the number that the daemon assigned to each. */
class Sessions {
  private readonly known = new Map<number, { readonly page: string; readonly seen: Seen }>()
  /** Sessions up to this number are no longer valid. */
  private floor = 0

  of(number: number, page: string): Seen | undefined {
    if (number <= this.floor) return undefined
    const found = this.known.get(number)
    if (found !== undefined) return found.page === page ? found.seen : undefined
    const seen = new Seen()
    this.known.set(number, { page, seen })
    if (this.known.size > SESSIONS) {
      this.floor = Math.min(...this.known.keys())
      this.known.delete(this.floor)
    }
    return this.known.get(number)?.seen
  }
}

/** A request with a valid proof from a paired page. */
export interface Paired {
  /** The page's right; undefined if it was revoked. */
  readonly grant: Grant | undefined
  /** The refusal if the request must not be carried out; otherwise undefined. */
  readonly refused: Refusal | undefined
  /** SHA-256 of the body that the page says it has sent. */
  readonly body: string
  readonly prove: (response: Response) => Response
}

const over = refusal(
  "conflict",
  "The daemon has restarted since this page was last connected.",
  "Load the page again.",
  Proof.OVER
)
const repeated = refusal("conflict", "This request was made before.", "Check whether it was done.")
const revoked = refusal(
  "not_allowed",
  "This page's access was revoked.",
  "Open it again: agentd open",
  "authorization",
  401
)

const proven =
  (key: Buffer, n: number) =>
  (response: Response): Response => {
    const { body, headers, status } = response
    const header = (hash: string) => ({
      [Proof.PROOF]: proof(key, Proof.answerText(n, status, hash, headers[Proof.POLICY] ?? ""))
    })
    if (body._tag !== "Stream")
      return HttpServerResponse.setHeaders(response, header(hashOf(body._tag === "Uint8Array" ? body.body : "")))
    let place = 0
    const items = Stream.map(body.stream, (item) => {
      const text = Buffer.from(item)
      const line = `:${proof(key, Proof.text("item", n, place++, text.toString()))}\n`
      return Buffer.concat([Buffer.from(line), text])
    })
    return HttpServerResponse.setHeaders(
      HttpServerResponse.setBody(response, HttpBody.stream(items, body.contentType)),
      header("stream")
    )
  }

export interface Asks extends Proof.Asked {
  readonly authorization: string | undefined
}

export interface Pairing {
  /** Encrypts the key for a page that has used its link. */
  readonly seal: (claimed: Claimed, page: string) => Effect.Effect<object, Refusal>
  /** Proves to a page that this is its daemon. */
  readonly hello: (id: string, page: string) => Effect.Effect<object, Refusal>
  /** Records foreign service workers that a page has found at its origin. */
  readonly tell: (id: string, workers: ReadonlyArray<string>) => Effect.Effect<void>
  /** Verifies the proof of a request. Undefined if the request is not from a paired page. */
  readonly open: (asks: Asks) => Effect.Effect<Paired | undefined, Refusal>
}

const WORD = /^[\w-]{22,64}$/

/** Makes the pairing of pages. `secret`: the secret from which the keys of all pages are derived. */
export const make = (
  access: Access["Service"],
  secret: Effect.Effect<string, Refusal>,
  tell: Pairing["tell"] = () => Effect.void
): Pairing => {
  const life = word()
  let sessions = 0
  const pages = new Map<string, Sessions>()
  const keyOf = (id: string) => Effect.map(secret, (secret) => mac(secret, JSON.stringify(["page", id])))
  const sessionKey = (key: Buffer, { daemon, id, page }: Proof.Session) =>
    mac(key, Proof.text("session", id, page, daemon))
  const grantOf = (id: string) => Effect.orElseSucceed(access.page(id), () => undefined)

  return {
    tell,
    seal: Effect.fnUntraced(function* ({ code, id, label, right }, page) {
      const key = yield* keyOf(id)
      const daemon = word()
      const pad = mac(code, Proof.text("seal", id, page, daemon))
      const sealed = key.map((byte, at) => byte ^ pad[at]!)
      const granted = proof(key, Proof.text("granted", id, page, daemon))
      return { id, right, label, daemon, sealed: Buffer.from(sealed).toString("base64url"), proof: granted }
    }),
    hello: Effect.fnUntraced(function* (id, page) {
      if (!WORD.test(page))
        return yield* Effect.fail(
          refusal("invalid", "The page's random value is missing.", "Send it as `page`.", "page")
        )
      const key = yield* keyOf(id)
      const isGranted = (yield* grantOf(id)) !== undefined
      const daemon = `${life}.${++sessions}`
      return { daemon, isGranted, proof: proof(key, Proof.text("hello", id, page, daemon, isGranted)) }
    }),
    open: Effect.fnUntraced(function* ({ authorization, ...asked }) {
      const signature = Proof.signatureIn(authorization)
      if (signature === undefined) return undefined
      const key = sessionKey(yield* keyOf(signature.id), signature)
      if (!same(signature.mac, proof(key, Proof.requestText(asked, signature)))) return undefined
      const { body, daemon, id, n, page } = signature
      const prove = proven(key, n)
      const grant = yield* grantOf(id)
      const paired = (refused: Refusal | undefined): Paired => ({ grant, refused, body, prove })
      if (grant === undefined) {
        pages.delete(id)
        return paired(revoked)
      }
      const [of, number] = daemon.split(".")
      if (of !== life || Number(number) > sessions) return paired(over)
      const known = pages.get(id) ?? new Sessions()
      pages.set(id, known)
      const seen = known.of(Number(number), page)
      if (seen === undefined) return paired(over)
      return paired(seen.take(n) ? undefined : repeated)
    })
  }
}
