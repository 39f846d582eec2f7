/**
 * ClaudeCommand: how Claude Code is started for a run.
 *
 * Guarantees: the definitions of MCP servers are in a private file, not on a command line that
 * every user can read. If the daemon itself was started from within Claude Code, its runs do not
 * become part of that session.
 */
import { Effect } from "effect"
import * as path from "node:path"
import type { ClaudeBackend } from "../../config/BackendConfig.ts"
import type { BackendError, RunSpec } from "../Backend.ts"
import type { Host } from "../Host.ts"
import * as RunFolder from "../RunFolder.ts"
import * as ChildEnvironment from "../process/ChildEnvironment.ts"
import type * as RunProcess from "../process/RunProcess.ts"
import * as ConfinedSpawn from "../sandbox/ConfinedSpawn.ts"

export type Session =
  | { readonly _tag: "New"; readonly id: string }
  | { readonly _tag: "Resumed"; readonly id: string }
  | { readonly _tag: "Forked"; readonly id: string; readonly from: string }

const sessionArgs = (session: Session): ReadonlyArray<string> => {
  switch (session._tag) {
    case "New":
      return ["--session-id", session.id]
    case "Resumed":
      return ["--resume", session.id]
    case "Forked":
      return ["--resume", session.from, "--fork-session", "--session-id", session.id]
  }
}

/**
 * Settings with which Claude Code asks about every call, whatever its own settings allow. Older versions do not know
 * the star, so the tools with effects are named, too.
 */
const ASKS_ALL = JSON.stringify({
  permissions: {
    ask: ["*", "Bash", "Edit", "Write", "NotebookEdit", "Read", "WebFetch", "WebSearch", "Agent", "Task", "mcp__*"]
  }
})

/**
 * Builds the command line. Pure. `servers`: path of the file with the definitions of MCP servers. `asksAll`: as in
 * RunSpec.
 */
export const argvOf = (
  { args, binary, model, permissionMode }: ClaudeBackend,
  session: Session,
  servers: string | undefined,
  asksAll = false
): readonly [string, ...ReadonlyArray<string>] => [
  binary,
  "-p",
  "--input-format",
  "stream-json",
  "--output-format",
  "stream-json",
  "--verbose",
  "--include-partial-messages",
  "--permission-prompt-tool",
  "stdio",
  "--permission-mode",
  permissionMode,
  ...(model === undefined ? [] : ["--model", model]),
  ...sessionArgs(session),
  ...(servers === undefined ? [] : ["--mcp-config", servers]),
  // of several such options, Claude Code obeys the last one, which the config may name
  ...(asksAll && permissionMode === "default" ? ["--settings", ASKS_ALL] : []),
  ...args
]

const serversOf = (servers: RunSpec["mcp"]): string => {
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, { argv, env }]) => {
      const [command, ...args] = argv
      return [name, { type: "stdio", command, args, env }]
    })
  )
  return JSON.stringify({ mcpServers })
}

/** Environment variables for a run in the sandbox, where only the model's API can be reached. */
const CONFINED = {
  // as root, the CLI accepts the mode that asks for nothing only with this variable
  IS_SANDBOX: "1",
  DISABLE_AUTOUPDATER: "1",
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1"
}

/** Returns how a run would be confined, for a preview. */
export const outlined = (config: ClaudeBackend, host: Host, spec: RunSpec) => {
  const options: ConfinedSpawn.EnclosureOptions = {
    config,
    provider: { api: "anthropic", login: true, ...config.provider },
    host,
    spec,
    inherited: ChildEnvironment.given(host.environment, { program: "claude", passEnv: config.passEnv }),
    passEnv: config.passEnv,
    keeps: true,
    own: {
      ...(config.sandbox === "off" ? {} : CONFINED),
      ...config.env,
      ...spec.env,
      AGENTD_AGENT: spec.agent
    }
  }
  return { argv: [config.binary], options } as const
}

/** Prepares everything for a start except the session, because a run may need a second session. */
export const prepare = Effect.fnUntraced(function* (config: ClaudeBackend, host: Host, spec: RunSpec) {
  const isAlone = Object.keys(spec.mcp).length === 0
  const servers = isAlone ? undefined : yield* RunFolder.file(host, spec, "mcp.json", serversOf(spec.mcp))
  const { options } = outlined(config, host, spec)
  const enclosure = yield* ConfinedSpawn.make({ ...options, files: servers === undefined ? [] : [servers] })
  const { env } = enclosure
  const command = (session: Session): Effect.Effect<RunProcess.RunProcessSpec, BackendError> =>
    Effect.map(
      enclosure.start(argvOf(config, session, servers, spec.asksAll), path.resolve(spec.cwd, config.cwd ?? ".")),
      (started) => ({
        store: host.store,
        runId: spec.runId,
        ...started,
        env,
        limits: spec.limits,
        setting: "binary",
        keepInput: true,
        grace: config.killGrace
      })
    )
  return { command, env }
})
