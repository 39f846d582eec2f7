/**
 * Access: grants access rights over HTTP to web pages and programs, and revokes them. A program authenticates with a
 * token, a page with its own key (`Pairing`).
 *
 * Guarantees: the list of grants is computed from the log. The log contains only the hash of a token, and no part of a
 * page's key. An invitation is valid for two minutes, and one page can use it once. It ends with the daemon. When the
 * daemon has confirmed a revocation, the grant is no longer valid.
 */
import { Context, Deferred, Effect, Layer, Semaphore } from "effect"
import { createHash, createHmac, randomBytes } from "node:crypto"
import { type Caller, CommandRefused, refuse } from "../domain/Messages.ts"
import * as Proof from "../domain/PageProof.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM, type Rune, type RuneDraft } from "../core/event-log/Rune.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import { accessKinds, type Right } from "./AccessKinds.ts"

export interface Grant {
  readonly id: string
  readonly right: Right
  readonly label: string
  readonly by: string
  /** Time at which the right was granted, in ms since the epoch. */
  readonly since: number
  /** SHA-256 hash of a program's token. Empty for a page, which has no token. */
  readonly hash: string
  /** The page's own port; undefined if the page is reached by its own host name instead. */
  readonly port?: number | undefined
}

/** Grants by id, oldest first. */
export type Grants = ReadonlyMap<string, Grant>

const read = reader(accessKinds)

const apply = (before: Grants, any: Rune): Grants => {
  const rune = read(any)
  if (rune === undefined) return before
  const grants = new Map(before)
  if (rune.kind === "access.revoked") grants.delete(rune.payload.id)
  else grants.set(rune.payload.id, { ...rune.payload, since: rune.at })
  return grants
}

export const fold: StreamFold<Grants> = {
  name: "access",
  version: 1,
  initial: new Map(),
  of: (stream) => stream === DAEMON_STREAM,
  apply,
  toPlain: (grants) => [...grants.values()],
  fromPlain: (plain) => new Map((plain as ReadonlyArray<Grant>).map((grant) => [grant.id, grant]))
}

/** Maximum number of grants, for programs and pages together. */
const MAX_GRANTS = 100
/** Time for which an invitation is valid, in ms. */
export const INVITED = 120_000
/** Maximum number of open invitations; the oldest is dropped first. */
const MAX_INVITED = 20

const secret = Effect.sync(() => randomBytes(32).toString("base64url"))
const fresh = Effect.map(secret, (text) => text.replaceAll(/[-_]/g, "").slice(0, 8).toLowerCase())
/** An identifier derived from an invitation code. The page sends this instead of the code. */
export const handleOf = (code: string): string =>
  createHmac("sha256", code).update(Proof.text("handle")).digest("base64url")
/** The host name of the page's own origin. Nobody can guess it before the page's link is used. */
export const nameOf = (code: string): string =>
  `agentd-${createHmac("sha256", code).update(Proof.text("name")).digest("hex").slice(0, 20)}.localhost`
export const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex")

interface Wanted {
  readonly right: Right
  readonly label: string
  readonly port?: number | undefined
}

interface Invitation extends Wanted {
  readonly code: string
  readonly by: string
  /** Time at which the invitation expires, on the monotonic clock, in ms. */
  readonly until: number
}

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export interface Granted extends Wanted {
  readonly id: string
  readonly token: string
}

/** A page that has used its link. The page's key is sent to the page once, encrypted with the code of the link. */
export interface Claimed extends Wanted {
  readonly id: string
  readonly code: string
}

export class Access extends Context.Service<
  Access,
  {
    readonly list: Effect.Effect<ReadonlyArray<Grant>, StorageError>
    /** Creates a token for a program. The token is returned only once. */
    readonly grant: (wanted: Wanted, caller: Pick<Caller, "by">) => Command<Granted>
    /** Creates a code with which one page can connect, once. */
    readonly invite: (wanted: Wanted, caller: Pick<Caller, "by">) => Effect.Effect<string>
    readonly claim: (handle: string) => Command<Claimed>
    /** Revokes a grant. `id`: the grant's id, or a unique prefix of it. */
    readonly revoke: (
      id: string,
      caller: Pick<Caller, "by">
    ) => Command<{ readonly eventId: number; readonly grant: Grant }>
    /** The grant for a token; undefined if the token is invalid. Waits until the log has been read. */
    readonly of: (token: string) => Effect.Effect<Grant | undefined, StorageError>
    /** The grant with this id if it belongs to a page; otherwise undefined. Waits until the log has been read. */
    readonly page: (id: string) => Effect.Effect<Grant | undefined, StorageError>
    /** Waits until the grant with this id is revoked; returns at once if there is no such grant. */
    readonly ended: (id: string) => Effect.Effect<void>
  }
>()("agentd/access/Access") {}

const draft = (kind: string, payload: RuneDraft["payload"]): RuneDraft => ({
  stream: DAEMON_STREAM,
  kind,
  actor: "daemon",
  payload
})

const tooMany = refuse(
  "full",
  `There are ${MAX_GRANTS} tokens already.`,
  "Revoke those that nobody uses: agentd access ls, then agentd access revoke ID"
)

const used = refuse(
  "conflict",
  "This link was used already, or is older than two minutes.",
  "Get a new one: agentd open"
)

/** The valid grants, and the callers that wait until a grant is revoked. */
class Book {
  grants: Grants = new Map()
  private hashes: ReadonlyMap<string, Grant> = new Map()
  private readonly ends = new Map<string, Deferred.Deferred<void>>()

  become(next: Grants): void {
    this.grants = next
    this.hashes = new Map([...next.values()].map((grant) => [grant.hash, grant]))
    for (const id of next.keys()) if (!this.ends.has(id)) this.ends.set(id, Deferred.makeUnsafe())
    for (const [id, end] of this.ends) {
      if (next.has(id)) continue
      this.ends.delete(id)
      Deferred.doneUnsafe(end, Effect.void)
    }
  }

  of(token: string): Grant | undefined {
    return this.hashes.get(hashOf(token))
  }

  ended(id: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const end = this.ends.get(id)
      return end === undefined ? Effect.void : Deferred.await(end)
    })
  }

  /** Finds a grant by a unique prefix of its id. */
  named(id: string): Grant | CommandRefused {
    const found = [...this.grants.values()].filter((one) => id !== "" && one.id.startsWith(id))
    const [one] = found
    if (one !== undefined && found.length === 1) return one
    return refuse(
      one === undefined ? "not_found" : "ambiguous",
      one === undefined ? `There is no token "${id}".` : `${found.length} tokens begin with "${id}".`,
      "See which there are: agentd access ls"
    )
  }
}

/** Open invitations by the handle of their code. Stored only in memory. */
const invitations = () => {
  const open = new Map<string, Invitation>()
  return {
    add: Effect.fnUntraced(function* (wanted: Wanted, by: string) {
      const code = yield* secret
      const now = yield* Monotonic.now
      for (const [old, { until }] of open) if (until < now || open.size >= MAX_INVITED) open.delete(old)
      open.set(handleOf(code), { ...wanted, by, code, until: now + INVITED })
      return code
    }),
    take: Effect.fnUntraced(function* (handle: string) {
      const found = open.get(handle)
      open.delete(handle)
      return found === undefined || found.until < (yield* Monotonic.now) ? yield* used : found
    })
  }
}

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const lock = yield* Semaphore.make(1)
  const loaded = yield* Deferred.make<void, StorageError>()
  const invited = invitations()
  const book = new Book()
  yield* log.recover(DAEMON_STREAM, { access: fold }).pipe(
    Effect.map(({ access }) => book.become(access.state)),
    Effect.onExit((exit) => Deferred.done(loaded, exit)),
    Effect.tapCause((cause) => Effect.logError("tokens cannot be read: no token is accepted", cause)),
    Effect.forkScoped
  )
  const known = Deferred.await(loaded)

  const append = (one: RuneDraft) =>
    // a rejected rune is a bug in agentd
    Effect.catchTag(log.append([one]), "RuneRefused", Effect.die).pipe(
      Effect.map(([rune]) => {
        book.become(apply(book.grants, rune!))
        return rune!
      }),
      Effect.uninterruptible
    )

  const granted = Effect.fnUntraced(
    function* ({ label, port, right }: Wanted, { by }: Pick<Caller, "by">, hash: string) {
      yield* known
      if (book.grants.size >= MAX_GRANTS) return yield* tooMany
      const id = yield* fresh
      yield* append(draft("access.granted", { id, right, label, hash, by, ...(port === undefined ? {} : { port }) }))
      return { id, right, label }
    },
    (granting) => lock.withPermit(granting)
  )

  return Access.of({
    list: Effect.map(known, () => [...book.grants.values()]),
    grant: Effect.fnUntraced(function* (wanted, caller) {
      const token = yield* secret
      return { ...(yield* granted(wanted, caller, hashOf(token))), token }
    }),
    invite: (wanted, { by }) => invited.add(wanted, by),
    claim: Effect.fnUntraced(function* (handle) {
      const found = yield* invited.take(handle)
      return { ...(yield* granted(found, found, "")), code: found.code }
    }),
    revoke: Effect.fnUntraced(
      function* (id, { by }) {
        yield* known
        const found = book.named(id)
        if (found instanceof CommandRefused) return yield* found
        const { eventId } = yield* append(draft("access.revoked", { id: found.id, by }))
        return { eventId, grant: found }
      },
      (revoking) => lock.withPermit(revoking)
    ),
    of: (token) => Effect.map(known, () => book.of(token)),
    page: (id) => Effect.map(known, () => (book.grants.get(id)?.hash === "" ? book.grants.get(id) : undefined)),
    ended: (id) => book.ended(id)
  })
})

export const layer: Layer.Layer<Access, never, EventLog> = Layer.effect(Access, make)
