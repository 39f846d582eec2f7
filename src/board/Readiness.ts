/**
 * Readiness: checks whether everything exists that the configs of a project's agents require: programs, keys, and a
 * sandbox for agents that need one.
 *
 * Guarantees: it starts no agent and shows no key. Each program, key and sandbox is reported once, however many agents
 * need it.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import * as Sandbox from "../runs/sandbox/Sandbox.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import { APIS, type BackendConfig, KEY_ENV, retired } from "../config/BackendConfig.ts"
import * as Fallback from "../config/Fallback.ts"
import { readSecret } from "../config/OwnFile.ts"
import type { Check } from "./DaemonMessages.ts"
import { type Environment, KNOWN, loginOf } from "./Logins.ts"

export interface Place {
  readonly root: string
  /** The environment variables that runs inherit. */
  readonly environment: Environment
  /** The environment's owner, for messages: "the daemon's". */
  readonly whose: string
}

type ToolBackend = Exclude<BackendConfig, { readonly type: "model" }>

/** The program that a backend starts. If the agent starts further programs, it must find them itself. */
const programOf = (backend: BackendConfig): { readonly program: string; readonly setting: string } | undefined => {
  switch (backend.type) {
    case "command":
      return backend.argv === undefined ? undefined : { program: backend.argv[0] ?? "", setting: "argv" }
    case "acp":
    case "codex":
      return { program: backend.argv[0] ?? "", setting: "argv" }
    case "claude":
      return { program: backend.binary, setting: "binary" }
    case "model":
    case "exec":
      return undefined
  }
}

/** Finds a program as a shell does: a name in the PATH, a path relative to the agent's folder. */
export const located = Effect.fnUntraced(function* (program: string, cwd: string, path: string) {
  const fs = yield* FileSystem.FileSystem
  const folders = program.includes("/") ? [cwd] : path.split(":").map((folder) => NodePath.resolve(cwd, folder))
  for (const folder of folders) {
    const file = NodePath.resolve(folder, program)
    const stat = yield* Effect.result(fs.stat(file))
    if (stat._tag === "Success" && stat.success.type === "File" && (stat.success.mode & 0o111) !== 0) return file
  }
  return undefined
})

interface Finding {
  readonly ok: boolean
  /** True if the agent may work nevertheless: the finding is a warning. */
  readonly doubt?: true
  readonly name: string
  readonly detail: string
  readonly remedy: string
}

const programs = Effect.fnUntraced(function* (backend: BackendConfig, { environment, root, whose }: Place) {
  const gone = retired(backend)
  if (gone !== undefined)
    return [{ ok: false, name: `backend ${backend.type}`, detail: gone.message, remedy: gone.remedy } satisfies Finding]
  const wanted = programOf(backend)
  if (wanted === undefined || backend.type === "model") return []
  const path = backend.env["PATH"] ?? environment["PATH"] ?? ""
  const { program, setting } = wanted
  const found = yield* located(program, NodePath.resolve(root, backend.cwd ?? ""), path)
  const where = program.includes("/") ? `${program} does not exist` : `it is not on ${whose} PATH`
  const finding: Finding = {
    ok: found !== undefined,
    name: `program ${NodePath.basename(program)}`,
    detail: found ?? where,
    remedy: `Install it, or correct ${setting} in agentd.jsonc or the PATH where the daemon is started, then: agentd restart`
  }
  return [finding, ...(found === undefined ? [] : yield* logins(backend, program, { environment, root, whose }))]
})

/** The login of a known program, for which agentd has no key. The program can have one that agentd does not know of. */
const logins = Effect.fnUntraced(function* (backend: ToolBackend, program: string, { environment, whose }: Place) {
  const name = NodePath.basename(program)
  const known = KNOWN.find(({ programs }) => programs.includes(name))
  const { provider } = backend
  if (known === undefined || keyOf(backend) !== undefined || provider?.baseUrl !== undefined) return []
  const { login } = yield* loginOf(known, (name) => backend.env[name] ?? environment[name])
  const finding: Finding = {
    ok: login !== null,
    doubt: true,
    name: `login ${name}`,
    detail:
      login ?? `probably not logged in: no login file, and in ${whose} environment none of ${known.keys.join(", ")}`,
    remedy: `Log in (${known.logIn}). Or set the key where the daemon is started, then: agentd restart`
  }
  return [finding]
})

interface KeyPlace {
  readonly keyEnv?: string | undefined
  readonly keyFile?: string | undefined
}

/** The key that agentd provides for the agent; undefined if the agent has its own login. */
const keyOf = (backend: BackendConfig): { readonly place: KeyPlace; readonly variable: string } | undefined => {
  if (backend.type === "model") return { place: backend, variable: KEY_ENV[backend.provider] }
  const { network, provider, sandbox } = backend
  if (sandbox === "off" || network || provider === undefined) return undefined
  if ("api" in provider) return { place: provider, variable: APIS[provider.api].key }
  const isNamed = provider.keyEnv !== undefined || provider.keyFile !== undefined
  const { key } = backend.type === "codex" ? APIS.openai : APIS.anthropic
  return isNamed ? { place: provider, variable: key } : undefined
}

const keys = Effect.fnUntraced(function* (of: BackendConfig, { environment, root, whose }: Place) {
  const wanted = keyOf(of)
  return wanted === undefined ? [] : [yield* keyIn(wanted.place, wanted.variable, { environment, root, whose })]
})

const keyIn = Effect.fnUntraced(function* (backend: KeyPlace, usual: string, { environment, root, whose }: Place) {
  const variable = backend.keyEnv ?? usual
  if (backend.keyFile === undefined) {
    return {
      ok: (environment[variable] ?? "").trim() !== "",
      name: `key ${variable}`,
      detail: (environment[variable] ?? "").trim() === "" ? `it is not set in ${whose} environment` : "is set",
      remedy: `Set it where the daemon is started, or name another key with keyEnv or keyFile, then: agentd restart`
    } satisfies Finding
  }
  const file = NodePath.resolve(root, backend.keyFile)
  const text = yield* Effect.result(readSecret(file))
  const there = text._tag === "Success" && text.success.trim() !== ""
  const remedy = text._tag === "Failure" ? text.failure.remedy : ""
  return {
    ok: there,
    name: `key ${NodePath.basename(backend.keyFile)}`,
    detail: there
      ? file
      : text._tag === "Success"
        ? `${file} is empty`
        : `${file} cannot be read: ${text.failure.message}`,
    remedy: remedy === "" ? "Write the key into its first line, or correct keyFile in agentd.jsonc." : remedy
  } satisfies Finding
})

/** Programs that ask for no approval unless their own config says so, and that have no mode in which they ask. */
const UNASKING = /^(opencode|kilo)$/

/** A warning if the agent's program is known not to ask the user for approval of its calls. */
const leave = ({ approvals, backend }: AgentConfig): ReadonlyArray<Check> => {
  const program = backend.type === "acp" ? NodePath.basename(backend.argv[0] ?? "") : ""
  if (!UNASKING.test(program) || approvals.mode === "full_access") return []
  const detail = `${program} has no mode for asking: unless its own config says so, its calls run without approval`
  const remedy = `Make it ask: "permission": { "edit": "ask", "bash": "ask" } in ${program}.json, or set approvals.mode to what applies now: full_access`
  return [{ name: "asks", level: "warn", detail, remedy }]
}

type Named = readonly [name: string, backend: BackendConfig]

/** The sandbox setting of a backend; undefined if the backend runs no programs. */
const holdOf = (backend: BackendConfig): "off" | "on" | "ask" | "required" | undefined =>
  backend.type === "model" ? (backend.tools.includes("shell") ? backend.sandbox : undefined) : backend.sandbox

const named = (agents: ReadonlyArray<Named>): string => {
  const more = agents.length > MAX_NAMED ? ` and ${agents.length - MAX_NAMED} more` : ""
  const names = agents.slice(0, MAX_NAMED).map(([name]) => name)
  return `${names.join(", ")}${more}`
}

/** The finding about agents on a machine without a sandbox. */
const unheld = (agents: ReadonlyArray<Named>, note: string): Check => {
  const required = agents.filter(([, backend]) => holdOf(backend) === "required")
  const on = agents.filter(([, backend]) => holdOf(backend) === "on")
  const what =
    required.length > 0
      ? `with "sandbox": "required" no program and no shell command runs (${named(required)})`
      : on.length > 0
        ? `these run without one (${named(on)})`
        : "every shell command of a model asks for approval"
  return {
    name: "sandbox",
    level: required.length > 0 ? "fail" : "warn",
    detail: `${note}: ${what}`,
    remedy: "Install bubblewrap, or allow this user to create user namespaces."
  }
}

const sandbox = Effect.fnUntraced(function* (agents: ReadonlyArray<Named>, environment: Environment) {
  const free = agents.filter(([, backend]) => holdOf(backend) === "off")
  const held = agents.filter(([, backend]) => !["off", undefined].includes(holdOf(backend)))
  if (free.length + held.length === 0) return []
  const { kind, note } = yield* Sandbox.probe(environment, ["bubblewrap", "namespaces"])
  if (kind === "none") return held.length === 0 ? [] : [unheld(held, note)]
  const works: Check = { name: "sandbox", level: "ok", detail: note, remedy: null }
  const offer: Check = {
    name: "unconfined",
    level: "ok",
    detail: `${named(free)}: may do all that you may`,
    remedy: 'A sandbox works here. To hold an agent in its project: "sandbox": "on" in its backend (docs/security.md).'
  }
  return [...(held.length === 0 ? [] : [works]), ...(free.length === 0 ? [] : [offer])]
})

const MAX_NAMED = 5

export const checks = Effect.fnUntraced(function* (
  agents: { readonly [name: string]: AgentConfig },
  place: Place
): Effect.fn.Return<ReadonlyArray<Check>, never, FileSystem.FileSystem> {
  const found = new Map<string, { readonly finding: Finding; readonly agents: Array<string> }>()
  const all = Fallback.each(agents)
  for (const {
    config: { backend },
    label: name
  } of all) {
    const own: ReadonlyArray<Finding> = [...(yield* programs(backend, place)), ...(yield* keys(backend, place))]
    for (const finding of own) {
      const key = `${finding.name} ${finding.detail}`
      const known = found.get(key) ?? { finding, agents: [] }
      known.agents.push(name)
      found.set(key, known)
    }
  }
  const unasked = all.flatMap(({ config }) => leave(config))
  return [
    ...unasked.filter(({ detail }, at) => unasked.findIndex((one) => one.detail === detail) === at),
    ...[...found.values()].map(({ agents, finding: { detail, doubt, name, ok, remedy } }): Check => {
      const more = agents.length > MAX_NAMED ? ` and ${agents.length - MAX_NAMED} more` : ""
      return {
        name,
        level: ok ? "ok" : doubt ? "warn" : "fail",
        detail: `${detail} (${agents.slice(0, MAX_NAMED).join(", ")}${more})`,
        remedy: ok ? null : remedy
      }
    }),
    ...(yield* sandbox(
      all.map(({ config, label }) => [label, config.backend]),
      place.environment
    ))
  ]
})
