/**
 * InitTree: the settings that `agentd init` proposes for an agent's work tree, from the names of the files in the project's folder.
 * Pure.
 *
 * Guarantees: no file is opened. A builder in a sandbox gets no copy of `.env` unless the user adds it.
 */
import type { WorktreeConfig } from "../../config/AgentConfig.ts"

/** Command that installs what a lock file lists, and the folder that it fills. The first lock file that exists counts. */
const INSTALLS: ReadonlyArray<readonly [file: string, setup: string, folder: string]> = [
  ["pnpm-lock.yaml", "pnpm install --frozen-lockfile", "node_modules"],
  ["yarn.lock", "yarn install --frozen-lockfile", "node_modules"],
  ["bun.lock", "bun install --frozen-lockfile", "node_modules"],
  ["bun.lockb", "bun install --frozen-lockfile", "node_modules"],
  ["package-lock.json", "npm ci", "node_modules"],
  ["uv.lock", "uv sync --frozen", ".venv"],
  ["poetry.lock", "poetry install", ".venv"],
  ["requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt", ".venv"],
  ["Gemfile.lock", "bundle install", "vendor/bundle"],
  ["composer.lock", "composer install", "vendor"]
]

const ENV = [".env", ".env.example", ".env.sample", ".env.template"]
const COMPOSE = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"]
/** Number of ports for a project with a compose file. */
const PORTS = 4

export type Proposal = Partial<Pick<WorktreeConfig, "copy" | "link" | "setup" | "ports">>

/**
 * Settings of the work tree; empty if it needs none. `names`: names in the project's folder. `isOffline`: the builder
 * is in a sandbox without a network, so that its set-up can install nothing.
 */
export const proposalOf = (names: ReadonlyArray<string>, isOffline: boolean): Proposal => {
  const has = (name: string) => names.includes(name)
  const installs = INSTALLS.filter(([file]) => has(file))
  // one per folder: a project in two languages needs both
  const each = installs.filter(([, , folder], at) => installs.findIndex((one) => one[2] === folder) === at)
  const links = each.flatMap(([, , folder]) => (has(folder) ? [folder] : []))
  return {
    ...(ENV.some(has) && !isOffline ? { copy: [".env"] } : {}),
    ...(isOffline && links.length > 0 ? { link: links } : {}),
    ...(!isOffline && each.length > 0 ? { setup: each.map(([, setup]) => setup).join(" && ") } : {}),
    ...(COMPOSE.some(has) ? { ports: PORTS } : {})
  }
}

/** The effect of the proposal, as a sentence for the user; undefined if it does nothing. */
export const wordsOf = ({ copy, link, ports, setup }: Proposal): string | undefined => {
  const parts = [
    ...(copy === undefined ? [] : [`gets a copy of ${copy.join(", ")}, which the agent can read`]),
    ...(link === undefined ? [] : [`sees your ${link.join(", ")}`]),
    ...(setup === undefined ? [] : [`is set up by: ${setup}`]),
    ...(ports === undefined ? [] : [`has ${ports} ports of its own, PORT_0 to PORT_${ports - 1}`])
  ]
  return parts.length === 0 ? undefined : `The builder's work tree ${parts.join("; it ")}. Change this in "worktree".`
}
