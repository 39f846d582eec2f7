/** OnLog: what people read: the log, and what agentd says of itself. Worlds of older seeds are without. */
import { Effect, Exit, Stream } from "effect"
import { caller } from "../Daemon.ts"
import type { Order, Orders } from "./Order.ts"
import type { Selection } from "../checks/Readers.ts"

const KINDS = ["worker.moved", "turn.started", "turn.completed", "inbox.received", "alert.queued", "session.moved"]

const selectionOf = ({ people }: Order, head: number): Selection => ({
  ...(people.is(0.5) ? { after: people.below(head + 1) } : {}),
  ...(people.is(0.3) ? { kinds: KINDS.filter(() => people.is(0.5)).concat("turn.started") } : {}),
  ...(people.is(0.5) ? { tail: 1 + people.below(200) } : {})
})

export const onLog = {
  log: (order) => {
    const { client, run, world } = order
    const { head, readers } = world.checker
    const selection = selectionOf(order, head)
    run(Stream.runCollect(client.Log({ ...selection, internal: true, follow: false, caller })), (exit) => {
      if (Exit.isSuccess(exit)) readers.read(selection, head, exit.value)
    })
  },
  follow: (order) => {
    const { client, people, then, world } = order
    const { head, readers } = world.checker
    const { tail: _, ...selection } = selectionOf(order, head)
    const follower = readers.follow({ after: people.below(head + 1), ...selection }, people.is(0.3))
    world.meanwhile(
      client.Log({ ...follower.of, internal: true, follow: true, caller }).pipe(
        Stream.tap((rune) => Effect.sync(() => readers.came(follower, rune))),
        Stream.runForEach(() => (follower.isSlow ? Effect.sleep(people.skewed(1, 50)) : Effect.void))
      ),
      () => readers.leaves(follower)
    )
    then(true)
  },
  status: ({ client, run }) => run(client.Status()),
  projects: ({ client, run }) => run(client.Projects()),
  conversation: ({ client, run }) => run(client.Conversation({ name: "", caller })),
  calls: ({ client, run }) => run(client.Calls()),
  one: ({ agent, client, run, world }) =>
    run(client.Agent({ name: agent, caller }), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.shown([exit.value], false)
    }),
  alertTest: ({ client, run }) => run(client.AlertTest()),
  plates: ({ client, run }) => run(client.Plates({ all: true }))
} satisfies Orders

export const LOG_COMMANDS = Object.keys(onLog) as ReadonlyArray<keyof typeof onLog>
