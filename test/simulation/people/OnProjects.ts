/** OnProjects: what people ask of a project, its conversation and the daemon as a whole. */
import { Effect, Exit, Stream } from "effect"
import { caller, CONFIG } from "../Daemon.ts"
import type { Orders } from "./Order.ts"

export const onProjects = {
  reload: ({ client, run }) => run(client.Register({ config: CONFIG, caller })),
  /** People who edit the file mostly agree to it, as they were shown it; what an agent has written may wait for long. */
  edit: ({ client, people, run, then, world }) => {
    world.edit(people)
    if (people.is(0.2)) return then(true)
    run(
      Effect.flatMap(client.ConfigChange({ name: "", caller }), ({ hash, waits }) =>
        hash === null || !waits ? Effect.void : Effect.asVoid(client.Register({ config: CONFIG, trust: hash, caller }))
      )
    )
  },
  close: ({ client, people, run }) => run(client.Close({ name: "", reason: "enough", force: people.is(0.3), caller })),
  begin: ({ client, run }) => run(client.NewConversation({ config: CONFIG, caller })),
  pause: ({ client, people, run }) => {
    const inFlight = people.is(0.5) ? "interrupt" : "complete"
    run(client.Pause({ name: "", inFlight, reason: "a pause", caller }))
  },
  resume: ({ client, run }) => run(client.Resume({ name: "", caller })),
  verify: ({ client, run, world }) =>
    run(Stream.runCollect(client.Verify()), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.verified(exit.value)
    }),
  ps: ({ client, run, world }) =>
    run(client.Agents(), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.shown(exit.value, false)
    })
} satisfies Orders

/** Came later: worlds of older seeds are without. */
export const onArchives = {
  archive: ({ client, people, run }) =>
    run(
      Effect.flatMap(client.Conversations(), (all) => {
        const over = all.filter(({ state }) => state === "closed" || state === "archived")
        return over.length === 0 ? Effect.void : client.Archive({ name: people.pick(over).conversation, caller })
      })
    ),
  conversations: ({ client, run }) => run(client.Conversations())
} satisfies Orders
