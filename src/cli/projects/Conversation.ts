/** `agentd project show|new`: shows the conversation of a project, or starts a new one. */
import type { ConversationInfo, Spending } from "../../domain/Messages.ts"
import { declare, read, send, word, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { LOOKS, predicate } from "../../domain/StatusWords.ts"
import { age, clock, count, lookColour, paint, plain, table, type TableOptions } from "../render/Output.ts"

const units: {
  readonly [resource in keyof Spending]: { readonly unit: string; readonly of: (value: number) => string }
} = {
  tokens: { unit: " tokens", of: String },
  toolCalls: { unit: " tool calls", of: String },
  wallTime: { unit: " in turns", of: age },
  usd: { unit: "", of: (value) => `$${value.toFixed(2)}` }
}
const resources = ["tokens", "toolCalls", "wallTime", "usd"] as const

/**
 * Spending as text, such as `1200 of 100000 tokens`, `3 tool calls`. Only resources that were used or are limited are
 * included.
 */
export const spending = (spent: Spending, limits: Spending): ReadonlyArray<string> =>
  resources.flatMap((resource) => {
    const [is, may] = [spent[resource], limits[resource]]
    if (may === null && (is === null || is === 0)) return []
    const { of, unit } = units[resource]
    return [`${of(is ?? 0)}${may === null ? "" : ` of ${of(may)}`}${unit}`]
  })

export const isOver = ({ state }: ConversationInfo): boolean => state === "closed" || state === "archived"

export const list = (all: ReadonlyArray<ConversationInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  all.length === 0
    ? [
        "No conversation is open. To start one, run agentd start in a project's folder. To list old ones: agentd project ls --conversations --all"
      ]
    : table(
        ["CONVERSATION", "PROJECT", "STATE", "SINCE", "AGENTS", "TURNS", "DETAIL"],
        all.map((each) => [
          { text: each.conversation, colour: "bold" },
          { text: each.project },
          { text: each.word, colour: lookColour[LOOKS[each.word].colour] },
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
    `${paint(colour, "bold", found.conversation)} ${paint(colour, lookColour[LOOKS[found.word].colour], predicate({ word: found.word }, now))} since ${clock(found.since, now)} (rune ${found.restsOn}).`,
    ...(found.detail === "" ? [] : [line("now", found.detail)]),
    line("project", `${found.project}, ${found.config}`),
    line("agents", found.agents.length === 0 ? "none" : found.agents.join(", ")),
    line(
      "turns",
      `${found.turns} so far, ${found.turnsActive} in progress, ${count(found.turnErrors, "error")} in a row`
    ),
    line("stopped", `${count(found.fatalStops, "agent")} permanently, because of errors`),
    line("spent", spent.length === 0 ? "nothing" : spent.join(", "))
  ]
}

const noProject = {
  message: "There is no agentd.jsonc in this folder or above it.",
  remedy: "Go to a project's folder, or write a sample: agentd init",
  exitCode: ExitCode.failed
}

export const name = word(
  "Name of the project, or id of its conversation (or the beginning of that id); default: the project of this folder",
  {
    name: "project",
    default: ""
  }
)

export const names = words(
  "Names of projects, ids of conversations (or their beginnings), or patterns; default: the project of this folder",
  "project"
)

export const show = declare({
  path: ["project", "show"],
  description: "Show the conversation of a project: its status, agents, turns, and budget spending",
  examples: [{ command: "agentd project show web", description: "Show the conversation of the project web" }],
  args: { name },
  rpc: ({ name }, caller) => read("Conversation", { name, caller }),
  view: (found, { colour, now }) => describe(found, now, colour)
})

export const begin = declare({
  path: ["project", "new"],
  description: "Start a new conversation for the project of this folder, after the last one was closed",
  examples: [
    { command: "agentd project new", description: "Start again with empty inboxes, fresh budgets and a new log" }
  ],
  args: {},
  wrong: (_, { config }) => (config === null ? noProject : undefined),
  rpc: (_, caller) => send("NewConversation", { config: caller.config ?? "", caller }),
  view: ({ agents, conversation }) => [
    `${conversation} has started: ${agents.length === 0 ? "no agents" : agents.join(", ")}. See them: agentd ps`
  ]
})
