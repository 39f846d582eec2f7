/**
 * ModelWire: the model agent's server and the daemon's ACP run, connected in memory: what a run of the model agent is,
 * without its process. The tools are the test's own.
 */
import { ndJsonStream } from "@agentclientprotocol/sdk"
import { Deferred, Duration, Effect, Exit, Queue, Schema, Scope } from "effect"
import type { Cause } from "effect"
import { AcpBackend, ModelBackend as ModelConfig } from "../../src/config/BackendConfig.ts"
import * as AcpServer from "../../src/model-agent/AcpServer.ts"
import { HELLO } from "../../src/model-agent/Hello.ts"
import * as AcpPrompt from "../../src/runs/acp/AcpPrompt.ts"
import * as AcpRun from "../../src/runs/acp/AcpRun.ts"
import { SessionCosts } from "../../src/runs/acp/AcpUsage.ts"
import { BackendError, type RunSpec } from "../../src/runs/Backend.ts"
import * as FileContents from "../../src/runs/FileContents.ts"
import { ModelUpdates } from "../../src/runs/model/ModelUpdates.ts"
import type { Pipe } from "../../src/runs/process/ChildProcess.ts"
import type { RunProcess } from "../../src/runs/process/RunProcess.ts"
import type { Dialect, Setting } from "../world/backends/ModelStand.ts"
import { KEY } from "../world/backends/ModelStand.ts"

/** A pipe in memory: the program's end, and what is written into it. */
const pipe = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  const out = new WritableStream<Uint8Array>({ write: (chunk) => void Queue.offerUnsafe(queue, chunk) })
  const read: Pipe["read"] = Queue.take(queue).pipe(Effect.catchTag("Done", () => Effect.undefined))
  return { out, read, end: Queue.end(queue) }
})

/** The server as a process that the daemon has started. */
const processOf = Effect.fnUntraced(function* (options: Omit<AcpServer.Options, "stream">) {
  const stdout = yield* pipe
  const stderr = yield* pipe
  const input = new TransformStream<Uint8Array, Uint8Array>()
  const writer = input.writable.getWriter()
  const over = yield* Deferred.make<void>()
  const scope = yield* Scope.fork(yield* Effect.scope)
  const server = AcpServer.serve({ ...options, stream: ndJsonStream(stdout.out, input.readable) }).pipe(
    Scope.provide(scope),
    Effect.ensuring(Scope.close(scope, Exit.void)),
    Effect.ensuring(Effect.all([stdout.end, stderr.end, Deferred.succeed(over, undefined)], { discard: true }))
  )
  yield* Effect.forkScoped(server)
  const encoder = new TextEncoder()
  const closeInput = Effect.ignore(Effect.tryPromise(() => writer.close()))
  const program: RunProcess = {
    pid: 1,
    before: undefined,
    isKept: false,
    isDue: () => false,
    keep: () => Effect.void,
    stdout: { read: stdout.read },
    stderr: { read: stderr.read },
    write: (text) =>
      text === "" ? Effect.void : Effect.ignore(Effect.tryPromise(() => writer.write(encoder.encode(text)))),
    closeInput,
    exited: Effect.as(Deferred.await(over), { code: 0, signal: null }),
    ended: Deferred.await(over),
    interrupt: closeInput,
    kill: closeInput,
    endBegun: () => Effect.succeed([])
  }
  return program
})

const nowhere = Effect.fail(
  new BackendError({ message: "no folder", remedy: "the prompt contains its files", fatal: false })
)

/** A run of the model agent, as `ModelStand.start` makes one of its engine. */
export const start = Effect.fnUntraced(function* (dialect: Dialect, url: string, setting: Setting = {}) {
  const config = Schema.decodeUnknownSync(ModelConfig)({
    type: "model",
    provider: dialect,
    baseUrl: url,
    model: "m",
    retries: 2,
    ...setting.config
  })
  const spec: RunSpec = {
    runId: "run-1",
    turnId: "turn-1",
    agent: "builder",
    prompt: "do it",
    cwd: "/",
    env: {},
    resume: undefined,
    mcp: {},
    ...setting.spec
  }
  const environment = setting.environment ?? { ANTHROPIC_API_KEY: KEY, OPENAI_API_KEY: KEY }
  const program = yield* processOf({
    hello: HELLO,
    isGreeted: false,
    config: { ...config, pause: Duration.millis(1) },
    host: { store: "test", environment, sessions: setting.sessions },
    agent: spec.agent,
    env: {},
    runId: spec.runId,
    toolbox: () => Effect.as(setting.hold ?? Effect.void, { tools: setting.tools ?? [] })
  })
  return yield* AcpRun.make({
    config: Schema.decodeUnknownSync(AcpBackend)({ type: "acp", argv: ["agentd"] }),
    spec,
    cwd: spec.cwd,
    program,
    costs: new SessionCosts(),
    own: (known) => new ModelUpdates(known),
    content: AcpPrompt.make(yield* FileContents.reader, nowhere),
    workspace: undefined,
    terminals: () =>
      Effect.succeed({
        create: () => Effect.never,
        does: {},
        known: () => ({ isAny: false, begun: 0 }),
        takeUp: () => Effect.void,
        goOn: Effect.void,
        released: () => Effect.void,
        cancel: () => Effect.void
      })
  })
})
