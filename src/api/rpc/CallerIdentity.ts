/**
 * CallerIdentity: determines which caller a command is from, by its connection. If the calling process has the mark of a run,
 * the name in the payload is ignored.
 *
 * Guarantees: a command of a marked caller is logged as that agent's, whatever name it states. Commands that decide for
 * a user (approve, deny, answer) are refused to a marked caller, and to one whose process cannot be found. Each agent
 * that tried is in the log. No run can speak as another. A connection is looked up once, and never for a command that
 * only reads. For commands that decide nothing, the process id that a client states is believed; without one, the
 * process is searched for. This keeps honest programs apart; it is not a security boundary (PeerProcess).
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
  /** Looks up the process with the id that the client states. */
  readonly believe: (pid: number) => Effect.Effect<Peer>
}

const untold = Effect.succeed<Peer>({ _tag: "Untold" })

/** The look-up of callers. By default no caller is looked up, for example if the daemon has no socket. */
export const Look = Context.Reference<Looking>("agentd/rpc/Look", {
  defaultValue: () => ({ search: () => untold, believe: () => untold })
})

/** Number of refused agents and commands that are remembered, so that each is logged once. */
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

  /** The process of the caller. An unknown result is not cached, because the process might be found the next time. */
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

  /** Records the process id that the client states. */
  const introduce = (pid: number) =>
    Effect.map(connection, (socket) => {
      if (socket !== undefined) introduced.set(socket, pid)
    })

  /** The name under which the command is carried out and logged. `said`: the name or the run that the caller states. */
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
