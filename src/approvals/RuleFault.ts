/**
 * RuleFault: why a rule is refused as it is written. Pure.
 *
 * Guarantees: a rule that would never decide a call, or that allows more than it seems to, has a fault. The text says
 * what is wrong and what to write instead.
 */
import { type CommandPattern, commandPattern } from "./CommandPattern.ts"
import { decide } from "./Decision.ts"
import { joined, pathEffect } from "./Paths.ts"
import { programNamed } from "./programs/Programs.ts"
import { readProgram } from "./programs/ReadProgram.ts"
import { literal } from "./Reading.ts"
import type { RuleEffect, RuleSubject } from "./Rule.ts"
import { quoted } from "./Parts.ts"
import { originOf } from "./RuleSet.ts"
import { matchesText } from "./Glob.ts"
import { FETCHERS, READERS, SEARCHERS, SHELLS, WRITERS } from "./ToolNames.ts"

const named = (pattern: string, tools: ReadonlyArray<ReadonlySet<string>>): string | undefined =>
  tools.flatMap((names) => [...names]).find((name) => matchesText(pattern, name))

/** A command that the rule must decide: `*` is the word `x`, and `**` is nothing. */
const sampleOf = ({ assignments, program, words }: CommandPattern): string =>
  [
    ...assignments.map((one) => `${one.slice(0, one.indexOf("=") + 1)}${quoted(one.slice(one.indexOf("=") + 1))}`),
    quoted(program),
    ...words.flatMap((word) =>
      word === "many" ? [] : word === "one" ? ["x"] : [word.globs ? word.text : quoted(word.text)]
    )
  ].join(" ")

/** Why a star of the rule stands for nothing, or for too much. */
const starFault = ({ program, words }: CommandPattern): string | undefined => {
  const texts = words.flatMap((word) => (word === "one" ? ["x"] : word === "many" ? [] : [word.text]))
  const { base, named, shape, star } = readProgram([program, ...texts].map(literal), [""])
  if (programNamed(program)?.is.has("sub") === true && shape.length === 1)
    return `it covers every ${program} command: name the subcommand, as in "${program} NAME **"`
  if (base?.kind === "unknown" && !star && shape.length <= 1 && words.length > 0)
    return `agentd does not know what the words of ${program} do, so no star can stand for them: write the words one by one`
  if (!star)
    return `${shape.join(" ")} runs, sends or removes what its words say, so no star can stand for them: write the words one by one`
  const first = words.findIndex((word) => typeof word === "string")
  const least = shape.length - 1 - (named ? 1 : 0)
  return first < least
    ? `its star comes before the subcommand of ${program}: name the subcommand, as in "${shape.join(" ")} **"`
    : undefined
}

const commandFault = (effect: RuleEffect, command: string): string | undefined => {
  const pattern = commandPattern(command)
  if (pattern === undefined)
    return 'it is not one simple command: write a program and its words, with "*" for one word, and "**" at the end for any plain words'
  const hasStar = pattern.words.some((word) => typeof word === "string")
  const star = effect === "allow" && hasStar ? starFault(pattern) : undefined
  if (star !== undefined) return star
  const rule = { effect, subject: { command }, place: { scope: "project", at: null } } as const
  const subject = { _tag: "Shell", tool: "", text: sampleOf(pattern), folders: [""] } as const
  const { reason, verdict } = decide(subject, { mode: "auto", rules: [rule] })
  if (verdict === (effect === "allow" ? "run" : effect)) return undefined
  return `it would never match (${reason}): name the program that really runs, and write words that may stand for options in quotes`
}

const pathFault = (effect: RuleEffect, access: "write" | "read", path: string): string | undefined => {
  const fixed = path.replaceAll("*", "x")
  if (path === "" || path.startsWith("~") || joined("", fixed) === undefined)
    return 'it reaches out of the work tree: write a path below it, such as "src/**"'
  if (joined("", path) !== path.replace(/\/$/, "") || path.endsWith("/"))
    return `write the path as "${joined("", path)}${path.endsWith("/") ? "/**" : ""}"`
  if (effect === "allow" && access === "write" && path.includes("*") && pathEffect(literal(fixed), [""], "writes"))
    return "no star can stand for a file that other programs run or trust, or for a secret: name the files one by one"
  return undefined
}

const urlFault = (url: string): string | undefined => {
  const origin = originOf(url)
  if (origin === undefined) return 'it is no address: write it as "https://docs.example/*"'
  if (origin.host.replace(/^\*\./, "").includes("*"))
    return 'a star in a host stands for its subdomains alone: "https://*.example.org/*"'
  return undefined
}

/** The fault of a rule, with its remedy; undefined if there is none. */
export const faultOf = (effect: RuleEffect, subject: RuleSubject): string | undefined => {
  if ("command" in subject) return commandFault(effect, subject.command)
  if ("write" in subject) return pathFault(effect, "write", subject.write)
  if ("read" in subject) return pathFault(effect, "read", subject.read)
  if ("url" in subject) return urlFault(subject.url)
  if (subject.tool === "" || /^\*+$/.test(subject.tool)) return "it names every tool: name the tools"
  const shell = effect === "allow" ? named(subject.tool, [SHELLS]) : undefined
  if (shell !== undefined) return `${shell} runs commands: allow the commands instead, as in { "allow": "npm test **" }`
  const known = named(subject.tool, [SHELLS, WRITERS, READERS, SEARCHERS, FETCHERS])
  if (subject.argument !== undefined && known !== undefined)
    return `the calls of ${known} are commands, files or addresses: name these instead of an argument, as in { "${effect}": { "write": "src/**" } }`
  return undefined
}
