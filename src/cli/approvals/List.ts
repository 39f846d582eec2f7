/**
 * `agentd approvals ls`: lists the rules of the config files, when a call last met each one, and what no rule sees. The
 * daemon need not run. If it runs, the rules that a person gave for a run are listed, too.
 */
import { Clock, Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { RulePlace } from "../../approvals/Rule.ts"
import { unseenBy } from "../../agents/run/Unseen.ts"
import { bound } from "../../board/ReachReport.ts"
import { rulesOf as inForce } from "../../config/RulesInForce.ts"
import { visible } from "../../domain/VisibleText.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { age, paint, plain, table } from "../render/Output.ts"
import * as ClaudePermissions from "./ClaudePermissions.ts"
import { type FiledRule, read, ruleForm, type RuleFiles } from "./RuleFiles.ts"
import * as RuleUse from "./RuleUse.ts"

interface Seen {
  readonly files: RuleFiles
  readonly use: RuleUse.RuleUse | undefined
  readonly claude: ReadonlyArray<ClaudePermissions.Permission>
  /** Rules that a person gave for a run of an agent. Empty without a daemon. */
  readonly runs: ReadonlyArray<{ readonly agent: string; readonly words: string }>
  /** The calls of each agent that rules see, and sentences about those that no rule sees. */
  readonly sees: ReadonlyArray<{
    readonly agent: string
    readonly calls: string
    readonly unseen: ReadonlyArray<string>
  }>
  readonly now: number
}

const SCOPES: { readonly [scope in RulePlace["scope"]]: string } = {
  project: "everyone here",
  agent: "everyone here",
  user: "you, in all projects",
  "user project": "you, in",
  "user agent": "you, in",
  run: "one run"
}

/** True if the rule is for an agent that this folder's project does not have, such as a renamed one. */
const isLost = ({ agent, root }: FiledRule, { project }: RuleFiles): boolean =>
  agent !== undefined && root === project?.root && !Object.hasOwn(project?.agents ?? {}, agent)

const scopeOf = (one: FiledRule, files: RuleFiles): string => {
  const { agent, root, rule } = one
  const where = rule.place.scope.startsWith("user ") ? ` ${root}` : ""
  const only = agent === undefined ? "" : `, for ${agent}${isLost(one, files) ? " (no such agent)" : ""}`
  return `${SCOPES[rule.place.scope]}${where}${only}`
}

const usedOf = (one: FiledRule, { now, use }: Seen): string => {
  if (use === undefined) return "not known"
  const at = use.last.get(one)
  return at === undefined ? `not in ${age(use.read)}` : `${age(Math.max(0, now - at))} ago`
}

const rulesOf = (seen: Seen, colour: boolean, columns: number | null): ReadonlyArray<string> => {
  const { files, use } = seen
  if (files.kept.length === 0) return ["There are no rules. A question about a call offers rules: agentd approve"]
  const rows = files.kept.map((one) => {
    const { effect, words } = ruleForm(one)
    return [scopeOf(one, files), usedOf(one, seen), one.rule.place.at, `${effect} ${words}`].map((text) => ({
      text: plain(text)
    }))
  })
  const unused = use?.isWhole === true ? files.kept.filter((one) => !use.last.has(one)) : []
  return [
    ...table(["FOR", "LAST USED", "PLACE", "RULE"], rows, { colour, columns, room: 40, spare: ["FOR"] }),
    ...(unused.length === 0
      ? []
      : [`No call has met ${unused.length} of them in 60 days. To remove one: agentd approvals rm PLACE`])
  ]
}

const view = (seen: Seen, colour: boolean, columns: number | null): ReadonlyArray<string> => {
  const { claude, runs, sees } = seen
  const dim = (text: string) => paint(colour, "dim", text)
  return [
    ...rulesOf(seen, colour, columns),
    ...(runs.length === 0 ? [] : [dim("For one run; these rules end with it:")]),
    ...runs.map(({ agent, words }) => plain(`  one run of ${agent}: allow ${words}`)),
    ...(sees.length === 0 ? [] : [dim("What rules see:")]),
    ...sees.flatMap(({ agent, calls, unseen }) =>
      [calls, ...unseen].map((text) => `  ${plain(agent)}: ${plain(text)}`)
    ),
    ...(claude.length === 0
      ? []
      : [
          dim("Claude Code's own permissions. What they allow is allowed by Claude's own settings, not seen here,"),
          dim("unless a rule denies or asks: then Claude Code asks about it, too.")
        ]),
    ...claude.map(({ differs, effect, entry, file }) =>
      visible(`  ${effect} ${entry} (${file}): ${differs}`).replaceAll("\n", " ")
    )
  ]
}

const formOf = ({ claude, files, runs, sees, use }: Seen) => ({
  rules: files.kept.map((one) => ({
    ...ruleForm(one),
    scope: one.rule.place.scope,
    agent: one.agent ?? null,
    project: one.root ?? null,
    lost: isLost(one, files),
    note: one.note ?? null,
    lastUsed: use?.last.get(one) ?? null,
    unused: use?.isWhole === true && !use.last.has(one)
  })),
  runs: runs.map(({ agent, words }) => ({ effect: "allow", words, scope: "run", agent })),
  sees,
  claude
})

const ofRuns = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const agents = yield* call(paths.socket, (client) => client.Agents())
  return agents.flatMap(({ agent, project, runRules = [] }) =>
    runRules.map((words) => ({ agent: `${project}/${agent}`, words }))
  )
}).pipe(Effect.orElseSucceed(() => []))

export const run = Effect.fnUntraced(function* () {
  const { colour, columns } = yield* Invocation
  const files = yield* read
  const seen: Seen = {
    files,
    use: yield* RuleUse.of(files),
    runs: yield* ofRuns,
    claude: yield* ClaudePermissions.read(files.project?.root),
    sees: Object.entries(files.project?.agents ?? {}).map(([agent, config]) => {
      const rules = inForce({ agent, root: files.project?.root ?? "" }, files.kept)
      return { agent, calls: bound(config), unseen: unseenBy(config, rules) }
    }),
    now: yield* Clock.currentTimeMillis
  }
  yield* print(formOf(seen), () => view(seen, colour, columns))
})
