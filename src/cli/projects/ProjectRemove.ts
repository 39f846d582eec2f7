/**
 * `agentd project remove`: ends a project permanently, without deleting any of its results.
 *
 * Guarantees: before the question, the command says what will end and what will remain. The log remains, and no file of
 * the project is changed.
 */
import { Effect } from "effect"
import { dirname } from "node:path"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import type { AgentInfo, ConversationInfo } from "../../domain/Messages.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { confirm } from "../parse/Confirm.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { count, plain } from "../render/Output.ts"
import { find, workOf } from "./ProjectLife.ts"

export interface Input {
  readonly name: string
  readonly reason: string | undefined
  readonly yes: boolean
  /** True: do not wait for turns in progress. */
  readonly force: boolean
}

export const factOf = (
  { config, conversation, project }: Pick<ConversationInfo, "config" | "conversation" | "project">,
  agents: ReadonlyArray<AgentInfo>,
  rows: ReadonlyArray<BoardRow>
): string => {
  const own = rows.filter((row) => row.conversation === conversation && row.word !== "done" && row.word !== "stopped")
  const goals = own.filter(({ kind }) => kind === "goal").map(({ name }) => name)
  const channels = own.filter(({ kind }) => kind === "channel").map(({ name }) => name)
  const folder = dirname(config)
  const trees = agents.filter(({ cwd }) => cwd !== null && cwd !== folder && !cwd.startsWith(`${folder}/`))
  const ends = [
    agents.length === 0 ? "no agents" : `its agents (${agents.map(({ agent }) => agent).join(", ")})`,
    ...(goals.length === 0 ? [] : [`${count(goals.length, "goal")} (${goals.join(", ")})`]),
    ...(channels.length === 0 ? [] : [`${count(channels.length, "channel")} (${channels.join(", ")})`])
  ]
  const work = workOf(agents)
  return [
    `This permanently ends the project ${project}: ${ends.join(", ")}.${work === undefined ? "" : ` ${work}.`}`,
    `Not changed: its log (${conversation}), its folder ${folder} with agentd.jsonc${trees.length === 0 ? "" : `, ${count(trees.length, "work tree")} (agentd gc lists those that are no longer needed)`}.`
  ].join(" ")
}

export const run = Effect.fnUntraced(function* ({ force, name, reason, yes }: Input) {
  const { caller, paths } = yield* Invocation
  const { agents, found } = yield* find(name)
  const { rows } = yield* call(paths.socket, (client) => client.Board({ all: false }))
  yield* confirm(yes, plain(factOf(found, agents, rows)), "Remove the project?")
  const done = yield* call(paths.socket, (client) =>
    client.Close({
      name: found.conversation,
      reason: reason ?? "the project is removed",
      force,
      caller
    })
  )
  yield* print(done, () => [
    plain(`The project ${found.project} was removed. ${done.message}`),
    plain(`To start the project again, run in ${dirname(found.config)}: agentd project new`)
  ])
})
