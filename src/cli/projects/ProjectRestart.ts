/**
 * `agentd project restart [--rolling]`: restarts all agents of a project; with --rolling, one after the other.
 *
 * Guarantees: with --rolling, an agent is restarted only after the previous agent is running again. If an agent does
 * not start, the remaining agents are not restarted, and the error says which agent failed, why, and what to do.
 */
import { Effect, Stream } from "effect"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { after } from "../../domain/BoardRow.ts"
import { isOver, predicate } from "../../domain/StatusWords.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { age } from "../render/Output.ts"
import { ask, find } from "./ProjectLife.ts"
import { each, yet } from "../parse/BatchVerb.ts"

export interface Input {
  readonly name: string | undefined
  readonly rolling: boolean
  readonly yes: boolean
  /** Time in ms within which each agent must start with --rolling. */
  readonly timeout: number
}

/** Time in ms for which a restarted agent must keep running. A program that exits sooner does not count as started. */
const SETTLES = 1_000

const ON_ITS_WAY: ReadonlySet<string> = new Set(["Initializing", "Spawning", "Interrupting", "SessionComplete"])

/** Whether an agent is running after its restart, is still starting, or has failed. */
export const standing = ({ reason, state, word }: BoardRow): "up" | "lost" | "on its way" => {
  if (word === "retrying" || isOver(word)) return "lost"
  if (word === "waiting" && (reason === "limit" || reason === "network" || reason === "login")) return "lost"
  return ON_ITS_WAY.has(state) ? "on its way" : "up"
}

/**
 * Waits until an agent has started and keeps running. Returns the agent's last row on the board; undefined if the agent
 * no longer exists.
 */
const comesUp = Effect.fnUntraced(function* (id: string, timeout: number) {
  const { paths } = yield* Invocation
  let rows: ReadonlyMap<string, BoardRow> = new Map()
  const until = (holds: (row: BoardRow | undefined) => boolean) =>
    call(paths.socket, (client) => {
      rows = new Map()
      return client.BoardNews({ follow: true }).pipe(
        Stream.runForEachWhile((news) => {
          rows = after(rows, news)
          return Effect.succeed(!holds(rows.get(id)))
        })
      )
    })
  const at = (row: BoardRow | undefined) => (row === undefined ? "lost" : standing(row))
  const came = yield* Effect.timeoutOption(
    until((row) => at(row) !== "on its way"),
    timeout
  )
  if (came._tag === "Some" && at(rows.get(id)) === "up")
    yield* Effect.timeoutOption(
      until((row) => at(row) === "lost"),
      SETTLES
    )
  const row = rows.get(id)
  return { row, isUp: came._tag === "Some" && at(row) !== "lost" }
})

const rolling = Effect.fnUntraced(function* (
  project: string,
  agents: ReadonlyArray<{ readonly id: string; readonly called: string }>,
  timeout: number
) {
  const { caller, json, paths } = yield* Invocation
  const done: Array<string> = []
  for (const [at, { called, id }] of agents.entries()) {
    yield* call(paths.socket, (client) => client.Restart({ name: called, caller }))
    const { isUp, row } = yield* comesUp(id, timeout)
    if (!isUp) {
      const left = agents.slice(at + 1).map(({ called }) => called)
      const how = row === undefined ? "no longer exists" : predicate({ word: row.word }, 0)
      const because = row === undefined || row.says === "" ? "" : `: ${row.says}`
      const late = row === undefined || standing(row) === "lost" ? "" : `, and has not started within ${age(timeout)}`
      return yield* new VerbFailed({
        message: `${called} ${how}${because}${late}. ${done.length} of ${agents.length} agents were restarted; not restarted: ${left.length === 0 ? "none" : left.join(", ")}.`,
        remedy: `See why: agentd why ${called}. Fix the problem, then run: agentd project restart ${project} --rolling`,
        exitCode: ExitCode.failed
      })
    }
    done.push(called)
    if (!json) yield* print(null, () => [`${called} was restarted (${done.length} of ${agents.length}).`])
  }
  if (json)
    yield* print(
      done.map((name) => ({ name, ok: true })),
      () => []
    )
})

export const run = Effect.fnUntraced(function* ({ name = "", timeout, yes, ...how }: Input) {
  const { caller, paths } = yield* Invocation
  const { found, info } = yield* find(name)
  const { conversation, project } = found
  if (info?.stopped !== undefined) {
    return yield* new VerbFailed({
      message: `The project ${project} was stopped by ${info.stopped.by}.`,
      remedy: `Start it: agentd project start ${project}`,
      exitCode: ExitCode.failed
    })
  }
  yield* ask("restart", conversation, yes)
  const { rows } = yield* call(paths.socket, (client) => yet(client.Board({ all: false })))
  // skip agents that a user has stopped
  const agents = rows.filter(
    (row) => row.kind === "agent" && row.conversation === conversation && row.word !== "done" && row.word !== "stopped"
  )
  const sorted = agents.toSorted((a, b) => Number(a.name > b.name) - Number(a.name < b.name))
  if (how.rolling) return yield* rolling(project, sorted, timeout)
  return yield* each(
    sorted.map(({ called }) => called),
    (called) => call(paths.socket, (client) => client.Restart({ name: called, caller })),
    ({ message }) => [message]
  )
})
