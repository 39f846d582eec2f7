/**
 * `agentd goal watch GOAL`: shows a goal as it changes, until the goal ends.
 *
 * Guarantees: on a terminal the goal is drawn in place, and the terminal is restored at the end. Without a terminal,
 * each change is printed on a line. If the daemon ends, the command waits for another daemon. The exit code says
 * whether the goal is met.
 */
import { Clock, Console, Effect, Terminal } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { GoalPage } from "../../domain/GoalMessages.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as GoalView from "./GoalView.ts"
import { hint, Invocation, print } from "../parse/Invocation.ts"
import { predicate } from "../../domain/StatusWords.ts"
import { clock, cut, plain } from "../render/Output.ts"
import { json as jsonOf, through } from "../render/TerminalDoor.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"

const EVERY = "500 millis"
/** Interval between attempts to reach the daemon after it has ended. */
const AGAIN = Backoff.waits(Backoff.constant("1 second"))
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l"
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l"
const HOME = "\u001b[H"
const REST_OF_LINE = "\u001b[K"
const REST_OF_SCREEN = "\u001b[J"

export const ends = ({ goal }: GoalPage): boolean => goal.state === "goal_met" || goal.state === "stopped"

/** At most `rows` lines that show the goal. A plan that is too long is shown in short form. */
export const frame = (page: GoalPage, now: number, rows: number, colour: boolean): ReadonlyArray<string> => {
  const room = Math.max(3, rows - 1)
  const whole = GoalView.show(page, now, colour)
  const lines = whole.length <= room ? whole : GoalView.brief(page, now, colour)
  return lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`]
}

const line = ({ goal }: GoalPage, now: number): string =>
  `${clock(now, now)} ${goal.goalId} ${predicate({ word: goal.word }, now)}: ${GoalView.progress(goal)}${goal.detail === "" ? "" : `; ${cut(plain(goal.detail), 200)}`}`

/** The part of a page that is compared with the previous page; if it differs, a line is printed. Ages are left out. */
const keyOf = ({ goal }: GoalPage): string => JSON.stringify([goal.state, goal.tasks, goal.detail, goal.rounds])

/** Shows the goal until `isOver` returns true, then returns the last page. */
export const watching = Effect.fnUntraced(function* (name: string, isOver: (page: GoalPage) => boolean = ends) {
  const { caller, colour, columns, json, paths } = yield* Invocation
  const terminal = yield* Terminal.Terminal
  const drawing = columns !== null && !json
  const write = (text: string) => Effect.ignore(terminal.display(text))
  if (drawing) yield* Effect.acquireRelease(write(ENTER), () => write(LEAVE))
  let before = ""
  /** True when the goal has been found. After that, a missing daemon is not an error, and the command waits for it. */
  let seen = false
  const show = Effect.fnUntraced(function* (page: GoalPage) {
    const now = yield* Clock.currentTimeMillis
    if (drawing) {
      const lines = yield* Effect.forEach(frame(page, now, yield* terminal.rows, colour), hint)
      yield* write(HOME + lines.map((one) => through(one, colour) + REST_OF_LINE).join("\r\n") + REST_OF_SCREEN)
    } else if (keyOf(page) !== before) {
      before = keyOf(page)
      yield* Console.log(json ? jsonOf(page.goal) : yield* hint(line(page, now)))
    }
  })
  const away = "Waiting for the daemon, which does not answer. Check it: agentd status"
  const lost = Effect.suspend(() => {
    const known = before === away
    before = away
    if (drawing) return write(`${HOME}${away}${REST_OF_LINE}`)
    return known ? Effect.void : Console.error(away)
  })
  const follow = call(paths.socket, (client) =>
    Effect.gen(function* () {
      for (;;) {
        const page = yield* client.Goal({ name, from: 0, caller })
        seen = true
        yield* show(page)
        if (isOver(page)) return page
        yield* Effect.sleep(EVERY)
      }
    })
  )
  return yield* follow.pipe(
    Effect.tapErrorTag("DaemonUnreachable", () => (seen ? lost : Effect.void)),
    Effect.retry({ schedule: AGAIN, while: (error) => seen && error._tag === "DaemonUnreachable" })
  )
}, Effect.scoped)

/** Shows the last page of a goal on a terminal. Fails if the goal is not met. */
export const outcome = Effect.fnUntraced(function* (page: GoalPage) {
  const { colour, columns, json } = yield* Invocation
  if (columns !== null && !json) {
    const now = yield* Clock.currentTimeMillis
    yield* print(page.goal, () => GoalView.show(page, now, colour))
  }
  if (page.goal.state === "goal_met") return
  return yield* new VerbFailed({
    message: `${page.goal.goalId} stopped: ${page.goal.reason ?? "no reason"}`,
    remedy: `See its tasks: agentd goal show ${page.goal.goalId}. To submit it again: agentd goal "…"`,
    exitCode: ExitCode.failed
  })
})

export const run = Effect.fnUntraced(function* (input: { readonly name: string }) {
  yield* outcome(yield* watching(input.name))
})
