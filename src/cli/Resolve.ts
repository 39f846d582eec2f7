/**
 * Resolve: which things are meant by names and patterns. Pure.
 *
 * Guarantees: a name means one thing, first of the caller's own project; a pattern means all that fit it; a name that
 * means nothing, or several things, is told with what may be meant, and then nothing is.
 */
import { didYouMean } from "../config/ConfigProblem.ts"
import * as ProjectName from "../config/ProjectName.ts"
import { isLabelled, isPattern, means, type Named } from "./Choose.ts"
import type { Kind, Targets } from "./DeclaredVerb.ts"

/** Why nothing is meant. */
export interface Unclear {
  readonly message: string
  readonly remedy: string
}

/** Where a kind of things is listed. */
const LISTED: { readonly [kind in Kind]: string } = {
  agent: "agentd ps --all",
  channel: "agentd channel ls",
  conversation: "agentd conversation ls",
  goal: "agentd goal ls --all",
  project: "agentd project ls",
  session: "agentd plates"
}

/** Kinds whose ids may be cut short. */
const BY_BEGINNING: ReadonlySet<Kind> = new Set(["conversation", "project", "session"])

/** Most names that a refusal repeats. */
const MOST = 8

const quoted = (names: ReadonlyArray<string>): string => {
  const shown = names.slice(0, MOST).map((name) => `"${name}"`)
  return `${shown.join(", ")}${names.length > MOST ? ` and ${names.length - MOST} more` : ""}`
}

/** Whether it is of the project with that config. */
const isOf = ({ conversation }: Named, config: string | null): boolean => {
  if (config === null) return false
  const first = ProjectName.conversationId(config)
  return conversation === first || conversation.startsWith(`${first}.`)
}

/** A channel is typed with its sign or without. */
const bare = (name: string): string => name.replace(/^#/, "")

/** The things of that name: of the caller's own project before all others. */
const exact = <A extends Named>(
  all: ReadonlyArray<A>,
  kind: Kind,
  name: string,
  config: string | null
): ReadonlyArray<A> => {
  const own = all.filter((one) => isOf(one, config) && bare(one.name) === bare(name))
  if (own.length > 0) return own
  const whole = all.filter(({ called, conversation, name: own, project }) =>
    [called, `${project}/${bare(own)}`, `${conversation}/${bare(own)}`, bare(own)].includes(bare(name))
  )
  return whole.length > 0 ? whole : all.filter(({ called }) => BY_BEGINNING.has(kind) && called.startsWith(name))
}

const nearest = (all: ReadonlyArray<Named>, name: string): ReadonlyArray<string> => {
  const spelled = new Map(all.flatMap(({ called, name }) => [[called, called] as const, [bare(name), called] as const]))
  const found = didYouMean(name, [...spelled.keys()])
  return found === undefined ? [] : [spelled.get(found)!]
}

const unknown = (all: ReadonlyArray<Named>, kind: Kind, names: ReadonlyArray<string>): Unclear => {
  const whole = names.filter((name) => all.some(({ project }) => project === name))
  const near = names.flatMap((name) => (isPattern(name) ? [] : nearest(all, name)))
  const meant =
    whole[0] === undefined
      ? near.length === 0
        ? ""
        : `Did you mean ${quoted(near)}? `
      : `${whole[0]} is a project; all of it: '${whole[0]}/*'. `
  return {
    message: `No ${kind} is called ${quoted(names)}: nothing was done.`,
    remedy: `${meant}See which there are: ${LISTED[kind]}`
  }
}

const unlabelled = (all: ReadonlyArray<Named>, kind: Kind, labels: ReadonlyArray<string>): Unclear => {
  const known = [...new Set(all.flatMap(({ labels = [] }) => labels))].toSorted()
  const near = labels.flatMap((label) => didYouMean(label, known) ?? [])
  return {
    message: `No ${kind} that is meant has the ${labels.length === 1 ? "label" : "labels"} ${quoted(labels)}: nothing was done.`,
    remedy:
      known.length === 0
        ? `Give agents labels in agentd.jsonc: "labels": [${quoted(labels)}]`
        : near.length > 0 && !labels.every((label) => known.includes(label))
          ? `Did you mean ${quoted(near)}? There are: ${known.slice(0, MOST).join(", ")}`
          : `See which there are: agentd ps --by label`
  }
}

/** The meaning of all the names: each thing once, in the order in which they are named. */
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
    things: isPattern(name) ? all.filter((one) => means(name, one)) : exact(all, kind, name, config)
  }))
  const lost = found.filter(({ things }) => things.length === 0)
  if (lost.length > 0) {
    return unknown(
      all,
      kind,
      lost.map(({ name }) => name)
    )
  }
  const several = found.find(({ name, things }) => !isPattern(name) && things.length > 1)
  if (several !== undefined) {
    return {
      message: `"${several.name}" means ${several.things.length} ${kind}s: nothing was done.`,
      remedy: `Say which: ${several.things
        .slice(0, MOST)
        .map(({ called }) => called)
        .join(", ")}`
    }
  }
  const meant = [...new Set(found.flatMap(({ things }) => things))].filter((one) => isLabelled(one, labels))
  return meant.length > 0 ? meant : unlabelled(all, kind, labels)
}
