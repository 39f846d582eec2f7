/**
 * ConfigRows: a line for each project whose config file cannot be used or waits for approval, with the command that
 * helps.
 * Pure.
 */
import { inForce } from "../../domain/ConfigInForce.ts"
import type { ConfigChangeInfo, ProjectInfo } from "../../domain/Messages.ts"
import { visible } from "../../domain/VisibleText.ts"
import { age, type Colour, paint, plain } from "../render/Output.ts"

/** The projects whose config needs the user: it cannot be used, or a change waits for approval. */
export const troubled = (projects: ReadonlyArray<ProjectInfo>): ReadonlyArray<ProjectInfo> =>
  projects.filter(({ problems, waits }) => waits !== undefined || problems.length > 0)

/**
 * The name by which commands can select a project. If several projects have the same name, this is the id of the
 * project's conversation.
 */
const called = ({ conversation, name }: ProjectInfo, all: ReadonlyArray<ProjectInfo>): string =>
  all.filter((other) => other.name === name).length > 1 ? conversation : name

export const rows = (all: ReadonlyArray<ProjectInfo>, now: number, colour: boolean): ReadonlyArray<string> =>
  troubled(all).map((project) => {
    const { name, waits } = project
    const what =
      waits === undefined
        ? `agentd.jsonc of ${name} cannot be used; ${inForce(project)}: agentd status`
        : `agentd.jsonc of ${name} has changed and waits for you (${age(now - waits.since)}); ${inForce(project)}: agentd trust ${called(project, all)}`
    return paint(colour, "yellow", plain(what))
  })

/**
 * Maximum indentation of a line of a config, in spaces. A larger indentation could hide text outside the visible area.
 */
const MAX_INDENT = 40

/** A line of a config, in which every character with a misleading look is marked. */
const shown = (line: string): string => {
  const text = line.replace(/^[ \t]*/, (blanks) => blanks.replaceAll("\t", "    "))
  const indent = Math.min(/^ */.exec(text)![0].length, MAX_INDENT)
  return text.slice(0, indent) + visible(text.slice(indent))
}

const colours: { readonly [sign: string]: Colour } = { "-": "red", "+": "green", "@": "cyan" }

/** The consequences of a change, then the diff of the file's text, which leaves out only unchanged lines. */
export const change = (
  { config, consequences, diff }: Pick<ConfigChangeInfo, "config" | "consequences" | "diff">,
  colour: boolean
): ReadonlyArray<string> => [
  `${plain(config)} has changed since it was trusted. The change:`,
  ...(consequences.length === 0 ? ["    no effect: only comments or the order of fields"] : []),
  ...consequences.map(({ dangerous, text }) =>
    paint(colour, dangerous ? "red" : undefined, `  ${dangerous ? "!" : "·"} ${visible(text.replaceAll("\n", "\\n"))}`)
  ),
  ...diffLines(diff, colour)
]

/** The diff of a config file, in which every character with a misleading look is marked. */
export const diffLines = (diff: ReadonlyArray<string>, colour: boolean): ReadonlyArray<string> =>
  diff.map((line) => paint(colour, colours[line[0] ?? ""], `  │ ${line.slice(0, 1)}${shown(line.slice(1))}`))
