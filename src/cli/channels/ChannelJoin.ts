/**
 * `agentd channel join NAME`: shows a channel as a live chat: new posts, the agent that has the floor and its remaining
 * time, the waiting agents, and an input line for posts and for moderation.
 *
 * Guarantees: each post is shown once, even if the daemon ends and starts again. The terminal is restored, however the
 * command ends. Without a terminal, posts are plain lines, and each line of standard input is posted unchanged.
 */
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import { Clock, Console, Effect, Ref, Stdio, Stream, Terminal } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { ChannelInfo, ChannelView, SeatInfo } from "../../domain/ChannelMessages.ts"
import { postLines } from "./ChannelTable.ts"
import { type Asked, HELP, parse } from "./ChannelInput.ts"
import { hint, Invocation } from "../parse/Invocation.ts"
import { typedLines } from "../parse/StandardInput.ts"
import * as LineEditor from "../tui/LineEditor.ts"
import * as LiveScreen from "../tui/LiveScreen.ts"
import { age, type Colour, paint, plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

const EVERY = "1 second"
/** Number of earlier posts to show at the start. */
const BEFORE = 20

interface Line {
  readonly text: string
  readonly colour: Colour | undefined
}

const MAX_NAMED = 5

const named = (names: ReadonlyArray<string>): string =>
  names.slice(0, MAX_NAMED).join(", ") + (names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "")

/** The status line: the agent that has the floor with its remaining time, the next agents, and the waiting agents. */
export const statusLine = (channel: ChannelInfo, now: number): string => {
  const of = (state: SeatInfo["state"]) => channel.seats.filter((seat) => seat.state === state)
  const left = ({ until }: SeatInfo) => (until === null ? "" : ` (${age(Math.max(0, until - now))} left)`)
  const [active] = of("ACTIVE")
  const next = of("QUEUED").flatMap(({ agent, unread }) => (unread > 0 ? [agent] : []))
  const waiting = of("WAITING").map((seat) => seat.agent + left(seat))
  return [
    active === undefined ? plain(channel.detail) : `${active.agent} has the floor${left(active)}`,
    ...(channel.paused && active !== undefined ? ["paused after that"] : []),
    ...(next.length === 0 ? [] : [`next: ${named(next)}`]),
    ...(waiting.length === 0 ? [] : [`waiting: ${named(waiting)}`])
  ].join(" · ")
}

/** Lines of the posts that have not been shown yet, oldest first. */
export const freshLines = (view: ChannelView, seen: number, now: number): ReadonlyArray<Line> =>
  view.posts.filter(({ seq }) => seq > seen).flatMap((post) => postLines(post, now))

interface Place {
  readonly print: (lines: ReadonlyArray<Line>, status: string) => Effect.Effect<void>
  readonly asked: (line: string) => Asked
  readonly typed: (enter: (line: string) => Effect.Effect<void>) => Effect.Effect<void>
}

const onLines = Effect.gen(function* () {
  const { colour } = yield* Invocation
  const stdio = yield* Stdio.Stdio
  const terminal = yield* stdio.stdinIsTerminal
  const place: Place = {
    asked: (line) => (line.trim() === "" ? { _tag: "Nothing" } : { _tag: "Post", text: line }),
    print: (lines) =>
      Effect.forEach(lines, (line) => Console.log(paint(colour, line.colour, line.text)), { discard: true }),
    typed: (enter) =>
      terminal
        ? Effect.never
        : typedLines.pipe(
            Stream.runForEach(enter),
            Effect.ignore,
            Effect.provideService(Stdio.Stdio, stdio),
            // after the input ends, keep showing new posts
            Effect.andThen(Effect.never)
          )
  }
  return place
})

const onTerminal = Effect.fnUntraced(function* (name: string, columns: number) {
  const { colour } = yield* Invocation
  const terminal = yield* NodeTerminal.make(({ key }) => key.ctrl && key.name === "c")
  const screen = yield* LiveScreen.make(`#${name}> `, { colour, columns, editing: LineEditor.empty }).pipe(
    Effect.provideService(Terminal.Terminal, terminal)
  )
  yield* Effect.addFinalizer(() => screen.print([], ""))
  const sizes = yield* terminal.size
  yield* Effect.forkScoped(Stream.runForEach(Stream.fromQueue(sizes), ({ columns }) => screen.resize(columns)))
  const keys = yield* terminal.readInput
  const place: Place = {
    asked: parse,
    print: screen.print,
    typed: (enter) =>
      Stream.fromQueue(keys).pipe(
        Stream.mapAccumEffect(
          () => LineEditor.empty,
          (editing, key) =>
            Effect.gen(function* () {
              const pressed = LineEditor.press(editing, key)
              if (pressed._tag === "Quit") return [editing, [true]] as const
              yield* screen.type(pressed.editing)
              if (pressed._tag === "Enter") yield* enter(pressed.line)
              return [pressed.editing, [pressed._tag === "Enter" && parse(pressed.line)._tag === "Quit"]] as const
            })
        ),
        Stream.takeUntil((quit) => quit),
        Stream.runDrain
      )
  }
  return place
})

/**
 * Runs a typed command, and returns lines to show. For a post there are none, because it is shown when the daemon
 * reports it.
 */
const doing = Effect.fnUntraced(function* (asked: Asked, name: string) {
  const { caller, paths } = yield* Invocation
  const told = (text: string, colour: Colour = "dim"): ReadonlyArray<Line> => [{ text: plain(text), colour }]
  switch (asked._tag) {
    case "Nothing":
    case "Quit":
      return []
    case "Help":
      return HELP.map((text): Line => ({ text, colour: "dim" }))
    case "Wrong":
      return told(asked.message, "yellow")
    case "Post":
      yield* call(paths.socket, (client) => client.PostToChannel({ name, text: asked.text, caller }))
      return []
    case "Skip":
      return told((yield* call(paths.socket, (client) => client.SkipFloor({ name, caller }))).message)
    case "Grant":
      return told(
        (yield* call(paths.socket, (client) => client.GrantFloor({ name, agent: asked.agent, caller }))).message
      )
    case "Requeue":
      return told(
        (yield* call(paths.socket, (client) => client.RequeueSeat({ name, agent: asked.agent, caller }))).message
      )
    case "Pause":
      return told(
        (yield* call(paths.socket, (client) => client.PauseChannel({ name, paused: asked.paused, caller }))).message
      )
  }
})

const sitting = Effect.fnUntraced(function* (input: { readonly name: string }) {
  const { caller, columns, interactive, paths } = yield* Invocation
  const { name } = input
  const show = call(paths.socket, (client) => client.Channel({ name, caller }))
  const first = yield* show
  const place = columns !== null && interactive ? yield* onTerminal(first.channel.name, columns) : yield* onLines
  const seen = yield* Ref.make(Math.max(0, first.channel.posts - BEFORE))
  const away = yield* Ref.make(false)
  const take = Effect.fnUntraced(function* (view: ChannelView) {
    const now = yield* Clock.currentTimeMillis
    const before = yield* Ref.getAndSet(seen, view.channel.posts)
    yield* Ref.set(away, false)
    yield* place.print(freshLines(view, before, now), statusLine(view.channel, now))
  })
  const say = (text: string, colour: Colour) =>
    Effect.flatMap(hint(text), (told) => place.print([{ text: plain(told), colour }], ""))
  const look = Effect.catch(Effect.flatMap(show, take), (error) =>
    Effect.flatMap(Ref.getAndSet(away, true), (already) =>
      already ? Effect.void : say(`${error.message} ${error.remedy}`, "red")
    )
  )
  const invocation = yield* Invocation
  const enter = (line: string) =>
    doing(place.asked(line), name).pipe(
      Effect.matchEffect({
        onSuccess: (lines) => (lines.length === 0 ? Effect.void : place.print(lines, "")),
        onFailure: (error) => say(`${error.message} → ${error.remedy}`, "yellow")
      }),
      Effect.andThen(look),
      Effect.provideService(Invocation, invocation)
    )
  if (columns !== null && interactive) {
    yield* place.print([{ text: "Type a text to post it; /help lists the commands; /quit leaves.", colour: "dim" }], "")
  }
  yield* take(first)
  yield* Effect.raceFirst(place.typed(enter), Effect.forever(Effect.andThen(Effect.sleep(EVERY), look)))
}, Effect.scoped)

/** With --json: prints each post as a line of JSON, until the command is interrupted. */
const asJson = Effect.fnUntraced(function* ({ name }: { readonly name: string }) {
  const { caller, paths } = yield* Invocation
  const seen = yield* Ref.make(0)
  return yield* call(paths.socket, (client) => client.Channel({ name, caller })).pipe(
    Effect.flatMap(({ posts }) =>
      Effect.gen(function* () {
        const before = yield* Ref.getAndSet(seen, posts.at(-1)?.seq ?? 0)
        const fresh = posts.filter(({ seq }) => seq > before)
        yield* Effect.forEach(fresh, (post) => Console.log(jsonOf(post)), { discard: true })
      })
    ),
    Effect.andThen(Effect.sleep(EVERY)),
    Effect.forever
  )
})

export const run = Effect.fnUntraced(function* (input: { readonly name: string }) {
  const { json } = yield* Invocation
  return yield* json ? asJson(input) : sitting(input)
})
