/**
 * ClaudePermissions: the permissions in Claude Code's own settings, and what agentd would make of each. Claude Code
 * decides by them before it asks agentd, except while a rule of agentd denies or asks: then it asks about every call.
 */
import { Config, Effect, FileSystem, Option } from "effect"
import { join } from "node:path"
import type { RuleEffect, RuleSubject } from "../../approvals/Rule.ts"
import { subjectWords } from "../../approvals/Rule.ts"
import { faultOf } from "../../approvals/RuleFault.ts"
import * as Account from "../../config/Account.ts"
import * as Jsonc from "../../config/Jsonc.ts"

export interface Permission {
  readonly file: string
  readonly effect: RuleEffect
  /** As in the settings: `Bash(npm run test:*)`. */
  readonly entry: string
  /** The rule of agentd with the same words, and how it differs. */
  readonly differs: string
}

const EFFECTS: ReadonlyArray<RuleEffect> = ["allow", "ask", "deny"]

const FORM = /^(\w[\w-]*)(?:\((.*)\))?$/s

/** The rule of agentd with the same words; undefined if agentd has no such rule. */
export const subjectOf = (entry: string): RuleSubject | undefined => {
  const [, tool = "", text] = FORM.exec(entry) ?? []
  if (tool === "Bash" && text !== undefined) return { command: text.replace(/(?::\*| \*)$/, " **") }
  if (tool === "WebFetch" && text?.startsWith("domain:") === true)
    return { url: `https://${text.slice("domain:".length)}/*` }
  const path = text?.replace(/^\.\//, "")
  if (path !== undefined && tool === "Read") return { read: path }
  if (path !== undefined && (tool === "Edit" || tool === "Write")) return { write: path }
  return text === undefined && tool !== "" && tool !== "Bash" ? { tool } : undefined
}

/** How an entry differs from agentd's rule with the same words. */
export const differenceOf = (effect: RuleEffect, entry: string): string => {
  if (effect !== "allow") return `Claude Code ${effect === "deny" ? "denies" : "asks about"} it by itself`
  const subject = subjectOf(entry)
  if (subject === undefined) return "agentd has no such rule"
  const fault = faultOf(effect, subject)
  if (fault !== undefined) return `wider than any rule of agentd: ${fault}`
  const words = subjectWords(subject)
  return "command" in subject && words.endsWith("**")
    ? `wider than agentd's "${words}": it covers any options, and agentd's only plain words`
    : `as agentd's "${words}"`
}

const entriesIn = (text: string, file: string): ReadonlyArray<Permission> => {
  const permissions = Jsonc.read(text).root?.members?.get("permissions")?.node
  return EFFECTS.flatMap((effect) =>
    (permissions?.members?.get(effect)?.node.items ?? []).flatMap(({ value }) =>
      typeof value === "string" ? [{ file, effect, entry: value, differs: differenceOf(effect, value) }] : []
    )
  )
}

/** The permissions of the user's and the project's settings. A file that cannot be read has none. */
export const read = Effect.fnUntraced(function* (root: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* Effect.orElseSucceed(Config.option(Config.String("CLAUDE_CONFIG_DIR")), () =>
    Option.none<string>()
  )
  const files = [
    join(
      Option.getOrElse(folder, () => join(Account.home(), ".claude")),
      "settings.json"
    ),
    ...(root === undefined ? [] : ["settings.json", "settings.local.json"].map((name) => join(root, ".claude", name)))
  ]
  const found = yield* Effect.forEach(files, (file) =>
    Effect.match(fs.readFileString(file), { onFailure: () => [], onSuccess: (text) => entriesIn(text, file) })
  )
  return found.flat()
})
