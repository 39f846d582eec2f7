/**
 * `agentd attach AGENT`: shows the output and actions of an agent as they happen, and an input line for messages to the
 * agent.
 *
 * Guarantees: each event is shown once, even if the daemon ends and starts again. Messages that are typed meanwhile are
 * queued. The command changes nothing unless the user types something. The terminal is restored, however the command
 * ends. Without a terminal, the output is plain lines.
 */
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import { Console, Effect, Stdio, Stream, Terminal } from "effect"
import { beginsTurn, endsTurn, KEPT, SHOWN } from "../../board/ConversationView.ts"
import { call, type Client } from "../../api/rpc/ControlClient.ts"
import type { AgentInfo } from "../../domain/Messages.ts"
import { predicate } from "../../domain/StatusWords.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import * as ApprovalView from "../agents/ApprovalView.ts"
import { answered, type Asked, chosen, HELP, parse } from "./AttachInput.ts"
import * as AttachQueue from "./AttachQueue.ts"
import { AttachView, type Line } from "./AttachView.ts"
import { following } from "../log/Following.ts"
import { hint, Invocation } from "../parse/Invocation.ts"
import * as LineEditor from "./LineEditor.ts"
import * as LiveScreen from "./LiveScreen.ts"
import { typedLines } from "../parse/StandardInput.ts"
import { paint, plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

export interface Input {
  readonly agent: string
  readonly turns: number
  readonly stdin: boolean
}

/** Number of newest runes in which the last turns are searched for. */
const WINDOW = 500
/** Number of newest runes to show if the agent has no turns. */
const WITHOUT_TURNS = 20
const MAX_SEEN = 1_000
const AGAIN_TO_APPROVE = "This call was not shown before. To approve it, type the command again."
const CHOOSE = "This is a question with options. Type /answer and the number of an option."

/** Indexes of the runes that begin a turn, one per turn. */
const beginnings = (runes: ReadonlyArray<Rune>): ReadonlyArray<number> => {
  const begun = new Set<string>()
  return runes.flatMap((rune, index) => {
    const turnId = beginsTurn(rune)
    if (turnId === undefined || begun.has(turnId)) return []
    begun.add(turnId)
    return [index]
  })
}

/**
 * The runes to show first, and the eventId after which new runes are followed. If a turn is in progress, all its runes
 * are followed.
 */
export const recent = (
  runes: ReadonlyArray<Rune>,
  turns: number,
  head: number
): { readonly shown: ReadonlyArray<Rune>; readonly after: number } => {
  const starts = beginnings(runes)
  const last = starts.at(-1)
  const open = last !== undefined && !runes.slice(last).some(endsTurn)
  const upTo = open ? last + 1 : runes.length
  const begin =
    starts.length === 0 ? Math.max(0, runes.length - WITHOUT_TURNS) : starts[Math.max(0, starts.length - turns)]
  const shown = turns === 0 ? runes.slice(upTo, upTo) : runes.slice(begin ?? upTo, upTo)
  return { shown, after: (open ? runes[last] : runes.at(-1))?.eventId ?? head }
}

const looking = Effect.fnUntraced(function* (client: Client, name: string, turns: number) {
  const { caller } = yield* Invocation
  const agent = yield* client.Agent({ name, caller })
  const head = (yield* client.Status()).daemon.log.head
  const runes = yield* Stream.runCollect(client.Log({ agent: name, kinds: KEPT, tail: WINDOW, follow: false, caller }))
  return { agent, ...recent(runes, turns, head) }
})

/** Hashes of the calls that were shown in full, by the call's id. */
type Seen = Map<string, string>

/** Lines that show a whole call. Empty if the call has already been shown, or if it has questions with options. */
const showing = Effect.fnUntraced(function* (client: Client, name: string, seen: Seen) {
  const { caller, columns } = yield* Invocation
  if (seen.has(name)) return []
  const asked = yield* client.Asked({ name, caller })
  if (asked.questions !== undefined) return []
  if (seen.size >= MAX_SEEN) seen.clear()
  seen.set(asked.id, asked.hash)
  return ApprovalView.lines(asked, columns).map((text): Line => ({ text, colour: "cyan" }))
})

/** Runs a typed command, and returns lines with the result. Fails only if the daemon cannot be reached. */
const act = Effect.fnUntraced(function* (asked: Asked, agent: AgentInfo, seen: Seen) {
  const { caller, paths } = yield* Invocation
  const name = `${agent.project}/${agent.agent}`
  const told = (line: string, colour: Line["colour"] = "dim"): ReadonlyArray<Line> => [{ text: line, colour }]
  const doing = call(paths.socket, (client) =>
    Effect.gen(function* () {
      switch (asked._tag) {
        case "Send":
          return told(plain((yield* client.Send({ name, text: asked.text, how: asked.how, caller })).message))
        case "Interrupt":
          return told(plain((yield* client.Interrupt({ name, caller })).message))
        case "Answer":
        case "Choose": {
          const calls = yield* client.Calls()
          const asking = calls.filter(
            ({ agent: name, conversation, questions, state }) =>
              conversation === agent.conversation &&
              name === agent.agent &&
              state === "awaiting_approval" &&
              (asked._tag === "Answer" || questions !== undefined)
          )
          if (asked._tag === "Choose" && asked.bare && asking.length === 0)
            return told(plain((yield* client.Send({ name, text: asked.rest, how: "queue", caller })).message))
          const found = (asked._tag === "Answer" ? answered : chosen)(
            asked.rest,
            asking.map(({ callId }) => callId)
          )
          if ("message" in found) return told(found.message, "yellow")
          const { callId: typed, reason: said } = found
          const callId = asking.find(({ callId }) => callId.startsWith(typed))?.callId ?? typed
          const hash = seen.get(callId)
          if (asked._tag === "Answer" && asked.decision === "allow" && hash === undefined) {
            const shown = yield* showing(client, callId, seen)
            return shown.length === 0 ? told(CHOOSE, "yellow") : [...shown, ...told(AGAIN_TO_APPROVE, "yellow")]
          }
          const named = hash === undefined ? {} : { hash }
          const answer =
            asked._tag === "Answer"
              ? { decision: asked.decision, reason: said, ...named }
              : { decision: "allow" as const, reason: "", answers: [said] }
          return told(plain((yield* client.Answer({ name: callId, ...answer, caller })).message))
        }
        default:
          return []
      }
    })
  )
  switch (asked._tag) {
    case "Help":
      return HELP.map((text): Line => ({ text, colour: "dim" }))
    case "Wrong":
      return told(asked.message, "yellow")
    case "Nothing":
    case "Quit":
      return []
    default:
      return yield* Effect.catchIf(
        doing,
        (error) => error._tag !== "DaemonUnreachable",
        ({ message, remedy }) =>
          Effect.map(hint(plain(remedy)), (next) => told(`${plain(message)} → ${next}`, "yellow"))
      )
  }
})

/** Output and input of the command. `typed` ends when no more input can come. */
interface Place {
  readonly print: (lines: ReadonlyArray<Line>, partial: string) => Effect.Effect<void>
  readonly typed: (enter: (line: string) => Effect.Effect<boolean>) => Effect.Effect<void>
}

/** Prints plain lines. Standard input is read only if `fromStdin` is set. */
const onLines = Effect.fnUntraced(function* (fromStdin: boolean) {
  const { colour } = yield* Invocation
  const stdio = yield* Stdio.Stdio
  const place: Place = {
    print: (lines) =>
      Effect.forEach(lines, (line) => Console.log(paint(colour, line.colour, line.text)), { discard: true }),
    typed: (enter) =>
      fromStdin
        ? Effect.gen(function* () {
            let quit = false
            yield* typedLines.pipe(
              Stream.runForEachWhile((line) => Effect.map(enter(line), (asked) => !(quit = asked))),
              // an error while reading counts as the end of the input
              Effect.ignore,
              Effect.provideService(Stdio.Stdio, stdio)
            )
            // after the input ends, keep showing the agent's output
            if (!quit) return yield* Effect.never
            // after /quit, close the input: another process can keep it open, and this process would then not end
            process.stdin.destroy()
          })
        : Effect.never
  }
  return place
})

const onTerminal = Effect.fnUntraced(function* (agent: AgentInfo, columns: number) {
  const { colour } = yield* Invocation
  // the terminal ends the command only at Ctrl-C; the line editor handles Esc and Ctrl-D, which are often pressed by
  // mistake
  const terminal = yield* NodeTerminal.make(({ key }) => key.ctrl && key.name === "c")
  const screen = yield* LiveScreen.make(`${agent.agent}> `, { colour, columns, editing: LineEditor.empty }).pipe(
    Effect.provideService(Terminal.Terminal, terminal)
  )
  const sizes = yield* terminal.size
  yield* Effect.forkScoped(Stream.runForEach(Stream.fromQueue(sizes), ({ columns }) => screen.resize(columns)))
  const keys = yield* terminal.readInput
  const place: Place = {
    print: screen.print,
    typed: (enter) =>
      Effect.suspend(() => {
        let editing = LineEditor.empty
        return Stream.runForEachWhile(Stream.fromQueue(keys), (key) =>
          Effect.gen(function* () {
            const pressed = LineEditor.press(editing, key)
            if (pressed._tag === "Quit") return false
            editing = pressed.editing
            yield* screen.type(editing)
            return pressed._tag !== "Enter" || !(yield* enter(pressed.line))
          })
        )
      })
  }
  return place
})

const talking = Effect.fnUntraced(function* (input: Input, columns: number | null) {
  const { interactive, paths } = yield* Invocation
  const { after, agent, shown } = yield* call(paths.socket, (client) => looking(client, input.agent, input.turns))
  const place = columns !== null && interactive ? yield* onTerminal(agent, columns) : yield* onLines(input.stdin)
  const view = new AttachView()
  const seen: Seen = new Map()
  const invocation = yield* Invocation
  /** Lines that show the whole call of an approval request; empty if the call has already been answered. */
  const whole = (rune: Rune) =>
    rune.kind === "tool.approval_requested"
      ? Effect.orElseSucceed(
          call(paths.socket, (client) => showing(client, rune.actor.split("/").slice(2).join("/"), seen)),
          (): ReadonlyArray<Line> => []
        ).pipe(Effect.provideService(Invocation, invocation))
      : Effect.succeed([])
  const notice = (text: string, colour: Line["colour"]) => place.print([...view.flush(), { text, colour }], "")
  const take = (rune: Rune) => {
    const lines = view.feed(rune)
    return Effect.flatMap(whole(rune), (shown) => place.print([...shown, ...lines], view.partial))
  }
  yield* notice(`${agent.project}/${agent.agent} ${predicate({ word: agent.word }, 0)}: ${plain(agent.detail)}`, "bold")
  if (columns !== null && interactive)
    yield* notice("Type a text to send it; /help lists the commands; /quit leaves.", "dim")
  yield* Effect.forEach(shown, take, { discard: true })
  const print = (lines: ReadonlyArray<Line>) => (lines.length > 0 ? place.print(lines, view.partial) : Effect.void)
  const kept = yield* AttachQueue.make(
    (asked) => Effect.provideService(act(asked, agent, seen), Invocation, invocation),
    print
  )
  const enter = (line: string) =>
    Effect.gen(function* () {
      const asked = parse(line)
      yield* print(yield* kept.take(asked))
      return asked._tag === "Quit"
    })
  const lost = (message: string) => notice(`${plain(message)} The output continues when the daemon is back.`, "red")
  const seeing = following({ agent: `${agent.project}/${agent.agent}`, kinds: SHOWN }, after, take, lost)
  yield* Effect.raceFirst(place.typed(enter), seeing)
  const unsent = kept.count()
  if (unsent > 0)
    yield* notice(
      `Not sent, because the daemon does not run: ${unsent === 1 ? "1 message" : `${unsent} messages`} that you typed.`,
      "red"
    )
}, Effect.scoped)

export const run = Effect.fnUntraced(function* (input: Input) {
  const { caller, columns, json, paths } = yield* Invocation
  if (!json) return yield* talking(input, columns)
  yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const { after, shown } = yield* looking(client, input.agent, input.turns)
      yield* Effect.forEach(shown, (rune) => Console.log(jsonOf(rune)), { discard: true })
      const coming = client.Log({ agent: input.agent, kinds: SHOWN, after, follow: true, caller })
      yield* Stream.runForEach(coming, (rune) => Console.log(jsonOf(rune)))
    })
  )
})
