/**
 * OwnConfig: reads the user's own `config.jsonc` when the daemon starts and whenever the file changes.
 *
 * Guarantees: an invalid file is reported like a project's: in the log at once, and to a user after it has stayed
 * invalid for a while. The notification uses the channels of the last usable version.
 */
import { basename, dirname } from "node:path"
import { Clock, Effect, FileSystem, PubSub, Stream } from "effect"
import { ConfigNotice, troubleOf } from "../projects/ConfigNotice.ts"
import * as ConfigTrust from "../projects/ConfigTrust.ts"
import { ofUser } from "../config/RulesInForce.ts"
import * as UserFile from "../config/UserFile.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { UserApprovals } from "../domain/UserApprovals.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"
import type { OwnConfigTrouble } from "../board/DaemonMessages.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

/** Reads the user's config file at the daemon's start. Fails if neither the file nor an earlier version can be used. */
export const make = Effect.fnUntraced(function* (place: UserFile.Place) {
  const first = yield* UserFile.take(place)
  let rules = ofUser({ config: first.config, text: first.inForce }, place.userConfig)
  const news = yield* PubSub.sliding<void>(1)
  let trouble: OwnConfigTrouble | undefined
  const noted = Effect.fnUntraced(function* ({ config, inForce, trouble: found }: UserFile.Look) {
    rules = ofUser({ config, text: inForce }, place.userConfig)
    yield* PubSub.publish(news, undefined)
    const since = trouble?.since ?? (yield* Clock.currentTimeMillis)
    trouble = found === undefined ? undefined : { path: place.userConfig, problem: found.message, since }
  })
  yield* noted(first)
  if (first.trouble !== undefined) {
    yield* Effect.logError(`${first.trouble.message}\nThe last usable version stays in force.`)
  }

  /** A child of the daemon that watches the file. */
  const follow = Effect.gen(function* () {
    const log = yield* EventLog
    const files = yield* FileSystem.FileSystem
    const trust = ConfigTrust.fresh()
    const read = reader(configKinds)
    const kinds = Object.keys(configKinds)
    for (const rune of (yield* log.tail({ stream: DAEMON_STREAM, kinds }, RUNES)).map(read)) {
      if (rune !== undefined) ConfigTrust.apply(trust, rune)
    }
    const known = { conversation: DAEMON_STREAM, config: place.userConfig, name: "agentd", trust }
    const notices = new ConfigNotice(yield* Effect.context<EventLog>(), known, yield* Effect.scope)
    const again = Effect.gen(function* () {
      const now = yield* UserFile.take(place)
      yield* noted(now)
      yield* notices.notice(now.trouble === undefined ? null : troubleOf(now.trouble))
    })
    const changes = files
      .watch(dirname(place.userConfig))
      .pipe(Stream.filter(({ path }) => basename(path) === basename(place.userConfig)))
    return yield* Stream.merge(Stream.succeed(undefined), changes).pipe(
      // wait for a moment, because editors write a file in several steps
      Stream.debounce("200 millis"),
      Stream.runForEach(() => again),
      Effect.catchDefect((defect) => Effect.fail(defect)),
      // the file's folder might be missing: try again later
      Effect.retry(Backoff.waits(Backoff.constant("30 seconds"))),
      Effect.andThen(Effect.never)
    )
  }).pipe(Effect.scoped)

  const context = yield* Effect.context<FileSystem.FileSystem>()
  const reread = UserFile.take(place).pipe(
    Effect.flatMap(noted),
    // the watcher reports it
    Effect.ignore,
    Effect.provideContext(context)
  )
  const userApprovals: (typeof UserApprovals)["Service"] = {
    path: place.userConfig,
    rules: () => rules,
    reread,
    changes: Stream.fromPubSub(news)
  }
  return {
    config: first.config,
    userApprovals,
    follow,
    ownConfig: () => (trouble === undefined ? {} : { ownConfig: trouble })
  }
})

/**
 * Number of recent runes to read. The rune that ends a problem comes after the rune that reports it, so the newest
 * runes are enough.
 */
const RUNES = 20
