/**
 * LogsChoice: selects the agents whose lines `agentd log --text` shows, and their display names. Pure.
 *
 * Guarantees: a name without a slash refers to an agent of the caller's own project, if that project has such an agent.
 * A pattern matches all agents that fit, including agents that start later.
 */
import type { ConversationInfo } from "../../domain/Messages.ts"
import { isOf } from "../../config/ProjectName.ts"
import { fits, isPattern } from "../sessions/RowFilter.ts"

export type Home = Pick<ConversationInfo, "conversation" | "project" | "config" | "state" | "agents">

export interface Chosen {
  /** Display name of an agent; undefined if the agent is not selected. */
  readonly nameOf: (conversation: string, agent: string) => string | undefined
  /** Display names of the selected known agents. */
  readonly names: ReadonlyArray<string>
  /**
   * `CONVERSATION/AGENT` if exactly one agent is selected and no agent that starts later can be selected; otherwise
   * undefined.
   */
  readonly only: string | undefined
  readonly unknown: ReadonlyArray<string>
  /** The full names that were possibly meant by an unknown name without a project. */
  readonly which: ReadonlyArray<string>
  /** All names of known agents and projects. */
  readonly known: ReadonlyArray<string>
}

export const projectOf = (conversation: string): string => conversation.replace(/-[0-9a-f]{8}(\.\d+)?$/, "")

/** A pattern that matches no name. */
const NOTHING = "/"

const isOpen = ({ state }: Pick<Home, "state">): boolean => state !== "closed" && state !== "archived"

/** Finds the selected agents. `own`: config file of the caller's project; null outside of all projects. */
export const chosen = (asked: ReadonlyArray<string>, homes: ReadonlyArray<Home>, own: string | null): Chosen => {
  const projects = new Map(homes.map(({ conversation, project }) => [conversation, project]))
  const here = homes.find(({ config, conversation }) => own !== null && (config === own || isOf(own, conversation)))
  const isWhole = (name: string) =>
    name.includes("/") ||
    isPattern(name) ||
    homes.some(({ conversation, project }) => [conversation, project].includes(name))
  /**
   * The names, completed by their projects. A name without a project refers to this folder's project; outside of all
   * projects, to the only project that has an agent with this name.
   */
  const patterns = asked.map((name) => {
    if (here?.agents.includes(name)) return `${here.project}/${name}`
    if (isWhole(name)) return name
    if (own !== null) return here === undefined ? NOTHING : `${here.project}/${name}`
    const having = homes.filter(({ agents }) => agents.includes(name))
    const projects = new Set((having.some(isOpen) ? having.filter(isOpen) : having).map(({ project }) => project))
    return projects.size > 1 ? NOTHING : [...projects, name].slice(0, 2).join("/")
  })
  const means = (pattern: string, conversation: string, agent: string) => {
    const project = projects.get(conversation) ?? projectOf(conversation)
    return [`${project}/${agent}`, agent, project, conversation, `${conversation}/${agent}`].some((one) =>
      fits(pattern, one)
    )
  }
  const isMeant = (conversation: string, agent: string) =>
    patterns.length === 0 || patterns.some((pattern) => means(pattern, conversation, agent))
  const all = homes.flatMap(({ agents, conversation, project, state }) =>
    agents.map((agent) => ({ agent, conversation, project, isOver: !isOpen({ state }) }))
  )
  const found = all.filter(({ agent, conversation }) => isMeant(conversation, agent))
  const isOne = new Set(found.map(({ project }) => project)).size < 2
  const called = (conversation: string, agent: string) => {
    const project = projects.get(conversation) ?? projectOf(conversation)
    return isOne && (found.length === 0 || found[0]!.project === project) ? agent : `${project}/${agent}`
  }
  const [first] = found
  const isExact =
    asked.length === 1 && !isPattern(asked[0]!) && found.length === 1 && !first!.isOver && asked[0] !== first!.project
  return {
    nameOf: (conversation, agent) => (isMeant(conversation, agent) ? called(conversation, agent) : undefined),
    names: [...new Set(found.map(({ agent, conversation }) => called(conversation, agent)))],
    only: isExact ? `${first!.conversation}/${first!.agent}` : undefined,
    unknown: asked.filter((_, at) => !all.some(({ agent, conversation }) => means(patterns[at]!, conversation, agent))),
    which: all
      .filter(({ agent }) => own === null && asked.includes(agent))
      .map(({ agent, project }) => `${project}/${agent}`),
    known: [...new Set(all.flatMap(({ agent, project }) => [agent, `${project}/${agent}`, project]))]
  }
}
