/** RuleFiles: reads the rules of the config files: of the project of this folder, and the user's own. */
import { Effect } from "effect"
import { basename } from "node:path"
import { type Rule, subjectWords } from "../../approvals/Rule.ts"
import * as ConfigFile from "../../config/ConfigFile.ts"
import { type KeptRule, ofProject, ofUser } from "../../config/RulesInForce.ts"
import { Invocation } from "../parse/Invocation.ts"

/** A rule with the absolute path of its file. */
export interface FiledRule extends KeptRule {
  readonly file: string
  readonly line: number
}

export interface RuleFiles {
  /** The project of this folder; undefined if there is none. */
  readonly project: ConfigFile.Project | undefined
  readonly kept: ReadonlyArray<FiledRule>
  /** The text of each file. A file that does not exist has no text. */
  readonly texts: ReadonlyMap<string, string>
}

const filed =
  (file: string) =>
  (kept: KeptRule): FiledRule => ({ ...kept, file, line: Number(kept.rule.place.at.slice(basename(file).length + 1)) })

export const read = Effect.gen(function* () {
  const { caller, paths } = yield* Invocation
  const { userConfig } = paths
  const user = yield* ConfigFile.readUser(userConfig)
  const own = ofUser(user, userConfig).map(filed(userConfig))
  const texts = new Map([[userConfig, user.text]])
  if (caller.config === null) return { project: undefined, kept: own, texts } satisfies RuleFiles
  const project = yield* ConfigFile.read(caller.config)
  texts.set(caller.config, project.text)
  const kept = [...ofProject(project).map(filed(caller.config)), ...own]
  return { project: project.config, kept, texts } satisfies RuleFiles
})

/** The kept rule that a decision rests on. */
export const keptAs = (rule: Rule, kept: ReadonlyArray<FiledRule>): FiledRule | undefined =>
  kept.find((one) => one.rule === rule)

/** A rule as scripts get it. */
export const ruleForm = ({ file, line, rule }: FiledRule) => ({
  effect: rule.effect,
  words: subjectWords(rule.subject),
  file,
  line
})
