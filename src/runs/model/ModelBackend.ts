/**
 * ModelBackend: a model behind an API. agentd's own model agent (`agentd model-agent`) runs its turns and its tools. It
 * is an ACP agent like any other: a process that outlives the daemon and is ended like every run.
 *
 * Guarantees: the program's arguments contain no setting, and its environment contains no key if the gateway runs. The
 * program gets the daemon's variables that its tools and its MCP servers need, and no others.
 */
import { Duration, Effect, Schema } from "effect"
import * as Config from "../../config/BackendConfig.ts"
import * as AcpBackend from "../acp/AcpBackend.ts"
import type { SessionCosts } from "../acp/AcpUsage.ts"
import { BackendError, type RunSpec } from "../Backend.ts"
import type { Argv, Host } from "../Host.ts"
import { ModelSettings, VARIABLE } from "./ModelSettings.ts"
import { ModelUpdates } from "./ModelUpdates.ts"

/** The word that starts the model agent. */
export const WORD = "model-agent"

/** The program reports that it lives more often than this, so a longer silence means that it hangs. */
const SILENCE = Duration.minutes(5)
/** Longer than the program waits for its MCP servers. */
const START_LIMIT = Duration.minutes(1)
const GRACE = Duration.seconds(5)

/** Names of the daemon's variables that the program passes on to its tools and MCP servers, or sends to them. */
const passed = ({ mcp, passEnv = [] }: Config.ModelBackend): ReadonlyArray<string> => [
  ...new Set([
    ...passEnv,
    ...Object.values(mcp).flatMap(({ bearerEnv, passEnv = [] }) => [
      ...passEnv,
      ...(bearerEnv === undefined ? [] : [bearerEnv])
    ])
  ])
]

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

const settingsOf = (config: Config.ModelBackend, host: Host, { agent, env, toolTimeout }: RunSpec) => {
  const { hidden = [], logins, sessions, store } = host
  const settings: typeof ModelSettings.Type = {
    config,
    agent,
    env,
    store,
    hidden,
    ...(toolTimeout === undefined ? {} : { toolTimeout: Duration.toMillis(toolTimeout) }),
    ...(logins === undefined ? {} : { logins }),
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

export const make = (config: Config.ModelBackend, host: Host, costs: SessionCosts) => {
  const { command } = host
  return AcpBackend.make(configOf(config, command ?? ["agentd"]), host, costs, {
    updates: (known) => new ModelUpdates(known),
    environment: (spec) => (command === undefined ? Effect.fail(noProgram) : settingsOf(config, host, spec))
  })
}
