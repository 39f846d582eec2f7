/** Commands: generates docs/reference/commands.md from the program's own help; ManPages uses the same help. */
import { Effect, Option } from "effect"
import { CliConfig, CliOutput, Command, type HelpDoc } from "effect/cli"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { cliConfig, root } from "../../src/cli/parse/Cli.ts"
import { modesOf } from "../../src/cli/parse/Renamed.ts"
import { Entry } from "../../src/cli/parse/Invocation.ts"
import { meanings } from "../../src/cli/parse/ExitCode.ts"
import { cell, table } from "./Markdown.ts"

/** A command's help, and the words that name it: `["agentd", "goal", "show"]`. */
export interface Described {
  readonly path: ReadonlyArray<string>
  readonly help: HelpDoc.HelpDoc
  /** The help of the command's modes, such as `agentd log --text`. */
  readonly modes: ReadonlyArray<HelpDoc.HelpDoc>
}

/** An entry without a daemon: help starts none. */
const entry: Entry["Service"] = {
  command: [],
  env: {},
  daemon: () => Effect.die("help starts no daemon"),
  foreground: () => Effect.die("help runs no program")
}

/** The help of a command, from its parser. */
const helpOf = Effect.fnUntraced(function* (path: ReadonlyArray<string>) {
  let help: HelpDoc.HelpDoc | undefined
  const presenter: CliOutput.Presenter = {
    present: (event) => Effect.sync(() => void (help = "helpDoc" in event ? event.helpDoc : help))
  }
  yield* Command.runWith(root, { version: "0" })([...path.slice(1), "--help"]).pipe(
    Effect.ignore,
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provideService(CliConfig.CliConfig, cliConfig),
    Effect.provideService(Entry, entry)
  )
  if (help === undefined) throw new Error(`${path.join(" ")} has no help`)
  return help
})

/** Sorted by name, because the order in which a module exports its verbs can differ. */
const namesOf = ({ commands }: HelpDoc.SubcommandGroupDoc): ReadonlyArray<string> =>
  commands.map(({ name }) => name).toSorted()

const below = ({ help, path }: Described): ReadonlyArray<ReadonlyArray<string>> =>
  (help.subcommands ?? []).flatMap((group) => namesOf(group).map((name) => [...path, name]))

const walk = (path: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Described>> =>
  Effect.gen(function* () {
    const modes = yield* Effect.forEach(modesOf(path.slice(1).join(" ")), (mode) => helpOf(["agentd", mode]))
    const here = { path, help: yield* helpOf(path), modes }
    const rest = yield* Effect.forEach(below(here), walk)
    return [here, ...rest.flat()]
  }).pipe(Effect.provide(NodeServices.layer))

/** Every command of the program, each after its parent command. */
export const all: Effect.Effect<ReadonlyArray<Described>> = walk(["agentd"])

/** The groups in the help of `agentd`: their titles, and the verbs of each. */
export const groupsOf = (described: ReadonlyArray<Described>) =>
  (described[0]!.help.subcommands ?? []).map((group) => ({
    title: group.group ?? "Commands",
    verbs: namesOf(group)
  }))

/** A flag with its aliases and type: `--label`, `-l` TEXT. */
export const flagOf = ({ aliases, name, type }: HelpDoc.FlagDoc): string =>
  [`--${name}`, ...aliases.map((alias) => (alias.startsWith("-") ? alias : `-${alias}`))]
    .map((form) => `\`${form}\``)
    .join(", ") + (type === "boolean" ? "" : ` ${cell(type)}`)

const argumentOf = ({ name, required, variadic }: HelpDoc.ArgDoc): string =>
  `\`${name}\`${variadic ? " …" : ""}${required ? "" : ", may be left out"}`

const said = Option.getOrElse(() => "")

const partsOf = (help: HelpDoc.HelpDoc): ReadonlyArray<string> => {
  const rows = [
    ...(help.args ?? []).map((one) => [argumentOf(one), cell(said(one.description))]),
    ...help.flags.map((flag) => [flagOf(flag), cell(said(flag.description))])
  ]
  const examples = (help.examples ?? []).map(({ command, description = "" }) => [
    `\`${cell(command)}\``,
    cell(description)
  ])
  return [
    `${help.description}.`,
    `\`${help.usage}\``,
    ...(rows.length === 0 ? [] : [table(["given", "is"], rows)]),
    ...(examples.length === 0 ? [] : [table(["example", "does"], examples)])
  ]
}

const section = ({ help, modes, path }: Described): string => {
  const commands = (help.subcommands ?? []).flatMap(namesOf)
  const links = commands.map((name) => `[\`${name}\`](#${[...path, name].join("-")})`)
  const [description, usage, ...tables] = partsOf(help)
  return [
    `${"#".repeat(path.length + 1)} ${path.join(" ")}`,
    description,
    usage,
    ...(links.length === 0 ? [] : [`Commands: ${links.join(", ")}`]),
    ...tables,
    ...modes.flatMap(partsOf)
  ].join("\n\n")
}

const contents = (described: ReadonlyArray<Described>): string =>
  groupsOf(described)
    .map(({ title, verbs }) => `- **${title}**: ${verbs.map((verb) => `[${verb}](#agentd-${verb})`).join(", ")}`)
    .join("\n")

/** The verbs under the titles of their groups, each followed by its own commands. */
const chapters = (described: ReadonlyArray<Described>): string =>
  groupsOf(described)
    .map(({ title, verbs }) => {
      const here = described.filter(({ path }) => verbs.includes(path[1]!))
      return `## ${title}\n\n${here.map(section).join("\n\n")}`
    })
    .join("\n\n")

export const render = Effect.map(all, (described) => {
  const [first] = described
  const globals = (first!.help.globalFlags ?? []).map((flag) => [flagOf(flag), cell(said(flag.description))])
  return `# Commands

Generated by \`npm run docs\` from the program's own help: edit the verbs in \`src/cli\`, not this file.

\`agentd\` alone opens the board on a terminal. \`agentd VERB --help\` says the same as this page.

${contents(described)}

## Flags of all commands

${table(["flag", "does"], globals)}

## Exit codes

${table(
  ["code", "means"],
  meanings.map(([code, meaning]) => [String(code), meaning])
)}

${chapters(described)}
`
})
