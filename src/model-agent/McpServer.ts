/**
 * McpServer: a server of the Model Context Protocol during a run. It is started, its tools are listed, and it is
 * started again if it is lost.
 *
 * Guarantees: if a server does not start, dies, hangs or sends invalid data, its tools are removed with a notice, and
 * the run continues. The wait between two starts grows; after the server has worked for a while, it is short again.
 * Every step has a timeout. A server that does not answer a ping after an abandoned call counts as lost. Its processes
 * carry the run's mark and end with the scope.
 */
import { Context, Deferred, Duration, Effect, FileSystem, Layer, Schema, type Scope } from "effect"
import { HttpClient } from "effect/http"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import * as Backoff from "../core/supervision/Backoff.ts"
import type { Argv, Host } from "../runs/Host.ts"
import type { RunEvent, RunSpec } from "../runs/Backend.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import * as RunProcess from "../runs/process/RunProcess.ts"
import * as McpConnection from "./McpConnection.ts"
import * as McpEnvironment from "../runs/process/McpEnvironment.ts"
import * as McpHttp from "./McpHttp.ts"
import * as McpPipes from "./McpPipes.ts"
import { ModelHttp } from "./ModelHttp.ts"

/** An MCP server that is in the config or that agentd provides to the run. */
export interface Server {
  /** The program; omitted for a remote server, which has `url`. */
  readonly argv?: ReadonlyArray<string>
  /** Address on the gateway's socket, or of the server itself if there is no gateway. */
  readonly url?: string
  readonly env: { readonly [name: string]: string }
  readonly trustHints?: boolean
  readonly passEnv?: ReadonlyArray<string>
}

export interface ServerOptions {
  readonly spec: RunSpec
  readonly host: Host
  readonly cwd: string
  readonly emit: (event: RunEvent) => Effect.Effect<void>
  /** Delay before the second attempt to start; it doubles with each attempt. By default 1 s. */
  readonly pause?: Duration.Duration | undefined
  /** Time that a program has to say whether it knows the revision of 2026, ms. */
  readonly probe?: number | undefined
}

const Listed = Schema.Struct({
  tools: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      description: Schema.optionalKey(Schema.NullOr(Schema.String)),
      inputSchema: Schema.Record(Schema.String, Schema.Unknown),
      annotations: Schema.optionalKey(
        Schema.NullOr(Schema.Struct({ readOnlyHint: Schema.optionalKey(Schema.NullOr(Schema.Boolean)) }))
      )
    })
  ),
  nextCursor: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Described = (typeof Listed.Type)["tools"][number]

export interface Live {
  readonly connection: McpConnection.McpConnection
  readonly tools: ReadonlyArray<Described>
}

/** Timeout for the time from the start until the tools are listed. Long, because a first `npx` downloads the server. */
const START_LIMIT = "60 seconds"
/** How long the start of a run waits for the server. If the server is not ready by then, its tools are added later. */
const FIRST_LIMIT = "20 seconds"
const GRACE = Duration.seconds(5)
const PAUSE = Duration.seconds(1)
const CAP = 60_000
/** If the server has worked for this many ms, the next wait is the shortest again. */
const STEADY = 60_000
const PING_LIMIT = "5 seconds"
const MAX_PAGES = 20
const MAX_TOOLS = 200
/** Time that a program has to say whether it knows the revision of 2026, before it is asked as an older one, ms. */
const PROBE = 15_000

const decodeListed = Schema.decodeUnknownEffect(Listed)

const unusable = (name: string, why: string) =>
  new McpConnection.McpError({ message: `the MCP server ${name} cannot be used: ${why}`, lost: true })

/** A program ended when it was asked whether it knows the revision of 2026, as some old ones do. */
class EndedByProbe extends Schema.TaggedError<EndedByProbe>()("EndedByProbe", {}) {}

/** Reads all pages of the list of tools. */
const listed = Effect.fnUntraced(function* (connection: McpConnection.McpConnection) {
  const found: Array<Described> = []
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES && found.length < MAX_TOOLS; pages++) {
    const page = yield* Effect.flatMap(
      connection.request("tools/list", cursor === undefined ? {} : { cursor }),
      decodeListed
    )
    found.push(...page.tools)
    cursor = page.nextCursor ?? undefined
    if (cursor === undefined) break
  }
  return found.slice(0, MAX_TOOLS)
})

const byPipes = Effect.fnUntraced(function* (
  name: string,
  config: Server,
  { cwd, host, probe = PROBE, spec }: ServerOptions,
  isOld: boolean
) {
  const [program = "", ...args] = config.argv ?? []
  const argv: Argv = [program, ...args]
  const server = yield* RunProcess.make({
    store: host.store,
    // a separate mark, so that a shell command that ends does not end the server
    runId: `${spec.runId}+mcp-${name}`,
    argv,
    cwd,
    env: McpEnvironment.of(config, host),
    keepInput: true,
    grace: GRACE
  }).pipe(Effect.mapError(({ message, remedy }) => unusable(name, `${message} (${remedy})`)))
  // most servers end when their input is closed; SIGTERM is for the others
  yield* Effect.addFinalizer(() => server.closeInput)
  const link = yield* McpPipes.make(name, server, { isOld, probe })
  return yield* Effect.catch(McpConnection.make(name, link), (error) =>
    Effect.flatMap(Deferred.isDone(link.over), (isOver) => Effect.fail(isOver && !isOld ? new EndedByProbe() : error))
  )
})

/** Connects to a remote server. */
const byHttp = Effect.fnUntraced(function* (name: string, url: string) {
  const client = Context.get(yield* Layer.build(yield* ModelHttp), HttpClient.HttpClient)
  return yield* McpConnection.make(name, yield* McpHttp.make({ client, url, login: `agentd login ${name}` }))
})

const advice = ({ argv }: Server): string =>
  argv === undefined
    ? "check its url under mcp in agentd.jsonc, or remove it there"
    : `try its command by hand ("${argv.join(" ").slice(0, 200)}"), then correct it under mcp in agentd.jsonc, or remove it there`

const connect = Effect.fnUntraced(
  function* (name: string, config: Server, options: ServerOptions, isOld: boolean) {
    const connection =
      config.url === undefined ? yield* byPipes(name, config, options, isOld) : yield* byHttp(name, config.url)
    const tools = yield* Effect.catchTag(listed(connection), "SchemaError", () =>
      Effect.fail(unusable(name, "its list of tools has an unknown form"))
    )
    const live: Live = { connection, tools }
    return live
  },
  (connected, name) =>
    Effect.timeoutOrElse(connected, {
      duration: START_LIMIT,
      orElse: () => Effect.fail(unusable(name, `it was not ready within ${START_LIMIT}`))
    })
)

/** Checks whether a server still answers, after a call to it was abandoned. */
export const check = ({ connection }: Live): Effect.Effect<void> =>
  connection.check.pipe(
    Effect.timeoutOrElse({ duration: PING_LIMIT, orElse: () => connection.lose(`no longer answers`) }),
    // A server that refuses to say so answers with an error, which shows that it is there.
    Effect.ignore
  )

/**
 * Keeps a server running. Completes when the server is up, when its start failed, or after `FIRST_LIMIT`. The returned
 * function returns the connection and its tools, or undefined if the server cannot be used now.
 */
export const keep = Effect.fnUntraced(function* (
  name: string,
  config: Server,
  options: ServerOptions
): Effect.fn.Return<() => Live | undefined, never, FileSystem.FileSystem | Scope.Scope | ProcessTree | Reaper> {
  const policy: Backoff.Policy = {
    base: Duration.toMillis(options.pause ?? PAUSE),
    factor: 2,
    cap: CAP,
    jitter: 0
  }
  const first = yield* Deferred.make<void>()
  let live: Live | undefined
  let [failures, told, isOld] = [0, "", false]
  const about = `the MCP server ${name}`

  const tell = (text: string, isOver: boolean) =>
    Effect.suspend(() => {
      // do not report the same problem twice
      if (text === told) return Effect.void
      told = text
      return options.emit({ _tag: "Notice", text, lasting: { about, isOver } })
    })

  const one = Effect.gen(function* () {
    const up = yield* connect(name, config, options, isOld)
    const since = yield* Monotonic.now
    if (failures > 0)
      yield* tell(`${about} is back, with ${up.tools.length === 1 ? "1 tool" : `${up.tools.length} tools`}`, true)
    live = up
    yield* Deferred.succeed(first, undefined)
    const why = yield* up.connection.lost
    const now = yield* Monotonic.now
    if (now - since >= STEADY) failures = 0
    return `${why.message}; its ${up.tools.length} tools are gone until it is back`
  }).pipe(
    Effect.scoped,
    Effect.catchTag("McpError", ({ message }) => {
      // what looked like an old server may be a new one that could not start
      isOld = false
      return Effect.succeed(`${message}; ${advice(config)}`)
    }),
    Effect.ensuring(Effect.sync(() => void (live = undefined)))
  )

  const again = Effect.gen(function* () {
    const why = yield* Effect.catchTag(one, "EndedByProbe", () => {
      isOld = true
      return Effect.catchTag(one, "EndedByProbe", Effect.die)
    })
    failures += 1
    yield* Deferred.succeed(first, undefined)
    yield* tell(why, false)
    yield* Effect.sleep(Backoff.wait(policy, failures))
  })
  yield* Effect.forkScoped(Effect.forever(again))
  yield* Effect.timeoutOption(Deferred.await(first), FIRST_LIMIT)
  return () => live
})
