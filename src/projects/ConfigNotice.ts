/**
 * ConfigNotice: reports that a changed config file is not in force, because it is not trusted or not valid. The report
 * goes to the log at once. The user is notified only after a delay, because the user who edits the file often trusts it
 * shortly afterwards.
 *
 * Guarantees: A problem is reported once, even after a restart. The log also records when the file is in force again,
 * so that a later problem is reported too.
 */
import { Clock, Context, Duration, Effect, type Scope } from "effect"
import { configKinds } from "../domain/ConfigKinds.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import type { RuneDraft } from "../core/event-log/Rune.ts"
import * as ConfigTrust from "./ConfigTrust.ts"

/** Delay before the user is notified. By then, the user who edits the file has usually trusted it. */
export const TOLD_AFTER = Duration.minutes(5)

/** Maximum length of a problem's text in a rune, characters. */
const MAX_PROBLEM = 2_000

export type Trouble = Pick<ConfigTrust.Noticed, "state" | "hash" | "problem">

const read = reader(configKinds)

export const troubleOf = ({ message, reason }: { readonly message: string; readonly reason: string }): Trouble => ({
  state: reason === "missing" ? "missing" : "broken",
  hash: null,
  problem: message
})

export class ConfigNotice {
  private readonly services: Context.Context<EventLog>
  private readonly record: ConfigTrust.Known
  private readonly scope: Scope.Scope
  /** Start of the problem for which a notification is scheduled, ms since the epoch; 0 if none is scheduled. */
  private awaited = 0

  constructor(services: Context.Context<EventLog>, record: ConfigNotice["record"], scope: Scope.Scope) {
    this.services = services
    this.record = record
    this.scope = scope
  }

  /** Appends runes to the log, and applies them to the project's record. */
  readonly append = (drafts: ReadonlyArray<RuneDraft>) =>
    Context.get(this.services, EventLog)
      .append(drafts)
      .pipe(
        Effect.tap((runes) =>
          Effect.sync(() => {
            for (const rune of runes.map(read)) if (rune !== undefined) ConfigTrust.apply(this.record.trust, rune)
          })
        ),
        Effect.uninterruptible
      )

  /** Records a problem of the config file; `trouble` is null if the file is in force. */
  readonly notice = Effect.fnUntraced({ self: this }, function* (this: ConfigNotice, trouble: Trouble | null) {
    const { noticed } = this.record.trust
    const problem = trouble?.problem?.slice(0, MAX_PROBLEM) ?? null
    const isKnown =
      trouble?.state === noticed?.state && trouble?.hash === noticed?.hash && problem === (noticed?.problem ?? null)
    if (!isKnown) {
      yield* this.append([
        this.draft("config.changed", {
          state: trouble?.state ?? "in_force",
          hash: trouble === null ? this.record.trust.hash : trouble.hash,
          problem
        })
      ])
    }
    yield* this.await
  })

  private draft(kind: string, payload: RuneDraft["payload"]): RuneDraft {
    const { config, conversation } = this.record
    return { stream: conversation, kind, actor: "project", trigger: "watch", payload: { config, ...payload } }
  }

  /** Schedules a notification of the user, which is sent if the problem still exists then. */
  private readonly await = Effect.suspend(() => {
    const { noticed } = this.record.trust
    if (noticed === null || noticed.kept !== undefined || noticed.told || this.awaited === noticed.since)
      return Effect.void
    this.awaited = noticed.since
    return Effect.asVoid(Effect.forkIn(this.tell(noticed), this.scope))
  })

  private tell({ hash, problem, since, state }: ConfigTrust.Noticed) {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis
      // a start time in the future is caused by a wrong clock, and counts as now
      const passed = Math.max(0, now - since)
      yield* Effect.sleep(Math.max(0, Duration.toMillis(TOLD_AFTER) - passed))
      const { noticed } = this.record.trust
      if (noticed?.since !== since || noticed.kept !== undefined) return
      yield* this.append([this.draft("config.waits", { state, hash, problem, name: this.record.name, since })])
    }).pipe(Effect.catchCause((cause) => Effect.logWarning("nobody could be told of a config that waits", cause)))
  }
}
