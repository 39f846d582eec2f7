/**
 * Api: the page's connection to the daemon: the verbs, and streams that reconnect.
 *
 * Guarantees: every request and answer carries a proof (`Pairing`). The code of a link is removed from the browser's
 * address bar before it is used. A broken stream is retried for ever, and the page shows how long it has been broken.
 */
import type { InitialBoard } from "../domain/InitialBoard.ts"
import * as Pairing from "./Pairing.ts"
import { FOREIGN, GONE, type Problem, Refused } from "./Pairing.ts"

export { isPaired, type Problem, Refused } from "./Pairing.ts"

const read = async <A>(path: string): Promise<A> => JSON.parse((await Pairing.ask(path)).text) as A

/** Calls a verb. The payload is that of the procedure, without the field for the caller. */
export const verb = async <A>(name: string, payload: object = {}): Promise<A> => {
  const headers = { "content-type": "application/json" }
  const { text } = await Pairing.ask(`/v1/${name}`, { method: "POST", body: JSON.stringify(payload), headers })
  return JSON.parse(text) as A
}

export interface Me {
  readonly id: string | null
  readonly right: "view" | "act"
  readonly label: string
  /** Tags of the daemon's current versions of the page and the service worker. */
  readonly build: string
  readonly worker: string
}
export const me = (): Promise<Me> => read("/access/me")
export const glimpse = (): Promise<InitialBoard | null> => read("/glimpse")
export const tellWorkers = (foreign: ReadonlyArray<string>) =>
  Pairing.ask("/access/workers", { method: "POST", body: JSON.stringify({ foreign }) })
/** Fetches a file of the page, with proof that the daemon has sent it. */
export const proven = async (path: string, type: string): Promise<Response> => {
  const { bytes, policy } = await Pairing.ask(path)
  return new Response(bytes ?? null, { headers: { "content-type": type, "content-security-policy": policy } })
}
/** Fetches and parses a JSON file of the page. */
export const file = <A>(name: string): Promise<A> => read(`/page/${name}`)

/**
 * If the address contains a link's code, removes the code from the address and pairs the page with it. Otherwise
 * restores the earlier pairing.
 */
export const begin = async (): Promise<void> => {
  const code = /^#open=([\w-]+)$/.exec(location.hash)?.[1]
  if (code === undefined) return Pairing.begin()
  history.replaceState(null, "", location.pathname)
  await Pairing.claim(code)
}

export interface Listener<A> {
  readonly heard: (value: A, id: number) => void
  /** Called when the stream has been connected. */
  readonly up: () => void
  /** Called when the stream has ended, or could not be opened. */
  readonly down: (problem: Problem) => void
}

const AGAIN = [250, 500, 1_000, 2_000, 4_000]
/** Time in ms without data after which a connection counts as broken. The daemon sends something every 20 s. */
const SILENT = 50_000

const waits = new EventTarget()
/** Ends all retry delays, so that the next attempt starts at once. */
export const again = (): void => void waits.dispatchEvent(new Event("again"))

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const over = () => {
      clearTimeout(timer)
      waits.removeEventListener("again", over)
      signal.removeEventListener("abort", over)
      resolve()
    }
    const timer = setTimeout(over, ms)
    waits.addEventListener("again", over)
    signal.addEventListener("abort", over)
  })

/** Resolves when the page becomes visible (`is` is true) or hidden (`is` is false). */
const sight = (is: boolean, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const look = () => {
      if ((document.visibilityState === "visible") !== is && !signal.aborted) return
      document.removeEventListener("visibilitychange", look)
      signal.removeEventListener("abort", look)
      resolve()
    }
    document.addEventListener("visibilitychange", look)
    signal.addEventListener("abort", look)
    look()
  })

/**
 * Waits until the page is visible. The returned controller is aborted when the page is hidden. If the caller aborts the
 * controller, the page is no longer watched.
 */
const inSight = async (signal: AbortSignal): Promise<AbortController> => {
  await sight(true, signal)
  const out = new AbortController()
  void sight(false, AbortSignal.any([signal, out.signal])).then(() => out.abort())
  return out
}

/** Reads events from a stream, and passes each to the listener. Returns the reason why the stream ended. */
const events = async <A>(
  { item, stream }: Pairing.Answer,
  listener: Listener<A>,
  note: (id: string) => void
): Promise<Problem> => {
  if (stream === undefined) return FOREIGN
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const silent = setTimeout(() => void reader.cancel().catch(() => undefined), SILENT)
    const { done, value } = await reader.read().finally(() => clearTimeout(silent))
    if (done) return { ...GONE, error: "The daemon has ended." }
    rest += value
    const parts = rest.split("\n\n")
    rest = parts.pop() ?? ""
    for (const part of parts) {
      const told = await item(`${part}\n\n`).catch((error: unknown) => {
        void reader.cancel().catch(() => undefined)
        throw error
      })
      const fields = Object.fromEntries(
        told.split("\n").flatMap((line) => {
          const at = line.indexOf(": ")
          return at <= 0 ? [] : [[line.slice(0, at), line.slice(at + 2)]]
        })
      ) as { readonly id?: string; readonly event?: string; readonly data?: string }
      if (fields.data === undefined) continue
      if (fields.event === "refused") return { status: 409, ...(JSON.parse(fields.data) as Omit<Problem, "status">) }
      if (fields.id !== undefined) note(fields.id)
      listener.heard(JSON.parse(fields.data) as A, Number(fields.id))
    }
  }
}

/**
 * Listens to a stream until aborted. `resumes`: after an interruption, the stream continues after the last id; it
 * pauses while the page is hidden, because a browser allows only a few connections per daemon.
 */
export const listen = async <A>(
  path: string,
  listener: Listener<A>,
  signal: AbortSignal,
  resumes: boolean
): Promise<void> => {
  let last: string | undefined
  for (let tries = 0; !signal.aborted; tries++) {
    const out = resumes ? await inSight(signal) : undefined
    try {
      const more: Record<string, string> = resumes && last !== undefined ? { "last-event-id": last } : {}
      const ends = out === undefined ? signal : AbortSignal.any([signal, out.signal])
      const answer = await Pairing.ask(path, { signal: ends, headers: { accept: "text/event-stream", ...more } })
      tries = 0
      listener.up()
      listener.down(await events(answer, listener, (id) => (last = id)))
    } catch (error) {
      if (signal.aborted) return
      if (out?.signal.aborted === true) continue
      const problem = error instanceof Refused ? error.problem : GONE
      listener.down(problem)
      // the daemon would refuse the page again, so stop
      if (problem.status === 401 || problem.status === 403) return
    } finally {
      out?.abort()
    }
    await wait(AGAIN[Math.min(tries, AGAIN.length - 1)]!, signal)
  }
}
