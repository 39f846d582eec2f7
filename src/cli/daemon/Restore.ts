/**
 * `agentd restore FILE`: replaces the store by a backup.
 *
 * Guarantees: if a daemon has the store open, the command fails. Before the user is asked and anything is changed, the
 * backup is unpacked and its whole log is verified. The replaced store remains in the state directory, and its path is
 * printed. All access tokens of the backup are revoked, because some of them might have been revoked after the backup
 * was made.
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
      remedy: "Nothing was changed. Use an older backup.",
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
          remedy: "Pass a file that was made by: agentd backup FILE",
          exitCode: ExitCode.failed
        })
      )

/** A description of the current store, for the question to the user; undefined if the state directory has no store. */
const storeThere = Effect.fnUntraced(function* (state: string) {
  if (!existsSync(join(state, STORE))) return undefined
  return yield* Effect.match(StoreCopy.facts(join(state, STORE)), {
    onSuccess: ({ at, head }) => `${count(head, "rune")}${at === 0 ? "" : `, the newest from ${stampOf(at)}`}`,
    onFailure: ({ message }) => `cannot be read: ${message}`
  })
})

/** Revokes all access tokens in a store, and returns their number. */
const revokeAll = (store: string) =>
  Effect.gen(function* () {
    const access = yield* Access.Access
    const grants = yield* access.list
    // `revoke` fails only for unknown tokens, and these are listed
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
    const fact = `The backup has ${count(unpacked.head, "rune")}, the newest from ${stampOf(unpacked.headAt)}. The current store in ${state} (${there}) will be moved to ${join(state, aside)}.`
    yield* confirm(yes, fact, "Restore this backup?")
  }
  const revoked = yield* revokeAll(store)
  const left = yield* Restoring.swap(state, file, aside)
  const { agentd, at, head, headAt, items } = unpacked
  const { runes, streams } = verdict
  yield* print({ file, state, agentd, at, head, headAt, items, runes, streams, aside: left ?? null, revoked }, () => [
    `Restored into ${state}: ${count(runes, "rune")} in ${count(streams, "stream")}; all hashes are correct.`,
    ...(left === undefined ? [] : [`The previous store is in ${left}. Remove it when you no longer need it.`]),
    ...(revoked === 0
      ? []
      : [
          `${count(revoked, "token")} ${revoked === 1 ? "was" : "were"} revoked, because tokens that were revoked after the backup would have become valid again. Create new tokens: agentd open, agentd access new LABEL`
        ]),
    "Agents that ran when the backup was made run again after the next start: agentd start"
  ])
})

export const run = (input: Input) => Effect.scoped(restoring(input))
