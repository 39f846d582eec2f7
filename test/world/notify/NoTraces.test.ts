/** Requests that leave the machine carry no headers of traces: whose they are concerns nobody else. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import * as HttpPost from "../../../src/alerts/channels/HttpPost.ts"

/** The names of the headers of all requests. */
const client = () => {
  const names: Array<string> = []
  const made = HttpClient.make((request) => {
    names.push(...Object.keys(request.headers))
    return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}")))
  })
  return { names, made }
}

const TRACES = /^(traceparent|tracestate|b3|x-b3-.*)$/

describe("within a span", () => {
  it.effect("a notice is sent without it", () =>
    Effect.gen(function* () {
      const { made, names } = client()
      const post = yield* Effect.provideService(HttpPost.make, HttpClient.HttpClient, made)
      yield* post({ url: "https://hooks.test/x", body: "{}", type: "application/json" })
      assert.include(names, "user-agent")
      assert.deepStrictEqual(
        names.filter((name) => TRACES.test(name)),
        []
      )
    }).pipe(Effect.withSpan("turn"))
  )
})
