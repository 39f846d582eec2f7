/** OnProjects: what people ask of a project, its conversation and the daemon as a whole. */
import { Exit, Stream } from "effect"
import { caller, CONFIG } from "../Daemon.ts"
import type { Orders } from "./Order.ts"

export const onProjects = {
  reload: ({ client, run }) => run(client.Register({ config: CONFIG, caller })),
  edit: ({ then, world }) => {
    world.files.write(CONFIG, world.config())
    then(true)
  },
  pause: ({ client, people, run }) => {
    const inFlight = people.is(0.5) ? "interrupt" : "complete"
    run(client.Pause({ name: "", inFlight, reason: "a pause", caller }))
  },
  resume: ({ client, run }) => run(client.Resume({ name: "", caller })),
  verify: ({ client, run, world }) =>
    run(Stream.runCollect(client.Verify()), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.verified(exit.value)
    }),
  ps: ({ client, run }) => run(client.Agents())
} satisfies Orders
