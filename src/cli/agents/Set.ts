/**
 * `agentd set AGENT… --model M --mode M`: chooses the model and the mode of an agent, without a change of its config
 * file. Without options: lists the choices, and the agent's own commands.
 */
import type { Done, OffersInfo } from "../../domain/Messages.ts"
import { type Ask, declare, off, oneOf, option, read, said, send, type World } from "../parse/DeclaredVerb.ts"
import { agents, labels, nobody } from "../parse/Names.ts"
import { cut, paint, plain } from "../render/Output.ts"

const KNOWN = {
  live: "",
  before: "as its last run reported",
  "not yet": "nothing is reported yet: its first run reports it"
} as const

/** Maximum number of entries shown per list; --json has all. */
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
  const more = all.length > MOST ? [`  … and ${all.length - MOST} more: --json has all`] : []
  return [paint(colour, "bold", title), ...shown, ...more]
}

const listed = (info: OffersInfo, world: World): ReadonlyArray<string> => {
  const { agent, backend, commands, known, mode, model, models, modes, project } = info
  const name = `${project}/${agent}`
  const chosen = [...(model === null ? [] : [`model ${model}`]), ...(mode === null ? [] : [`mode ${mode}`])]
  const how = chosen.length === 0 ? "as agentd.jsonc says" : chosen.join(", ")
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
      `Commands of its own: agentd send ${plain(name)} "/…"`,
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
  description: "Choose an agent's model or mode, until you choose another; a restart keeps it",
  examples: [
    { command: "agentd set builder", description: "List the choices, and the agent's own commands" },
    { command: "agentd set builder --mode plan", description: "It plans, and asks before it begins" },
    { command: "agentd set builder tester --model opus", description: "As the agents call it" },
    { command: "agentd set builder --reset", description: "As agentd.jsonc says again" }
  ],
  args: {
    names: agents,
    labels,
    model: option("MODEL", "The model, as the agent calls it"),
    mode: option("MODE", "The mode, as the agent calls it"),
    reset: off("Forget what was chosen before")
  },
  several: { kind: "agent", changes: (input) => (isChoice(input) ? "sets the model or mode of" : undefined) },
  wrong: (input) => nobody(input, "set"),
  rpc: ({ mode, model, names, reset }, caller): Ask<Done | OffersInfo> =>
    !isChoice({ mode, model, reset })
      ? read("Offers", { name: oneOf(names), caller })
      : send("Set", { name: oneOf(names), model: model ?? null, mode: mode ?? null, reset, caller }),
  view: (reply: Done | OffersInfo, world: World): ReadonlyArray<string> =>
    "message" in reply ? said(reply) : listed(reply, world)
})
