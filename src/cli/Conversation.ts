/** `agentd conversation ls|show|new`: what conversations there are, and how each stands. */
import { Clock, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import type { ConversationInfo, Spending } from "../domain/Messages.ts"
import { CONFIG_NAME } from "./Paths.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { hint, Invocation, print } from "./Invocation.ts"
import { age, clock, paint, plain, stateColour, table, type TableOptions } from "./Output.ts"

export type Input =
  | { readonly action: "ls"; readonly all: boolean }
  | { readonly action: "show"; readonly name: string }
  | { readonly action: "new" }

const units: {
  readonly [resource in keyof Spending]: { readonly unit: string; readonly of: (value: number) => string }
} = {
  tokens: { unit: " tokens", of: String },
  toolCalls: { unit: " tool calls", of: String },
  wallTime: { unit: " in turns", of: age },
  usd: { unit: "", of: (value) => `$${value.toFixed(2)}` }
}
const resources = ["tokens", "toolCalls", "wallTime", "usd"] as const

/** `1200 of 100000 tokens, 3 tool calls`: what is known or limited. */
export const spending = (spent: Spending, limits: Spending): ReadonlyArray<string> =>
  resources.flatMap((resource) => {
    const [is, may] = [spent[resource], limits[resource]]
    if (may === null && (is === null || is === 0)) return []
    const { of, unit } = units[resource]
    return [`${of(is ?? 0)}${may === null ? "" : ` of ${of(may)}`}${unit}`]
  })

const isOver = ({ state }: ConversationInfo): boolean => state === "closed" || state === "archived"

const list = (all: ReadonlyArray<ConversationInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  all.length === 0
    ? [
        "No conversation is open. Begin one: agentd start in a project's folder; see old ones: agentd conversation ls --all"
      ]
    : table(
        ["CONVERSATION", "PROJECT", "STATE", "SINCE", "AGENTS", "TURNS", "DETAIL"],
        all.map((each) => [
          { text: each.conversation, colour: "bold" },
          { text: each.project },
          { text: each.state, colour: stateColour(each.state) },
          { text: each.since === 0 ? "-" : age(now - each.since) },
          { text: String(each.agents.length) },
          { text: String(each.turns) },
          { text: plain([each.detail, ...spending(each.spent, each.limits)].filter((part) => part !== "").join("; ")) }
        ]),
        options
      )

const describe = (found: ConversationInfo, now: number, colour: boolean): ReadonlyArray<string> => {
  const line = (name: string, text: string) => `${paint(colour, "dim", name.padEnd(11))}${plain(text)}`
  const spent = spending(found.spent, found.limits)
  return [
    `${paint(colour, "bold", found.conversation)} is ${paint(colour, stateColour(found.state), found.state)} since ${clock(found.since, now)} (rune ${found.restsOn}).`,
    ...(found.detail === "" ? [] : [line("now", found.detail)]),
    line("project", `${found.project}, ${found.config}`),
    line("agents", found.agents.length === 0 ? "none" : found.agents.join(", ")),
    line("turns", `${found.turns} so far, ${found.turnsActive} under way, ${found.turnErrors} errors in a row`),
    line("stopped", `${found.fatalStops} agents for good`),
    line("spent", spent.length === 0 ? "nothing that is counted" : spent.join(", ")),
    ...(found.archive === null ? [] : [line("archive", found.archive)])
  ]
}

const noProject = new VerbFailed({
  message: `There is no ${CONFIG_NAME} here or above.`,
  remedy: "Go to a project's folder, or write a sample: agentd init",
  exitCode: ExitCode.failed
})

export const run = Effect.fnUntraced(function* (input: Input) {
  const { caller, colour, columns, paths } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  if (input.action === "ls") {
    const all = yield* call(paths.socket, (client) => client.Conversations())
    const shown = input.all ? all : all.filter((each) => !isOver(each))
    return yield* print(shown, () => list(shown, now, { colour, columns }))
  }
  if (input.action === "show") {
    const found = yield* call(paths.socket, (client) => client.Conversation({ name: input.name, caller }))
    return yield* print(found, () => describe(found, now, colour))
  }
  const { config } = caller
  if (config === null) return yield* noProject
  const begun = yield* call(paths.socket, (client) => client.NewConversation({ config, caller }))
  const agents = begun.agents.length === 0 ? "no agents" : begun.agents.join(", ")
  const told = yield* hint(`${begun.conversation} has begun: ${agents}. See them: agentd ps`)
  yield* print(begun, () => [told])
})
