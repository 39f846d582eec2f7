/** A page with a port of its own: an origin that no other page has, which the daemon keeps for as long as the page has its right. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { createServer } from "node:http"
import { handleOf } from "../../src/access/Access.ts"
import { place, serveIn } from "../world/http/Served.ts"
import { makeWorld } from "../world/rpc/World.ts"

const caller = { by: "ada" }

/** Whether a page of ours is answered there. */
const answers = (port: number) =>
  Effect.promise(async () => {
    try {
      return (await (await fetch(`http://127.0.0.1:${port}/`)).text()).includes("agentd")
    } catch {
      return false
    }
  })

const until = (what: string, look: Effect.Effect<boolean>) =>
  Effect.gen(function* () {
    for (let times = 0; times < 200; times++) {
      if (yield* look) return
      yield* Effect.sleep("50 millis")
    }
    assert.fail(`never: ${what}`)
  })

/** Another program on that port, for as long as the scope is open. */
const squatter = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((_, response) => response.end("squatter"))
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  )

describe("a page's own port", () => {
  it.live("is another one for each page, is the same after a restart, and is let go with the right", () =>
    Effect.gen(function* () {
      const at = yield* place(makeWorld())
      const first = yield* Scope.fork(yield* Effect.scope)
      const { access, listening } = yield* Scope.provide(serveIn(at), first)
      const invited = Effect.gen(function* () {
        const port = yield* listening.openPage
        const code = yield* access.invite({ right: "act", label: "page", port }, caller)
        const { id } = yield* access.claim(handleOf(code))
        return { id, port }
      })
      const [one, two] = [yield* invited, yield* invited]
      const { port: shared } = yield* listening.report
      assert.strictEqual(new Set([one.port, two.port, shared]).size, 3)
      for (const { port } of [one, two]) assert.isTrue(yield* answers(port))
      yield* Scope.close(first, Exit.void)
      for (const { port } of [one, two]) assert.isFalse(yield* answers(port))
      yield* serveIn(at)
      for (const { port } of [one, two]) yield* until("it is kept", answers(port))
      yield* access.revoke(one.id, caller)
      yield* until(
        "it is let go",
        Effect.map(answers(one.port), (is) => !is)
      )
      assert.isTrue(yield* answers(two.port))
    })
  )

  it.live(
    "that another program has: it is said and reported once, no other is taken, and it is had when it is free",
    () =>
      Effect.gen(function* () {
        const at = yield* place(makeWorld())
        const first = yield* Scope.fork(yield* Effect.scope)
        const { access, listening } = yield* Scope.provide(serveIn(at), first)
        const port = yield* listening.openPage
        yield* access.claim(handleOf(yield* access.invite({ right: "view", label: "wall", port }, caller)))
        yield* Scope.close(first, Exit.void)
        const thief = yield* Scope.fork(yield* Effect.scope)
        yield* Scope.provide(squatter(port), thief)
        const told: Array<number> = []
        yield* serveIn(at, { taken: ({ port }) => Effect.sync(() => void told.push(port)) })
        const problem = Effect.map(listening.report, ({ problem }) => problem)
        yield* until(
          "it is said",
          Effect.map(problem, (now) => now !== null)
        )
        assert.include((yield* problem)?.message, `port ${port}`)
        assert.include((yield* problem)?.message, "the address of page")
        yield* Effect.sleep("5 seconds")
        assert.deepStrictEqual(told, [port])
        yield* Scope.close(thief, Exit.void)
        yield* until("it is had", answers(port))
        assert.isNull(yield* problem)
      })
  )
})
