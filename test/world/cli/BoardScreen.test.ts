/** The board in a terminal of its own, which `script` of util-linux makes, against the real control server. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { agentInfo, callInfo, draft, folder, makeWorld, serveAt } from "../rpc/World.ts"
import * as BoardTerminal from "../../support/BoardTerminal.ts"
import { PROGRAM } from "../../support/Program.ts"

const terminal = (state: string) => BoardTerminal.terminal(`'${process.execPath}' '${PROGRAM}' --state '${state}'`)

describe.skipIf(!BoardTerminal.hasPty)("the board", () => {
  it.live("draws what is, then what changes, approves by its key, says a loss, and gives the terminal back", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const state = yield* folder
        const call = callInfo()
        const world = makeWorld({ agents: [agentInfo({ word: "needs you" })], calls: [call] })
        const server = yield* Scope.make()
        const { append } = yield* Effect.provideService(serveAt(state, world, [draft()]), Scope.Scope, server)
        const it = yield* terminal(state)
        yield* it.shows("1 needs you")
        yield* it.press("a")
        yield* it.shows("1 of 1")
        yield* it.shows("rm -rf build")
        yield* Effect.sleep(400)
        yield* it.press("a")
        while (world.commands.length === 0) yield* Effect.sleep(20)
        assert.deepInclude(world.commands[0]?.[2], { behavior: "allow" })
        world.calls.length = 0
        world.agents[0] = agentInfo({ word: "failed", detail: "exit code 3", failed: true, state: "Stopped" })
        yield* append(draft())
        yield* it.shows("1 failed")
        yield* Scope.close(server, Exit.void)
        yield* it.shows("No daemon is running")
        yield* it.press("q")
        assert.strictEqual(yield* it.ended, 0)
        assert.isTrue(it.all().trimEnd().endsWith("\u001b[?1049l"), "the screen of before is back")
      })
    )
  )

  it.live(
    "approves calls of one kind that are shown together, by one key; if one is gone, none, and shows the rest",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const state = yield* folder
          const calls = ["01a", "01b", "01c"].map((callId) => callInfo({ callId }))
          const world = makeWorld({ agents: [agentInfo({ word: "needs you" })], calls })
          yield* serveAt(state, world, [draft()])
          const it = yield* terminal(state)
          yield* it.shows("1 needs you")
          yield* it.press("a")
          yield* it.shows("1 of 3  3 calls: rm -rf build (web/builder)")
          world.calls.splice(2, 1)
          yield* Effect.sleep(400)
          yield* it.press("A")
          yield* it.shows("2 calls: rm -rf build (web/builder)")
          assert.deepStrictEqual(world.commands, [])
          yield* Effect.sleep(400)
          yield* it.press("A")
          while (world.commands.length < 2) yield* Effect.sleep(20)
          assert.deepStrictEqual(
            world.commands.map(([verb, id]) => `${verb} ${id}`),
            ["answerCall 01a", "answerCall 01b"]
          )
          yield* it.press("\u001bq")
        })
      )
  )
})
