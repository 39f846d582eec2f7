/**
 * `agentd`: shows the board, one live list of agents, sessions, goals and channels of all projects, grouped by who must
 * act next.
 *
 * Guarantees: the board uses one subscription and does not poll, so it does not call the daemon while nothing happens.
 * At most 30 pages per second are drawn, and none if nothing has changed. If the daemon ends, the board says so, and
 * continues when a daemon is back. The terminal is restored, however the board ends.
 */
import { Clock, Deferred, Effect, Queue, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { call, type Client } from "../../api/rpc/ControlClient.ts"
import { shown } from "../agents/ApproveAll.ts"
import * as Attach from "./Attach.ts"
import { nameOf } from "../sessions/Board.ts"
import { type Act, BoardState } from "./BoardState.ts"
import { draw, isPane, itemAt } from "./BoardFrame.ts"
import { TerminalKeys } from "./TerminalKeys.ts"
import * as BoardPanes from "./BoardPanes.ts"
import * as RawTerminal from "./RawTerminal.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as Focus from "../sessions/Focus.ts"
import * as HintCommand from "../parse/HintCommand.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"
import { isAsciiOnly } from "../render/Ascii.ts"
import { plain } from "../render/Output.ts"
import { worldOf } from "../../config/Places.ts"
import type { BoardNews, BoardRow } from "../../domain/BoardMessages.ts"

/** Minimum time in ms between two pages, unless a key was pressed. */
const FRAME = 33
/** Interval at which ages on the page are updated. */
const TICK = "1 second"
/** Interval between attempts to reach the daemon while it does not answer. */
const AGAIN = "1 second"

export interface Options {
  readonly bell: boolean
  readonly labels?: ReadonlyArray<string>
  readonly notify: boolean
}

/** Rows that now need the user and did not before. A row with a new call or question also counts. */
export const startedToWait = (
  before: ReadonlyArray<BoardRow>,
  now: ReadonlyArray<BoardRow>
): ReadonlyArray<BoardRow> => {
  const asking = (rows: ReadonlyArray<BoardRow>) => rows.filter(({ word }) => word === "needs you")
  // each call of an agent has its own id; the requests of a session have the same id, but different values of `since`
  const matters = ({ asks, id, kind, since }: BoardRow) =>
    kind === "agent" && asks.length > 0 ? asks : [`${id} ${since}`]
  const known = new Set(asking(before).flatMap(matters))
  return asking(now).filter((row) => matters(row).some((matter) => !known.has(matter)))
}

const notify = (row: BoardRow) =>
  Effect.flatMap(ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
    spawner.exitCode(
      ChildProcess.make("notify-send", ["--app-name=agentd", "--", plain(nameOf(row)), plain(row.says)], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore"
      })
    )
  ).pipe(Effect.timeout("5 seconds"), Effect.ignore)

/** How the user left the board: to quit, or to open a row and return afterwards. */
type Left = { readonly _tag: "Quit" } | { readonly _tag: "Open"; readonly row: BoardRow }

/** Runs an action, and returns the message to show. */
const doing = Effect.fnUntraced(function* (client: Client, act: Extract<Act, { _tag: "Send" | "Answer" | "Do" }>) {
  const { caller } = yield* Invocation
  switch (act._tag) {
    case "Send":
      return (yield* client.Send({ name: act.name, text: act.text, how: act.how, caller })).message
    case "Answer": {
      const { also, answers, decision, hash, id, lasting, reason } = act
      const chosen = {
        hash,
        ...(also === undefined ? {} : { also }),
        ...(answers === undefined ? {} : { answers }),
        ...(lasting === undefined ? {} : { lasting })
      }
      return (yield* client.Answer({ name: id, decision, reason, ...chosen, caller })).message
    }
    case "Do": {
      const named = { name: act.name, caller }
      const verbs = {
        start: () => client.Start(named),
        restart: () => client.Restart(named),
        stop: () => client.Stop(named),
        interrupt: () => client.Interrupt(named)
      }
      return (yield* verbs[act.verb]()).message
    }
  }
})

interface Place {
  readonly state: BoardState
  readonly options: Options
  readonly ascii: boolean
  readonly terminal: RawTerminal.RawTerminal
  readonly left: Deferred.Deferred<Left>
  readonly acts: Queue.Queue<Act>
  readonly stale: Queue.Queue<void>
}

const dirty = ({ stale }: Place) => Queue.offer(stale, undefined)

/** The page's size and character set, and the state directory. */
const shape = ({ ascii, terminal }: Place) =>
  Effect.map(Invocation, ({ paths }) => ({ ...terminal.size(), ascii, world: worldOf(paths) }))

const page = (place: Place) =>
  Effect.gen(function* () {
    yield* place.terminal.draw(draw(place.state, yield* shape(place), yield* Clock.currentTimeMillis))
  })

/** Draws a page after each change, with a pause of FRAME ms between two pages. */
const drawing = (place: Place) =>
  Stream.runForEach(Stream.fromQueue(place.stale), () => Effect.andThen(page(place), Effect.sleep(FRAME)))

const told = (place: Place, message: string) =>
  Effect.gen(function* () {
    const { paths } = yield* Invocation
    place.state.say(HintCommand.inWorld(message, worldOf(paths)), yield* Clock.currentTimeMillis)
    yield* dirty(place)
  })

const hear = Effect.fnUntraced(function* (place: Place, news: BoardNews) {
  const { acts, options, state, terminal } = place
  const before = [...state.rows.values()]
  // do not ring the bell for rows that needed the user before the board was opened
  const isFirst = before.length === 0
  yield* Queue.offerAll(acts, state.hear(news, yield* Clock.currentTimeMillis))
  yield* dirty(place)
  const started = isFirst ? [] : startedToWait(before, [...state.rows.values()])
  if (options.bell && started.length > 0) yield* terminal.bell
  if (options.notify) yield* Effect.forEach(started, notify, { discard: true })
})

/** Subscribes to the board until the board ends. While the daemon does not answer, the board says so. */
const hearing = (place: Place) =>
  Effect.gen(function* () {
    const { paths } = yield* Invocation
    const heard = call(paths.socket, (client) => {
      let isFirst = true
      return Stream.runForEach(client.BoardNews({ follow: true }), (news) =>
        Effect.suspend(() => {
          // the last known rows stay until the daemon has sent all of them again
          if (isFirst) place.state.begin()
          isFirst = false
          return hear(place, news)
        })
      )
    })
    const { message, remedy } = yield* Effect.match(heard, {
      onSuccess: () => ({ message: "The daemon has ended.", remedy: "Start it again: agentd start" }),
      onFailure: (error) => ({ message: error.message, remedy: "remedy" in error ? error.remedy : "" })
    })
    const words = (text: string) => HintCommand.inWorld(plain(text), worldOf(paths))
    place.state.lose(words(message), words(remedy), yield* Clock.currentTimeMillis)
    yield* dirty(place)
    yield* Effect.sleep(AGAIN)
  }).pipe(Effect.forever)

const perform = Effect.fnUntraced(function* (place: Place, act: Act) {
  const { caller, paths } = yield* Invocation
  const { left, state } = place
  switch (act._tag) {
    case "Quit":
      return void (yield* Deferred.succeed(left, { _tag: "Quit" }))
    case "Open":
      if (act.row.kind === "agent" || act.row.kind === "session") return void (yield* Deferred.succeed(left, act))
      return yield* told(place, act.row.commands[0]?.command ?? plain(act.row.says))
    case "Look": {
      const now = yield* Clock.currentTimeMillis
      const lines = yield* call(paths.socket, (client) => BoardPanes.lines(client, act.row, act.pane, caller, now))
      state.show({ id: act.row.id, pane: act.pane, lines })
      return void (yield* dirty(place))
    }
    case "Ask": {
      const { asked, batches } = yield* Effect.match(
        call(paths.socket, (client) =>
          Effect.all({ asked: client.Asked({ name: act.id, caller }), batches: shown(client, caller, act.id) })
        ),
        { onSuccess: (found) => found, onFailure: ({ message }) => ({ asked: message, batches: [] }) }
      )
      state.ask(act.id, asked, yield* Clock.currentTimeMillis, batches[0])
      return void (yield* dirty(place))
    }
    case "Preview": {
      const { id, lasting } = act
      const preview = yield* call(paths.socket, (client) => client.AnswerPreview({ name: id, lasting, caller }))
      state.preview(id, preview, yield* Clock.currentTimeMillis)
      return void (yield* dirty(place))
    }
    default:
      return yield* told(place, plain(yield* call(paths.socket, (client) => doing(client, act))))
  }
})

/** Runs the acts one after the other. If one fails, the error is shown, and the board continues. */
const performing = (place: Place) =>
  Queue.take(place.acts).pipe(
    Effect.flatMap((act) =>
      Effect.catch(perform(place, act), (error) =>
        told(place, plain(`${error.message} ${"remedy" in error ? error.remedy : ""}`))
      )
    ),
    Effect.forever
  )

/** Handles keys. After a key, a page is drawn immediately, without waiting for FRAME. */
const typing = (place: Place) => {
  const { acts, state, terminal } = place
  const keys = new TerminalKeys()
  return Stream.runForEach(terminal.typed, (chunk) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const seen = yield* shape(place)
      for (const input of keys.read(chunk)) {
        if (input._tag === "Wheel" && state.call === undefined && isPane(seen, state, input)) {
          state.scrollPane(input.lines)
          continue
        }
        const item = input._tag === "Click" ? itemAt(seen, state, input) : undefined
        yield* Queue.offerAll(acts, item === undefined ? state.press(input, now) : state.click(item, now))
      }
      yield* page(place)
    })
  )
}

/** Shows the board on this terminal until the user leaves it. */
const board = Effect.fnUntraced(function* (state: BoardState, options: Options, ascii: boolean) {
  const place: Place = {
    state,
    options,
    ascii,
    terminal: yield* RawTerminal.make,
    left: yield* Deferred.make<Left>(),
    acts: yield* Queue.sliding<Act>(100),
    stale: yield* Queue.sliding<void>(1)
  }
  const ages = Effect.sleep(TICK).pipe(
    Effect.andThen(Clock.currentTimeMillis),
    Effect.flatMap((now) => Queue.offerAll(place.acts, state.tick(now))),
    Effect.andThen(dirty(place)),
    Effect.forever
  )
  const sizes = Stream.runForEach(place.terminal.resized, () => page(place))
  const all = [drawing(place), hearing(place), performing(place), typing(place), sizes, ages] as const
  yield* page(place)
  const going = Effect.andThen(Effect.all(all, { concurrency: "unbounded", discard: true }), Effect.never)
  return yield* Effect.raceFirst(Deferred.await(place.left), going)
}, Effect.scoped)

export const run = Effect.fnUntraced(function* (options: Options) {
  const { columns, interactive, json } = yield* Invocation
  if (columns === null || json || !interactive) {
    return yield* new VerbFailed({
      message: "The board needs a terminal.",
      remedy: "In a script, use agentd ps --json or agentd log -f --json instead.",
      exitCode: ExitCode.usage
    })
  }
  const { env } = yield* Entry
  const state = new BoardState()
  state.filter = (options.labels ?? []).map((label) => `+${label}`).join(" ")
  for (;;) {
    const left = yield* board(state, options, env["TERM"] === "linux" || isAsciiOnly((name) => env[name]))
    if (left._tag === "Quit") return
    const { row } = left
    const opened = Effect.gen(function* () {
      if (row.kind === "agent") yield* Attach.run({ agent: row.called, turns: 3, stdin: false })
      else yield* Focus.run({ plate: row.called })
    })
    yield* Effect.catch(opened, (error) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => state.say(plain(error.message), now)))
    )
  }
})
