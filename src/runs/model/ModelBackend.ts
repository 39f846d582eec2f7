/**
 * ModelBackend: a model behind an API. agentd's own model agent (`agentd model-agent`) runs its turns and its tools. It
 * is an ACP agent like any other: a process that outlives the daemon and is ended like every run.
 *
 * Guarantees: the program's arguments contain no setting, and its environment contains neither a key nor a token if the
 * gateway runs: it reaches its model and its remote MCP servers through the gateway. The program gets the daemon's variables that its tools and its MCP servers need, and no others.
 */
import { Duration, Effect, Schema } from "effect"
import * as Config from "../../config/BackendConfig.ts"
import * as AcpBackend from "../acp/AcpBackend.ts"
import type { SessionCosts } from "../acp/AcpUsage.ts"
import { BackendError, type RunSpec } from "../Backend.ts"
import { pathOf, type Remote, type RemoteServers } from "../gateway/Remotes.ts"
import type { Argv, Host } from "../Host.ts"
import { LearnedSecrets } from "../LearnedSecrets.ts"
import { ModelSettings, VARIABLE } from "./ModelSettings.ts"
import { ModelUpdates } from "./ModelUpdates.ts"

/** The word that starts the model agent. */
export const WORD = "model-agent"

/** The program reports that it lives more often than this, so a longer silence means that it hangs. */
const SILENCE = Duration.minutes(5)
/** Longer than the program waits for its MCP servers. */
const START_LIMIT = Duration.minutes(1)
const GRACE = Duration.seconds(5)

/** Names of the daemon's variables that the program passes on to its tools and MCP servers. */
const passed = ({ mcp, passEnv = [] }: Config.ModelBackend): ReadonlyArray<string> => [
  ...new Set([...passEnv, ...Object.values(mcp).flatMap(({ passEnv = [] }) => passEnv)])
]

/** The remote MCP servers as the gateway knows them. */
const remotesOf = ({ mcp }: Config.ModelBackend, { environment, logins }: Host): RemoteServers =>
  Object.fromEntries(
    Object.entries(mcp).flatMap(([name, { bearerEnv, url }]): ReadonlyArray<[string, Remote]> => {
      if (url === undefined) return []
      if (bearerEnv === undefined) return [[name, { url, ...(logins === undefined ? {} : { logins }) }]]
      const token = environment[bearerEnv] ?? ""
      const problem = `cannot be used: there is no variable ${bearerEnv} where the daemon was started`
      return [[name, { url, ...(token === "" ? { problem } : { token }) }]]
    })
  )

/** The host of requests to the gateway's socket. No request leaves the machine for it. */
const GATEWAY = "http://127.0.0.1"

/** The same servers as the program knows them: it reaches the remote ones by their paths on the gateway's socket. */
const serversOf = ({ mcp }: Config.ModelBackend, { gateway }: Host): Config.ModelBackend["mcp"] =>
  gateway === undefined
    ? mcp
    : Object.fromEntries(
        Object.entries(mcp).map(([name, server]) => {
          const { trustHints, url } = server
          return [name, url === undefined ? server : { url: `${GATEWAY}${pathOf(name)}`, env: {}, trustHints }]
        })
      )

/** The same agent as a config of an ACP agent. The program itself confines the commands that it runs. */
const configOf = (config: Config.ModelBackend, [program, ...args]: Argv): Config.AcpBackend => {
  const { baseUrl, keyEnv, keyFile, provider: api, resume } = config
  return {
    type: "acp",
    argv: [program, ...args, WORD],
    trustKinds: [],
    readOnlyTools: [],
    env: {},
    passEnv: passed(config),
    killGrace: GRACE,
    sandbox: "off",
    network: true,
    share: [],
    provider: {
      api,
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(keyEnv === undefined ? {} : { keyEnv }),
      ...(keyFile === undefined ? {} : { keyFile })
    },
    resume,
    silence: SILENCE,
    startTimeout: START_LIMIT
  }
}

const encode = Schema.encodeEffect(Schema.fromJsonString(ModelSettings))

const settingsOf = (config: Config.ModelBackend, host: Host, { agent, env, mounts, toolTimeout }: RunSpec) => {
  const { hidden = [], sessions, store } = host
  const settings: typeof ModelSettings.Type = {
    config: { ...config, mcp: serversOf(config, host) },
    agent,
    env,
    ...(mounts === undefined ? {} : { mounts }),
    store,
    hidden,
    ...(toolTimeout === undefined ? {} : { toolTimeout: Duration.toMillis(toolTimeout) }),
    ...(sessions === undefined ? {} : { sessions })
  }
  return encode(settings).pipe(
    Effect.map((text) => ({ [VARIABLE]: text })),
    Effect.mapError(
      ({ message }) =>
        new BackendError({
          message: `the model agent's settings cannot be written: ${message}`,
          remedy: "correct the agent's backend in agentd.jsonc",
          fatal: true
        })
    )
  )
}

const noProgram = new BackendError({
  message: "there is no model agent here",
  remedy: "start agentd from its own program",
  fatal: true
})

export const make = Effect.fnUntraced(function* (config: Config.ModelBackend, host: Host, costs: SessionCosts) {
  const { command } = host
  const remotes = remotesOf(config, host)
  const learn = yield* LearnedSecrets
  yield* learn(Object.values(remotes).flatMap(({ token }) => token ?? []))
  return yield* AcpBackend.make(configOf(config, command ?? ["agentd"]), host, costs, {
    updates: (known) => new ModelUpdates(known),
    environment: (spec) => (command === undefined ? Effect.fail(noProgram) : settingsOf(config, host, spec)),
    remotes
  })
})
