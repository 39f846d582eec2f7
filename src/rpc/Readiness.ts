/**
 * Readiness: whether what the agents of a project are configured with is there:
 * their programs, their keys, and a sandbox for the shell of those that are models.
 *
 * Guarantees: it starts no agent and shows no key; one finding for each thing that
 * is looked for, however many agents want it.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import * as Sandbox from "../backends/sandbox/Sandbox.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import { type BackendConfig, KEY_ENV, type ModelBackend } from "../config/BackendConfig.ts"
import { readSecret } from "../config/OwnFile.ts"
import type { Check } from "./DaemonMessages.ts"

type Environment = { readonly [name: string]: string | undefined }

export interface Place {
  /** The project's root. */
  readonly root: string
  /** The environment that runs inherit. */
  readonly environment: Environment
  /** The environment's owner, in words: "the daemon's PATH". */
  readonly whose: string
}

/** The first program of a backend; further ones are the agent's own affair. */
const programOf = (backend: BackendConfig): { readonly program: string; readonly setting: string } | undefined => {
  switch (backend.type) {
    case "command":
      return backend.argv === undefined ? undefined : { program: backend.argv[0] ?? "", setting: "argv" }
    case "acp":
      return { program: backend.argv[0] ?? "", setting: "argv" }
    case "claude":
      return { program: backend.binary, setting: "binary" }
    case "model":
      return undefined
  }
}

/** Like a shell: a name is searched for, a path is taken from where the agent works. */
const located = Effect.fnUntraced(function* (program: string, cwd: string, path: string) {
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
  readonly name: string
  readonly detail: string
  readonly remedy: string
}

const programs = Effect.fnUntraced(function* (backend: BackendConfig, { environment, root, whose }: Place) {
  const wanted = programOf(backend)
  if (wanted === undefined || backend.type === "model") return []
  const path = backend.env["PATH"] ?? environment["PATH"] ?? ""
  const { program, setting } = wanted
  const found = yield* located(program, NodePath.resolve(root, backend.cwd ?? ""), path)
  const where = program.includes("/") ? `there is no ${program}` : `there is none on ${whose} PATH`
  const finding: Finding = {
    ok: found !== undefined,
    name: `program ${NodePath.basename(program)}`,
    detail: found ?? where,
    remedy: `Install it, or correct ${setting} in agentd.jsonc or the PATH where the daemon is started, then: agentd restart`
  }
  return [finding]
})

const keys = Effect.fnUntraced(function* (backend: ModelBackend, { environment, root, whose }: Place) {
  const variable = backend.keyEnv ?? KEY_ENV[backend.provider]
  if (backend.keyFile === undefined) {
    return {
      ok: (environment[variable] ?? "").trim() !== "",
      name: `key ${variable}`,
      detail: (environment[variable] ?? "").trim() === "" ? `it is not set in ${whose} environment` : "is set",
      remedy: `Set it where the daemon is started, or name another by keyEnv or keyFile, then: agentd restart`
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

const NEITHER = "every shell command of a model asks"

const sandbox = Effect.fnUntraced(function* (models: ReadonlyArray<ModelBackend>, environment: Environment) {
  const shells = models.filter(({ tools }) => tools.includes("shell"))
  if (shells.length === 0) return []
  const { kind, note } = yield* Sandbox.probe(environment, ["bubblewrap", "namespaces"])
  if (kind !== "none") return [{ name: "sandbox", level: "ok", detail: note, remedy: null } satisfies Check]
  const required = shells.some(({ sandbox }) => sandbox === "required")
  const check: Check = {
    name: "sandbox",
    level: required ? "fail" : "warn",
    detail: `${note}: ${required ? 'with "sandbox": "required" no shell command runs' : NEITHER}`,
    remedy: "Install bubblewrap, or let this user make user namespaces."
  }
  return [check]
})

const MAX_NAMED = 5

/** Of the agents of one project. */
export const checks = Effect.fnUntraced(function* (
  agents: { readonly [name: string]: AgentConfig },
  place: Place
): Effect.fn.Return<ReadonlyArray<Check>, never, FileSystem.FileSystem> {
  const found = new Map<string, { readonly finding: Finding; readonly agents: Array<string> }>()
  for (const [name, { backend }] of Object.entries(agents)) {
    const own = backend.type === "model" ? [yield* keys(backend, place)] : yield* programs(backend, place)
    for (const finding of own) {
      const key = `${finding.name} ${finding.detail}`
      const known = found.get(key) ?? { finding, agents: [] }
      known.agents.push(name)
      found.set(key, known)
    }
  }
  const models = Object.values(agents).flatMap(({ backend }) => (backend.type === "model" ? [backend] : []))
  return [
    ...[...found.values()].map(({ agents, finding: { detail, name, ok, remedy } }): Check => {
      const more = agents.length > MAX_NAMED ? ` and ${agents.length - MAX_NAMED} more` : ""
      return {
        name,
        level: ok ? "ok" : "fail",
        detail: `${detail} (${agents.slice(0, MAX_NAMED).join(", ")}${more})`,
        remedy: ok ? null : remedy
      }
    }),
    ...(yield* sandbox(models, place.environment))
  ]
})
