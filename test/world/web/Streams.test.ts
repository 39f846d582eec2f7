/** Streams of the page, without a browser: what a page that comes is told, and what a try leaves behind. */
import { assert, describe, it } from "@effect/vitest"
import { BroadcastChannel } from "node:worker_threads"
import { afterEach, beforeEach, vi } from "vitest"

interface Heard {
  readonly heard: (value: unknown, id: number) => void
  readonly up: () => void
  readonly down: () => void
}
interface Shared {
  readonly listen: (options: { path: string; listener: Heard; whole: () => unknown }) => void
}
interface Api {
  readonly again: () => void
  readonly listen: (path: string, listener: Heard, signal: AbortSignal, resumes: boolean) => Promise<void>
}

/** Proofs are believed here; `PagePairing.test.ts` tests them. */
vi.mock("../../../src/web/Pairing.ts", async (original) => {
  const { GONE, Refused } = await original<{ GONE: object; Refused: new (problem: object) => Error }>()
  const item = (text: string) => Promise.resolve(text)
  const ask = async (path: string, init: object) => {
    const response = await fetch(path, init).catch(() => undefined)
    if (response === undefined) throw new Refused(GONE)
    return { text: "", stream: response.body, item }
  }
  return { GONE, Refused, ask, isPaired: () => true }
})

/** Modules of the page know the browser, which the compiler does not here. */
const load = <A>(name: string): Promise<A> => import(`../../../src/web/${name}.ts`) as Promise<A>

/** A page in sight, which counts those that look whether it is. */
const sight = () => {
  const page = new EventTarget()
  let looking = 0
  const document = {
    visibilityState: "visible",
    addEventListener: (what: string, how: () => void) => {
      looking++
      page.addEventListener(what, how)
    },
    removeEventListener: (what: string, how: () => void) => {
      looking--
      page.removeEventListener(what, how)
    }
  }
  vi.stubGlobal("document", document)
  return () => looking
}

/** Channels between the pages of one test; those that sleep hear what was said when they wake. */
const channels = (test: string) => {
  const made: Array<Channel> = []
  const slept: Array<() => void> = []
  class Channel {
    sleeps = false
    private readonly real: BroadcastChannel
    constructor(name: string) {
      this.real = new BroadcastChannel(`${name} ${test}`)
      made.push(this)
    }
    postMessage(message: unknown) {
      this.real.postMessage(message)
    }
    addEventListener(_what: string, how: (event: { readonly data: unknown }) => void) {
      this.real.addEventListener("message", (event) => {
        const { data } = event as unknown as { readonly data: unknown }
        const hears = () => how({ data })
        if (this.sleeps) slept.push(hears)
        else hears()
      })
    }
  }
  vi.stubGlobal("BroadcastChannel", Channel)
  return { made, slept }
}

// a page asks for as long as it is there, and these end with their test
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }))
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe("a stream of the page", () => {
  it("a page that comes between the daemon's return and its first word is told no old rows", async () => {
    sight()
    channels("coming")
    let isHeld = false
    const request = (_name: string, _options: object, then: () => Promise<void>) =>
      isHeld ? new Promise(() => undefined) : ((isHeld = true), then())
    vi.stubGlobal("navigator", { locks: { request } })
    let say: (text: string) => void = () => undefined
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (say = (text) => stream.enqueue(new TextEncoder().encode(text)))
    })
    vi.stubGlobal("fetch", () => Promise.resolve(new Response(body)))
    const { listen } = await load<Shared>("SharedStream")
    const page = () => {
      const told: Array<unknown> = []
      const note = (what: unknown) => void told.push(what)
      const listener = { heard: note, up: () => note("up"), down: () => note("down") }
      listen({ path: "/board", listener, whole: () => "what is known" })
      return told
    }
    const told = (page: ReadonlyArray<unknown>, count: number) =>
      vi.waitFor(() => assert.isAtLeast(page.length, count), { timeout: 4_000 })
    const first = page()
    await told(first, 1)
    const second = page()
    await told(second, 1)
    say('id: 7\ndata: "all of it"\n\n')
    await told(first, 2)
    await told(second, 2)
    assert.deepStrictEqual(
      [first, second],
      [
        ["up", "all of it"],
        ["up", "all of it"]
      ]
    )
    const third = page()
    await told(third, 2)
    assert.deepStrictEqual(third, ["up", "what is known"])
  })

  it("a page that its browser puts to sleep is listened for by one in sight, and follows it when it wakes", async () => {
    sight()
    const { made, slept } = channels("sleeping")
    const streams: Array<(text: string) => void> = []
    const ended: Array<number> = []
    vi.stubGlobal("fetch", (_path: string, { signal }: { signal: AbortSignal }) => {
      const body = new ReadableStream<Uint8Array>({
        start: (stream) => {
          const n = streams.push((text) => stream.enqueue(new TextEncoder().encode(text)))
          signal.addEventListener("abort", () => {
            ended.push(n)
            stream.error(signal.reason)
          })
        }
      })
      return Promise.resolve(new Response(body))
    })
    const { listen } = await load<Shared>("SharedStream")
    const page = (all: string) => {
      const told: Array<unknown> = []
      const note = (what: unknown) => void told.push(what)
      listen({
        path: "/board",
        listener: { heard: note, up: () => note("up"), down: () => note("down") },
        whole: () => all
      })
      return told
    }
    const tells = (page: ReadonlyArray<unknown>, what: ReadonlyArray<unknown>) =>
      vi.waitFor(() => assert.deepStrictEqual(page, what), { timeout: 4_000 })
    const first = page("known by the first")
    await tells(first, ["up"])
    streams[0]!('id: 1\ndata: "one"\n\n')
    const second = page("known by the second")
    await tells(second, ["up", "known by the first"])
    const ask = async () => {
      vi.advanceTimersByTime(5_000)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // whoever answers is left to it
    for (let n = 0; n < 6; n++) await ask()
    assert.lengthOf(streams, 1)
    made[0]!.sleeps = true
    await vi.waitFor(
      async () => {
        await ask()
        assert.lengthOf(streams, 2)
      },
      { timeout: 4_000 }
    )
    streams[1]!('id: 2\ndata: "two"\n\n')
    await tells(second, ["up", "known by the first", "up", "two"])
    made[0]!.sleeps = false
    slept.forEach((hears) => hears())
    await vi.waitFor(() => assert.deepStrictEqual(ended, [1]), { timeout: 4_000 })
    await vi.waitFor(() => assert.strictEqual(first.at(-1), "two"), { timeout: 4_000 })
    // one stream, told to both
    streams[1]!('id: 3\ndata: "three"\n\n')
    await vi.waitFor(() => assert.deepStrictEqual([first.at(-1), second.at(-1)], ["three", "three"]), {
      timeout: 4_000
    })
    assert.lengthOf(streams, 2)
  })

  it("a page that its browser gives no lock listens for itself", async () => {
    sight()
    channels("alone")
    let asked = 0
    const request = () => ((asked += 1), Promise.reject(new DOMException("no", "SecurityError")))
    vi.stubGlobal("navigator", { locks: { request } })
    let streams = 0
    const body = () =>
      new ReadableStream<Uint8Array>({
        start: (stream) => stream.enqueue(new TextEncoder().encode('id: 1\ndata: "one"\n\n'))
      })
    vi.stubGlobal("fetch", () => ((streams += 1), Promise.resolve(new Response(body()))))
    const { listen } = await load<Shared>("SharedStream")
    const told: Array<unknown> = []
    const note = (what: unknown) => void told.push(what)
    listen({
      path: "/board",
      listener: { heard: note, up: () => note("up"), down: () => note("down") },
      whole: () => ""
    })
    await vi.waitFor(() => assert.deepStrictEqual(told, ["up", "one"]), { timeout: 4_000 })
    assert.deepStrictEqual([asked, streams], [1, 1])
  })

  it("tries that fail leave nobody who looks whether the page is in sight", async () => {
    const looking = sight()
    let tries = 0
    vi.stubGlobal("fetch", () => ((tries += 1), Promise.reject(new Error("gone"))))
    const { again, listen } = await load<Api>("Api")
    const ends = new AbortController()
    const nothing = () => undefined
    const over = listen("/runes", { heard: nothing, up: nothing, down: nothing }, ends.signal, true)
    await vi.waitFor(
      () => {
        again()
        assert.isAbove(tries, 5)
      },
      { timeout: 4_000, interval: 5 }
    )
    assert.isAtMost(looking(), 1)
    ends.abort()
    await over
    assert.strictEqual(looking(), 0)
  })
})
