/**
 * `agentd approvals test COMMAND`: decides about a command as the daemon would, and shows each part with its reason.
 *
 * Guarantees: nothing runs, and no daemon is needed. The rules are those of the config files as they are now, so a
 * change that waits for trust counts.
 */
import { Effect } from "effect"
import { decide, type Decision, type PartVerdict, type Setting, type Verdict } from "../../approvals/Decision.ts"
import { type Rule, subjectWords } from "../../approvals/Rule.ts"
import { isConfined } from "../../agents/actors/Approval.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import { didYouMean } from "../../config/DidYouMean.ts"
import { rulesOf } from "../../config/RulesInForce.ts"
import { isBare } from "../../runs/GitFolders.ts"
import { visible } from "../../domain/VisibleText.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { type Colour, paint, table } from "../render/Output.ts"
import { type FiledRule, keptAs, read, ruleForm, type RuleFiles } from "./RuleFiles.ts"

export interface Input {
  readonly command: string
  readonly agent: string | undefined
}

const colours: { readonly [verdict in Verdict]: Colour } = { run: "green", ask: "yellow", deny: "red" }

/** The name under which an agent's program calls its shell, if it is always the same. */
const SHELLS: { readonly [type in AgentConfig["backend"]["type"]]?: string } = {
  claude: "Bash",
  codex: "exec_command",
  model: "shell"
}

const configOf = ({ project }: RuleFiles, agent: string | undefined) => {
  const agents = project?.agents ?? {}
  if (agent === undefined || Object.hasOwn(agents, agent)) return Effect.succeed(agents[agent ?? ""])
  const meant = didYouMean(agent, Object.keys(agents))
  return Effect.fail(
    new VerbFailed({
      message:
        project === undefined
          ? "There is no agentd.jsonc in this folder or above it, so there are no agents."
          : `There is no agent "${visible(agent)}" in ${project.path}.${meant === undefined ? "" : ` Did you mean "${meant}"?`}`,
      remedy: project === undefined ? "Go to the project's folder." : `Its agents: ${Object.keys(agents).join(", ")}`,
      exitCode: ExitCode.usage
    })
  )
}

const settingOf = (rules: ReadonlyArray<Rule>, root: string | undefined, config: AgentConfig | undefined): Setting => ({
  mode: config?.approvals.mode ?? "auto",
  inside: config?.approvals.inside ?? "ask",
  confined: config !== undefined && isConfined(config),
  rules,
  ...(root === undefined ? {} : { root, isBare: (folder: string) => isBare(root, folder) })
})

const formOf = ({ offers, parts, reason, rule, verdict }: Decision, kept: ReadonlyArray<FiledRule>) => {
  const named = (one: Rule | undefined) => {
    const found = one === undefined ? undefined : keptAs(one, kept)
    return found === undefined ? null : ruleForm(found)
  }
  return {
    verdict,
    reason,
    rule: named(rule),
    parts: parts.map((part) => ({
      text: part.text,
      verdict: part.verdict,
      reason: part.reason,
      rule: named(part.rule)
    })),
    offers: offers.map(({ rules, words }) => ({
      words,
      rules: rules.map(({ effect, subject }) => ({ effect, words: subjectWords(subject) }))
    }))
  }
}

const line = (text: string): string => visible(text).replaceAll("\n", String.raw`\u{a}`)

const view = ({ offers, parts, reason, verdict }: Decision, colour: boolean): ReadonlyArray<string> => {
  const row = ({ reason, text, verdict }: PartVerdict) => [
    { text: verdict, colour: colours[verdict] },
    { text: line(text) },
    { text: line(reason) }
  ]
  return [
    `${paint(colour, colours[verdict], verdict)}: ${line(reason)}`,
    ...(parts.length === 0 ? [] : table(["", "PART", "WHY"], parts.map(row), { colour, columns: null })),
    ...(verdict !== "ask"
      ? []
      : offers.length === 0
        ? ["No rule can allow it: only this call, once."]
        : [`It would run with a rule: ${offers.map(({ words }) => line(words)).join(" | ")}`])
  ]
}

export const run = Effect.fnUntraced(function* ({ agent, command }: Input) {
  const { colour } = yield* Invocation
  const files = yield* read
  const { kept, project } = files
  const config = yield* configOf(files, agent)
  const rules = rulesOf({ agent: agent ?? "", root: project?.root ?? "" }, kept)
  const tool = config === undefined ? "" : (SHELLS[config.backend.type] ?? "")
  const decision = decide(
    { _tag: "Shell", tool, text: command, folders: [""] },
    settingOf(rules, project?.root, config)
  )
  yield* print(formOf(decision, kept), () => view(decision, colour))
})
