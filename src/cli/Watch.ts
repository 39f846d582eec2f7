/**
 * `agentd watch`: sessions and agents as they change, on a screen of its own.
 *
 * Guarantees: the terminal is as it was when it ends, however it ends; what does
 * not fit is cut and said so; while the daemon is away it says so and goes on when
 * it is back; the bell rings once for each matter that begins to wait for a person.
 */
import { Clock, Effect, Ref, Stream, Terminal } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { call } from "../rpc/ControlClient.ts"
import type { Board, BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import { after, needing, order } from "../domain/BoardRow.ts"
import { nameOf, render } from "./Board.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import * as Hint from "./Hint.ts"
import { Invocation } from "./Invocation.ts"
import { worldOf } from "./Places.ts"
import { clock, cut, paint, plain } from "./Output.ts"
import { through } from "./TerminalDoor.ts"

const EVERY = "1 second"

/** The other screen, no cursor, and no wrapping: a line that is too long takes no second row. */
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l"
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l"
const HOME = "\u001b[H"
const REST_OF_LINE = "\u001b[K"
const REST_OF_SCREEN = "\u001b[J"
const BELL = "\u0007"

export interface Shown {
  /** Undefined until the daemon has answered. */
  readonly board: Board | undefined
  /** Why it does not answer now. */
  readonly problem: string | undefined
}

/** Rows that need a person now and did not before. */
export const startedToWait = (
  before: ReadonlyArray<BoardRow>,
  now: ReadonlyArray<BoardRow>
): ReadonlyArray<BoardRow> => {
  const asking = (rows: ReadonlyArray<BoardRow>) => rows.filter(({ word }) => word === "needs you")
  const known = new Set(asking(before).map(({ id, since }) => `${id} ${since}`))
  return asking(now).filter(({ id, since }) => !known.has(`${id} ${since}`))
}

/** As many lines as there are rows, at most. */
export const frame = (
  { board, problem }: Shown,
  now: number,
  size: { readonly columns: number; readonly rows: number },
  colour: boolean,
  world: string | null = null
): ReadonlyArray<string> => {
  const { columns, rows } = size
  const waiting = board === undefined ? 0 : needing(board.rows)
  const says =
    problem !== undefined
      ? "the daemon does not answer"
      : waiting === 0
        ? "nothing waits for you"
        : `${waiting} ${waiting === 1 ? "waits" : "wait"} for you`
  const head = `agentd ${clock(now, now)}  ${says}  (q ends)`
  const body = board === undefined ? [] : render(board, now, { colour, columns, world })
  const notice = problem === undefined ? [] : [paint(colour, "red", cut(plain(problem), columns))]
  const room = Math.max(0, rows - 2 - notice.length)
  const fitting =
    body.length <= room ? body : [...body.slice(0, Math.max(0, room - 1)), `… ${body.length - room + 1} more lines`]
  return [paint(colour, waiting === 0 ? "dim" : "yellow", cut(head, columns)), "", ...notice, ...fitting].slice(0, rows)
}

interface News {
  readonly title: string
  readonly detail: string
}
const newsOf = (before: Board, now: Board): ReadonlyArray<News> =>
  startedToWait(before.rows, now.rows).map((row) => ({ title: nameOf(row), detail: row.says }))

const notifyOf = ({ detail, title }: News) =>
  Effect.flatMap(ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
    spawner.exitCode(
      ChildProcess.make("notify-send", ["--app-name=agentd", "--", plain(title), plain(detail)], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore"
      })
    )
  ).pipe(Effect.timeout("5 seconds"), Effect.ignore)

export const run = Effect.fnUntraced(function* (options: { readonly bell: boolean; readonly notify: boolean }) {
  const { colour, columns, json, paths } = yield* Invocation
  const world = worldOf(paths)
  const terminal = yield* Terminal.Terminal
  if (columns === null || json) {
    return yield* new VerbFailed({
      message: "watch needs a terminal to draw on.",
      remedy: "For scripts: agentd ps --json, again and again, or agentd log -f --json",
      exitCode: ExitCode.usage
    })
  }
  const write = (text: string) => Effect.ignore(terminal.display(text))
  const shown = yield* Ref.make<Shown>({ board: undefined, problem: undefined })
  const size = yield* Ref.make({ columns, rows: yield* terminal.rows })
  let rows: ReadonlyMap<string, BoardRow> = new Map()

  const draw = Effect.gen(function* () {
    const lines = frame(yield* Ref.get(shown), yield* Clock.currentTimeMillis, yield* Ref.get(size), colour, world)
    yield* write(HOME + lines.map((line) => through(line, colour) + REST_OF_LINE).join("\r\n") + REST_OF_SCREEN)
  })
  const take = Effect.fnUntraced(function* (board: Board) {
    const before = (yield* Ref.get(shown)).board
    yield* Ref.set(shown, { board, problem: undefined })
    // What waited before we looked is on the screen; it did not start just now.
    const started = before === undefined ? [] : newsOf(before, board)
    if (options.bell && started.length > 0) yield* write(BELL)
    if (options.notify) yield* Effect.forEach(started, notifyOf, { discard: true })
    yield* draw
  })
  const hear = Effect.fnUntraced(function* (news: BoardNews) {
    rows = after(rows, news)
    yield* take({ head: news.head, rows: [...rows.values()].toSorted(order) })
  })
  const looking = call(paths.socket, (client) => {
    rows = new Map()
    return Stream.runForEach(client.BoardNews({ follow: true }), hear)
  }).pipe(
    Effect.catch((error) =>
      Ref.update(shown, ({ board }) => ({
        board,
        problem: Hint.inWorld(`${error.message} ${error.remedy}`, world)
      })).pipe(Effect.andThen(draw), Effect.andThen(Effect.sleep(EVERY)))
    ),
    Effect.forever
  )

  yield* Effect.acquireRelease(write(ENTER), () => write(LEAVE))
  const sizes = yield* terminal.size
  const keys = yield* terminal.readInput
  const resizing = Stream.runForEach(Stream.fromQueue(sizes), (now) => Effect.andThen(Ref.set(size, now), draw))
  // The queue ends with Esc, Ctrl+C and Ctrl+D.
  const quitting = Stream.fromQueue(keys).pipe(
    Stream.takeUntil(({ key }) => key.name === "q"),
    Stream.runDrain
  )
  yield* Effect.raceAllFirst([quitting, looking, Effect.andThen(resizing, Effect.never)])
}, Effect.scoped)
