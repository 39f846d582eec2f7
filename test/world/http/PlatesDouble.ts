/**
 * A double of Plates that keeps its contract in memory: it refuses what is no
 * event, lists what it was given, and remembers what reached it and in which order.
 */
import { Deferred, Effect, Layer } from "effect"
import { CommandRefused, type PlateInfo } from "../../../src/domain/Messages.ts"
import type { Decision } from "../../../src/plates/Approvals.ts"
import type { Origin } from "../../../src/plates/EventIntake.ts"
import { EventRefused } from "../../../src/plates/JsonReader.ts"
import { plate, wordOf } from "../../../src/domain/StatusWords.ts"
import { Plates } from "../../../src/plates/Plates.ts"

const T0 = Date.parse("2026-11-20T09:12:00Z")

export const plateInfo = (over: Partial<PlateInfo> = {}): PlateInfo => ({
  plateId: "01plate",
  word: wordOf(plate, over.status ?? "Running", null),
  sessionId: "b7ecec84-4aed-491b-953b-2afdd6920a79",
  status: "Running",
  since: T0,
  restsOn: { signal: "hook", at: T0 },
  detail: "runs Bash",
  cwd: "/home/ada/shop",
  branch: "main",
  title: "make a file",
  lastTool: "Bash",
  todos: null,
  toolCalls: 3,
  tokens: 1200,
  pid: null,
  agent: null,
  watchable: true,
  approval: null,
  ...over
})

export interface Board {
  readonly plates: Array<PlateInfo>
  readonly got: Array<readonly [what: string, body: unknown, origin?: Origin]>
  /** Permission requests that wait. */
  readonly waiting: Array<Deferred.Deferred<Decision | undefined>>
  /** How many of them were given up because the asker went away. */
  abandoned: number
}

export const makeBoard = (over: Partial<Board> = {}): Board => ({
  plates: [],
  got: [],
  waiting: [],
  abandoned: 0,
  ...over
})

const isEvent = (body: unknown): body is { readonly session_id: string } =>
  typeof body === "object" && body !== null && "session_id" in body && typeof body.session_id === "string"

export const make = (board: Board): Plates["Service"] => {
  const take = (what: string, body: unknown, origin?: Origin) =>
    isEvent(body)
      ? Effect.sync(() => void board.got.push(origin === undefined ? [what, body] : [what, body, origin]))
      : Effect.fail(
          new EventRefused({
            field: "session_id",
            message: "session_id is missing.",
            remedy: "Send the hook as it is."
          })
        )
  const find = (name: string) => {
    const found = board.plates.find(({ plateId, sessionId }) => plateId === name || sessionId === name)
    return found === undefined
      ? Effect.fail(
          new CommandRefused({
            code: "not_found",
            message: `There is no plate ${name}.`,
            remedy: "See which there are: agentd ps --plates --all"
          })
        )
      : Effect.succeed(found)
  }
  return {
    hook: (body, origin) => take("hook", body, origin),
    event: (body) => take("event", body),
    keep: ({ as, body, origin }) => (as === "event" ? take(as, body) : take(as, body, origin)),
    register: (body) =>
      Effect.sync(() => {
        board.got.push(["register", body])
        return { plateId: "01plate" }
      }),
    stopped: (body) => Effect.sync(() => void board.got.push(["stopped", body])),
    forget: (plateId, caller) =>
      Effect.map(find(plateId), (found) => {
        board.got.push(["forget", found.plateId])
        board.plates.splice(board.plates.indexOf(found), 1)
        return { eventId: 7, message: `${found.plateId} is forgotten (${caller.by})` }
      }),
    list: ({ closed }) => Effect.sync(() => board.plates.filter(({ status }) => closed || status !== "Closed")),
    find,
    permission: (body, origin) =>
      Effect.gen(function* () {
        yield* take("permission", body, origin)
        const answer = yield* Deferred.make<Decision | undefined>()
        board.waiting.push(answer)
        return yield* Effect.onInterrupt(Deferred.await(answer), () => Effect.sync(() => void board.abandoned++))
      }),
    asked: (id) =>
      Effect.fail(
        new CommandRefused({
          code: "not_found",
          message: `Nothing waits under ${id}.`,
          remedy: "See what does: agentd ps"
        })
      ),
    answer: (id, decision) =>
      Effect.gen(function* () {
        const waiting = board.waiting.shift()
        if (waiting === undefined) {
          return yield* new CommandRefused({
            code: "not_found",
            message: `Nothing waits under ${id}.`,
            remedy: "See what does: agentd ps"
          })
        }
        board.got.push(["answer", { id, decision }])
        yield* Deferred.succeed(waiting, decision)
        return { eventId: 8, message: `${id}: ${decision.behavior}` }
      }),
    health: Effect.succeed({ ready: true, open: board.plates.length, checkedAt: null })
  }
}

export const layer = (board: Board): Layer.Layer<Plates> => Layer.succeed(Plates)(make(board))
