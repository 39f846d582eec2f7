/** Shop: a project on a machine of its own, whose agents work until they are let go. */
import { Effect } from "effect"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import * as Machine from "../../support/Machine.ts"
import { isAll } from "../../support/Long.ts"

/** Machines of their own are booted with ALL=1, as root, where systemd-nspawn is. */
export const isAble = isAll && Machine.missing.length === 0
if (!isAble) {
  const why = isAll ? `no ${Machine.missing.join(", no ")} here` : "ALL=1 boots them"
  console.warn(`SKIPPED: machines of their own with a real systemd (${why})`)
}

/** Works on a message until there is a file of the name `go`, and says then what it was told. */
const SLOW = "text=$(cat); echo $$ >> begun; while [ ! -e go ]; do sleep 0.1; done; echo heard $text"

export const AGENTS = ["ann", "ben", "cem"]

/** A project of ada's with those agents, not yet registered. */
export const shop = (
  machine: Machine.Machine,
  as: (script: string) => Effect.Effect<Machine.Said> = (script) => machine.ada(script)
) => {
  const agent = (cwd: string) => ({
    backend: { type: "command", shell: SLOW, promptBy: "stdin", readyAfter: "100ms", cwd },
    may: [],
    minRunInterval: "0ms",
    backoff: { base: "100ms", cap: "200ms" }
  })
  const config = JSON.stringify({ agents: Object.fromEntries(AGENTS.map((name) => [name, agent(name)])) })
  const folders = AGENTS.map((name) => `shop/${name}`).join(" ")
  return as(`mkdir -p ${folders}; printf %s '${config}' > shop/agentd.jsonc`)
}

export const status = (machine: Machine.Machine) =>
  Effect.map(machine.agentd("--json service status"), (out) => JSON.parse(out) as Record<string, unknown>)

export const runesIn = (out: string): ReadonlyArray<Rune> =>
  out
    .split("\n")
    .filter(Boolean)
    .map((line): Rune => JSON.parse(line))

export const log = (machine: Machine.Machine, ...kinds: ReadonlyArray<string>) =>
  Effect.map(machine.agentd(`--json log -n 10000 ${kinds.map((kind) => `--kind ${kind}`).join(" ")}`), runesIn)

/** How often an agent has begun on something. */
export const begun = (machine: Machine.Machine) => machine.root("cat /home/ada/shop/*/begun | wc -l")
