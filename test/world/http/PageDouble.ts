/**
 * PageDouble: the page's own side of its pairing (`src/web/Pairing.ts`), in node: what it knows of a browser is played.
 */
import { Effect } from "effect"
import { vi } from "vitest"

interface Answer {
  readonly text: string
  readonly policy: string
  readonly stream?: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly item: (text: string) => Promise<string>
}
/** Modules of the page know the browser, which the compiler does not here. */
interface Module {
  readonly claim: (code: string) => Promise<void>
  readonly begin: () => Promise<void>
  readonly ask: (path: string, question?: object) => Promise<Answer>
}
export interface Problem {
  readonly error: string
  readonly status: number
  readonly isForeign?: true
}

/** A browser's own store, as far as the page uses one. */
const database = () => {
  const kept = new Map<unknown, unknown>()
  const says = (what: string) => ({
    addEventListener: (name: string, how: () => void) => (name === what ? queueMicrotask(how) : undefined)
  })
  const objectStore = () => ({
    get: (key: unknown) => ({ result: kept.get(key) }),
    put: (value: unknown, key: unknown) => (kept.set(key, value), { result: key })
  })
  const result = { transaction: () => ({ objectStore, ...says("complete") }), close: () => undefined }
  return { kept, open: () => ({ result, ...says("success") }) }
}

export type Ask = (path: string, init: RequestInit) => Effect.Effect<Response>

const problemOf = (error: unknown): Problem =>
  (error as { readonly problem?: Problem }).problem ?? { error: String(error), status: -1 }

/** A page in a browser of its own; `ask`: the way to whoever is at its port. */
export const open = (ask: Ask) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const browser = database()
      const asked = (path: string, init: RequestInit) => Effect.runPromise(ask(path, init))
      const enter = () => {
        vi.stubGlobal("indexedDB", browser)
        vi.stubGlobal("localStorage", { removeItem: () => undefined })
        vi.stubGlobal("fetch", asked)
      }
      // each page has its own key and session
      vi.resetModules()
      const page: Module = await import(`../../../src/web/${"Pairing"}.ts`)
      const as = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: () => (enter(), run()), catch: problemOf })
      return {
        /** The contents of its browser's store. */
        kept: browser.kept,
        claim: (code: string) => as(() => page.claim(code)),
        /** Loads the page anew. */
        reload: as(() => page.begin()),
        ask: (path: string, question?: object) => as(() => page.ask(path, question)),
        read: (path: string) => as(async () => JSON.parse((await page.ask(path)).text) as unknown),
        act: (verb: string, payload: object) =>
          as(async () => (await page.ask(`/v1/${verb}`, { method: "POST", body: JSON.stringify(payload) })).text)
      }
    }),
    () => Effect.sync(() => void vi.unstubAllGlobals())
  )
