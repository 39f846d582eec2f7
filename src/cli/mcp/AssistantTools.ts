/**
 * AssistantTools: the tools of the user's own assistant in `agentd mcp`: to see the status of agents, to read their
 * answers, to send them messages, to submit goals, and to wait for agents and goals.
 *
 * Guarantees: no tool makes decisions for the user: no tool approves, denies or answers a call, question or plan. Each
 * action is logged under the user's name, with "(assistant)" added. An agent's text is put into a frame that the text
 * itself cannot close. The length of each reply is bounded.
 */
import { Clock, Effect, Random, Result, Schema, Stream } from "effect"
import { agentKinds } from "../../agents/machines/AgentKinds.ts"
import { after } from "../../domain/BoardRow.ts"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import * as MessageFrame from "../../domain/MessageFrame.ts"
import * as ToolSchema from "../../runs/ToolSchema.ts"
import type { Caller } from "../../domain/Messages.ts"
import { predicate } from "../../domain/StatusWords.ts"
import { reader } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { call, type Client, type DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import { nameOf } from "../sessions/Board.ts"
import { AIMS } from "../sessions/RowFilter.ts"
import { KINDS, LogsView } from "../log/LogsView.ts"
import { BadInput } from "./McpTools.ts"
import type { Tool } from "./McpServer.ts"
import { age, plain } from "../render/Output.ts"
import { standing, unclear } from "../agents/Wait.ts"
import * as Why from "../agents/Why.ts"

/** The user to whom the assistant belongs, and the socket of the user's daemon. */
export interface Person {
  readonly socket: string
  readonly caller: Caller
}

/** Maximum length of an agent's answer, and of a message to an agent, both in characters. */
const [MAX_ANSWER, MAX_INPUT] = [16_000, 2_000]
const MAX_WAIT = 3_600

type Failed = Effect.Error<ReturnType<Client["Send"]>> | DaemonUnreachable | BadInput

const tool = <A, I>(spec: {
  readonly name: string
  readonly description: string
  readonly readOnly?: boolean
  readonly schema: Schema.Codec<A, I>
  readonly run: (client: Client, input: A, caller: Caller) => Effect.Effect<string, Failed | object>
}) => {
  const decode = Schema.decodeUnknownResult(spec.schema)
  return ({ caller, socket }: Person): Tool => ({
    name: spec.name,
    description: spec.description,
    readOnly: spec.readOnly ?? false,
    input: ToolSchema.of(spec.schema),
    run: (args) => {
      const input = decode(args, { errors: "all" })
      if (Result.isSuccess(input))
        return call(socket, (client) => spec.run(client, input.success, caller)) as ReturnType<Tool["run"]>
      const message = `The arguments of ${spec.name} are invalid: ${input.failure.message.replaceAll(/\s+/g, " ")}`
      return Effect.fail(
        new BadInput({ message, remedy: "Call the tool again with arguments that match its input schema." })
      )
    }
  })
}

const text = (description: string) => Schema.String.annotate({ description })
const agent = text('The agent\'s name in this project, or project/agent, as the tool "agents" shows it.')
const count = (most: number, description: string) =>
  Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most })).annotate({ description }))

const framed = Effect.fnUntraced(function* (all: ReadonlyArray<MessageFrame.Framed>) {
  const drawn = `${yield* Random.nextInt}/${yield* Random.nextInt}/${yield* Random.nextInt}`
  return MessageFrame.framed(drawn, all).join("\n\n")
})

const cut = (value: unknown, most: number): string => {
  const whole = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  return whole.length <= most ? whole : `${whole.slice(0, most)} … (${whole.length - most} characters more)`
}

const rowLine = (row: BoardRow, now: number): string => {
  const since = row.since === 0 ? "" : ` for ${age(now - row.since)}`
  const asks = row.asks.length === 0 ? "" : ` [waits for the user's answer: agentd approve ${row.asks[0]}]`
  const waiting = row.inbox === 0 ? "" : `; ${row.inbox} in its inbox`
  return `${row.kind} ${nameOf(row)}: ${predicate(row, now)}${since}. ${plain(row.says)}${waiting}${asks}`
}

const agents = tool({
  name: "agents",
  description:
    "List what the user's agents are doing: agents, goals, channels, coding sessions and everything that waits for the user, one per line.",
  readOnly: true,
  schema: Schema.Struct({}),
  run: (client) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const { rows } = yield* client.Board({ all: false })
      return rows.length === 0 ? "There are no agents." : rows.map((row) => rowLine(row, now)).join("\n")
    })
})

const turns = reader({
  "inbox.received": agentKinds["inbox.received"],
  "turn.completed": agentKinds["turn.completed"],
  "turn.error": agentKinds["turn.error"],
  "turn.interrupted": agentKinds["turn.interrupted"]
})

const turnOf = (rune: Rune): MessageFrame.Framed | undefined => {
  const read = turns(rune)
  const at = `at ${new Date(rune.at).toISOString()} (rune ${rune.eventId})`
  switch (read?.kind) {
    case "inbox.received": {
      const { event } = read.payload
      if (event._tag !== "Received") return undefined
      return {
        about: `from ${MessageFrame.sender(event.message.from)}, ${at}`,
        text: cut(event.message.text, MAX_INPUT)
      }
    }
    case "turn.completed":
      return { about: `the agent answered, ${at}`, text: cut(read.payload.final_output, MAX_ANSWER) }
    case "turn.error":
      return { about: `the agent's turn failed, ${at}`, text: cut(read.payload, MAX_INPUT) }
    case "turn.interrupted":
      return { about: `the agent's turn was interrupted, ${at}`, text: "" }
    default:
      return undefined
  }
}

const runesOf = Effect.fnUntraced(function* (
  client: Client,
  name: string,
  caller: Caller,
  of: { readonly kinds: ReadonlyArray<string>; readonly tail: number }
) {
  const { agent, conversation } = yield* client.Agent({ name, caller })
  return yield* Stream.runCollect(client.Log({ ...of, stream: conversation, agent, follow: false, caller }))
})

const conversation = tool({
  name: "conversation",
  description: "Show the newest messages that were sent to an agent, and its answers, in full.",
  readOnly: true,
  schema: Schema.Struct({ agent, turns: count(20, "Number of the agent's last turns to show. Default: 3.") }),
  run: (client, { agent, turns: many = 3 }, caller) =>
    Effect.gen(function* () {
      const kinds = ["inbox.received", "turn.completed", "turn.error", "turn.interrupted"]
      const runes = yield* runesOf(client, agent, caller, { kinds, tail: 2 * many })
      const told = runes.flatMap((rune) => turnOf(rune) ?? [])
      return told.length === 0 ? "The agent has had no turn yet." : yield* framed(told)
    })
})

const output = tool({
  name: "output",
  description: "Show the newest lines of an agent's output, its actions, and agentd's decisions about it.",
  readOnly: true,
  schema: Schema.Struct({ agent, lines: count(500, "Number of lines to show. Default: 50.") }),
  run: (client, { agent, lines = 50 }, caller) =>
    Effect.gen(function* () {
      const runes = yield* runesOf(client, agent, caller, { kinds: KINDS, tail: 2_000 })
      const view = new LogsView()
      const entries = runes.flatMap((rune) => view.feed(rune))
      const last = runes.at(-1)
      const all = last === undefined ? [] : [...entries, ...view.flush(last)]
      if (all.length === 0) return "The agent has no output yet."
      const shown = all.slice(-lines).map(({ at, text }) => `${new Date(at).toISOString().slice(11, 19)} ${text}`)
      return yield* framed([{ about: `the newest lines of ${agent}`, text: shown.join("\n") }])
    })
})

const why = tool({
  name: "why",
  description: "Explain how an agent got its current status.",
  readOnly: true,
  schema: Schema.Struct({ agent }),
  run: (client, { agent }, caller) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const reply = yield* client.Why({ name: agent, caller })
      return Why.view(reply, { now, colour: false, columns: null, world: null }).join("\n")
    })
})

const send = tool({
  name: "send",
  description:
    'Send a message to an agent, on behalf of the user. The agent answers it in a separate turn. To get the answer, use the tools "wait" and "conversation".',
  schema: Schema.Struct({
    agent,
    text: text("The text of the message: what the agent must know or do."),
    now: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "True: end the agent's current turn as soon as it is safe; this message then starts the next turn."
      })
    )
  }),
  run: (client, { agent, now = false, text }, caller) =>
    Effect.map(
      client.Send({ name: agent, text, how: now ? "steer" : "queue", caller }),
      ({ eventId, message }) => `${message} (rune ${eventId})`
    )
})

const spawn = tool({
  name: "spawn",
  description: "Start a sub-agent of a running agent, with a task. The sub-agent ends with its parent.",
  schema: Schema.Struct({
    parent: agent,
    name: text("Name of the sub-agent: lower-case letters, digits, '.', '_' and '-'."),
    task: text("The sub-agent's first message: everything that it needs to know."),
    role: Schema.optionalKey(text("Role of the sub-agent, in a few words. Default: its parent's role."))
  }),
  run: (client, { parent, ...request }, caller) =>
    Effect.map(client.Spawn({ name: parent, request, caller }), ({ message }) => message)
})

const goals = tool({
  name: "goals",
  description: "List the goals of the agents with their status, newest first.",
  readOnly: true,
  schema: Schema.Struct({}),
  run: (client, _, caller) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const all = yield* client.Goals({ all: true, caller })
      const lines = all.map(({ detail, goal, goalId, project, tasks, total, word }) => {
        const done = total === 0 ? "" : ` ${tasks.completed} of ${total} tasks done.`
        return `${project}/${goalId}: ${predicate({ word }, now)}.${done} ${plain(detail)} — ${plain(cut(goal, 200))}`
      })
      return lines.length === 0 ? "There are no goals." : lines.join("\n")
    })
})

const goal = tool({
  name: "goal",
  description:
    "Submit a goal to the agents of this project. An agent plans it, the user approves the plan, and the agents carry it out.",
  schema: Schema.Struct({
    goal: text("Description of the goal."),
    planner: Schema.optionalKey(text("The agent that makes the plan. Default: the planner of the project's config."))
  }),
  run: (client, { goal, ...more }, caller) =>
    Effect.map(
      client.GoalSubmit({ request: { goal, plan: null, ...more, autoStart: false }, caller }),
      ({ message }) => message
    )
})

const wait = tool({
  name: "wait",
  description:
    "Wait until agents (or goals, channels) have a status: idle (after a message), done, failed, needs-you or working. Returns their status at the end of the wait.",
  readOnly: true,
  schema: Schema.Struct({
    names: Schema.Array(agent).check(Schema.isBetweenLength(1, 50)),
    for: Schema.optionalKey(Schema.Literals(AIMS).annotate({ description: "Status to wait for. Default: idle." })),
    since: Schema.optionalKey(
      Schema.Int.annotate({
        description: 'Wait for a status that is newer than this rune: pass the number that the tool "send" returned.'
      })
    ),
    seconds: count(MAX_WAIT, "Maximum wait in seconds. Default: 300.")
  }),
  run: (client, { for: aim = "idle", names, seconds = 300, since = 0 }, { config }) =>
    Effect.gen(function* () {
      let rows: ReadonlyMap<string, BoardRow> = new Map()
      let meant: ReadonlyArray<BoardRow> = []
      const watching = Stream.runForEachWhile(client.BoardNews({ follow: true }), (news) => {
        rows = after(rows, news)
        const found = standing([...rows.values()], { names, labels: [] }, aim, config)
        const { left, never } = found
        const trouble = unclear([...rows.values()], names, found, config, meant)
        if (trouble !== undefined) {
          return Effect.fail(new BadInput({ ...trouble, remedy: `${trouble.remedy}. Or use the tool "agents".` }))
        }
        meant = found.found.flat()
        // a row that needs the user or has failed cannot reach the status by itself
        const isStuck = never.length > 0 || (aim !== "needs-you" && left.some(({ word }) => word === "needs you"))
        const isStale = meant.some(({ kind, restsOn }) => kind === "agent" && restsOn <= since)
        return Effect.succeed(!isStuck && (left.length > 0 || isStale))
      })
      const isOver = yield* Effect.timeoutOption(watching, `${seconds} seconds`)
      const now = yield* Clock.currentTimeMillis
      const lines = meant.map((row) => rowLine(row, now))
      return [...(isOver._tag === "None" ? [`The status was not reached within ${seconds} s.`] : []), ...lines].join(
        "\n"
      )
    })
})

export const toolsOf = (person: Person): ReadonlyArray<Tool> =>
  [agents, conversation, output, why, send, spawn, goals, goal, wait].map((of) => of(person))
