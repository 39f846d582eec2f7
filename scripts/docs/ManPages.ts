/**
 * ManPages: generates agentd(1) from the program's own help, and agentd.jsonc(5) from the schemas of its files. The
 * package has them in dist/man, and npm links them from there.
 */
import { Effect, Option } from "effect"
import type { HelpDoc } from "effect/cli"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { meanings } from "../../src/cli/parse/ExitCode.ts"
import { VERSION } from "../../src/api/rpc/Version.ts"
import * as Commands from "./Commands.ts"
import * as Config from "./Config.ts"

/** Escapes a text for roff, so that no part of it is a request. */
export const roff = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1")

/** Escapes a text for roff, without Markdown's marks for code and links. */
const plain = (text: string): string => roff(text.replaceAll("`", "").replaceAll(/\[([^\]]+)\]\(#[^)]*\)/g, "$1"))
/** A text as an argument of a request, in quotes. */
const argument = (text: string): string => `"${roff(text).replaceAll('"', "\\(dq")}"`

const said = Option.getOrElse(() => "")
const entry = (term: string, text: string): string => `.TP\n${term}\n${text === "" ? "\\&" : plain(text)}`
const bold = (text: string): string => `\\fB${roff(text)}\\fR`

const head = (name: string, section: number, about: string): string =>
  `.TH ${argument(name.toUpperCase())} ${section} "" ${argument(`agentd ${VERSION}`)} "agentd"\n.SH NAME\n${roff(name)} \\- ${roff(about)}`

const flag = ({
  aliases,
  name,
  type
}: {
  readonly aliases: ReadonlyArray<string>
  readonly name: string
  readonly type: string
}) =>
  [`--${name}`, ...aliases.map((alias) => (alias.startsWith("-") ? alias : `-${alias}`))].map(bold).join(", ") +
  (type === "boolean" ? "" : ` \\fI${roff(type)}\\fR`)

const command = ({ help, modes, path }: Commands.Described): string =>
  [`.SS ${argument(path.join(" "))}`, ...[help, ...modes].map(usage)].join("\n.PP\n")

const usage = (help: HelpDoc.HelpDoc): string =>
  [
    bold(help.usage),
    ".PP",
    `${plain(help.description)}.`,
    ...(help.args ?? []).map(({ description, name }) => entry(`\\fI${roff(name)}\\fR`, said(description))),
    ...help.flags.map((one) => entry(flag(one), said(one.description))),
    ...(help.examples ?? []).map(({ command, description = "" }) => entry(bold(command), description))
  ].join("\n")

export const commands = Effect.map(Commands.all, (described) => {
  const [first, ...others] = described
  const globals = (first!.help.globalFlags ?? []).map((one) => entry(flag(one), said(one.description)))
  const parts = Commands.groupsOf(described).flatMap(({ title, verbs }) => [
    `.SH ${argument(title.toUpperCase())}`,
    ...others.filter(({ path }) => verbs.includes(path[1]!)).map(command)
  ])
  return [
    head("agentd", 1, "runs AI coding agents unattended, and keeps them under control"),
    ".SH SYNOPSIS\n.B agentd\n[\\fIverb\\fR] [\\fIflags\\fR]",
    `.SH DESCRIPTION\nA daemon that runs coding agents as supervised actors, and the command that speaks with it. ${bold("agentd")} alone opens the board on a terminal; ${bold("agentd init")} begins a project; ${bold("agentd waiting")} lists what needs a person.`,
    `.SH "FLAGS OF ALL VERBS"\n${globals.join("\n")}`,
    ...parts,
    `.SH "EXIT STATUS"\n${meanings.map(([code, meaning]) => entry(bold(String(code)), meaning)).join("\n")}`,
    `.SH FILES\n${entry("\\fIagentd.jsonc\\fR", "The agents of a project; see agentd.jsonc(5).")}\n${entry("\\fI~/.config/agentd/config.jsonc\\fR", "Settings of the user's own.")}\n${entry("\\fI~/.local/state/agentd\\fR", "The store: the log, sockets, repositories of agents.")}`,
    '.SH "SEE ALSO"\n.BR agentd.jsonc (5)\n'
  ].join("\n")
})

const field = ({ form, path, required, text, byDefault }: Config.Field): string =>
  entry(
    `${bold(path)} (${plain(form)}${required ? ", must be given" : ""}${byDefault === "" ? "" : `, default ${plain(byDefault)}`})`,
    text
  )

export const config = (): string =>
  [
    head("agentd.jsonc", 5, "settings of agentd: a project's, and the user's own"),
    ".SH DESCRIPTION\nJSON with comments and trailing commas. \\fIagentd.jsonc\\fR lies in a project's folder, \\fIconfig.jsonc\\fR in \\fI~/.config/agentd\\fR. NAME stands for a name of yours. A change takes effect by \\fBagentd trust\\fR.",
    ...Config.files().flatMap(({ parts, title }) => [
      `.SH ${argument(title.toUpperCase())}`,
      ...parts.flatMap(({ fields, title }) => [
        ...(title === "" ? [] : [`.SS ${argument(title)}`]),
        ...fields.map(field)
      ])
    ]),
    '.SH "SEE ALSO"\n.BR agentd (1)\n'
  ].join("\n")

/** Writes both pages into the folder. */
export const write = (folder: string) =>
  Effect.map(commands, (text) => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "agentd.1.gz"), gzipSync(text, { level: 9 }))
    writeFileSync(join(folder, "agentd.jsonc.5.gz"), gzipSync(config(), { level: 9 }))
  })
