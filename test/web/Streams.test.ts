/** Streams of the page, without a browser: what a page that comes is told, and what a try leaves behind. */
import { assert, describe, it } from "@effect/vitest"
import { vi } from "vitest"

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

/** Modules of the page know the browser, which the compiler does not here. */
const load = <A>(name: string): Promise<A> => import(`../../src/web/${name}.ts`) as Promise<A>

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
  vi.stubGlobal("localStorage", { getItem: () => "t" })
  return () => looking
}

describe("a stream of the page", () => {
  it("a page that comes between the daemon's return and its first word is told no old rows", async () => {
    sight()
    let isHeld = false
    const request = (_name: string, then: () => Promise<void>) => (isHeld ? undefined : ((isHeld = true), then()))
    vi.stubGlobal("navigator", { locks: { request } })
    let say: (text: string) => void = () => undefined
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (say = (text) => stream.enqueue(new TextEncoder().encode(text)))
    })
    vi.stubGlobal("fetch", () => Promise.resolve(new Response(body)))
    const { listen } = await load<Shared>("Shared")
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
