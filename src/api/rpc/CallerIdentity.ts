/**
 * CallerIdentity: finds out by the connection who the caller of a command is. If the calling process belongs to a run,
 * the name in the payload is ignored.
 *
 * Guarantees: a command of a run's process is logged as a command of the run's agent, whatever name the payload
 * contains. Commands that decide for a user (approve, deny, answer) are refused to a run's process, and to a process
 * that cannot be found. Each agent's attempt is logged. No run can act as another run. A connection is looked up once,
 * and never for a command that only reads. For a command that decides nothing, the process id that the client states is
 * believed; if the client states none, the process is searched for. This keeps honest programs apart, but is not a
 * security boundary (PeerProcess).
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Context, Effect, Option } from "effect"
import type { Socket } from "node:net"
import type { Agents } from "../../projects/service/Agents.ts"
import type { Peer } from "../../runs/process/PeerProcess.ts"
import { refuse } from "../../domain/Messages.ts"
import type { EventLog } from "../../core/event-log/EventLog.ts"
import { DAEMON_STREAM } from "../../core/event-log/Rune.ts"
import type { Voice } from "./Procedure.ts"

interface Looking {
  readonly search: (socket: Socket) => Effect.Effect<Peer>
  /** Looks up the process whose id the client has stated. */
  readonly believe: (pid: number) => Effect.Effect<Peer>
}

const untold = Effect.succeed<Peer>({ _tag: "Untold" })

/** The functions that look up callers. By default callers are not looked up. */
export const Look = Context.Reference<Looking>("agentd/rpc/Look", {
  defaultValue: () => ({ search: () => untold, believe: () => untold })
})

/** Maximum number of refused attempts, by run and command, that are kept so that each is logged only once. */
const MAX_TRIED = 1_000

const another = refuse(
  "not_allowed",
  "The calling process belongs to another run.",
  "Use your own run: agentd mcp, as it was set up for you"
)

const refusal = (who: string) =>
  refuse(
    "not_allowed",
    `${who} may not decide what waits for a person.`,
    "A person must answer it, in a terminal that no agent started: agentd approve"
  )

export const make = Effect.fnUntraced(function* (agents: Agents["Service"], log: EventLog["Service"]) {
  const look = yield* Look
  const introduced = new WeakMap<Socket, number>()
  const believed = new WeakMap<Socket, Peer>()
  const searched = new WeakMap<Socket, Peer>()
  const tried = new Set<string>()

  const connection = Effect.map(Effect.serviceOption(NodeSocket.NetSocket), Option.getOrUndefined)

  /** The caller's process. If it is unknown, the result is not cached, because the process might be found next time. */
  const peer = Effect.fnUntraced(function* (isBelieved: boolean): Effect.fn.Return<Peer> {
    const socket = yield* connection
    if (socket === undefined) return { _tag: "Untold" }
    const known = searched.get(socket) ?? (isBelieved ? believed.get(socket) : undefined)
    if (known !== undefined) return known
    const pid = isBelieved ? introduced.get(socket) : undefined
    const said = pid === undefined ? undefined : yield* look.believe(pid)
    if (said !== undefined && said._tag !== "Unknown") {
      believed.set(socket, said)
      return said
    }
    const found = yield* look.search(socket)
    if (found._tag !== "Unknown") searched.set(socket, found)
    return found
  })

  const agentOf = (runId: string) =>
    agents.voice(runId).pipe(
      Effect.map(({ agent, conversation }) => ({ by: `agent:${agent}`, stream: conversation })),
      Effect.orElseSucceed(() => ({ by: `run:${runId}`, stream: DAEMON_STREAM }))
    )

  const refused = Effect.fnUntraced(function* (runId: string, what: string) {
    const { by, stream } = yield* agentOf(runId)
    const key = `${runId} ${what}`
    if (!tried.has(key) && tried.size < MAX_TRIED) {
      tried.add(key)
      const payload = { by, run_id: runId, what }
      yield* Effect.ignore(log.append([{ stream, kind: "caller.refused", actor: "daemon", payload }]))
    }
    return yield* refusal(by)
  })

  /** Records the process id that the client has stated. */
  const introduce = (pid: number) =>
    Effect.map(connection, (socket) => {
      if (socket !== undefined) introduced.set(socket, pid)
    })

  /** The name under which a command is carried out and logged. `said`: the caller's name or run in the payload. */
  const sign = Effect.fnUntraced(function* (how: Voice, what: string, said: string) {
    const found = yield* peer(how === "acts")
    switch (found._tag) {
      case "Run":
        if (how === "speaks") return found.runId === said ? said : yield* another
        return how === "decides" ? yield* refused(found.runId, what) : (yield* agentOf(found.runId)).by
      case "Unknown":
        return how === "decides" ? yield* refusal(`A caller that cannot be found (${found.why})`) : said
      default:
        return said
    }
  })

  return { introduce, sign }
})
