/**
 * NamePatterns: finds the items to which names and patterns refer. Pure.
 *
 * Guarantees: a name refers to one item, preferably of the caller's own project. A pattern refers to all matching
 * items. If a name is unknown or ambiguous, the result is an error with suggestions, and no item is selected.
 */
import { didYouMean } from "../../config/DidYouMean.ts"
import { CONFIG_NAME } from "../../config/Places.ts"
import { isOf, unstarted } from "../../config/ProjectName.ts"
import { bare, exact, isLabelled, isPattern, listed, means, type Named } from "../sessions/RowFilter.ts"
import type { Kind, Targets } from "./DeclaredVerb.ts"

export interface Unclear {
  readonly message: string
  readonly remedy: string
}

const LISTED: { readonly [kind in Kind]: string } = {
  agent: "agentd ps --all",
  channel: "agentd channel ls",
  conversation: "agentd project ls --conversations",
  goal: "agentd goal ls --all",
  project: "agentd project ls",
  session: "agentd ps --plates"
}

/** Kinds of items whose ids can be shortened to their first characters. */
const BY_BEGINNING: ReadonlySet<Kind> = new Set(["conversation", "project", "session"])

/** Maximum number of names that an error message lists. */
const MOST = 8

const quoted = (names: ReadonlyArray<string>): string => {
  const shown = names.slice(0, MOST).map((name) => `"${name}"`)
  return `${shown.join(", ")}${names.length > MOST ? ` and ${names.length - MOST} more` : ""}`
}

/** True if the daemon does not know the caller's project: none of the items belongs to it. */
export const isUnstarted = (all: ReadonlyArray<Named>, config: string | null): config is string =>
  config !== null && !all.some(({ conversation }) => isOf(config, conversation))

export const ambiguous = (name: string, kind: string, things: ReadonlyArray<Named>): Unclear => ({
  message: `"${name}" matches ${things.length} ${kind}s, so nothing was done.`,
  remedy: `Use one of these names: ${things
    .slice(0, MOST)
    .map(({ called }) => called)
    .join(", ")}`
})

const nearest = (all: ReadonlyArray<Named>, name: string): ReadonlyArray<string> => {
  const spelled = new Map(all.flatMap(({ called, name }) => [[called, called] as const, [bare(name), called] as const]))
  const found = didYouMean(name, [...spelled.keys()])
  return found === undefined ? [] : [spelled.get(found)!]
}

const unknown = (
  all: ReadonlyArray<Named>,
  kind: Kind,
  names: ReadonlyArray<string>,
  config: string | null
): Unclear => {
  const whole = names.filter((name) => all.some(({ project }) => project === name))
  const near = names.flatMap((name) => (isPattern(name) ? [] : nearest(all, name)))
  const meant =
    whole[0] === undefined
      ? near.length === 0
        ? atFolder(all, names[0]!, config)
        : `Did you mean ${quoted(near)}? `
      : `${whole[0]} is a project. For all its items, use the pattern '${whole[0]}/*'. `
  return {
    message: `No ${kind} is called ${quoted(names)}, so nothing was done.`,
    remedy: `${meant}List all names: ${LISTED[kind]}`
  }
}

const unlabelled = (all: ReadonlyArray<Named>, kind: Kind, labels: ReadonlyArray<string>): Unclear => {
  const known = [...new Set(all.flatMap(({ labels = [] }) => labels))].toSorted()
  const near = labels.flatMap((label) => didYouMean(label, known) ?? [])
  return {
    message: `None of these ${kind}s has the ${labels.length === 1 ? "label" : "labels"} ${quoted(labels)}, so nothing was done.`,
    remedy:
      known.length === 0
        ? `Add labels to agents in agentd.jsonc: "labels": [${quoted(labels)}]`
        : near.length > 0 && !labels.every((label) => known.includes(label))
          ? `Did you mean ${quoted(near)}? Known labels: ${known.slice(0, MOST).join(", ")}`
          : `List all labels: agentd ps --by label`
  }
}

/** The error if a name, project or label matches no item of a list; a pattern may match none. */
export const absent = (
  all: ReadonlyArray<Named>,
  { labels, names, project }: Targets & { readonly project: string | undefined },
  config: string | null
): Unclear | undefined => {
  const lost = names.filter((name) => !isPattern(name) && listed(all, name, config).length === 0)
  if (lost.length > 0) {
    const near = lost.flatMap((name) => nearest(all, name))
    return {
      message: `Nothing in the list is called ${quoted(lost)}.`,
      remedy: `${near.length === 0 ? atFolder(all, lost[0]!, config) : `Did you mean ${quoted(near)}? `}List everything: agentd ps --all`
    }
  }
  const projects = [...new Set(all.flatMap((one) => (one.project === "" ? [] : [one.project])))].toSorted()
  if (project !== undefined && !isPattern(project) && !projects.includes(project)) {
    const near = didYouMean(project, projects)
    return {
      message: `Nothing in the list belongs to a project "${project}".`,
      remedy: `${near === undefined ? "" : `Did you mean "${near}"? `}List all projects: agentd project ls`
    }
  }
  const known = new Set(all.flatMap((one) => one.labels ?? []))
  const odd = labels.filter((label) => !known.has(label))
  if (odd.length === 0) return undefined
  const near = odd.flatMap((label) => didYouMean(label, [...known]) ?? [])
  return {
    message: `No agent has the label ${quoted(odd)}.`,
    remedy: `${near.length === 0 ? "" : `Did you mean ${quoted(near)}? `}List all labels: agentd ps --by label`
  }
}

/** A sentence for a path where a name is expected; "" if no project lies there. */
const atFolder = (all: ReadonlyArray<Named>, path: string, config: string | null): string => {
  const last = path.split("/").findLast((part) => part !== "" && part !== CONFIG_NAME)
  const found = all.find(({ conversation, project }) =>
    /^\.?$/.test(last ?? "") ? config !== null && isOf(config, conversation) : path.includes("/") && project === last
  )?.project
  return found === undefined ? "" : `Use the project's name, not a path: ${found}, or '${found}/*' for its agents. `
}

const named = <A extends Named>(all: ReadonlyArray<A>, kind: Kind, name: string, config: string | null) => {
  const found = exact(all, name, config)
  return found.length > 0 ? found : all.filter(({ called }) => BY_BEGINNING.has(kind) && called.startsWith(name))
}

/**
 * The items to which the names refer, without duplicates, in the order of the names. Without names: all items with the
 * labels.
 */
export const resolve = <A extends Named>(
  all: ReadonlyArray<A>,
  kind: Kind,
  { labels, names }: Targets,
  config: string | null
): ReadonlyArray<A> | Unclear => {
  const labelled = all.filter((one) => isLabelled(one, labels))
  if (labelled.length === 0 && labels.length > 0) return unlabelled(all, kind, labels)
  if (names.length === 0) return labelled
  const found = names.map((name) => ({
    name,
    things: isPattern(name) ? all.filter((one) => means(name, one)) : named(all, kind, name, config)
  }))
  const lost = found.filter(({ things }) => things.length === 0)
  const own = lost.find(({ name }) => kind === "agent" && !name.includes("/") && !isPattern(name))
  if (own !== undefined && isUnstarted(all, config)) return unstarted(config, own.name)
  if (lost.length > 0) {
    return unknown(
      all,
      kind,
      lost.map(({ name }) => name),
      config
    )
  }
  const several = found.find(({ name, things }) => !isPattern(name) && things.length > 1)
  if (several !== undefined) {
    return ambiguous(several.name, kind, several.things)
  }
  const meant = [...new Set(found.flatMap(({ things }) => things))].filter((one) => isLabelled(one, labels))
  return meant.length > 0 ? meant : unlabelled(all, kind, labels)
}
