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
import { call, type Client, explained } from "../../api/rpc/ControlClient.ts"
import { isFar } from "../../config/Host.ts"
import * as StoreOwner from "../../core/event-log/StoreOwner.ts"
import { shown } from "../agents/ApproveAll.ts"
import * as HostNews from "../hosts/HostNews.ts"
import { HostRows } from "../hosts/HostRows.ts"
import type { Refused } from "../hosts/HostLine.ts"
import { headOf } from "../hosts/HostReplies.ts"
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
import * as Paths from "../parse/Paths.ts"
import { isAsciiOnly } from "../render/Ascii.ts"
import { plain } from "../render/Output.ts"
import { worldOf } from "../../config/Places.ts"
import type { BoardNews, BoardRow } from "../../domain/BoardMessages.ts"

/** Minimum time in ms between two pages, unless a key was pressed. */
const FRAME = 33
/** Interval at which ages on the page are updated. */
const TICK = "1 second"

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
type Left = { readonly _tag: "Quit" } | { readonly _tag: "Open"; readonly row: BoardRow; readonly host: HostRows }

/** Makes calls to the daemon of a host, over the connection that is held to it. */
const asking = <A, E, R>(host: HostRows, use: (client: Client) => Effect.Effect<A, E, R>) =>
  Effect.suspend(() =>
    host.client === undefined ? call(host.address, use) : explained(host.address, use(host.client))
  )

/** Runs something for a host as its own board would. */
const atHost =
  ({ address, name }: HostRows) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Invocation, (invocation) =>
      name === null
        ? effect
        : effect.pipe(
            Effect.provideService(Invocation, {
              ...invocation,
              paths: { ...invocation.paths, host: name, socket: address },
              caller: { ...invocation.caller, config: null }
            }),
            Effect.provideService(StoreOwner.Here, () => undefined)
          )
    )

/** Runs an action, and returns the message to show. */
const doing = Effect.fnUntraced(function* (
  host: HostRows,
  client: Client,
  act: Extract<Act, { _tag: "Send" | "Answer" | "Do" }>
) {
  const { caller } = yield* Invocation
  switch (act._tag) {
    case "Send":
      return (yield* client.Send({ name: host.own(act.name), text: act.text, how: act.how, caller })).message
    case "Answer": {
      const { also, answers, decision, hash, id, lasting, reason } = act
      const chosen = {
        hash,
        ...(also === undefined ? {} : { also: also.map((one) => ({ ...one, name: host.own(one.name) })) }),
        ...(answers === undefined ? {} : { answers }),
        ...(lasting === undefined ? {} : { lasting })
      }
      return (yield* client.Answer({ name: host.own(id), decision, reason, ...chosen, caller })).message
    }
    case "Do": {
      const named = { name: host.own(act.name), caller }
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
  /** Several with `--all-hosts`, this machine first; otherwise one. */
  readonly hosts: ReadonlyArray<HostRows>
  /** The acts of each host, which are run one after the other. */
  readonly acts: ReadonlyMap<HostRows, Queue.Queue<Act>>
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

const told = (place: Place, host: HostRows, message: string) =>
  Effect.gen(function* () {
    const { paths } = yield* Invocation
    const text = HintCommand.inWorld(message, worldOf(paths))
    place.state.say(host.name === null ? text : `${host.name}: ${text}`, yield* Clock.currentTimeMillis)
    yield* dirty(place)
  }).pipe(atHost(host))

/** Gives each act to the host of its row, so that a host which does not answer delays no other one. */
const dispatch = (place: Place, acts: ReadonlyArray<Act>) =>
  Effect.forEach(
    acts,
    (act) => {
      if (act._tag === "Quit") return Deferred.succeed(place.left, { _tag: "Quit" as const })
      const text = "row" in act ? act.row.id : "id" in act ? act.id : act.name
      const host = place.hosts.find((one) => one.has(text)) ?? place.hosts[0]!
      return Queue.offer(place.acts.get(host)!, act)
    },
    { discard: true }
  )

const hear = Effect.fnUntraced(function* (place: Place, news: Pick<BoardNews, "gone" | "rows">, isFirst: boolean) {
  const { hosts, options, state, terminal } = place
  const before = [...state.rows.values()]
  const head = headOf(hosts.flatMap((host) => host.head ?? []))
  yield* dispatch(place, state.hear({ ...news, head }, yield* Clock.currentTimeMillis))
  yield* dirty(place)
  // do not ring the bell for rows that needed the user before they were on the board
  const started = isFirst ? [] : startedToWait(before, [...state.rows.values()])
  if (options.bell && started.length > 0) yield* terminal.bell
  if (options.notify) yield* Effect.forEach(started, notify, { discard: true })
})

/** Says that a host does not answer: with a row if the board has several hosts, otherwise in the first line. */
const silent = Effect.fnUntraced(function* (place: Place, host: HostRows, { message, remedy }: Refused, seen: number) {
  const { paths } = yield* Invocation
  if (place.hosts.length > 1) return yield* hear(place, host.lose({ message, remedy }, seen), true)
  const words = (text: string) => HintCommand.inWorld(plain(text), worldOf(paths))
  place.state.lose(words(message), words(remedy), yield* Clock.currentTimeMillis)
  yield* dirty(place)
})

/** Follows the rows of a host. While the host does not answer, the board says so. */
const hearing = (place: Place, host: HostRows) =>
  Effect.flatMap(Invocation, ({ paths }) => {
    const following: HostNews.Following<Effect.Services<ReturnType<typeof silent>>> = {
      state: paths.state,
      heard: (news, isFirst) => hear(place, news, isFirst),
      lost: (lost, seen) => silent(place, host, lost, seen)
    }
    const follow = HostNews.follow(host, following)
    return place.hosts.length === 1
      ? follow
      : Effect.all([follow, HostNews.lateness(host, following)], { concurrency: "unbounded", discard: true })
  })

const perform = Effect.fnUntraced(function* (place: Place, host: HostRows, act: Act) {
  const { caller } = yield* Invocation
  const { left, state } = place
  switch (act._tag) {
    case "Quit":
      return
    case "Open": {
      const row = host.ownRow(act.row)
      if (row?.kind === "agent") return void (yield* Deferred.succeed(left, { _tag: "Open", row, host }))
      if (row?.kind === "session" && !isFar(host.address))
        return void (yield* Deferred.succeed(left, { _tag: "Open", row, host }))
      return yield* told(
        place,
        host,
        row?.kind === "session" ? `agentd focus ${row.called}` : (row?.commands[0]?.command ?? plain(act.row.says))
      )
    }
    case "Look": {
      const now = yield* Clock.currentTimeMillis
      const row = host.ownRow(act.row)
      const lines =
        row === undefined || host.isSilent
          ? [{ text: plain(act.row.says) }]
          : yield* asking(host, (client) => BoardPanes.lines(client, row, act.pane, caller, now))
      const { name } = host
      const shown = name === null ? lines : lines.map((one) => ({ ...one, text: HintCommand.inWorld(one.text, name) }))
      state.show({ id: act.row.id, pane: act.pane, lines: shown })
      return void (yield* dirty(place))
    }
    case "Ask": {
      const id = host.own(act.id)
      const { asked, batches } = yield* Effect.match(
        asking(host, (client) =>
          Effect.all({ asked: client.Asked({ name: id, caller }), batches: shown(client, caller, id) })
        ),
        {
          onSuccess: (found) => ({ ...found, asked: host.asked(found.asked) }),
          onFailure: ({ message }) => ({ asked: message, batches: [] })
        }
      )
      state.ask(act.id, asked, yield* Clock.currentTimeMillis, host.batch(batches[0]))
      return void (yield* dirty(place))
    }
    case "Preview": {
      const { id, lasting } = act
      const preview = yield* asking(host, (client) => client.AnswerPreview({ name: host.own(id), lasting, caller }))
      state.preview(id, preview, yield* Clock.currentTimeMillis)
      return void (yield* dirty(place))
    }
    default:
      return yield* told(place, host, plain(yield* asking(host, (client) => doing(host, client, act))))
  }
})

/** Runs the acts of a host one after the other. If one fails, the error is shown, and the board continues. */
const performing = (place: Place, host: HostRows) =>
  Queue.take(place.acts.get(host)!).pipe(
    Effect.flatMap((act) =>
      Effect.catch(perform(place, host, act), (error) =>
        told(place, host, plain(`${error.message} ${"remedy" in error ? error.remedy : ""}`))
      )
    ),
    Effect.forever,
    atHost(host)
  )

/** Handles keys. After a key, a page is drawn immediately, without waiting for FRAME. */
const typing = (place: Place) => {
  const { state, terminal } = place
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
        yield* dispatch(place, item === undefined ? state.press(input, now) : state.click(item, now))
      }
      yield* page(place)
    })
  )
}

/** Shows the board on this terminal until the user leaves it. */
const board = Effect.fnUntraced(function* (
  state: BoardState,
  hosts: ReadonlyArray<HostRows>,
  options: Options,
  ascii: boolean
) {
  const place: Place = {
    state,
    options,
    ascii,
    terminal: yield* RawTerminal.make,
    left: yield* Deferred.make<Left>(),
    hosts,
    acts: new Map(
      yield* Effect.forEach(hosts, (host) => Effect.map(Queue.sliding<Act>(100), (acts) => [host, acts] as const))
    ),
    stale: yield* Queue.sliding<void>(1)
  }
  const ages = Effect.sleep(TICK).pipe(
    Effect.andThen(Clock.currentTimeMillis),
    Effect.flatMap((now) => dispatch(place, state.tick(now))),
    Effect.andThen(dirty(place)),
    Effect.forever
  )
  const sizes = Stream.runForEach(place.terminal.resized, () => page(place))
  const each = hosts.flatMap((host) => [hearing(place, host), performing(place, host)])
  const all = [drawing(place), typing(place), sizes, ages, ...each]
  yield* page(place)
  const going = Effect.andThen(Effect.all(all, { concurrency: "unbounded", discard: true }), Effect.never)
  return yield* Effect.raceFirst(Deferred.await(place.left), going)
}, Effect.scoped)

export const run = Effect.fnUntraced(function* (options: Options) {
  const { columns, interactive, json, paths } = yield* Invocation
  if (columns === null || json || !interactive) {
    return yield* new VerbFailed({
      message: "The board needs a terminal.",
      remedy: "In a script, use agentd ps --json or agentd log -f --json instead.",
      exitCode: ExitCode.usage
    })
  }
  const { env } = yield* Entry
  const saved = [...((yield* Paths.AllHosts) ?? [])]
  const hosts = [new HostRows(null, paths.socket), ...saved.map(([name, { url }]) => new HostRows(name, url))]
  const state = new BoardState()
  state.filter = (options.labels ?? []).map((label) => `+${label}`).join(" ")
  for (;;) {
    const left = yield* board(state, hosts, options, env["TERM"] === "linux" || isAsciiOnly((name) => env[name]))
    if (left._tag === "Quit") return
    const { host, row } = left
    const opened = Effect.gen(function* () {
      if (row.kind === "agent") yield* Attach.run({ agent: row.called, turns: 3, stdin: false })
      else yield* Focus.run({ plate: row.called })
    }).pipe(atHost(host))
    yield* Effect.catch(opened, (error) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => state.say(plain(error.message), now)))
    )
  }
})
