/** ProjectLife: finds a project by its name, and asks before the work of its agents is ended. */
import { Effect } from "effect"
import { type AgentInfo, CommandRefused, refuse } from "../../domain/Messages.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { confirm } from "../parse/Confirm.ts"
import { Invocation } from "../parse/Invocation.ts"
import { count, plain } from "../render/Output.ts"

const MOST = 20

/** Rewords the error "There is no conversation" for a user who has typed the name of a project. */
const asProject = <E>(error: E): E | CommandRefused => {
  if (!(error instanceof CommandRefused)) return error
  const { message, remedy } = error
  const [, name] = /^There is no conversation ("[^]*")\.$/u.exec(message) ?? []
  if (name === undefined) return error
  const meant = /^Did you mean "[^"]*"\? /u.exec(remedy)?.[0] ?? ""
  return refuse("not_found", `There is no project ${name}.`, `${meant}List all projects: agentd project ls`)
}

/** Finds a project by its name; if the name is empty, the project of this folder. */
export const find = Effect.fnUntraced(function* (name: string) {
  const { caller, paths } = yield* Invocation
  return yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const found = yield* client.Conversation({ name, caller }).pipe(Effect.mapError(asProject))
      const agents = (yield* client.Agents()).filter(({ conversation }) => conversation === found.conversation)
      const info = (yield* client.Projects()).find(({ conversation }) => conversation === found.conversation)
      return { found, agents, info }
    })
  )
})

/** The agents that are working, as text such as `2 agents work (builder, tester)`; undefined if none is working. */
export const workOf = (agents: ReadonlyArray<AgentInfo>): string | undefined => {
  const busy = agents.filter(({ busy }) => busy === true).map(({ agent }) => agent)
  if (busy.length === 0) return undefined
  const names = `${busy.slice(0, MOST).join(", ")}${busy.length > MOST ? " …" : ""}`
  return `${count(busy.length, "agent")} ${busy.length === 1 ? "works" : "work"} (${names})`
}

/** Returns if `yes` is set, if no agent is working, or if the user confirms. Otherwise fails. */
export const ask = Effect.fnUntraced(function* (verb: "stop" | "restart", name: string, yes: boolean) {
  if (yes) return
  const { agents, found } = yield* find(name)
  const work = workOf(agents)
  if (work === undefined) return
  const fact = plain(`${work} in the project ${found.project}. Their runs will end.`)
  yield* confirm(false, fact, `${verb === "stop" ? "Stop" : "Restart"} the project?`)
})
