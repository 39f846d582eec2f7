/**
 * Api: the page's way to the daemon: its token, the verbs, and streams that go on where they broke.
 *
 * Guarantees: the token is sent as a header, to this origin alone; a link's code is gone from the address before it is
 * used; a stream that breaks is tried again for ever, and says since when it is broken.
 */
const KEY = "agentd-token"

export interface Problem {
  readonly error: string
  readonly remedy: string
  /** Of the HTTP answer; 0: there was none. */
  readonly status: number
}

export class Refused extends Error {
  readonly problem: Problem
  constructor(problem: Problem) {
    super(problem.error)
    this.problem = problem
  }
}

const GONE: Problem = {
  error: "The daemon does not answer.",
  remedy: "On its machine: agentd start",
  status: 0
}

export const token = (): string | null => localStorage.getItem(KEY)
export const forget = (): void => localStorage.removeItem(KEY)

const headers = (): Record<string, string> => {
  const known = token()
  return known === null ? {} : { authorization: `Bearer ${known}` }
}

const problemOf = async (response: Response): Promise<Problem> => {
  const body: unknown = await response.json().catch(() => undefined)
  const { error, remedy } = (body ?? {}) as { readonly error?: unknown; readonly remedy?: unknown }
  return {
    status: response.status,
    error: typeof error === "string" ? error : `The daemon answered with ${response.status}.`,
    remedy: typeof remedy === "string" ? remedy : "Load the page again."
  }
}

const asked = async (path: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(path, { ...init, headers: { ...headers(), ...init.headers } }).catch(() => undefined)
  if (response === undefined) throw new Refused(GONE)
  if (!response.ok) throw new Refused(await problemOf(response))
  return response
}

/** Asks a verb; its payload is the procedure's, without a caller. */
export const verb = async <A>(name: string, payload: object = {}): Promise<A> => {
  const response = await asked(`/v1/${name}`, {
    method: "POST",
    body: JSON.stringify(payload),
    headers: { "content-type": "application/json" }
  })
  return (await response.json()) as A
}

export interface Me {
  readonly id: string | null
  readonly right: "view" | "act"
  readonly label: string
}
export const me = async (): Promise<Me> => (await asked("/access/me", {})).json() as Promise<Me>

/** Takes the code out of the address and makes a token of it. True: there was one. */
export const claim = async (): Promise<boolean> => {
  const code = /^#open=([\w-]+)$/.exec(location.hash)?.[1]
  if (code === undefined) return false
  history.replaceState(null, "", location.pathname)
  const response = await asked("/access/claim", {
    method: "POST",
    body: JSON.stringify({ code }),
    headers: { "content-type": "application/json" }
  })
  const { token } = (await response.json()) as { readonly token: string }
  localStorage.setItem(KEY, token)
  return true
}

export interface Listener<A> {
  readonly heard: (value: A, id: number) => void
  /** The stream is there again. */
  readonly up: () => void
  /** The stream broke, or could not be had. */
  readonly down: (problem: Problem) => void
}

const AGAIN = [250, 500, 1_000, 2_000, 4_000]
/** The daemon says something each 20 s: a connection that is silent for longer is none, ms. */
const SILENT = 50_000

const waits = new EventTarget()
/** Ends the waits for the next try. */
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

/** Until the page is in sight (`is`), or is not. */
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

/** Once the page is in sight: what ends as soon as it is not; aborted, it looks no more. */
const inSight = async (signal: AbortSignal): Promise<AbortController> => {
  await sight(true, signal)
  const out = new AbortController()
  void sight(false, AbortSignal.any([signal, out.signal])).then(() => out.abort())
  return out
}

/** Reads events, each with its id; answers why it ended. */
const events = async <A>(response: Response, listener: Listener<A>, note: (id: string) => void): Promise<Problem> => {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const silent = setTimeout(() => void reader.cancel().catch(() => undefined), SILENT)
    const { done, value } = await reader.read().finally(() => clearTimeout(silent))
    if (done) return { ...GONE, error: "The daemon has ended." }
    rest += value
    const parts = rest.split("\n\n")
    rest = parts.pop() ?? ""
    for (const part of parts) {
      const fields = Object.fromEntries(
        part.split("\n").flatMap((line) => {
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
 * Listens until it is aborted; `resumes`: it goes on after the last id that was heard, and rests while the page is out
 * of sight, so that it keeps no connection from those that are.
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
      const response = await asked(path, { signal: ends, headers: { accept: "text/event-stream", ...more } })
      tries = 0
      listener.up()
      listener.down(await events(response, listener, (id) => (last = id)))
    } catch (error) {
      if (signal.aborted) return
      if (out?.signal.aborted === true) continue
      const problem = error instanceof Refused ? error.problem : GONE
      listener.down(problem)
      // what is not let in is not let in by asking again
      if (problem.status === 401 || problem.status === 403) return
    } finally {
      out?.abort()
    }
    await wait(AGAIN[Math.min(tries, AGAIN.length - 1)]!, signal)
  }
}
