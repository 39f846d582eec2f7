/**
 * RulesInForce: the rules of config files, each with its place, and those that are in force for an agent. Pure.
 *
 * Guarantees: the line of a rule is its line in the text that the config was decoded from. The tools of
 * `approvals.always` are rules that ask, and those of `approvals.never` are rules that allow.
 */
import { basename } from "node:path"
import type { Rule, RuleEffect, RulePlace, RuleScope } from "../approvals/Rule.ts"
import type { UserConfig } from "./Config.ts"
import type { Project } from "./ConfigFile.ts"
import * as Jsonc from "./Jsonc.ts"
import type { Path } from "./JsoncEdit.ts"
import { type RuleEntry, ruleOf } from "./RuleConfig.ts"

/** A config file, decoded, with the text that it was decoded from. */
export interface Decoded<Config> {
  readonly config: Config
  readonly text: string
}

/** A rule of a config file. */
export interface KeptRule {
  readonly rule: Rule & { readonly place: RulePlace & { readonly at: string } }
  /** The value that is removed with the rule. */
  readonly path: Path
  /** The only agent that it is for. */
  readonly agent?: string
  /** The folder of the only project that it is for. */
  readonly root?: string
  readonly note?: string
}

interface Scope extends Pick<KeptRule, "agent" | "root"> {
  readonly scope: RuleScope
}

type Kept = (scope: Scope, path: Path, entries: ReadonlyArray<RuleEntry>) => ReadonlyArray<KeptRule>

/** Gives each entry of a list its place in a file. */
const keeping = (text: string, file: string): Kept => {
  const { root } = Jsonc.read(text)
  return ({ scope, ...only }, list, entries) =>
    entries.map((entry, index) => {
      const path = [...list, index]
      const { line } = Jsonc.position(text, root === undefined ? 0 : Jsonc.locate(root, path, false))
      const rule = { ...ruleOf(entry), place: { scope, at: `${basename(file)}:${line}` } }
      return { rule, path, ...only, ...(entry.note === undefined ? {} : { note: entry.note }) }
    })
}

const byTool =
  (effect: RuleEffect) =>
  (tool: string): RuleEntry => ({ [effect]: { tool } })

/** The rules of `agentd.jsonc`, in the order of the file's sections. */
export const ofProject = ({ config, text }: Decoded<Project>): ReadonlyArray<KeptRule> => {
  const kept = keeping(text, config.path)
  const { root } = config
  return [
    ...kept({ scope: "project", root }, ["approvals", "rules"], config.approvals.rules),
    ...Object.entries(config.agents).flatMap(([agent, { approvals }]) => {
      const scope = { scope: "agent", root, agent } as const
      const path = ["agents", agent, "approvals"]
      return [
        ...kept(scope, [...path, "rules"], approvals.rules),
        ...kept(scope, [...path, "always"], approvals.always.map(byTool("ask"))),
        ...kept(scope, [...path, "never"], approvals.never.map(byTool("allow")))
      ]
    })
  ]
}

/** The rules of the user's own config. `path`: the path of its file. */
export const ofUser = (
  { config: { approvals }, text }: Decoded<Pick<UserConfig, "approvals">>,
  path: string
): ReadonlyArray<KeptRule> => {
  const kept = keeping(text, path)
  return [
    ...kept({ scope: "user" }, ["approvals", "rules"], approvals.rules),
    ...Object.entries(approvals.projects).flatMap(([root, { agents, rules }]) => [
      ...kept({ scope: "user project", root }, ["approvals", "projects", root, "rules"], rules),
      ...Object.entries(agents).flatMap(([agent, own]) =>
        kept({ scope: "user agent", root, agent }, ["approvals", "projects", root, "agents", agent, "rules"], own.rules)
      )
    ])
  ]
}

/**
 * The rules of both files that are in force for an agent of the project with this folder. `agent`: its name, with the
 * names of the agents above a sub-agent, whose rules hold for it, too.
 */
export const rulesOf = (
  { agent, root }: { readonly agent: string | ReadonlyArray<string>; readonly root: string },
  kept: ReadonlyArray<KeptRule>
): ReadonlyArray<Rule> => {
  const names = [agent].flat()
  return kept.flatMap((one) =>
    (one.agent === undefined || names.includes(one.agent)) && (one.root ?? root) === root ? [one.rule] : []
  )
}
