/**
 * `agentd set AGENT… --model M --mode M`: chooses the model and the mode of an agent without changing the config file.
 * Without options, lists the available models and modes, and the agent's own commands.
 */
import type { Done, OffersInfo } from "../../domain/Messages.ts"
import { type Ask, declare, off, oneOf, option, read, said, send, type World } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { agents, labels, nobody } from "../parse/Names.ts"
import { cut, paint, plain } from "../render/Output.ts"

const KNOWN = {
  live: "",
  before: "reported by its last run",
  "not yet": "not known yet: the first run of the agent reports it"
} as const

/** Maximum number of entries shown per list. --json shows all entries. */
const MOST = 40

const rows = (
  title: string,
  all: ReadonlyArray<readonly [name: string, words: string]>,
  { colour, columns }: World
): ReadonlyArray<string> => {
  if (all.length === 0) return []
  const width = Math.min(40, Math.max(...all.map(([name]) => name.length)))
  const shown = all.slice(0, MOST).map(([name, words]) => {
    const line = `  ${plain(name).padEnd(width)}  ${plain(words)}`.trimEnd()
    return columns === null ? line : cut(line, columns)
  })
  const more = all.length > MOST ? [`  … and ${all.length - MOST} more: see all with --json`] : []
  return [paint(colour, "bold", title), ...shown, ...more]
}

const listed = (info: OffersInfo, world: World): ReadonlyArray<string> => {
  const { agent, backend, commands, known, mode, model, models, modes, project } = info
  const name = `${project}/${agent}`
  const chosen = [...(model === null ? [] : [`model ${model}`]), ...(mode === null ? [] : [`mode ${mode}`])]
  const how = chosen.length === 0 ? "as in agentd.jsonc" : chosen.join(", ")
  const note = KNOWN[known]
  return [
    plain(`${name} (${backend}): ${how}${note === "" ? "" : `; ${note}`}.`),
    ...rows(
      "Models",
      models.map(({ id, name }) => [id, name === id ? "" : name]),
      world
    ),
    ...rows(
      "Modes",
      modes.map(({ id, name }) => [id, name === id ? "" : name]),
      world
    ),
    ...rows(
      `The agent's own commands: agentd send ${plain(name)} "/…"`,
      commands.map(({ description, hint, name }) => [`/${name}${hint === "" ? "" : ` ${hint}`}`, description]),
      world
    )
  ]
}

const isChoice = ({
  mode,
  model,
  reset
}: {
  readonly mode?: unknown
  readonly model?: unknown
  readonly reset: boolean
}) => model !== undefined || mode !== undefined || reset

export const set = declare({
  path: ["set"],
  description: "Choose an agent's model or mode; the choice is kept after a restart",
  examples: [
    { command: "agentd set builder", description: "List the available models and modes, and the agent's own commands" },
    {
      command: "agentd set builder --mode plan",
      description: "Set builder's mode to plan: it plans first, and asks before it starts to work"
    },
    {
      command: "agentd set builder tester --model opus",
      description: "Set the model of both agents to opus"
    },
    { command: "agentd set builder --reset", description: "Use the model and mode of agentd.jsonc again" }
  ],
  args: {
    names: agents,
    labels,
    model: option("MODEL", "Name of the model, as agentd set AGENT lists it"),
    mode: option("MODE", "Name of the mode, as agentd set AGENT lists it"),
    reset: off("Remove earlier choices, and use agentd.jsonc again")
  },
  several: { kind: "agent", changes: (input) => (isChoice(input) ? "sets the model or mode of" : undefined) },
  wrong: (input) => {
    const [field, value] = (input.names.find((name) => /^mode(l)?=./.test(name)) ?? "").split("=")
    return value === undefined
      ? nobody(input, "set")
      : {
          message: `"${field}=${value}" is not the name of an agent.`,
          remedy: `Use the flag: agentd set ${input.names.find((name) => !name.includes("=")) ?? "AGENT"} --${field} ${value}`,
          exitCode: ExitCode.usage
        }
  },
  rpc: ({ mode, model, names, reset }, caller): Ask<Done | OffersInfo> =>
    !isChoice({ mode, model, reset })
      ? read("Offers", { name: oneOf(names), caller })
      : send("Set", { name: oneOf(names), model: model ?? null, mode: mode ?? null, reset, caller }),
  view: (reply: Done | OffersInfo, world: World): ReadonlyArray<string> =>
    "message" in reply ? said(reply) : listed(reply, world)
})
