/**
 * NameLookup: finds the agent or conversation for a name. Pure.
 *
 * Guarantees: In a project's folder, a name without a project always means an agent of that project. If there is none,
 * the error names no other project. Elsewhere, an ambiguous name is rejected, and the error lists the full names.
 */
import { basename, dirname, join } from "node:path"
import { type Caller, CommandRefused, refuse } from "../../domain/Messages.ts"
import { CONFIG_NAME } from "../../config/Places.ts"
import * as ProjectName from "../../config/ProjectName.ts"
import type { AgentScope } from "../../agents/actors/AgentScope.ts"
import { type NotLiving, refusalOf } from "../NotLiving.ts"
import type { Project } from "../Project.ts"
import type { ProjectRecord } from "../Recovery.ts"

export type Entry = { readonly _tag: "Open"; readonly record: ProjectRecord; readonly project: Project } | NotLiving

export const isClosed = (entry: Entry): boolean => entry._tag === "NotLiving" && entry.reason === "closed"

export interface Found {
  readonly project: Project
  readonly agentScope: AgentScope
}

const MAX_LISTED = 20

const listed = (names: ReadonlyArray<string>): string =>
  `There are: ${names.slice(0, MAX_LISTED).join(", ")}${names.length > MAX_LISTED ? " …" : ""}`

const ELSEWHERE = "See which there are: agentd ps"
const NONE = "Register a project first: agentd start, in its folder."

/** Number of a conversation within its project. The id of the first conversation contains no number. */
const ordinal = ({ conversation }: ProjectRecord): number => Number(/\.(\d+)$/.exec(conversation)?.[1] ?? 1)

export const successor = (record: ProjectRecord): string =>
  `${ProjectName.conversationId(record.config)}.${ordinal(record) + 1}`

const newest = (entries: ReadonlyArray<Entry>): Entry | undefined =>
  entries.toSorted((a, b) => ordinal(b.record) - ordinal(a.record))[0]

/** The project in the folder that a path names: from the caller, `.` is its own; undefined for a name. */
const atPath = (entries: ReadonlyArray<Entry>, path: string, caller: Caller): Entry | undefined => {
  if (!/^(?:[~/]|\.\.?(?:\/|$))/.test(path)) return undefined
  const folder = basename(path) === CONFIG_NAME ? dirname(path) : join(dirname(path), basename(path))
  return newest(
    entries.filter((entry) =>
      folder === "."
        ? entry.record.config === caller.config
        : dirname(entry.record.config) === folder || nameOf(entry) === basename(folder)
    )
  )
}

/** The newest conversation of a project's file. */
export const ofConfig = (entries: ReadonlyArray<Entry>, config: string): Entry | undefined =>
  newest(entries.filter(({ record }) => record.config === config))

/**
 * Like `ofConfig`. If that finds nothing, looks up the id: a damaged stream may contain no file path, and a config file
 * may be in an agent's worktree.
 */
const ownOf = (entries: ReadonlyArray<Entry>, config: string): Entry | undefined =>
  ofConfig(entries, config) ?? newest(entries.filter(({ record }) => ProjectName.isOf(config, record.conversation)))

export const nameOf = (entry: Entry): string => (entry._tag === "Open" ? entry.project.name : entry.record.name)

/**
 * Finds a conversation by its id, a unique prefix of it, or its project's name; with an empty name, the caller's
 * conversation. `kind`: what errors call the object.
 */
export const conversation = (
  entries: ReadonlyArray<Entry>,
  name: string,
  caller: Caller,
  kind: "conversation" | "project" = "conversation"
): Entry | CommandRefused => {
  const ids = entries.filter(({ record }) => record.config === caller.config).map(({ record }) => record.conversation)
  const there =
    entries.length === 0
      ? NONE
      : ids.length === 0
        ? "See which there are: agentd project ls --conversations"
        : listed(ids)
  if (name === "") {
    if (caller.config === null) return refuse("invalid", "Which conversation? There is no agentd.jsonc here.", there)
    return ownOf(entries, caller.config) ?? refuse("not_found", `The project ${caller.config} is not known yet.`, NONE)
  }
  const exact = entries.find(({ record }) => record.conversation === name) ?? atPath(entries, name, caller)
  if (exact !== undefined) return exact
  const all = entries.filter((entry) => nameOf(entry) === name)
  const open = all.filter((entry) => !isClosed(entry))
  // meanwhile another project may have taken the name of a closed conversation's project
  const named = open.length > 0 ? open : all
  const projects = new Set(named.map(({ record }) => record.config))
  const matches =
    projects.size === 0
      ? entries.filter(({ record }) => record.conversation.startsWith(name))
      : [...projects].map((config) => ofConfig(named, config)!)
  if (matches.length === 1) return matches[0]!
  const own = matches.filter(({ record }) => record.config === caller.config)
  const known = own.map(({ record }) => record.conversation)
  return matches.length === 0
    ? kind === "project"
      ? refuse(
          "not_found",
          `There is no project "${name}".`,
          entries.length === 0 ? NONE : "See which there are: agentd project ls"
        )
      : refuse("not_found", `There is no conversation "${name}".`, isAgent(entries, name) ?? there)
    : refuse(
        "ambiguous",
        `"${name}" names ${matches.length} conversations.`,
        own.length < matches.length
          ? "Use the full id of one: agentd project ls --conversations"
          : `Say which: ${known.join(", ")}`
      )
}

/** A remedy for the name of an agent where a conversation is expected; undefined if no agent has the name. */
const isAgent = (entries: ReadonlyArray<Entry>, name: string): string | undefined =>
  entries.some(
    (entry) => entry._tag === "Open" && [...entry.project.members.keys()].some((own) => isCalled(entry, own, name))
  )
    ? `${name} is an agent. Stop or start it: agentd stop ${name}, agentd start ${name}`
    : undefined

/** Words that stand for more than one agent elsewhere. */
const WORDS: { readonly [name: string]: string } = {
  agentd: "For the daemon itself: agentd stop --daemon, or agentd restart",
  agents: "For all agents of a project, use a pattern: 'PROJECT/*'",
  all: "For all agents of a project, use a pattern: 'PROJECT/*'",
  daemon: "For the daemon itself: agentd stop --daemon, or agentd restart",
  server: "For the daemon itself: agentd stop --daemon, or agentd restart"
}

const unknown = (name: string, remedy: string) =>
  new CommandRefused({
    code: "not_found",
    message: `There is no agent "${name}".`,
    remedy: Object.hasOwn(WORDS, name) ? `${WORDS[name]}. ${remedy}` : remedy
  })

const inFolder = (mine: Entry | undefined, config: string, name: string): Found | CommandRefused => {
  if (mine === undefined) return new CommandRefused({ code: "not_found", ...ProjectName.unstarted(config, name) })
  if (mine._tag !== "Open") return refusalOf(mine)
  const { project } = mine
  const member = project.members.get(name)
  if (member !== undefined) return { project, agentScope: member.agentScope }
  const all = [...project.members.keys()]
  return unknown(name, all.length === 0 ? ELSEWHERE : listed(all))
}

/** A remedy for the name of a project where an agent is expected; undefined if no project has the name. */
const asProject = (entries: ReadonlyArray<Entry>, name: string, caller: Caller): CommandRefused | undefined => {
  const found = atPath(entries, name, caller) ?? entries.find((entry) => nameOf(entry) === name)
  if (found === undefined) return undefined
  const project = nameOf(found)
  const is = project === name ? `${name} is a project` : `The folder is of the project ${project}`
  return unknown(name, `${is}. Name one of its agents: ${project}/AGENT. List them: agentd ps ${project}`)
}

const isCalled = (entry: Entry, agent: string, name: string): boolean =>
  [agent, `${nameOf(entry)}/${agent}`, `${entry.record.conversation}/${agent}`].includes(name)

/**
 * Finds an agent. `project/agent` always works. In a project's folder, `agent` alone means an agent of that project.
 * Elsewhere it means the only agent with that name, but a command that ends or changes the agent (`changes`) requires
 * the full name.
 */
export const agent = (
  entries: ReadonlyArray<Entry>,
  name: string,
  caller: Caller,
  changes = false
): Found | CommandRefused => {
  const isBare = !name.includes("/")
  if (isBare && caller.config !== null) {
    const mine = ownOf(entries, caller.config)
    const isMember = mine?._tag === "Open" && mine.project.members.has(name)
    return (
      (isMember || mine === undefined ? undefined : asProject(entries, name, caller)) ??
      inFolder(mine, caller.config, name)
    )
  }
  const matches = entries.flatMap((entry) =>
    entry._tag !== "Open"
      ? []
      : [...entry.project.members.values()]
          .filter(({ agentScope }) => isCalled(entry, agentScope.name, name))
          .map(({ agentScope }) => ({ project: entry.project, agentScope }))
  )
  const called = ({ project, agentScope }: Found): string =>
    `${isBare ? project.name : project.conversation}/${agentScope.name}`
  if (matches.length > 1) {
    return new CommandRefused({
      code: "ambiguous",
      message: `"${name}" names ${matches.length} agents.`,
      remedy: `Say which: ${matches.slice(0, MAX_LISTED).map(called).join(", ")}${matches.length > MAX_LISTED ? " …" : ""}`
    })
  }
  const [found] = matches
  if (found === undefined) return missing(entries, name, caller)
  if (!isBare || !changes) return found
  return new CommandRefused({
    code: "ambiguous",
    message: `"${name}" was used outside the project of ${called(found)}: nothing was done.`,
    remedy: `Use its full name: ${called(found)}`
  })
}

/** The error for a name that no live agent has. If the agent's conversation is not alive, explains why. */
const missing = (entries: ReadonlyArray<Entry>, name: string, caller: Caller): CommandRefused => {
  for (const entry of entries) {
    if (entry._tag === "Open" || ofConfig(entries, entry.record.config) !== entry) continue
    // a damaged stream does not contain the names of its agents
    const agents = entry.reason === "damaged" ? [name.split("/")[1] ?? ""] : [...entry.record.agents.keys()]
    if (agents.some((own) => isCalled(entry, own, name))) return refusalOf(entry)
  }
  return asProject(entries, name, caller) ?? unknown(name, entries.length === 0 ? NONE : ELSEWHERE)
}
