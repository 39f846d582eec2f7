/**
 * LogSource: reads the log from the daemon, or from the store if no daemon runs.
 *
 * Guarantees: the store is opened read-only. Runes are streamed, not loaded all at once.
 */
import { Effect, Stream } from "effect"
import * as DaemonLog from "../../app/DaemonLog.ts"
import { didYouMean } from "../../config/DidYouMean.ts"
import { EventLog, type StorageError } from "../../core/event-log/EventLog.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { call, type Client } from "../../api/rpc/ControlClient.ts"
import type { LogSelection } from "../../board/DaemonMessages.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import { agentOf } from "../../board/ConversationView.ts"
import { actorsOf, select } from "../../board/LogReader.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation } from "../parse/Invocation.ts"
import { type Chosen, type Home, projectOf } from "./LogsChoice.ts"
import { plain } from "../render/Output.ts"
import { unreadable } from "../daemon/Verify.ts"

type Failed = Effect.Error<ReturnType<Client["Status"]>> | Stream.Error<ReturnType<Client["Log"]>> | StorageError

export interface Source {
  readonly homes: Effect.Effect<ReadonlyArray<Home>, Failed>
  /** The highest eventId in the log. */
  readonly head: Effect.Effect<number, Failed>
  /** Streams the existing runes, and ends without waiting for new runes. */
  readonly log: (selection: Omit<LogSelection, "caller" | "follow">) => Stream.Stream<Rune, Failed>
}

export const definedOf = <A extends object>(of: A) =>
  Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined)) as {
    readonly [K in keyof A]: Exclude<A[K], undefined>
  }

const ofDaemon = (client: Client, caller: LogSelection["caller"]): Source => ({
  homes: client.Conversations(),
  head: Effect.map(client.Status(), ({ daemon }) => daemon.log.head),
  log: (selection) => client.Log({ ...selection, caller, follow: false })
})

/**
 * A source that reads the store. Only the daemon knows the names of projects, so they are taken from the conversations'
 * ids.
 */
const ofStore = (log: EventLog["Service"]): Source => ({
  homes: Effect.map(Stream.runCollect(log.read({ kinds: ["worker.started"] })), (runes) => {
    const agents = new Map<string, Set<string>>()
    for (const rune of runes) agents.set(rune.stream, (agents.get(rune.stream) ?? new Set()).add(agentOf(rune)))
    return [...agents].map(([conversation, all]) => ({
      conversation,
      project: projectOf(conversation),
      config: "",
      state: "active",
      agents: [...all]
    }))
  }),
  head: log.head,
  log: ({ agent, internal, tail, ...selection }) => {
    const at = agent?.indexOf("/") ?? -1
    const of =
      agent === undefined
        ? selection
        : { ...selection, stream: agent.slice(0, at), actors: actorsOf(agent.slice(at + 1)) }
    return select(log, definedOf(of), { tail, internal, follow: false }, DaemonLog.rules.kinds.names)
  }
})

/** The error for names that match no agents. */
export const refused = ({ known, unknown, which }: Chosen) =>
  new VerbFailed({
    message: unknown
      .map((name) => {
        const near = /[*?]/.test(name) ? undefined : didYouMean(name, known)
        return `There is no agent "${plain(name)}".${near === undefined ? "" : ` Did you mean "${near}"?`}`
      })
      .join(" "),
    remedy: which.length > 1 ? `Use one of these names: ${which.join(", ")}` : "List all agents: agentd ps",
    exitCode: ExitCode.failed
  })

/** Runs `use` with the daemon as the source; if no daemon runs, with the store. `needed`: require the daemon. */
export const onSource = Effect.fnUntraced(function* <A, E, R>(
  use: (source: Source) => Effect.Effect<A, E, R>,
  needed = false
) {
  const { caller, paths } = yield* Invocation
  const found = needed || paths.host !== undefined ? "live" : yield* probe(paths.socket)
  const isAway = found === "absent" || found === "stale"
  if (isAway && (yield* unreadable(paths.store)) === undefined)
    return yield* Effect.flatMap(EventLog, (log) => use(ofStore(log))).pipe(
      Effect.provide(DaemonLog.layerReadOnly({ file: paths.store }))
    )
  return yield* call(paths.socket, (client) => use(ofDaemon(client, caller)))
})
