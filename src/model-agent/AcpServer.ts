/**
 * AcpServer: the methods of the Agent Client Protocol that the model agent serves.
 *
 * Guarantees: a session that is resumed, loaded or copied is the one in its file, or the request is refused as unknown.
 * When the client closes the connection, the conversations end with everything that their tools have started.
 */
import { agent, type AgentContext, type InitializeResponse, RequestError, type Stream } from "@agentclientprotocol/sdk"
import { type Duration, Effect, Exit, FileSystem, Random, Schema, Scope } from "effect"
import * as path from "node:path"
import { KEY_ENV, type ModelBackend } from "../config/BackendConfig.ts"
import type { RunSpec, TreeMount } from "../runs/Backend.ts"
import { services } from "../runs/CapturedServices.ts"
import type { Host } from "../runs/Host.ts"
import { CANCEL_CALL } from "../runs/acp/AgentdMeta.ts"
import * as Messages from "./AcpMessages.ts"
import { AcpSession, refusal } from "./AcpSession.ts"
import * as ModelEngine from "./ModelEngine.ts"
import * as ModelSession from "./ModelSession.ts"

export interface Options {
  readonly stream: Stream
  readonly hello: InitializeResponse
  readonly isGreeted: boolean
  readonly config: ModelEngine.ModelConfig
  readonly host: Host
  readonly agent: string
  readonly env: { readonly [name: string]: string }
  readonly mounts?: ReadonlyArray<TreeMount>
  readonly toolTimeout?: Duration.Duration
  /** Id of the daemon's run, which the first new conversation gets. */
  readonly runId: string | undefined
  readonly toolbox: ModelEngine.MakeToolbox<Scope.Scope>
}

interface Opening {
  readonly cwd: string
  readonly mcpServers?: Parameters<typeof Messages.serversOf>[0]
}

const NOT_FOUND = -32002
/** How long a session waits before its first message. */
const LATER = "10 millis"
/** How long the conversations may take to end after the client has closed the connection. */
const END_LIMIT = "5 seconds"

/** The variable with the provider's key, if the config names none. */
export const keyOf = ({ provider }: ModelBackend): string => KEY_ENV[provider]

const Fork = Schema.Struct({
  sessionId: Schema.String,
  cwd: Schema.String,
  mcpServers: Schema.optionalKey(Schema.Array(Schema.Unknown))
})
const CancelCall = Schema.Struct({ sessionId: Schema.String, toolCallId: Schema.String })

/** A parser for the SDK: it throws if the parameters have another form. */
const parser = <A, I>(schema: Schema.Codec<A, I>) => Schema.decodeUnknownSync(schema)

class Sessions {
  private readonly options: Options
  private readonly scope: Scope.Scope
  private readonly open = new Map<string, AcpSession>()
  private isNamed = false

  constructor(options: Options, scope: Scope.Scope) {
    this.options = options
    this.scope = scope
  }

  of(id: string): Effect.Effect<AcpSession, RequestError> {
    const found = this.open.get(id)
    return found === undefined
      ? Effect.fail(new RequestError(NOT_FOUND, `there is no session ${id}`))
      : Effect.succeed(found)
  }

  get all(): ReadonlyArray<AcpSession> {
    return [...this.open.values()]
  }

  /** The id of a new conversation. */
  private get name(): Effect.Effect<string> {
    return Effect.suspend(() => {
      const { runId } = this.options
      if (this.isNamed || runId === undefined)
        return Effect.map(Random.nextInt, (number) => `session-${Math.abs(number).toString(36)}`)
      this.isNamed = true
      return Effect.succeed(runId)
    })
  }

  /** Opens a conversation. `resume`: the one that goes on. */
  readonly begin = Effect.fnUntraced(
    { self: this },
    function* (
      this: Sessions,
      client: AgentContext,
      { cwd, mcpServers = [] }: Opening,
      resume?: NonNullable<RunSpec["resume"]>
    ) {
      const { agent: name, config, env, host, mounts, toolbox, toolTimeout } = this.options
      const isThere =
        resume === undefined || (yield* Effect.mapError(ModelSession.isThere(host.sessions, resume.sessionId), refusal))
      if (!isThere) return yield* Effect.fail(new RequestError(NOT_FOUND, `session not found: ${resume?.sessionId}`))
      const spec: RunSpec = {
        runId: yield* this.name,
        agent: name,
        turnId: "",
        prompt: "",
        cwd: path.resolve(cwd),
        env,
        ...(mounts === undefined ? {} : { mounts }),
        ...(toolTimeout === undefined ? {} : { toolTimeout }),
        resume,
        mcp: Messages.serversOf(mcpServers)
      }
      const scope = yield* Scope.fork(this.scope)
      const run = yield* ModelEngine.open({ ...config, resume: true }, host, spec, toolbox).pipe(
        Scope.provide(scope),
        Effect.mapError(refusal),
        Effect.onError(() => Scope.close(scope, Exit.void))
      )
      const session = new AcpSession({ run, client })
      this.open.set(session.id, session)
      // the client learns the session's id before it gets the first message about it
      yield* Effect.forkIn(Effect.andThen(Effect.sleep(LATER), Scope.provide(session.follow, scope)), scope)
      return session
    }
  )
}

/** Serves the client until it closes the connection. */
export const serve = Effect.fnUntraced(function* (options: Options) {
  const context = yield* services<FileSystem.FileSystem>()
  const sessions = new Sessions(options, yield* Effect.scope)
  const perform = Effect.runPromiseWith(context)
  const begin = (client: AgentContext, opening: Opening, resume?: NonNullable<RunSpec["resume"]>) =>
    perform(sessions.begin(client, opening, resume))
  const of = <A>(
    { sessionId }: { readonly sessionId: string },
    act: (session: AcpSession) => Effect.Effect<A, RequestError>
  ) => perform(Effect.flatMap(sessions.of(sessionId), act))
  const app = agent()
    .onRequest("session/new", ({ client, params }) =>
      begin(client, params).then(({ id: sessionId }) => ({ sessionId }))
    )
    .onRequest("session/resume", ({ client, params }) =>
      begin(client, params, { sessionId: params.sessionId, fork: false }).then(() => ({}))
    )
    .onRequest("session/load", ({ client, params }) =>
      begin(client, params, { sessionId: params.sessionId, fork: false }).then((session) => perform(session.replay))
    )
    .onRequest("session/fork", parser(Fork), ({ client, params }) =>
      begin(client, params as Opening, { sessionId: params.sessionId, fork: true }).then(({ id: sessionId }) => ({
        sessionId
      }))
    )
    .onRequest("session/prompt", ({ params }) => of(params, (session) => session.prompt(params)))
    .onNotification("session/cancel", ({ params }) => of(params, (session) => session.cancel))
    .onNotification(CANCEL_CALL, parser(CancelCall), ({ params }) =>
      of(params, (session) => session.cancelCall(params.toolCallId))
    )
  if (!options.isGreeted) app.onRequest("initialize", () => options.hello)
  const connection = app.connect(options.stream)
  yield* Effect.promise(() => connection.closed)
  yield* Effect.forEach(sessions.all, (session) => session.end, { discard: true })
  yield* Effect.timeoutOption(
    Effect.forEach(sessions.all, (session) => session.isOver, { discard: true }),
    END_LIMIT
  )
})
