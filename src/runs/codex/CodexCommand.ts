/**
 * CodexCommand: how `codex app-server` is started for a run, and with which settings its thread begins.
 *
 * What Codex does unasked depends on the agent's approvals: its commands may only read, which Codex's own sandbox
 * ensures, and it asks about every change and about every command that needs more. If an agent has full access, Codex
 * asks nothing. While a rule denies or asks, Codex asks about every command (`untrusted`). Codex's sandbox does not work inside agentd's sandbox. There, Codex asks about every command.
 *
 * Guarantees: settings, and with them the environment of MCP servers, are sent to the process and are not on a command
 * line that every user can read.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import { APIS, type CodexBackend } from "../../config/BackendConfig.ts"
import type { BackendError, RunSpec } from "../Backend.ts"
import * as FileContents from "../FileContents.ts"
import type { Host } from "../Host.ts"
import * as ChildEnvironment from "../process/ChildEnvironment.ts"
import type { Environment } from "../process/ChildProcess.ts"
import type * as RunProcess from "../process/RunProcess.ts"
import * as ConfinedSpawn from "../sandbox/ConfinedSpawn.ts"

type Settings = { readonly [name: string]: unknown }

const isSettings = (value: unknown): value is Settings =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const jsonIn = (text: string | undefined): Settings => {
  const value: unknown = text === undefined ? undefined : attempt(() => JSON.parse(text))
  return isSettings(value) ? value : {}
}

/** URL of the model's API for a login with a ChatGPT account. A key is for another API. */
const CHATGPT = "https://chatgpt.com/backend-api/codex"

const folderOf = (env: Environment): string => env["CODEX_HOME"] ?? path.join(env["HOME"] ?? "/", ".codex")

const textIn = (file: string): string | undefined => attempt(() => fs.readFileSync(file, "utf8"))

/** Whether the user has logged in with a ChatGPT account. */
const isChatGpt = (env: Environment): boolean => {
  const login = jsonIn(textIn(path.join(folderOf(env), "auth.json")))
  return isSettings(login["tokens"]) && typeof login["OPENAI_API_KEY"] !== "string"
}

const providerOf = ({ provider }: CodexBackend, env: Environment): ConfinedSpawn.Provider => {
  const isKeyed = provider.keyEnv !== undefined || provider.keyFile !== undefined
  const login = isChatGpt(env) && !isKeyed && (env[APIS.openai.key] ?? "") === "" ? { baseUrl: CHATGPT } : {}
  return { api: "openai", login: true, ...login, ...provider }
}

/** Returns how a run would be confined, for a preview. */
export const outlined = (config: CodexBackend, host: Host, spec: RunSpec) => {
  const { argv, env, passEnv } = config
  const [program = "codex", ...args] = argv
  const inherited = ChildEnvironment.given(host.environment, { program: "codex", passEnv })
  const options: ConfinedSpawn.EnclosureOptions = {
    config,
    provider: providerOf(config, { ...inherited, ...env }),
    host,
    spec,
    inherited,
    passEnv,
    keeps: true,
    own: { ...env, ...spec.env, AGENTD_AGENT: spec.agent }
  }
  return { argv: [program, ...args, "app-server"], options } as const
}

/** Variables in which people keep the key. `codex app-server` itself reads none of them. */
const KEYS = [APIS.openai.key, "CODEX_API_KEY"]

/**
 * Settings with which Codex uses a key from its environment. Empty if the user has logged in, or has chosen a provider
 * in config.toml.
 */
const keySettings = (env: Environment): Settings => {
  const folder = folderOf(env)
  const key = KEYS.find((name) => (env[name] ?? "").trim() !== "")
  const isChosen = /^[ \t]*model_provider[ \t]*=/m.test(textIn(path.join(folder, "config.toml")) ?? "")
  if (key === undefined || isChosen || fs.existsSync(path.join(folder, "auth.json"))) return {}
  const agentd = {
    name: "OpenAI",
    base_url: env["OPENAI_BASE_URL"] ?? APIS.openai.url,
    wire_api: "responses",
    env_key: key
  }
  return { model_provider: "agentd", model_providers: { agentd } }
}

const serversOf = (servers: RunSpec["mcp"]): Settings =>
  Object.fromEntries(
    Object.entries(servers).map(([name, { argv, env }]) => {
      const [command, ...args] = argv
      return [name, { command, args, env }]
    })
  )

export interface Permissions {
  readonly approvalPolicy: NonNullable<CodexBackend["approvalPolicy"]>
  readonly sandbox: NonNullable<CodexBackend["sandboxMode"]>
}

/**
 * Returns the calls that Codex may make without asking. `isConfined`: true if agentd's sandbox holds the run. `asksAll`:
 * as in RunSpec.
 */
export const permissionsOf = (
  { approvalPolicy, sandboxMode }: Pick<CodexBackend, "approvalPolicy" | "sandboxMode">,
  mode: RunSpec["approvals"],
  isConfined: boolean,
  asksAll = false
): Permissions => {
  const isFull = mode === "full_access"
  return {
    approvalPolicy: approvalPolicy ?? (isFull ? "never" : isConfined || asksAll ? "untrusted" : "on-request"),
    sandbox: sandboxMode ?? (isFull || isConfined ? "danger-full-access" : "read-only")
  }
}

/** Parameters of the request that starts, resumes or forks the thread. Pure, except for reading the user's config. */
const threadOf = (config: CodexBackend, spec: RunSpec, { confined, env }: ConfinedSpawn.ConfinedSpawn) => {
  const { effort, model } = config
  const gateway = env["AGENTD_GATEWAY_URL"] === undefined ? keySettings(env) : jsonIn(env["CODEX_CONFIG"])
  return {
    cwd: path.resolve(spec.cwd, config.cwd ?? "."),
    ...permissionsOf(config, spec.approvals, confined, spec.asksAll),
    // a model must not decide in place of the user
    approvalsReviewer: "user",
    ...(model === undefined ? {} : { model }),
    config: {
      // Codex asks questions only in its plan mode unless this is set
      "features.default_mode_request_user_input": true,
      suppress_unstable_features_warning: true,
      ...(effort === undefined ? {} : { model_reasoning_effort: effort }),
      ...gateway,
      mcp_servers: serversOf(spec.mcp),
      ...config.config
    }
  }
}

/** Prepares everything for a start. `folder`: the folder for files of turns. */
export const prepare = Effect.fnUntraced(function* (config: CodexBackend, host: Host, spec: RunSpec) {
  const { argv, options } = outlined(config, host, spec)
  const folder = yield* FileContents.folderOf(host, spec)
  const enclosure = yield* ConfinedSpawn.make({ ...options, files: [folder.path] })
  const { env, passed } = enclosure
  const thread = threadOf(config, spec, enclosure)
  const command: Effect.Effect<RunProcess.RunProcessSpec, BackendError> = Effect.map(
    enclosure.start([...argv], thread.cwd),
    (started) => ({
      store: host.store,
      runId: spec.runId,
      ...started,
      env,
      limits: spec.limits,
      setting: "argv",
      keepInput: true,
      grace: config.killGrace
    })
  )
  return { command, folder, passed, thread }
})
