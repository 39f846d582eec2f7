/**
 * Verify: re-reads a whole store and names every rune that is not as it was
 * written: ids without a gap, hashes that follow from content and predecessor,
 * the payloads that lie in archives, and the invariants that the guard holds on
 * append.
 */
import { Effect } from "effect"
import { DAEMON_STREAM } from "./Rune.ts"
import * as Archive from "./Archive.ts"
import * as InvariantGuard from "./InvariantGuard.ts"
import { GENESIS, hashPayload, hashRune } from "./HashChain.ts"
import type { StorageError, Verdict } from "./EventLog.ts"
import type { Store, StoredRune } from "./Store.ts"

/** A store that is wrong all over is wrong; nobody reads more of it than this. */
const MAX_PROBLEMS = 1_000

type Problem = Verdict["problems"][number]

/** One pass, in order. Used over headers when a store is opened, and over everything by `agentd verify`. */
export class Walk {
  private readonly hashes = new Map<string, string>()
  readonly problems: Array<Problem> = []
  runes = 0
  head = 0

  get streams(): number {
    return this.hashes.size
  }

  next(rune: StoredRune): void {
    if (rune.eventId !== this.head + 1) {
      const missing = rune.eventId - this.head - 1
      this.report(rune, "INV-EVENTID-MONOTONIC", `${missing} runes are missing before it (after ${this.head})`)
    }
    if (hashRune(this.hashes.get(rune.stream) ?? GENESIS, rune, rune.payloadHash) !== rune.hash) {
      this.report(rune, "INV-HASH-VALID", "its hash does not follow from its header and the rune before it")
    }
    if (rune.payload !== null && hashPayload(rune.payload) !== rune.payloadHash) {
      this.report(rune, "INV-HASH-VALID", "its payload is not the one that was appended")
    }
    this.hashes.set(rune.stream, rune.hash)
    this.head = rune.eventId
    this.runes += 1
  }

  report(rune: { readonly eventId: number; readonly stream: string }, rule: string, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) {
      this.problems.push({ eventId: rune.eventId, stream: rune.stream, rule, message })
    }
  }
}

/** The conversation whose payloads lie in an archive, by the rune that says so. */
export const archivedBy = ({ actor, kind, stream }: StoredRune): string | undefined =>
  stream === DAEMON_STREAM && kind === "session.archived" ? actor.slice(actor.indexOf("/") + 1) : undefined

/** `folder`: where archives are. */
export const verify = (store: Store, folder: string | undefined): Effect.Effect<Verdict, StorageError> =>
  Effect.gen(function* () {
    const walk = new Walk()
    const before = yield* store.lastCommitted
    let guard = InvariantGuard.initial
    const archived = new Set<string>()
    /** Without all of its payloads a stream shows no invariant here; its archive does. */
    const erased = new Set<string>()
    while (true) {
      const runes = yield* store.scan(walk.head, "all")
      if (runes.length === 0) break
      for (const rune of runes) {
        walk.next(rune)
        const stream = archivedBy(rune)
        if (stream !== undefined) archived.add(stream)
        if (rune.payload === null) erased.add(rune.stream)
        if (erased.has(rune.stream)) continue
        const seen = InvariantGuard.seen(rune)
        const violation = InvariantGuard.check(guard, rune.stream, seen)
        if (violation !== undefined) walk.report(rune, violation.rule, violation.message)
        guard = InvariantGuard.apply(guard, rune.stream, seen)
      }
    }
    for (const stream of folder === undefined ? [] : archived) {
      const { problems } = yield* Archive.check({ store, folder: folder!, stream, head: walk.head })
      for (const { eventId, message, rule } of problems) walk.report({ eventId, stream }, rule, message)
    }
    // A daemon may have gone on writing meanwhile: the end lies between the two.
    const after = yield* store.lastCommitted
    if (walk.head < before || walk.head > after) {
      walk.report(
        { eventId: walk.head, stream: "" },
        "INV-EVENTID-MONOTONIC",
        `the last commit ended with rune ${after}, and the store ends with ${walk.head}`
      )
    }
    return { runes: walk.runes, streams: walk.streams, problems: walk.problems }
  })
