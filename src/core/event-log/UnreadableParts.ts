/**
 * UnreadableParts: records the parts of streams whose runes cannot be folded or read. Features work without these
 * parts.
 *
 * Guarantees: `reading` lists each part until the program ends. A rune in the home stream reports each part. It is not
 * repeated until a repair, even after restarts, because the user is mailed about each report. At most `MOST` parts are
 * reported per start, and `reading` lists at most `MAX_NAMED` parts.
 */
import { Effect, Semaphore } from "effect"
import type { Appender } from "./Appender.ts"
import type { EventLog, SetAside } from "./EventLog.ts"
import type { Rules } from "./LogRules.ts"
import { readOwn } from "./OwnKinds.ts"

/** Number of recent runes of the home stream that are searched for an earlier report of the part. */
const LOOK_BACK = 500
const MOST = 20
const MAX_NAMED = 1_000

export class UnreadableParts {
  private readonly rules: Rules
  private readonly append: Appender["append"]
  private readonly tail: EventLog["Service"]["tail"]
  private readonly parts = new Map<string, SetAside>()
  private readonly lock = Semaphore.makeUnsafe(1)
  private told = 0

  constructor(rules: Rules, append: Appender["append"], tail: EventLog["Service"]["tail"]) {
    this.rules = rules
    this.append = append
    this.tail = tail
  }

  get all(): ReadonlyArray<SetAside> {
    return [...this.parts.values()]
  }

  readonly add: EventLog["Service"]["setAside"] = (one) =>
    Effect.suspend(() => {
      const key = `${one.stream}\n${one.part}`
      if (this.parts.has(key) || this.parts.size >= MAX_NAMED) return Effect.void
      this.parts.set(key, one)
      return Effect.andThen(Effect.logError(textOf(one)), this.lock.withPermit(this.tell(one)))
    })

  private tell(one: SetAside): Effect.Effect<void> {
    const { home } = this.rules
    const message = textOf(one)
    return Effect.gen({ self: this }, function* () {
      const before = yield* this.tail({ stream: home, kinds: ["invariant.violated", "log.repaired"] }, LOOK_BACK)
      const since = before.slice(before.findLastIndex(({ kind }) => kind === "log.repaired") + 1)
      const isTold = since.some((rune) => {
        const own = readOwn(rune)
        return own?.kind === "invariant.violated" && own.payload.message === message
      })
      if (isTold || this.told++ >= MOST) return
      const payload = {
        rule: "INV-RUNE-READ",
        severity: "ERROR",
        kind: "",
        actor: one.part,
        stream: one.stream,
        message
      }
      yield* this.append([
        { stream: home, kind: "invariant.violated", actor: "log/recover", trigger: "recover", payload }
      ])
    }).pipe(Effect.catch((error) => Effect.logError(`nobody is mailed of it: ${error.message}`)))
  }
}

const textOf = ({ message, part, stream }: SetAside): string =>
  `${part} of ${stream} is left out, and all else goes on: ${message}`
