/**
 * Program: the model agent's process: its settings, its services and its end.
 *
 * Guarantees: the process ends when its input ends, or by SIGTERM, with every process that its tools have started. It
 * writes no log to standard output.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ndJsonStream } from "@agentclientprotocol/sdk"
import { Duration, Effect, type FileSystem, Layer, Logger, Schema } from "effect"
import { Readable, Writable } from "node:stream"
import { ModelSettings, VARIABLE } from "../runs/model/ModelSettings.ts"
import { services } from "../runs/CapturedServices.ts"
import type { Environment } from "../runs/process/ChildProcess.ts"
import * as ProcessTree from "../runs/process/ProcessTree.ts"
import { Reaper } from "../runs/process/Reaper.ts"
import { MODEL_KEY, MODEL_SOCKET } from "../runs/sandbox/ConfinedSpawn.ts"
import { Sandbox } from "../runs/sandbox/Sandbox.ts"
import * as AcpServer from "./AcpServer.ts"
import * as GatewayLink from "./GatewayLink.ts"
import { ModelHttp } from "./ModelHttp.ts"
import * as Tools from "./Tools.ts"

export interface Options {
  readonly environment: Environment
  /** True if `initialize` has been answered. */
  readonly isGreeted: boolean
  readonly hello: AcpServer.Options["hello"]
}

/** Longest message, bytes: a prompt contains its files. */
const MAX_MESSAGE = 64 * 1024 * 1024

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(ModelSettings))

const program = Effect.fnUntraced(function* ({ environment, hello, isGreeted }: Options) {
  const { config, toolTimeout, ...settings } = yield* decode(environment[VARIABLE])
  const socket = environment[MODEL_SOCKET]
  const key = socket === undefined ? environment[MODEL_KEY] : GatewayLink.NO_KEY
  const keySource =
    config.keyFile === undefined
      ? `the variable ${config.keyEnv ?? AcpServer.keyOf(config)}`
      : `the file ${config.keyFile}`
  const http = socket === undefined ? yield* ModelHttp : yield* GatewayLink.open(socket)
  const tools = yield* services<ProcessTree.ProcessTree | Reaper | Sandbox | FileSystem.FileSystem>()
  yield* AcpServer.serve({
    stream: ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>, {
      maxMessageBytes: MAX_MESSAGE
    }),
    hello,
    isGreeted,
    config: { ...config, ...(key === undefined ? {} : { key: { key, keySource } }) },
    host: { ...settings, environment },
    agent: settings.agent,
    env: settings.env,
    ...(settings.mounts === undefined ? {} : { mounts: settings.mounts }),
    ...(toolTimeout === undefined ? {} : { toolTimeout: Duration.millis(toolTimeout) }),
    runId: environment["AGENTD_RUN"],
    toolbox: (given) => Effect.provideContext(Tools.make(given), tools)
  }).pipe(Effect.provideService(ModelHttp, http))
})

const layer = (environment: Environment) =>
  Layer.mergeAll(
    ProcessTree.ProcessTree.layer,
    Reaper.layerNone,
    Sandbox.layer(environment),
    Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])
  ).pipe(Layer.provideMerge(NodeServices.layer))

export const start = (options: Options): void =>
  program(options).pipe(Effect.scoped, Effect.provide(layer(options.environment)), NodeRuntime.runMain)
