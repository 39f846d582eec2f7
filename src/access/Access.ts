/**
 * Access: the tokens by which pages and programs come in over HTTP, each with its right, until it is revoked.
 *
 * Guarantees: who has a token is a fold of the log, which knows its hash alone; an invitation is good for one page,
 * once, for two minutes, and for this daemon; what was revoked opens nothing from the moment that this was answered.
 */
import { Context, Deferred, Effect, Layer, PubSub, Semaphore, Stream } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import { reader } from "../event-log/EventKinds.ts"
import { EventLog, type StorageError } from "../event-log/EventLog.ts"
import { DAEMON_STREAM, type Rune, type RuneDraft } from "../event-log/Rune.ts"
import type { StreamFold } from "../event-log/StreamFold.ts"
import * as Monotonic from "../supervision/Monotonic.ts"
import { accessKinds, type Right } from "./AccessKinds.ts"

export interface Grant {
  readonly id: string
  readonly right: Right
  readonly label: string
  readonly by: string
  /** ms since the epoch */
  readonly since: number
  readonly hash: string
}

/** By id, the oldest first. */
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

/** So many tokens there may be. */
const MAX_GRANTS = 100
/** An invitation is good for so long, ms. */
export const INVITED = 120_000
/** So many invitations are open at one time; the oldest goes first. */
const MAX_INVITED = 20

const secret = Effect.sync(() => randomBytes(32).toString("base64url"))
export const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex")

interface Wanted {
  readonly right: Right
  readonly label: string
}

interface Invitation extends Wanted {
  readonly by: string
  /** By the monotonic clock, ms. */
  readonly until: number
}

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export interface Granted extends Wanted {
  readonly id: string
  readonly token: string
}

export class Access extends Context.Service<
  Access,
  {
    readonly list: Effect.Effect<ReadonlyArray<Grant>, StorageError>
    /** A token; nobody can ask for it again. */
    readonly grant: (wanted: Wanted, caller: Pick<Caller, "by">) => Command<Granted>
    /** A code that is worth a token, once. */
    readonly invite: (wanted: Wanted, caller: Pick<Caller, "by">) => Effect.Effect<string>
    readonly claim: (code: string) => Command<Granted>
    /** By its id or a unique beginning of it. */
    readonly revoke: (id: string, caller: Pick<Caller, "by">) => Command<{ readonly eventId: number; readonly grant: Grant }>
    /** The grant of a token; undefined: it opens nothing. Waits until the log is read. */
    readonly of: (token: string) => Effect.Effect<Grant | undefined, StorageError>
    /** Ids that are revoked from now on: streams that they opened end. */
    readonly revoked: Stream.Stream<string>
  }
>()("agentd/access/Access") {}

const draft = (kind: string, payload: RuneDraft["payload"]): RuneDraft => ({
  stream: DAEMON_STREAM,
  kind,
  actor: "daemon",
  payload
})

const tooMany = new CommandRefused({
  message: `There are ${MAX_GRANTS} tokens already.`,
  remedy: "Revoke those that nobody uses: agentd access ls, then agentd access revoke ID"
})

const used = new CommandRefused({
  message: "This link was used already, or is older than two minutes.",
  remedy: "Get a new one: agentd open"
})

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const lock = yield* Semaphore.make(1)
  const ends = yield* PubSub.sliding<string>(100)
  const loaded = yield* Deferred.make<void, StorageError>()
  const invited = new Map<string, Invitation>()
  let grants: Grants = new Map()
  let hashes: ReadonlyMap<string, Grant> = new Map()

  const become = (next: Grants): void => {
    grants = next
    hashes = new Map([...next.values()].map((grant) => [grant.hash, grant]))
  }
  yield* log.recover(DAEMON_STREAM, { access: fold }).pipe(
    Effect.map(({ access }) => become(access.state)),
    Effect.onExit((exit) => Deferred.done(loaded, exit)),
    Effect.tapCause((cause) => Effect.logError("tokens cannot be read: none opens anything", cause)),
    Effect.forkScoped
  )
  const known = Deferred.await(loaded)

  const append = (one: RuneDraft) =>
    // a refusal is a fault of agentd's
    Effect.catchTag(log.append([one]), "RuneRefused", Effect.die).pipe(
      Effect.map(([rune]) => {
        become(apply(grants, rune!))
        return rune!
      }),
      Effect.uninterruptible
    )

  const grant = Effect.fnUntraced(
    function* ({ label, right }: Wanted, { by }: Pick<Caller, "by">) {
      yield* known
      if (grants.size >= MAX_GRANTS) return yield* tooMany
      const token = yield* secret
      const id = (yield* secret).replaceAll(/[-_]/g, "").slice(0, 8).toLowerCase()
      yield* append(draft("access.granted", { id, right, label, hash: hashOf(token), by }))
      return { id, right, label, token }
    },
    (granting) => lock.withPermit(granting)
  )

  return Access.of({
    list: Effect.map(known, () => [...grants.values()]),
    grant,
    invite: Effect.fnUntraced(function* (wanted, { by }) {
      const code = yield* secret
      const now = yield* Monotonic.now
      for (const [old, { until }] of invited) if (until < now || invited.size >= MAX_INVITED) invited.delete(old)
      invited.set(code, { ...wanted, by, until: now + INVITED })
      return code
    }),
    claim: Effect.fnUntraced(function* (code) {
      const found = invited.get(code)
      invited.delete(code)
      if (found === undefined || found.until < (yield* Monotonic.now)) return yield* used
      return yield* grant(found, found)
    }),
    revoke: Effect.fnUntraced(
      function* (id, { by }) {
        yield* known
        const found = [...grants.values()].filter((one) => id !== "" && one.id.startsWith(id))
        const [one] = found
        if (one === undefined || found.length > 1)
          return yield* new CommandRefused({
            message: one === undefined ? `There is no token "${id}".` : `${found.length} tokens begin with "${id}".`,
            remedy: "See which there are: agentd access ls"
          })
        const { eventId } = yield* append(draft("access.revoked", { id: one.id, by }))
        yield* PubSub.publish(ends, one.id)
        return { eventId, grant: one }
      },
      (revoking) => lock.withPermit(revoking)
    ),
    of: (token) => Effect.map(known, () => hashes.get(hashOf(token))),
    revoked: Stream.fromPubSub(ends)
  })
})

export const layer: Layer.Layer<Access, never, EventLog> = Layer.effect(Access, make)
