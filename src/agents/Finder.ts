/**
 * Finder: which agent or conversation a name means. Pure.
 *
 * Guarantees: names are looked up in the caller's project first; one that means
 * nothing, or several things, is refused with those of the caller's project: a
 * refusal tells of no other project.
 */
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import * as ProjectName from "../config/ProjectName.ts"
import type { AgentScope } from "./AgentScope.ts"
import * as ConversationRow from "./ConversationRow.ts"
import type { LostProject } from "./LostProject.ts"
import type { Project } from "./Project.ts"
import type { ProjectRecord } from "./Recovery.ts"

export type Entry =
  | { readonly _tag: "Open"; readonly record: ProjectRecord; readonly project: Project }
  | { readonly _tag: "Lost"; readonly record: ProjectRecord; readonly lost: LostProject }
  | { readonly _tag: "Closed"; readonly record: ProjectRecord }
  | { readonly _tag: "Damaged"; readonly record: ProjectRecord; readonly message: string }

export interface Found {
  readonly project: Project
  readonly tree: AgentScope
}

const MAX_LISTED = 20

const listed = (names: ReadonlyArray<string>): string =>
  `There are: ${names.slice(0, MAX_LISTED).join(", ")}${names.length > MAX_LISTED ? " …" : ""}`

const ELSEWHERE = "See which there are: agentd ps"
const NONE = "Register a project first: agentd start, in its folder."

/** A project's conversations are numbered: the first bears the bare id. */
const ordinal = ({ config, conversation }: ProjectRecord): number => {
  const first = ProjectName.conversationId(config)
  return conversation === first ? 1 : Number(conversation.slice(first.length + 1))
}

/** The id of the one after it. */
export const successor = (record: ProjectRecord): string =>
  `${ProjectName.conversationId(record.config)}.${ordinal(record) + 1}`

const newest = (entries: ReadonlyArray<Entry>): Entry | undefined =>
  entries.toSorted((a, b) => ordinal(b.record) - ordinal(a.record))[0]

/** The newest conversation of a project's file. */
export const ofConfig = (entries: ReadonlyArray<Entry>, config: string): Entry | undefined =>
  newest(entries.filter(({ record }) => record.config === config))

/** The same; of one whose damaged stream does not say its file, the id does. */
const ownOf = (entries: ReadonlyArray<Entry>, config: string): Entry | undefined => {
  const id = ProjectName.conversationId(config)
  const isIts = ({ record }: Entry) => record.config === "" && record.conversation.split(".")[0] === id
  return ofConfig(entries, config) ?? entries.find(isIts)
}

export const nameOf = (entry: Entry): string => (entry._tag === "Open" ? entry.project.name : entry.record.name)

/** By its id, a unique beginning of it, or its project's name; empty: the caller's. `kind`: as a refusal calls it. */
export const conversation = (
  entries: ReadonlyArray<Entry>,
  name: string,
  caller: Caller,
  kind: "conversation" | "project" = "conversation"
): Entry | CommandRefused => {
  const refused = (message: string, remedy: string) => new CommandRefused({ message, remedy })
  const ids = entries.filter(({ record }) => record.config === caller.config).map(({ record }) => record.conversation)
  const there =
    entries.length === 0 ? NONE : ids.length === 0 ? "See which there are: agentd conversation ls" : listed(ids)
  if (name === "") {
    if (caller.config === null) return refused("Which conversation? There is no agentd.jsonc here.", there)
    return ownOf(entries, caller.config) ?? refused(`The project ${caller.config} is not known yet.`, NONE)
  }
  const exact = entries.find(({ record }) => record.conversation === name)
  if (exact !== undefined) return exact
  const all = entries.filter((entry) => nameOf(entry) === name)
  const open = all.filter(({ _tag }) => _tag !== "Closed")
  // the name of one that is over may be another's by now
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
      ? refused(
          `There is no project "${name}".`,
          entries.length === 0 ? NONE : "See which there are: agentd project ls"
        )
      : refused(`There is no conversation "${name}".`, there)
    : refused(
        `"${name}" names ${matches.length} conversations.`,
        own.length < matches.length
          ? "Say which, by its whole id: agentd conversation ls"
          : `Say which: ${known.join(", ")}`
      )
}

/** From within a project its own agents come first; else `project/agent`, or a name that only one project has. */
export const agent = (entries: ReadonlyArray<Entry>, name: string, caller: Caller): Found | CommandRefused => {
  const projects = entries.flatMap((entry) => (entry._tag === "Open" ? [entry.project] : []))
  const mine = caller.config === null ? undefined : ownOf(entries, caller.config)
  const here = mine?._tag === "Open" ? mine.project : undefined
  const member = here?.members.get(name)
  if (here !== undefined && member !== undefined) return { project: here, tree: member.tree }
  const damaged = inDamaged(entries, name, mine)
  if (damaged !== undefined) return damaged
  const matches = projects.flatMap((project) =>
    [...project.members.values()]
      .filter(({ tree }) =>
        [tree.name, `${project.name}/${tree.name}`, `${project.conversation}/${tree.name}`].includes(name)
      )
      .map(({ tree }) => ({ project, tree }))
  )
  if (matches.length === 1) return matches[0]!
  if (matches.length > 1) {
    return new CommandRefused({
      message: `"${name}" names ${matches.length} agents.`,
      remedy: `Say which, as CONVERSATION/${name.split("/").at(-1)}: agentd conversation ls`
    })
  }
  const closed = inClosed(entries, name, mine)
  if (closed !== undefined) return closed
  const all = here === undefined ? [] : [...here.members.keys()]
  return new CommandRefused({
    message: `There is no agent "${name}".`,
    remedy: projects.length === 0 ? NONE : all.length === 0 ? ELSEWHERE : listed(all)
  })
}

/** An agent, perhaps, of a conversation that is set apart: its stream says no more. */
const inDamaged = (entries: ReadonlyArray<Entry>, name: string, own: Entry | undefined): CommandRefused | undefined => {
  const [project = "", member] = name.split("/")
  const said =
    member === undefined
      ? own
      : entries.find((entry) => nameOf(entry) === project || entry.record.conversation === project)
  return said?._tag === "Damaged" ? ConversationRow.damaged(said.record.conversation, said.message) : undefined
}

/** An agent of a conversation that is over, and whose project has no other. */
const inClosed = (entries: ReadonlyArray<Entry>, name: string, own: Entry | undefined): CommandRefused | undefined => {
  const [project = "", member] = name.split("/")
  const said = member === undefined ? own : newest(entries.filter((entry) => nameOf(entry) === project))
  return said?._tag === "Closed" && said.record.agents.has(member ?? name)
    ? ConversationRow.over({ conversation: said.record.conversation, project: said.record.name })
    : undefined
}
