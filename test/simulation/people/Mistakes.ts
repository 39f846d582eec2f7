/** Mistakes: what people ask that cannot be: of agents, channels and goals that are not there, with words that are none. */
import { Effect } from "effect"
import { caller, CONFIG } from "../Daemon.ts"
import type { Order, Orders } from "./Order.ts"

type Asked = (order: Order) => Effect.Effect<unknown, unknown>

const SEND = { name: "a", how: "queue", caller } as const
const nobody = { name: "nobody", caller }

const submit = (goal: string) => ({ request: { goal, plan: null }, caller })

/** Each is refused, or finds nothing to do. */
const mistakes: ReadonlyArray<Asked> = [
  ({ client }) => client.Send({ ...SEND, name: "nobody", text: "do it" }),
  ({ client }) => client.Send({ ...SEND, text: "  " }),
  ({ client }) => client.Send({ ...SEND, text: "x".repeat(300_000) }),
  ({ client }) => client.Stop(nobody),
  ({ client }) => client.Why(nobody),
  ({ client }) => client.Close({ ...nobody, reason: "", force: false }),
  ({ client }) => client.Archive({ name: "", caller }),
  ({ client }) => client.NewConversation({ config: CONFIG, caller }),
  ({ client }) => client.Register({ config: "/home/ada/none/agentd.jsonc", caller }),
  ({ client }) => client.Pause({ name: "", caller, inFlight: "complete", reason: "" }),
  ({ client }) => client.Resume({ name: "", caller }),
  ({ client, agent }) => client.Spawn({ name: agent, request: { name: "a", task: "help" }, caller }),
  ({ client, agent }) => client.Spawn({ name: agent, request: { name: "A b", task: "help" }, caller }),
  ({ client }) => client.Answer({ name: "ghost", decision: "allow", reason: "", caller }),
  ({ client }) => client.Channel({ name: "attic", caller }),
  ({ client }) => client.NewChannel({ name: "No Name!", agents: [], order: "manual", topic: "", caller }),
  ({ client }) => client.CloseChannel({ name: "review", caller }),
  ({ client }) => client.AssignSeat({ name: "review", agent: "a", caller }),
  ({ client }) => client.OrderChannel({ name: "review", order: "manual", agents: ["nobody"], caller }),
  ({ client }) => client.GrantFloor({ name: "review", agent: "nobody", caller }),
  ({ client }) => client.GoalSubmit(submit(" ")),
  ({ client }) => client.GoalSubmit(submit("x".repeat(300_000))),
  ({ client, world }) =>
    world.workshop === undefined
      ? client.GoalCancel({ name: "g1", reason: "", caller })
      : client.GoalSubmit({ request: { goal: "x", plan: "/home/ada/none.json" }, caller }),
  ({ client }) => client.GoalCancel({ name: "g99", reason: "", caller }),
  ({ client }) => client.GoalRetry({ name: "g1", task: "none", caller })
]

export const onMistakes = {
  mistake: (order) => order.run(order.people.pick(mistakes)(order))
} satisfies Orders

const OUTSIDE = { ...caller, config: null }
const OTHER = { ...caller, config: "/home/ada/other/agentd.jsonc" }

/** Asked in a folder that is no project's, or in that of a project that the daemon has not been told of. */
const elsewhere: ReadonlyArray<Asked> = [
  ({ client }) => client.Pause({ name: "", caller: OTHER, inFlight: "complete", reason: "" }),
  ({ client }) => client.Resume({ name: "", caller: OUTSIDE }),
  ({ client }) => client.GoalSubmit({ ...submit("build it"), caller: OTHER }),
  ({ client }) => client.GoalSubmit({ ...submit("build it"), caller: OUTSIDE }),
  ({ client }) => client.NewChannel({ name: "attic", agents: [], order: "manual", topic: "", caller: OUTSIDE }),
  ({ client }) => client.NewChannel({ name: "attic", agents: [], order: "manual", topic: "", caller: OTHER })
]

/** In worlds of what is rare only: what came later changes no older world. */
export const onElsewhere = {
  elsewhere: (order) => order.run(order.people.pick(elsewhere)(order))
} satisfies Orders
