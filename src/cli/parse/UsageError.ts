/**
 * UsageError: turns a command line that cannot be parsed into an error whose remedy is a command line that can. Pure.
 */
import { type CliError, type CliOutput, type Command, Completions } from "effect/cli"
import { didYouMean } from "../../config/DidYouMean.ts"
import { shellWord } from "../../config/ShellWord.ts"
import { ExitCode } from "./ExitCode.ts"
import { OLD, present } from "./Renamed.ts"
import * as VerbAliases from "./VerbAliases.ts"

type Wrong = Extract<Parameters<CliOutput.Presenter["present"]>[0], { readonly _tag: "InvalidInvocation" }>

/** The framework's message, without its suggestions, which for a long flag are any short ones. */
const messageOf = ({ message }: { readonly message: string }): string =>
  message.split("\n\n  Did you mean")[0]!.replace("a string representing a finite number", "a number")

/** The word that no command has: a subcommand, a flag or an argument; undefined for any other error. */
const unknownIn = (error: CliError.CliError, { commandPath, helpDoc }: Wrong, args: ReadonlyArray<string>) => {
  switch (error._tag) {
    case "UnknownSubcommand":
      return error.subcommand
    case "UnrecognizedOption":
      return error.option
    case "UnexpectedArgument": {
      // a verb with a text argument and subcommands has taken an unknown subcommand for the text
      const rest = args.slice(args.indexOf(commandPath.at(-1) ?? "") + 1)
      return (helpDoc.subcommands ?? []).length === 0 ? undefined : rest.find((arg) => !arg.startsWith("-"))
    }
    default:
      return undefined
  }
}

/** The words that follow the verb and are neither flags nor the wrong word; the value of a wrong flag comes last. */
const wordsOf = (path: ReadonlyArray<string>, word: string, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const from = args.indexOf(path.at(-1) ?? "") + 1
  const at = args.findIndex((arg, n) => n >= from && arg.split("=")[0] === word)
  const [, given] = /^--[^=]+=(.*)$/.exec(args[at] ?? "") ?? []
  const isValue = (n: number) => word.startsWith("-") && n === at + 1 && given === undefined
  const plain = args.flatMap((arg, n) => (n < from || n === at || arg.startsWith("-") || isValue(n) ? [] : [arg]))
  const value = given ?? (word.startsWith("-") ? args[at + 1] : undefined)
  return value === undefined || value.startsWith("-") ? plain : [...plain, value]
}

const knownTo = ({ helpDoc: { flags, globalFlags = [], subcommands = [] } }: Wrong) => ({
  flags: [...flags, ...globalFlags].map(({ name }) => `--${name.replace(/^--/, "")}`),
  subcommands: subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))
})

const lineOf = (path: ReadonlyArray<string>, words: ReadonlyArray<string>) =>
  [...path, ...words.map(shellWord)].join(" ")

/** The corrected command line for a misspelled subcommand, or the long flag that was probably meant. */
const near = (word: string, wrong: Wrong, words: ReadonlyArray<string>) => {
  const isFlag = word.startsWith("--")
  const { flags, subcommands } = knownTo(wrong)
  const found = word.length < 4 ? undefined : didYouMean(word, isFlag ? flags : subcommands)
  return found === undefined
    ? undefined
    : `Did you mean "${found}"? ${isFlag ? `See ${wrong.commandPath.join(" ")} --help` : `Use: ${lineOf([...wrong.commandPath, found], words)}`}`
}

/** The arguments after the words of the command. */
const after = ({ commandPath }: Wrong, args: ReadonlyArray<string>) =>
  args.slice(args.indexOf(commandPath.at(-1) ?? "") + 1)

/** Flags of other programs for the name of a thing, after which the name is right. */
const NAMING = /^-(u|n|p|-agent|-agents|-name|-names|-unit|-id|-to|-session|-goal|-channel)$/

/** The command line without a flag that the command does not have; what follows a long flag is its value. */
const without = (flag: string, wrong: Wrong, args: ReadonlyArray<string>): string => {
  const all = after(wrong, args)
  const isIt = (arg: string) =>
    arg.split("=")[0] === flag || (/^-[a-zA-Z]{2,}$/.test(arg) && flag.length === 2 && arg.includes(flag[1]!))
  const at = all.findIndex(isIt)
  const isValued = flag.startsWith("--") && !all[at]?.includes("=") && !NAMING.test(flag)
  const left = all.filter((arg, n) => n !== at && !(isValued && n === at + 1 && !arg.startsWith("-")))
  return lineOf(wrong.commandPath, left)
}

/** Flags that may stand before the verb; true for those with a value. */
const GLOBAL: { readonly [flag: string]: boolean } = {
  "--all-hosts": false,
  "--host": true,
  "--json": false,
  "--state": true
}

/** The corrected command line if the unknown flag stands before the verb; undefined if it does not. */
const early = (unknown: string, args: ReadonlyArray<string>, root: Command.Command.Any): string | undefined => {
  const { subcommands } = Completions.fromCommand(root)
  const verbs = [...subcommands.map(({ name }) => name), ...OLD]
  const at = args.findIndex((arg, n) => verbs.includes(arg) && GLOBAL[args[n - 1] ?? ""] !== true)
  const before = args.slice(0, Math.max(at, 0))
  if (!before.some((arg) => arg.split("=")[0] === unknown)) return undefined
  const [verb = "", ...others] = present(args.slice(at)).args
  const known = new Map(Object.entries(GLOBAL))
  for (const { aliases, name, type } of subcommands.find((one) => one.name === verb)?.flags ?? [])
    for (const flag of [`--${name}`, ...aliases.map((alias) => `-${alias.replace(/^-+/, "")}`)])
      known.set(flag, type._tag !== "Boolean")
  const flags = before.flatMap((arg, n) => {
    const isValued = known.get(arg.split("=")[0]!)
    return isValued === undefined ? [] : isValued && !arg.includes("=") ? [arg, before[n + 1] ?? ""] : [arg]
  })
  const folder = before.findIndex((arg) => /^(-C|--directory|--cwd|--chdir|--workdir)$/.test(arg))
  const go = folder < 0 ? "" : `cd ${shellWord(before[folder + 1] ?? ".")} && `
  return `Flags come after the verb. Use: ${go}${lineOf(["agentd"], [verb, ...others, ...flags])}`
}

/** The command that was probably meant; undefined if none is known. */
const meantBy = (error: CliError.CliError, wrong: Wrong, args: ReadonlyArray<string>): string | undefined => {
  const path = wrong.commandPath.slice(1)
  const word = unknownIn(error, wrong, args)
  const words = wordsOf(path, word ?? "", args)
  const context = { ...knownTo(wrong), words }
  const one = word === undefined ? undefined : (VerbAliases.meant(path, word, context) ?? near(word, wrong, words))
  if (one !== undefined) return one
  if (error._tag === "UnexpectedArgument")
    return VerbAliases.extra(path, error.arguments, { ...context, words: wordsOf(path, "", args) })
  if (error._tag === "InvalidValue") return chosen(error, wrong, args)
  if (word === undefined) return undefined
  if (word.startsWith("-"))
    return `Leave it out: ${without(word, wrong, args)}. All flags: ${wrong.commandPath.join(" ")} --help`
  return path.length === 0
    ? VerbAliases.named(word, context)
    : `Its subcommands: ${context.subcommands.join(", ")}. More: ${wrong.commandPath.join(" ")} --help`
}

/** The command line with the value that was probably meant, of those that a flag or an argument takes. */
const chosen = ({ expected, value }: CliError.InvalidValue, wrong: Wrong, args: ReadonlyArray<string>) => {
  const found = didYouMean(
    value,
    [...expected.matchAll(/"([^"]+)"/g)].map(([, one]) => one!)
  )
  const all = after(wrong, args)
  return found === undefined || !all.includes(value)
    ? undefined
    : `Did you mean "${found}"? Use: ${lineOf(
        wrong.commandPath,
        all.map((arg) => (arg === value ? found : arg))
      )}`
}

/** An example of the command, with the flag of the error if there is one. */
const example = (error: CliError.CliError | undefined, { commandPath, helpDoc: { examples = [], usage } }: Wrong) => {
  const flag = error !== undefined && "option" in error ? `--${error.option}` : undefined
  const found = examples.find(({ command }) => flag !== undefined && command.includes(` ${flag} `)) ?? examples[0]
  return found === undefined
    ? `Usage: ${usage}. More: ${commandPath.join(" ")} --help`
    : `For example: ${found.command}. More: ${commandPath.join(" ")} --help`
}

/** The error for a command line: the verb, flag or value that was probably meant, or else an example of the verb. */
export const usage = (wrong: Wrong, args: ReadonlyArray<string>, root: Command.Command.Any) => {
  const [first] = wrong.errors
  // after an unknown verb, every further flag is unknown, too
  const errors = first?._tag === "UnknownSubcommand" ? [first] : wrong.errors
  const moved = first?._tag === "UnrecognizedOption" ? early(first.option, args, root) : undefined
  const remedy = moved ?? (first && meantBy(first, wrong, args))
  return {
    tag: first?._tag ?? "InvalidInvocation",
    code: "invalid" as const,
    message: (moved === undefined ? errors : errors.slice(0, 1)).map(messageOf).join("\n"),
    remedy: remedy ?? example(first, wrong),
    exitCode: ExitCode.usage
  }
}
