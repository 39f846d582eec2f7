/**
 * Callers: who a command is from, as far as its connection tells: what a caller says of itself is
 * not taken where its process bears a run's mark.
 *
 * Guarantees: a command of a marked caller is that agent's in the log, whoever it says it is; what
 * decides for a person (approve, deny, answer) is refused to a marked caller and to one that
 * cannot be found, and each agent that tried is in the log; nobody speaks as another run; a connection is looked at once, and for
 * what only reads never. Honest, and no boundary (PeerProcess).
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Context, Effect, Option } from "effect"
import type { Socket } from "node:net"
import type { Agents } from "../agents/Agents.ts"
import type { Peer } from "../backends/process/PeerProcess.ts"
import { CommandRefused } from "../domain/Messages.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import { DAEMON_STREAM } from "../event-log/Rune.ts"
import type { Voice } from "./Procedure.ts"

/** Looks at a connection's other end. Without a socket, or in a world that has none, nobody is looked at. */
export const Look = Context.Reference<(socket: Socket) => Effect.Effect<Peer>>("agentd/rpc/Look", {
  defaultValue: () => () => Effect.succeed({ _tag: "Untold" })
})

/** Agents that tried to decide: so many are remembered, so that each is in the log once. */
const MAX_TRIED = 1_000

const another = new CommandRefused({
  message: "This is another run than that of the process that calls.",
  remedy: "Speak for your own run: agentd mcp, as it was given to you"
})

const refusal = (who: string) =>
  new CommandRefused({
    message: `${who} may not decide what waits for a person.`,
    remedy: "A person answers it, in a terminal that no agent started: agentd approve"
  })

export const make = Effect.fnUntraced(function* (agents: Agents["Service"], log: EventLog["Service"]) {
  const look = yield* Look
  const peers = new WeakMap<Socket, Peer>()
  const tried = new Set<string>()

  /** A connection that is unknown now may be found the next time. */
  const peer = Effect.gen(function* () {
    const socket = Option.getOrUndefined(yield* Effect.serviceOption(NodeSocket.NetSocket))
    if (socket === undefined) return { _tag: "Untold" } as Peer
    const known = peers.get(socket)
    if (known !== undefined) return known
    const found = yield* look(socket)
    if (found._tag !== "Unknown") peers.set(socket, found)
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

  /** The name under which the command is carried out and logged; `said`: what the caller calls itself, or its run. */
  return Effect.fnUntraced(function* (how: Voice, what: string, said: string) {
    const found = yield* peer
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
})
