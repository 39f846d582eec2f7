/** `agentd project ls|start|stop|pause|resume`: lists the projects, or controls one project with all its agents. */
import { dirname } from "node:path"
import type { Board, BoardRow } from "../../domain/BoardMessages.ts"
import type { ConversationInfo, ProjectInfo } from "../../domain/Messages.ts"
import { LOOKS, rankOf, type Word, WORDS } from "../../domain/StatusWords.ts"
import { isOver, list } from "./Conversation.ts"
import { spentOf } from "../sessions/Board.ts"
import { act, all, declare, map, off, oneOf, option, read, send, words, type World } from "../parse/DeclaredVerb.ts"
import { yes } from "../parse/Names.ts"
import { INCOMPLETE, lookColour, plain, table } from "../render/Output.ts"

export interface ProjectRow {
  readonly project: string
  /**
   * The name by which commands can select the project: its name, or its conversation's id if another project has the
   * same name.
   */
  readonly called: string
  readonly conversation: string
  /** Absolute path of the project's `agentd.jsonc`. */
  readonly config: string
  readonly folder: string
  readonly word: Word
  readonly says: string
  readonly agents: ReadonlyArray<{ readonly name: string; readonly word: Word }>
  /** Spending since midnight; null if unknown. */
  readonly today: BoardRow["today"]
}

export interface Given {
  readonly projects: ReadonlyArray<ProjectInfo>
  readonly conversations: ReadonlyArray<ConversationInfo>
  readonly board: Pick<Board, "rows">
}

const OVER: ReadonlySet<string> = new Set(["closed", "archived"])
const HELD: ReadonlySet<string> = new Set(["paused", "suspended", "closing"])

export const calledOf = (projects: ReadonlyArray<Pick<ProjectInfo, "conversation" | "name">>) => {
  const count = new Map<string, number>()
  for (const { name } of projects) count.set(name, (count.get(name) ?? 0) + 1)
  return ({ conversation, name }: Pick<ProjectInfo, "conversation" | "name">): string =>
    (count.get(name) ?? 0) > 1 ? conversation : name
}

/**
 * The status of a project, with the reason. A problem of the whole project has priority over problems of its agents.
 */
const standing = (
  { damage, lost, problems, stopped, waits }: ProjectInfo,
  called: string,
  conversation: ConversationInfo | undefined,
  agents: ProjectRow["agents"]
): Pick<ProjectRow, "says" | "word"> => {
  if (damage !== undefined) return { word: "failed", says: `its log is damaged: ${damage}; agentd verify` }
  if (stopped !== undefined)
    return { word: "stopped", says: `stopped by ${stopped.by}: agentd project start ${called}` }
  if (conversation !== undefined && HELD.has(conversation.state)) {
    const remedy = conversation.state === "closing" ? "" : `: agentd project resume ${called}`
    return { word: conversation.word, says: `${conversation.detail}${remedy}` }
  }
  const [first] = problems
  if (first !== undefined && lost === true) return { word: "failed", says: first }
  const worst = agents.map(({ word }) => word).toSorted((a, b) => rankOf(a) - rankOf(b))[0]
  const word = worst ?? conversation?.word ?? "idle"
  if (waits !== undefined)
    return { word, says: `its config has changed and waits for approval: agentd trust ${called}` }
  return { word, says: first === undefined ? "" : `its config cannot be used: ${first}` }
}

const spentBy = (rows: ReadonlyArray<BoardRow>): BoardRow["today"] => {
  const known = rows.flatMap(({ today }) => (today === null ? [] : [today]))
  return known.length === 0
    ? null
    : known.reduce((sum, { tokens, usd }) => ({ tokens: sum.tokens + tokens, usd: sum.usd + usd }))
}

/** Rows for closed projects, each for the project's newest conversation. */
const overOf = ({ conversations, projects }: Given): ReadonlyArray<ProjectRow> => {
  const alive = new Set(projects.map(({ config }) => config))
  const newest = new Map<string, ConversationInfo>()
  for (const one of conversations) {
    if (OVER.has(one.state) && !alive.has(one.config) && (newest.get(one.config)?.since ?? -1) < one.since)
      newest.set(one.config, one)
  }
  return [...newest.values()].map(({ config, conversation, project, state }) => ({
    project,
    called: conversation,
    conversation,
    config,
    folder: dirname(config),
    word: "done",
    says: `${state}. To start again, run in its folder: agentd project new`,
    agents: [],
    today: null
  }))
}

/** Rows for all projects, sorted by name. `over`: include projects whose conversation is closed. */
export const rowsOf = (given: Given, over: boolean): ReadonlyArray<ProjectRow> => {
  const calls = calledOf(given.projects)
  const living = given.projects.map((project): ProjectRow => {
    const { config, conversation, name } = project
    const own = given.board.rows.filter((row) => row.kind === "agent" && row.conversation === conversation)
    const agents = own.map(({ name, word }) => ({ name, word })).toSorted((a, b) => rankOf(a.word) - rankOf(b.word))
    const info = given.conversations.find((one) => one.conversation === conversation)
    const called = calls(project)
    return {
      project: name,
      called,
      conversation,
      config,
      folder: dirname(config),
      ...standing(project, called, info, agents),
      agents,
      today: spentBy(own)
    }
  })
  const byName = (a: ProjectRow, b: ProjectRow): number => Number(a.called > b.called) - Number(a.called < b.called)
  return [...living.toSorted(byName), ...(over ? overOf(given) : []).toSorted(byName)]
}

/** Number of agents per status, such as `2 working, 1 idle`. */
const counted = (agents: ProjectRow["agents"]): string =>
  WORDS.flatMap((word) => {
    const amount = agents.filter((one) => one.word === word).length
    return amount === 0 ? [] : [`${amount} ${word}`]
  }).join(", ")

const view = (rows: ReadonlyArray<ProjectRow>, { colour, columns, world }: World): ReadonlyArray<string> =>
  rows.length === 0
    ? [
        "There are no projects. To write a project's config: agentd init. To start the project, in its folder: agentd start"
      ]
    : table(
        ["PROJECT", "STATE", "AGENTS", "TODAY", "FOLDER", "DETAIL"],
        rows.map(({ agents, called, folder, says, today, word }) => {
          const look = LOOKS[word]
          const shade = lookColour[look.colour]
          return [
            { text: `${look.glyph} ${plain(called)}`, colour: shade },
            { text: word, colour: shade },
            { text: counted(agents) },
            { text: spentOf(today) },
            { text: plain(folder) },
            { text: plain(says) }
          ]
        }),
        { colour, columns, world, spare: ["TODAY", "FOLDER"] }
      )

type Listed =
  | { readonly projects: ReadonlyArray<ProjectRow>; readonly reading: boolean }
  | { readonly conversations: ReadonlyArray<ConversationInfo> }

export const ls = declare({
  path: ["project", "ls"],
  description: "List the projects with status, agents, today's cost and folder",
  examples: [
    { command: "agentd project ls", description: "List all projects of your daemon" },
    { command: "agentd project ls --all --json", description: "List closed projects, too, as JSON" },
    {
      command: "agentd project ls --conversations",
      description: "List the conversations with their status and spending"
    }
  ],
  args: {
    all: off("Also list projects whose conversation is closed", "a"),
    conversations: off("List the conversations instead, each with its turns and its budget spending")
  },
  rpc: ({ all: over, conversations }) =>
    conversations
      ? map(read("Conversations", null), (found): Listed => ({
          conversations: found.filter((one) => over || !isOver(one))
        }))
      : map(
          all({
            projects: read("Projects", null),
            conversations: read("Conversations", null),
            board: read("Board", { all: false })
          }),
          (given): Listed => ({ projects: rowsOf(given, over), reading: given.board.reading === true })
        ),
  view: (listed, world) =>
    "projects" in listed
      ? [
          ...(listed.reading ? [INCOMPLETE] : []),
          ...(listed.reading && listed.projects.length === 0 ? [] : view(listed.projects, world))
        ]
      : list(listed.conversations, world.now, world),
  value: (listed) => ("projects" in listed ? listed.projects : listed.conversations)
})

export const names = words("Names of projects, or patterns; default: the project of this folder", "project")

export const start = act({
  path: ["project", "start"],
  description: "Start a stopped project, and the agents that were stopped with it",
  examples: [
    {
      command: "agentd project start shop",
      description: "Start the project; an agent that you stopped before the project stays stopped"
    }
  ],
  args: { names },
  several: { kind: "project" },
  rpc: ({ names }, caller) => send("StartProject", { name: oneOf(names), caller })
})

export const stop = act({
  path: ["project", "stop"],
  description: "Stop a project's agents until you start the project again",
  examples: [
    {
      command: "agentd project stop shop",
      description:
        "Stop the project; it stays stopped after a restart of the daemon, and messages to its agents are queued"
    },
    { command: "agentd project stop '*' --yes", description: "Stop all projects without confirmation" }
  ],
  args: { names, yes },
  several: { kind: "project", ends: () => "stops" },
  rpc: ({ names }, caller) => send("StopProject", { name: oneOf(names), caller }),
  quick: ({ yes }) => yes
})

export const pause = act({
  path: ["project", "pause"],
  description: "Pause a project: no new turns begin until you resume it; its agents are not stopped",
  examples: [
    {
      command: "agentd project pause shop --complete",
      description: "Pause the project, but let turns in progress finish"
    }
  ],
  args: {
    names,
    reason: option("TEXT", "Reason for the pause, which is written to the log"),
    complete: off("Let turns in progress finish; otherwise they are interrupted")
  },
  several: { kind: "conversation" },
  rpc: ({ complete, names, reason }, caller) =>
    send("Pause", { name: oneOf(names), inFlight: complete ? "complete" : "interrupt", reason: reason ?? "", caller })
})

export const resume = act({
  path: ["project", "resume"],
  description: "Resume a project after a pause or a suspension",
  examples: [
    { command: "agentd project resume shop", description: "Resume the project; its agents continue with their inboxes" }
  ],
  args: { names },
  several: { kind: "conversation" },
  rpc: ({ names }, caller) => send("Resume", { name: oneOf(names), caller })
})
