/**
 * `agentd restore FILE`: puts a backup in the place of the store.
 *
 * Guarantees: a store that a daemon has open is refused; the backup is unpacked and its whole log verified before
 * anybody is asked and before anything is touched; a store that was there lies beside it afterwards, and where is said;
 * no token of the backup opens anything: which were revoked since is not known.
 */
import { Clock, Console, Effect, Layer } from "effect"
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Access from "../../access/Access.ts"
import * as DaemonLog from "../../app/DaemonLog.ts"
import { BackupRefused } from "../../backup/BackupFile.ts"
import { STORE } from "../../backup/Contents.ts"
import * as Restoring from "../../backup/Restoring.ts"
import type { Verdict } from "../../core/event-log/EventLog.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import * as StoreCopy from "../../core/event-log/StoreCopy.ts"
import { storageError } from "../../core/event-log/StorageFailure.ts"
import * as StoreLock from "../../core/event-log/StoreLock.ts"
import { confirm } from "../parse/Confirm.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { count } from "../render/Output.ts"
import { byHand } from "./Verify.ts"

interface Input {
  readonly file: string
  readonly yes: boolean
}

const stampOf = (at: number): string => (at === 0 ? "" : new Date(at).toISOString().slice(0, 19))

const freeName = (state: string, name: string, nth = 1): string => {
  const tried = nth === 1 ? name : `${name}-${nth}`
  return existsSync(join(state, tried)) ? freeName(state, name, nth + 1) : tried
}

const checkSound = (file: string, { problems, runes }: Verdict) => {
  const [first] = problems
  if (first === undefined) return Effect.void
  return Effect.fail(
    new BackupRefused({
      message: `The log in ${file} is damaged: ${count(problems.length, "problem")} in ${count(runes, "rune")}; rune ${first.eventId} of ${first.stream}: ${first.message}.`,
      remedy: "All is as it was before. Take an older backup.",
      exitCode: ExitCode.problems
    })
  )
}

const checkThere = (file: string) =>
  existsSync(file)
    ? Effect.void
    : Effect.fail(
        new BackupRefused({
          message: `There is no file ${file}.`,
          remedy: "Name one that was made by: agentd backup FILE",
          exitCode: ExitCode.failed
        })
      )

/** The store in the state folder, in words for who decides about it. */
const storeThere = Effect.fnUntraced(function* (state: string) {
  if (!existsSync(join(state, STORE))) return undefined
  return yield* Effect.match(StoreCopy.facts(join(state, STORE)), {
    onSuccess: ({ at, head }) => `${count(head, "rune")}${at === 0 ? "" : `, the newest of ${stampOf(at)}`}`,
    onFailure: ({ message }) => `cannot be read: ${message}`
  })
})

/** Revokes every token that a store has; answers how many. */
const revokeAll = (store: string) =>
  Effect.gen(function* () {
    const access = yield* Access.Access
    const grants = yield* access.list
    // a token that is listed can be revoked
    for (const { id } of grants)
      yield* Effect.catchTag(access.revoke(id, { by: "restore" }), "CommandRefused", Effect.die)
    return grants.length
  }).pipe(
    Effect.provide(
      Access.layer.pipe(Layer.provide(DaemonLog.layerInline({ file: store })), Layer.provide(Redact.layer)),
      { local: true }
    )
  )

const restoring = Effect.fnUntraced(function* ({ file: given, yes }: Input) {
  const { columns, json, paths } = yield* Invocation
  const { state } = paths
  const file = resolve(given)
  yield* checkThere(file)
  yield* StoreLock.acquire({ folder: state, socket: null })
  yield* Effect.try({ try: () => Restoring.undo(state), catch: (cause) => storageError(state, cause) })
  if (columns !== null && !json) yield* Console.error("Unpacking and verifying …")
  const unpacked = yield* Restoring.unpack(state, file)
  const store = join(unpacked.stage, STORE)
  yield* StoreCopy.bringUpToDate(store)
  const verdict = yield* byHand(store)
  yield* checkSound(file, verdict)
  const there = yield* storeThere(state)
  const aside = freeName(state, `replaced-${stampOf(yield* Clock.currentTimeMillis).replaceAll(":", "-")}`)
  if (there !== undefined) {
    const fact = `The backup has ${count(unpacked.head, "rune")}, the newest of ${stampOf(unpacked.headAt)}. The store in ${state} (${there}) is moved aside, to ${join(state, aside)}.`
    yield* confirm(yes, fact, "Restore it?")
  }
  const revoked = yield* revokeAll(store)
  const left = yield* Restoring.swap(state, file, aside)
  const { agentd, at, head, headAt, items } = unpacked
  const { runes, streams } = verdict
  yield* print({ file, state, agentd, at, head, headAt, items, runes, streams, aside: left ?? null, revoked }, () => [
    `Restored into ${state}: ${count(runes, "rune")} in ${count(streams, "stream")}, each hash follows from the one before.`,
    ...(left === undefined ? [] : [`The store that was there is in ${left}. Remove it when nobody needs it.`]),
    ...(revoked === 0
      ? []
      : [
          `${count(revoked, "token")} ${revoked === 1 ? "was" : "were"} revoked: those that were revoked since the backup would have been valid again. New ones: agentd open, agentd access new LABEL`
        ]),
    "What ran when the backup was made runs again at the next start: agentd start"
  ])
})

export const run = (input: Input) => Effect.scoped(restoring(input))
