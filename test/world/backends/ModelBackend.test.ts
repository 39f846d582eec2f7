import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, FileSystem, Schema, Scope, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { endOf } from "../../../src/model-agent/ModelOutcome.ts"
import { ProviderError } from "../../../src/model-agent/Provider.ts"
import { define } from "../../../src/model-agent/Tool.ts"
import * as Stand from "./ModelStand.ts"

const { call, done, only, tags, textOf, tool, whole } = Stand

const exitOf = (all: Parameters<typeof only>[0]) => {
  assert.strictEqual(only(all, "Exited").length, 1, "exactly one Exited")
  assert.strictEqual(all.at(-1)?._tag, "Exited", "Exited is the last")
  return only(all, "Exited")[0]!.outcome
}
const results = (all: Parameters<typeof only>[0]) =>
  only(all, "ToolResult").map(({ callId, status, output }) => [callId, status, output])

const echo = tool("echo", (input) => Effect.succeed(done(JSON.stringify(input))))
const forever = tool("forever", () => Effect.never)

describe.each(Stand.dialects)("%s", (dialect) => {
  layer(Stand.layer, { excludeTestServices: true })((it) => {
    it.effect("a turn without calls: its text as it comes, what it cost, its answer", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, [{ text: ["Hel", "lo."] }])
        const all = yield* whole(dialect, url, { config: { price: { input: 1_000_000, output: 2_000_000 } } })
        assert.deepStrictEqual(all, [
          { _tag: "Started", sessionId: "run-1" },
          { _tag: "TurnStarted", turnId: "turn-1" },
          { _tag: "Delta", stream: "assistant", text: "Hel" },
          { _tag: "Delta", stream: "assistant", text: "lo." },
          { _tag: "Usage", inputTokens: 10, outputTokens: 5, model: "m", usd: 20, context: { used: 10 } },
          { _tag: "TurnCompleted", turnId: "turn-1", output: "Hello." },
          { _tag: "Exited", outcome: { _tag: "Success" } }
        ])
        assert.deepStrictEqual(Stand.heard(asked[0]!), ["user: do it"])
        assert.strictEqual(asked[0]!.body.stream, true)
        assert.isUndefined(asked[0]!.headers["traceparent"], "whose request it is concerns nobody else")
      })
    )

    it.effect("what the last answer cost comes with the turn's end, so no budget cuts off what is done", () =>
      Effect.gen(function* () {
        const { url } = yield* Stand.provider(dialect, [{ calls: [call("a", "echo")] }, { text: ["Done."] }])
        const files = yield* FileSystem.FileSystem
        // the end waits for the session's file
        const slow = {
          ...files,
          open: (name: string, options?: Parameters<typeof files.open>[1]) =>
            Effect.map(files.open(name, options), (file) => ({
              ...file,
              writeAll: (bytes: Uint8Array) => Effect.delay(file.writeAll(bytes), 30)
            }))
        }
        const run = yield* Effect.provideService(
          Stand.start(dialect, url, { tools: [echo], sessions: yield* Stand.folder }),
          FileSystem.FileSystem,
          slow
        )
        const batches: Array<ReadonlyArray<string>> = []
        yield* Stream.runForEachArray(run.events, (events) => {
          batches.push(tags(events))
          return Effect.forEach(
            events,
            (event) =>
              event._tag === "GoesOn"
                ? event.go
                : Effect.andThen(Stand.allow(event, run), Stand.endAfterTurn(event, run)),
            { discard: true }
          )
        })
        const last = batches.find((batch) => batch.includes("TurnCompleted"))
        assert.deepStrictEqual(last?.slice(-2), ["Usage", "TurnCompleted"])
        assert.strictEqual(batches.flat().filter((tag) => tag === "Usage").length, 2, "each answer once")
      })
    )

    it.effect("all calls of an answer are told, each asks, and the model gets their results", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, [
          { text: ["Now."], calls: [call("a", "echo", { n: 1 }), call("b", "echo", { n: 2 })] },
          { text: ["Done."] }
        ])
        const all = yield* whole(dialect, url, { tools: [echo] })
        const asking = ["ToolCall", "ToolCall", "ApprovalRequested", "ApprovalRequested"]
        const running = ["ToolStarted", "ToolResult", "ToolStarted", "ToolResult"]
        assert.deepStrictEqual(
          tags(all).filter((tag) => tag !== "Usage"),
          ["Started", "TurnStarted", "Delta", ...asking, ...running, "Delta", "TurnCompleted", "Exited"]
        )
        assert.deepStrictEqual(results(all), [
          ["a", "success", '{"n":1}'],
          ["b", "success", '{"n":2}']
        ])
        assert.strictEqual(only(all, "TurnCompleted")[0]?.output, "Done.")
        assert.deepStrictEqual(Stand.heard(asked[1]!), [
          "user: do it",
          "assistant: Now.",
          'call a: echo {"n":1}',
          'call b: echo {"n":2}',
          'result a: {"n":1}',
          'result b: {"n":2}'
        ])
      })
    )

    it.effect("arguments that are no object, and tools that there are not, are results that say so", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, [
          { calls: [{ id: "a", name: "echo", arguments: '{"n":' }, call("b", "echoes"), call("c", "echo")] }
        ])
        const all = yield* whole(dialect, url, { tools: [echo] })
        assert.deepStrictEqual(
          results(all).map(([id, status]) => [id, status]),
          [
            ["a", "error"],
            ["b", "error"],
            ["c", "success"]
          ]
        )
        const told = Stand.heard(asked[1]!)
        assert.include(told.at(-3), 'no JSON object; nothing was run. They were: {"n":')
        assert.include(told.at(-2), 'There is no tool "echoes". There are: echo')
        assert.strictEqual(told.at(-1), "result c: {}")
      })
    )

    it.effect("a call whose input breaks its schema asks nobody; the model is told which field is wrong", () =>
      Effect.gen(function* () {
        const strict = define({
          name: "strict",
          description: "",
          readOnly: false,
          parallel: false,
          input: Schema.Struct({ path: Schema.String }),
          run: () => Effect.succeed(done("ran"))
        })
        const { asked, url } = yield* Stand.provider(dialect, [
          { calls: [call("a", "strict", { path: 7 }), call("b", "strict", { path: "x" }), call("c", "nothing")] }
        ])
        const all = yield* whole(dialect, url, { tools: [strict] })
        assert.deepStrictEqual(
          only(all, "ApprovalRequested").map(({ callId }) => callId),
          ["b"]
        )
        assert.deepStrictEqual(
          results(all).map(([id, status]) => [id, status]),
          [
            ["a", "error"],
            ["c", "error"],
            ["b", "success"]
          ]
        )
        assert.match(Stand.heard(asked[1]!).at(-3)!, /strict[^]*path/)
      })
    )

    it.effect("an id that comes twice, or in a form that others refuse, is another one for us and for the model", () =>
      Effect.gen(function* () {
        const again = { calls: [call("a", "echo"), call("call:1", "echo")] }
        const { asked, url } = yield* Stand.provider(dialect, [again, again])
        const all = yield* whole(dialect, url, { tools: [echo] })
        const ids = only(all, "ToolCall").map(({ callId }) => callId)
        assert.strictEqual(new Set(ids).size, 4)
        assert.deepStrictEqual(
          Stand.heard(asked[2]!).flatMap((line) => /^result ([A-Za-z0-9_-]+):/.exec(line)?.[1] ?? []),
          ids
        )
      })
    )

    it.effect("what broke off is asked again, and its text is not told twice", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, [
          { text: ["One ", "two "], cut: true },
          { text: ["One two three."] }
        ])
        const all = yield* whole(dialect, url)
        assert.strictEqual(textOf(all), "One two three.")
        assert.strictEqual(only(all, "TurnCompleted")[0]?.output, "One two three.")
        assert.strictEqual(only(all, "Notice").length, 1)
        assert.include(only(all, "Notice")[0]?.text, "try 2 of 3")
        assert.deepStrictEqual(Stand.heard(asked[1]!), ["user: do it"])
      })
    )

    it.effect("an answer that comes out different the second time starts over, and a notice says so", () =>
      Effect.gen(function* () {
        const { url } = yield* Stand.provider(dialect, [{ text: ["One "], cut: true }, { text: ["Two."] }])
        const all = yield* whole(dialect, url)
        const starts = all.findIndex((event) => event._tag === "Notice" && event.text === "the answer starts over")
        assert.strictEqual(textOf(all.slice(0, starts)), "One ")
        assert.strictEqual(textOf(all.slice(starts)), "Two.")
        assert.strictEqual(only(all, "TurnCompleted")[0]?.output, "Two.")
      })
    )

    it.effect(
      "a stream that falls silent is broken off and asked for again; at last the turn fails and may be retried",
      () =>
        Effect.gen(function* () {
          const stand = yield* Stand.provider(dialect, [
            { text: ["Well"], hang: true },
            { text: ["Well"], hang: true }
          ])
          const all = yield* whole(dialect, stand.url, { config: { silence: "1s", retries: 1 } })
          yield* stand.broken
          assert.strictEqual(stand.asked.length, 2)
          assert.strictEqual(textOf(all), "Well")
          const [error] = only(all, "TurnError")
          assert.deepStrictEqual([error?.errorType, error?.retry], ["silence", true])
          assert.strictEqual(exitOf(all)._tag, "Error")
        })
    )

    it.effect("an interrupt within the answer closes the request, and the next turn knows how far it came", () =>
      Effect.gen(function* () {
        const stand = yield* Stand.provider(dialect, [{ text: ["I am "], hang: true }, { text: ["Yes."] }])
        const all = yield* Effect.flatMap(Stand.start(dialect, stand.url), (run) =>
          Stand.watch(run, (event) =>
            event._tag === "Delta" && event.text === "I am "
              ? run.interruptTurn
              : event._tag === "TurnInterrupted"
                ? run.send({ turnId: "turn-2", text: "go on" })
                : event._tag === "TurnCompleted"
                  ? run.end
                  : Effect.void
          )
        )
        yield* stand.broken
        assert.deepStrictEqual(only(all, "TurnInterrupted"), [
          { _tag: "TurnInterrupted", turnId: "turn-1", output: "I am " }
        ])
        // what one API has told by then of what it costs, and the other has not
        assert.strictEqual(only(all, "Usage").length, dialect === "anthropic" ? 2 : 1)
        assert.deepStrictEqual(
          Stand.heard(stand.asked[1]!).map((line) => line.replace(/\(.*\)/, "(note)")),
          ["user: do it", "assistant: I am ", "user: (note)", "user: go on"]
        )
        assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
      })
    )

    it.effect("an interrupt within calls ends what runs before it is told, and every call has its result", () =>
      Effect.gen(function* () {
        let ended = false
        const busy = tool("busy", () =>
          Effect.andThen(
            Effect.addFinalizer(() => Effect.sync(() => (ended = true))),
            Effect.never
          )
        )
        const { asked, url } = yield* Stand.provider(dialect, [
          { text: ["Wait."], calls: [call("a", "echo"), call("b", "busy"), call("c", "echo")] }
        ])
        const all = yield* Effect.flatMap(Stand.start(dialect, url, { tools: [echo, busy] }), (run) =>
          Stand.watch(run, Stand.allow, (event) => {
            if (event._tag === "ToolStarted" && event.callId === "b") return run.interruptTurn
            if (event._tag === "ToolResult" && event.callId === "b") assert.isTrue(ended)
            if (event._tag === "TurnInterrupted") return run.send({ turnId: "turn-2", text: "go on" })
            return event._tag === "TurnCompleted" ? run.end : Effect.void
          })
        )
        assert.deepStrictEqual(
          results(all).map(([id, status]) => [id, status]),
          [
            ["a", "success"],
            ["b", "cancelled"],
            ["c", "cancelled"]
          ]
        )
        assert.strictEqual(only(all, "TurnInterrupted")[0]?.output, "Wait.")
        const told = Stand.heard(asked[1]!)
        assert.deepStrictEqual(
          told.flatMap((line) => /^(call|result) \w+/.exec(line)?.[0] ?? []),
          ["call a", "call b", "call c", "result a", "result b", "result c"]
        )
        assert.strictEqual(told.at(-1), "user: go on")
      })
    )

    it.effect(
      "a run that was killed within its calls is gone on with: what they did is unknown, what was asked comes again",
      () =>
        Effect.gen(function* () {
          const sessions = path.join(yield* Stand.folder, "sessions")
          const { asked, url } = yield* Stand.provider(dialect, [
            { text: ["Soon."], calls: [call("a", "echo"), call("b", "forever")] },
            { text: ["Again."] },
            { text: ["And on."] }
          ])
          const setting = { tools: [echo, forever], sessions }
          yield* Stand.abandoned(
            Stand.start(dialect, url, setting),
            (event) => event._tag === "ToolStarted" && event.callId === "b"
          )
          const file = path.join(sessions, "run-1.jsonl")
          fs.appendFileSync(file, '{"message":{"role":"assis')
          assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)

          const resume = { sessionId: "run-1", fork: false }
          const all = yield* whole(dialect, url, { ...setting, spec: { runId: "run-2", resume } })
          assert.strictEqual(only(all, "Started")[0]?.sessionId, "run-1")
          const told = Stand.heard(asked[1]!)
          assert.deepStrictEqual(told.slice(0, 4), [
            "user: do it",
            "assistant: Soon.",
            "call a: echo {}",
            "call b: forever {}"
          ])
          assert.include(told[4], "result a: ERROR: The outcome of this call is unknown")
          assert.include(told[5], "result b: ERROR: The outcome of this call is unknown")
          assert.deepStrictEqual(told.slice(6), ["user: do it"])

          const fork = { sessionId: "run-1", fork: true }
          const forked = yield* whole(dialect, url, {
            ...setting,
            spec: { runId: "run-3", resume: fork, prompt: "on" }
          })
          assert.strictEqual(only(forked, "Started")[0]?.sessionId, "run-3")
          assert.deepStrictEqual(Stand.heard(asked[2]!).slice(7), ["assistant: Again.", "user: on"])
        })
    )

    it.effect("a first message that is too long alone is final at once, and says what to do", () =>
      Effect.gen(function* () {
        const sessions = yield* Stand.folder
        const message =
          dialect === "anthropic" ? "prompt is too long: 200251 tokens > 200000 maximum" : "too many tokens"
        const error = {
          message,
          type: "invalid_request_error",
          code: dialect === "openai" ? "context_length_exceeded" : null
        }
        const { asked, url } = yield* Stand.provider(dialect, [{ status: 400, body: JSON.stringify({ error }) }])
        const all = yield* whole(dialect, url, { sessions })
        const [failed] = only(all, "TurnError")
        assert.deepStrictEqual([failed?.errorType, failed?.retry], ["overflow", false])
        assert.match(failed?.message ?? "", /send less at once/)
        // one request: nothing is asked again
        assert.strictEqual(asked.length, 1)
        const resume = { sessionId: "run-1", fork: false }
        yield* whole(dialect, url, { sessions, spec: { runId: "run-2", prompt: "less", resume } })
        assert.deepStrictEqual(Stand.heard(asked[1]!), ["user: less"])
      })
    )

    it.effect("a refusal fails the turn and not the run, and is no part of what the next turn tells the model", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, [{ text: ["No."], stop: "refusal" }])
        const all = yield* Effect.flatMap(Stand.start(dialect, url), (run) =>
          Stand.watch(run, (event) =>
            event._tag === "TurnError"
              ? run.send({ turnId: "turn-2", text: "something else" })
              : event._tag === "TurnCompleted"
                ? run.end
                : Effect.void
          )
        )
        const [error] = only(all, "TurnError")
        assert.deepStrictEqual([error?.errorType, error?.retry], ["refusal", false])
        assert.deepStrictEqual(Stand.heard(asked[1]!), ["user: something else"])
        assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
      })
    )

    it.effect(
      "an answer of the greatest length is half an answer, with a notice; without any text it is an error",
      () =>
        Effect.gen(function* () {
          const { url } = yield* Stand.provider(dialect, [{ text: ["Long"], stop: "length" }, { stop: "length" }])
          const long = yield* whole(dialect, url)
          const [half] = only(long, "TurnError")
          assert.deepStrictEqual([half?.errorType, half?.retry, half?.goesOn], ["max_tokens", false, true])
          assert.deepStrictEqual(exitOf(long), { _tag: "Success" })
          assert.include(only(long, "Notice")[0]?.text, "maxOutputTokens")
          const empty = yield* whole(dialect, url)
          assert.strictEqual(only(empty, "TurnError")[0]?.errorType, "max_tokens")
          assert.strictEqual(exitOf(empty)._tag, "Error")
        })
    )

    it.effect("a call that the greatest length cut off is not run", () =>
      Effect.gen(function* () {
        const calls = [call("a", "echo", { n: 1 }), { id: "b", name: "echo", arguments: "" }]
        const { url } = yield* Stand.provider(dialect, [{ calls, stop: "length" }])
        const all = yield* whole(dialect, url, { tools: [echo] })
        assert.deepStrictEqual(
          results(all).map(([id, status]) => [id, status]),
          [
            ["b", "error"],
            ["a", "success"]
          ]
        )
      })
    )

    it.effect(
      "a key that is refused counts nothing, says what to do, and is shown nowhere though the API shows it",
      () =>
        Effect.gen(function* () {
          const body = JSON.stringify({ error: { message: `Incorrect API key provided: ${Stand.KEY}` } })
          const { asked, url } = yield* Stand.provider(dialect, [{ status: 401, body }])
          const all = yield* whole(dialect, url)
          const outcome = exitOf(all)
          assert.deepInclude(outcome, { _tag: "Uncounted", reason: "auth" })
          assert.include(
            outcome._tag === "Uncounted" ? outcome.detail : "",
            dialect === "openai" ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY"
          )
          assert.include(JSON.stringify(asked[0]!.headers), Stand.KEY)
          assert.notInclude(JSON.stringify(all), Stand.KEY)
          assert.include(JSON.stringify(all), "[redacted]")
          assert.strictEqual(asked.length, 1)
        })
    )

    it.effect("a short wait is waited, a long one ends the run until then", () =>
      Effect.gen(function* () {
        const limit = (seconds: string) => ({ status: 429, headers: { "retry-after": seconds }, body: "{}" })
        const short = yield* Stand.provider(dialect, [limit("0.01"), { text: ["Ok."] }])
        const waited = yield* whole(dialect, short.url)
        assert.strictEqual(only(waited, "TurnCompleted")[0]?.output, "Ok.")
        const long = yield* Stand.provider(dialect, [limit("3600")])
        const before = Date.now()
        const all = yield* whole(dialect, long.url)
        assert.strictEqual(long.asked.length, 1)
        const outcome = exitOf(all)
        assert.deepStrictEqual([outcome._tag, only(all, "TurnError")[0]?.errorType], ["Uncounted", "rate_limit"])
        assert.isAtLeast((outcome._tag === "Uncounted" ? outcome.until : undefined) ?? 0, before + 3_600_000)
      })
    )

    it.effect("what is no answer at all is asked for again, and told in short at last", () =>
      Effect.gen(function* () {
        const odd = {
          status: 200,
          headers: { "content-type": "text/event-stream" },
          body: `data: ${"<html>".repeat(500)}\n\n`
        }
        const page = {
          status: 200,
          headers: { "content-type": "text/html" },
          body: "<html>Log in to the network</html>"
        }
        const { asked, url } = yield* Stand.provider(dialect, [odd, page, odd])
        const all = yield* whole(dialect, url)
        assert.strictEqual(asked.length, 3)
        const [error] = only(all, "TurnError")
        assert.strictEqual(error?.errorType, "garbage")
        assert.include(error?.message, "<html>")
        assert.isBelow(error?.message.length ?? 0, 1_000)
        assert.strictEqual(exitOf(all)._tag, "Error")
      })
    )
  })
})

layer(Stand.layer, { excludeTestServices: true })("ModelBackend", (it) => {
  const dialect = "anthropic"

  it.effect("calls that are safe beside each other run together, each other one alone and in its place", () =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const met = yield* Deferred.make<void>()
      const meeting = tool(
        "meeting",
        () =>
          Effect.gen(function* () {
            if (++running === 2) yield* Deferred.succeed(met, undefined)
            yield* Deferred.await(met)
            most = Math.max(most, running--)
            return done("met")
          }),
        { parallel: true }
      )
      const alone = tool("alone", () => Effect.sync(() => done(`beside ${running}`)))
      const calls = [call("a", "meeting"), call("b", "meeting"), call("c", "alone"), call("d", "meeting")]
      const { url } = yield* Stand.provider(dialect, [{ calls }])
      const all = yield* whole(dialect, url, { tools: [meeting, alone] })
      assert.strictEqual(most, 2)
      assert.deepStrictEqual(results(all).slice(2), [
        ["c", "success", "beside 0"],
        ["d", "success", "met"]
      ])
    })
  )

  it.effect("no more than eight calls run at once", () =>
    Effect.gen(function* () {
      let [running, most] = [0, 0]
      const one = tool(
        "one",
        () =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            for (let n = 0; n < 20; n++) yield* Effect.yieldNow
            running--
            return done("")
          }),
        { parallel: true }
      )
      const calls = Array.from({ length: 20 }, (_, n) => call(`c${n}`, "one"))
      const { url } = yield* Stand.provider(dialect, [{ calls }])
      const all = yield* whole(dialect, url, { tools: [one] })
      assert.strictEqual(results(all).length, 20)
      assert.strictEqual(most, 8)
    })
  )

  it.effect("a call says why it asks, and a denied one is not run: its result is the message", () =>
    Effect.gen(function* () {
      const tools = [
        tool("look", () => Effect.succeed(done("")), { readOnly: true }),
        tool("change", () => Effect.die("it ran")),
        tool("shell", () => Effect.die("it ran"), { asksAlways: "there is no sandbox here" })
      ]
      const calls = [call("a", "look"), call("b", "change"), call("c", "shell")]
      const { asked, url } = yield* Stand.provider(dialect, [{ calls }])
      const all = yield* Effect.flatMap(Stand.start(dialect, url, { tools }), (run) =>
        Stand.watch(run, Stand.endAfterTurn, (event) =>
          event._tag === "ApprovalRequested"
            ? run.answer(
                event.callId,
                event.callId === "a" ? { behavior: "allow" } : { behavior: "deny", message: "not now" }
              )
            : Effect.void
        )
      )
      assert.deepStrictEqual(
        only(all, "ApprovalRequested").map(({ reason }) => reason),
        ["look has no side effects", "change may change things", "there is no sandbox here"]
      )
      assert.deepStrictEqual(
        only(all, "ToolCall").map(({ readOnly }) => readOnly),
        [true, false, false]
      )
      assert.deepStrictEqual(
        only(all, "ToolStarted").map(({ callId }) => callId),
        ["a"]
      )
      assert.strictEqual(Stand.heard(asked[1]!).at(-1), "result c: ERROR: Your call was denied: not now")
    })
  )

  it.effect("a denial that ends the turn is told as a denial first", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* Stand.provider(dialect, [{ calls: [call("a", "echo"), call("b", "echo")] }])
      const all = yield* Effect.flatMap(
        Stand.start(dialect, url, { tools: [echo], sessions: yield* Stand.folder }),
        (run) =>
          Stand.watch(run, Stand.endAfterTurn, (event) =>
            event._tag === "ApprovalRequested" && event.callId === "a"
              ? run.answer("a", { behavior: "deny", message: "stop", interrupt: true })
              : Effect.void
          )
      )
      assert.deepStrictEqual(
        results(all).map(([id, status]) => [id, status]),
        [
          ["a", "denied"],
          ["b", "cancelled"]
        ]
      )
      assert.strictEqual(only(all, "TurnInterrupted").length, 1)
      assert.strictEqual(asked.length, 1)
    })
  )

  it.effect("cancelling a call ends that one alone, whether it runs, waits for its turn or for an answer", () =>
    Effect.gen(function* () {
      const calls = [call("a", "forever"), call("b", "echo"), call("c", "echo"), call("d", "echo")]
      const { url } = yield* Stand.provider(dialect, [{ calls }, { text: ["On."] }])
      const all = yield* Effect.flatMap(Stand.start(dialect, url, { tools: [echo, forever] }), (run) =>
        Stand.watch(run, Stand.endAfterTurn, (event) => {
          if (event._tag === "ApprovalRequested" && event.callId !== "c")
            return run.answer(event.callId, { behavior: "allow" })
          if (event._tag === "ToolStarted" && event.callId === "a")
            return Effect.andThen(run.cancelCall("b"), Effect.andThen(run.cancelCall("c"), run.cancelCall("a")))
          return Effect.void
        })
      )
      assert.deepStrictEqual(
        results(all)
          .map(([id, status]) => `${String(id)} ${String(status)}`)
          .toSorted(),
        ["a cancelled", "b cancelled", "c cancelled", "d success"]
      )
      assert.strictEqual(only(all, "TurnCompleted")[0]?.output, "On.")
    })
  )

  it.effect("a tool that fails itself is an error for the model, and no crash", () =>
    Effect.gen(function* () {
      const { url } = yield* Stand.provider(dialect, [{ calls: [call("a", "bad")] }, { text: ["I see."] }])
      const all = yield* whole(dialect, url, { tools: [tool("bad", () => Effect.die(new Error("boom")))] })
      assert.strictEqual(results(all)[0]?.[1], "error")
      assert.include(String(results(all)[0]?.[2]), "boom")
      assert.strictEqual(only(all, "TurnCompleted")[0]?.output, "I see.")
    })
  )

  it.effect("a turn that never ends is ended after maxRounds, and the run goes on", () =>
    Effect.gen(function* () {
      const again = { calls: [call("a", "echo")] }
      const { asked, url } = yield* Stand.provider(dialect, [again, again, again])
      const all = yield* whole(dialect, url, { tools: [echo], config: { maxRounds: 2 } })
      assert.strictEqual(asked.length, 2)
      const [error] = only(all, "TurnError")
      assert.deepStrictEqual([error?.errorType, error?.retry], ["max_rounds", false])
    })
  )

  it.effect("one turn at a time: an input while one is active is refused, after its end it is taken", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* Stand.provider(dialect, [{ text: ["One."] }, { text: ["Two."] }])
      const run = yield* Stand.start(dialect, url)
      const early = yield* Effect.exit(run.send({ turnId: "turn-2", text: "too early" }))
      assert.isTrue(Exit.isFailure(early))
      const all = yield* Stand.watch(run, (event) =>
        event._tag !== "TurnCompleted"
          ? Effect.void
          : event.turnId === "turn-1"
            ? run.send({ turnId: "turn-2", text: "next" })
            : run.end
      )
      assert.deepStrictEqual(
        only(all, "TurnCompleted").map(({ turnId, output }) => [turnId, output]),
        [
          ["turn-1", "One."],
          ["turn-2", "Two."]
        ]
      )
      assert.deepStrictEqual(Stand.heard(asked[1]!), ["user: do it", "assistant: One.", "user: next"])
      const late = yield* Effect.exit(run.send({ turnId: "turn-3", text: "too late" }))
      assert.isTrue(Exit.isFailure(late))
    })
  )

  it.effect("ended or killed within a turn it is no success, and its calls have ended", () =>
    Effect.gen(function* () {
      for (const how of ["end", "kill"] as const) {
        const { url } = yield* Stand.provider(dialect, [{ calls: [call("a", "forever")] }])
        const all = yield* Effect.flatMap(Stand.start(dialect, url, { tools: [forever] }), (run) =>
          Stand.watch(run, Stand.allow, (event) => (event._tag === "ToolStarted" ? run[how] : Effect.void))
        )
        assert.deepStrictEqual(tags(all).slice(-3), ["ToolResult", "TurnInterrupted", "Exited"])
        assert.strictEqual(exitOf(all)._tag, "Error")
      }
    })
  )

  it.effect("closing its scope ends it, though a result waits for somebody who reads", () =>
    Effect.gen(function* () {
      const flood = tool("flood", (_, { progress }) => Effect.forever(progress("stdout", "x")), { parallel: true })
      const full = yield* Deferred.make<void>()
      const quick = tool("quick", () => Effect.as(Deferred.await(full), done("")), { parallel: true })
      const { url } = yield* Stand.provider(dialect, [{ calls: [call("a", "flood"), call("b", "quick")] }])
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(Stand.start(dialect, url, { tools: [flood, quick] }), scope)
      const started = yield* Deferred.make<void>()
      const reader = yield* Effect.forkChild(
        Stream.runForEach(run.events, (event) =>
          event._tag === "ToolStarted" && event.callId === "b"
            ? Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
            : Stand.allow(event, run)
        )
      )
      yield* Deferred.await(started)
      // by then the flood stands still
      for (let n = 0; n < 2_000; n++) yield* Effect.yieldNow
      yield* Deferred.succeed(full, undefined)
      for (let n = 0; n < 100; n++) yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.interrupt(reader)
    })
  )

  it.effect("what the tools hold is let go before the exit is told", () =>
    Effect.gen(function* () {
      const { url } = yield* Stand.provider(dialect, [{ text: ["Ok."] }])
      let held = false
      const hold = Effect.acquireRelease(
        Effect.sync(() => (held = true)),
        () => Effect.sync(() => (held = false))
      )
      const all = yield* whole(dialect, url, { hold }, (event) =>
        Effect.sync(() => {
          if (event._tag === "TurnCompleted") assert.isTrue(held)
          if (event._tag === "Exited") assert.isFalse(held)
        })
      )
      assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
    })
  )

  it.effect("without a key it does not start, and says which variable or file it looked in", () =>
    Effect.gen(function* () {
      const none = yield* Effect.flip(Stand.start(dialect, "http://127.0.0.1:1", { environment: {} }))
      assert.isTrue(none._tag === "BackendError" && none.fatal)
      assert.include(none.message, "ANTHROPIC_API_KEY")
      assert.include(none.remedy, "keyEnv")
      const other = { config: { keyEnv: "MY_KEY" }, environment: { ANTHROPIC_API_KEY: "a", MY_KEY: "two words" } }
      const odd = yield* Effect.flip(Stand.start(dialect, "http://127.0.0.1:1", other))
      assert.include(odd.message, "MY_KEY")
      assert.notInclude(`${odd.message}${odd.remedy}`, "two words")
      const missing = yield* Effect.flip(
        Stand.start(dialect, "http://127.0.0.1:1", { config: { keyFile: "no/such/file" } })
      )
      assert.include(missing.message, "/no/such/file")
    })
  )

  it.effect("a key in a file is its first line", () =>
    Effect.gen(function* () {
      const cwd = yield* Stand.folder
      fs.writeFileSync(path.join(cwd, "key"), `${Stand.KEY}\n# the key of the team\n`)
      const { asked, url } = yield* Stand.provider(dialect, [{ text: ["Ok."] }])
      yield* whole(dialect, url, { config: { keyFile: "key" }, environment: {}, spec: { cwd } })
      assert.strictEqual(asked[0]?.headers["x-api-key"], Stand.KEY)
    })
  )

  it.effect("a provider that nobody can reach is asked again, and then it is an error that may pass", () =>
    Effect.gen(function* () {
      const all = yield* whole(dialect, "http://127.0.0.1:1")
      assert.strictEqual(only(all, "Notice").length, 2)
      const [error] = only(all, "TurnError")
      assert.deepStrictEqual([error?.errorType, error?.retry], ["connection", true])
      assert.include(error?.message, "ECONNREFUSED")
    })
  )
})

describe("endOf", () => {
  const rows: ReadonlyArray<readonly [ProviderError["kind"], string, boolean]> = [
    ["rate_limit", "Uncounted", true],
    ["overloaded", "Uncounted", true],
    ["server", "Uncounted", true],
    ["connection", "Uncounted", true],
    ["stream", "Uncounted", true],
    ["silence", "Error", true],
    ["garbage", "Error", true],
    ["storage", "Error", true],
    ["auth", "Uncounted", true],
    ["billing", "Fatal", true],
    ["not_found", "Fatal", true],
    ["invalid_request", "Error", false]
  ]
  it.each(rows)("%s: outcome %s, retry %s", (kind, outcome, retry) => {
    const end = endOf(new ProviderError({ kind, message: "m", remedy: "r" }), 0)
    assert.isTrue(end._tag === "Failed" && end.fatal)
    assert.deepStrictEqual(end._tag === "Failed" ? [end.outcome._tag, end.retry, end.errorType] : [], [
      outcome,
      retry,
      kind
    ])
  })
})
