/** OnAgents: what people ask of single agents. */
import { Effect, Exit } from "effect"
import { caller } from "../Daemon.ts"
import type { Order, Orders } from "./Order.ts"

const named = ({ agent }: Order) => ({ name: agent, caller })

const send = (how: "queue" | "steer" | "urgent") => (order: Order) => {
  const { agent, client, run, world } = order
  const token = world.token()
  world.checker.sending(token, agent)
  run(client.Send({ ...named(order), text: `[${token}] do it`, how }), (exit) => {
    if (Exit.isSuccess(exit)) world.checker.acked(token, exit.value.eventId)
  })
}

const count = (counts: Map<string, number>, agent: string, by: number): void =>
  void counts.set(agent, (counts.get(agent) ?? 0) + by)

const start = (ask: "Restart" | "Start") => (order: Order) => {
  const { agent, client, run, world } = order
  count(world.starting, agent, 1)
  count(world.starts, agent, 1)
  world.checker.stopped.delete(agent)
  run(client[ask](named(order)), () => count(world.starting, agent, -1))
}

export const onAgents = {
  send: send("queue"),
  steer: send("steer"),
  urgent: send("urgent"),
  interrupt: (order) => {
    const { agent, client, run, world } = order
    count(world.checker.interrupting, agent, 1)
    run(client.Interrupt(named(order)), () => count(world.checker.interrupting, agent, -1))
  },
  stop: (order) => {
    const { agent, client, run, world } = order
    const starts = world.starts.get(agent)
    // of two that are under way at one time either may be the last
    const isStarting = (world.starting.get(agent) ?? 0) > 0
    run(client.Stop(named(order)), (exit) => {
      // somebody who has asked for a start since then has the last word
      if (!Exit.isSuccess(exit) || isStarting || world.starts.get(agent) !== starts) return
      if (world.checker.isLiving(agent)) world.checker.broken("stopped is answered when nothing of it is left", agent)
      world.checker.stops(agent)
    })
  },
  start: start("Start"),
  restart: start("Restart"),
  spawn: (order) => {
    const { agent, client, people, run, world } = order
    const name = people.pick(["helper", "scout"])
    const token = world.token()
    world.checker.sending(token, name)
    run(client.Spawn({ ...named(order), request: { name, task: `[${token}] help` } }), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.sometimes(`${agent} has a sub-agent`)
    })
  },
  why: (order) =>
    order.run(order.client.Why(named(order)), (exit) => {
      if (Exit.isSuccess(exit)) order.world.checker.explained(exit.value)
    }),
  approve: ({ client, people, run, world }) =>
    run(
      Effect.gen(function* () {
        const calls = yield* client.Calls()
        const answers = yield* Effect.forEach(
          calls.filter(({ state }) => state === "awaiting_approval"),
          ({ callId }) => {
            world.calls.add(callId)
            const decision = people.is(0.7) ? "allow" : "deny"
            const answer = (seen: { readonly hash?: string }) =>
              client.Answer({ name: callId, decision, reason: "", caller, ...seen })
            // whoever approves has seen it whole
            return Effect.exit(
              decision === "deny"
                ? answer({})
                : Effect.flatMap(client.Asked({ name: callId, caller }), ({ hash }) => answer({ hash }))
            )
          }
        )
        for (const answer of answers) if (Exit.isFailure(answer)) return yield* answer
      })
    )
} satisfies Orders

/** In worlds of what is rare only: what came later changes no older world. */
export const onCalls = {
  /** Somebody answers a call that another person was asked about as well. */
  answerAgain: ({ client, people, run, then, world }) =>
    world.calls.size === 0
      ? then(false)
      : run(
          Effect.suspend(() => {
            const name = people.pick([...world.calls])
            return Effect.flatMap(client.Asked({ name, caller }), ({ hash }) =>
              client.Answer({ name, decision: "allow", reason: "", hash, caller })
            )
          })
        )
} satisfies Orders
