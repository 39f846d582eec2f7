/**
 * Shared: one stream for all pages of a browser: one of them listens and tells the others, since a browser opens six
 * connections to a daemon, and a stream keeps one of them.
 *
 * Guarantees: when the page that listens goes, or is put to sleep by its browser, another one does; a page that comes
 * is told all that is known first; a daemon that is back is found at once where a page is in sight.
 */
import * as Api from "./Api.ts"

const NAME = "agentd-board"
/** Between two requests of a page in sight to try again, ms. */
const AGAIN = 1_000
/** Between two questions of a page in sight whether the one that listens is awake, ms. */
const ASKS = 5_000
/** So many without an answer: it sleeps. */
const UNANSWERED = 3

type Message<A> =
  | { readonly is: "came"; readonly page: string }
  | { readonly is: "up"; readonly to?: string }
  | { readonly is: "heard"; readonly value: A; readonly id: number; readonly to?: string }
  | { readonly is: "down"; readonly problem: Api.Problem; readonly to?: string }
  | { readonly is: "again" }
  | { readonly is: "awake?" }
  | { readonly is: "awake" }

export interface Options<A> {
  readonly path: string
  readonly listener: Api.Listener<A>
  /** All that was heard, as the first thing that a page hears. */
  readonly whole: () => A
}

const isInSight = () => document.visibilityState === "visible"

/** Turns of the pages: one listens at a time, the next one when it goes. */
const turns = (lead: (until: AbortSignal) => Promise<void>, lost: () => void) => {
  let waiting = new AbortController()
  let takes = false
  /** False: another page has taken it over, or this one is to take it over. */
  const turn = async (options: LockOptions): Promise<boolean> => {
    const ends = new AbortController()
    try {
      await navigator.locks.request(NAME, options, () => {
        takes = false
        return lead(ends.signal)
      })
      return true
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return false
      // a page that may have no lock (a browser that keeps nothing for this origin) listens for itself
      await lead(new AbortController().signal)
      return true
    } finally {
      ends.abort()
    }
  }
  const run = async () => {
    for (;;) {
      waiting = new AbortController()
      if (await turn({ signal: waiting.signal })) return
      if (takes && (await turn({ steal: true }))) return
      lost()
    }
  }
  void run()
  return {
    /** From a page that sleeps. */
    takeOver: () => {
      takes = true
      waiting.abort()
    }
  }
}

/** Listens for as long as the page is there. */
export const listen = <A>({ listener, path, whole }: Options<A>): void => {
  // without locks (another origin than https or loopback) each page listens for itself
  if (!("locks" in navigator)) return void Api.listen<A>(path, listener, new AbortController().signal, false)
  const page = crypto.randomUUID()
  const others = new BroadcastChannel(NAME)
  const tell = (message: Message<A>) => others.postMessage(message)
  let leads = false
  let unanswered = 0
  /** The rows here are the daemon's: not so between its return and the first that it says. */
  let isWhole = false
  /** Undefined: not known yet. */
  let problem: Api.Problem | null | undefined
  let asking: ReturnType<typeof setInterval> | undefined

  const up = () => {
    problem = null
    clearInterval(asking)
    listener.up()
  }
  const down = (found: Api.Problem) => {
    problem = found
    listener.down(found)
    clearInterval(asking)
    if (!leads) asking = setInterval(() => isInSight() && tell({ is: "again" }), AGAIN)
  }
  const welcome = (to: string) => {
    if (!leads || problem === undefined) return
    if (problem !== null) return tell({ is: "down", problem, to })
    tell({ is: "up", to })
    // else the first that is heard is the first for the page that came, too
    if (isWhole) tell({ is: "heard", value: whole(), id: 0, to })
  }
  others.addEventListener("message", ({ data }: MessageEvent<Message<A>>) => {
    if ("to" in data && data.to !== page) return
    if (data.is === "came") return welcome(data.page)
    if (data.is === "again") return Api.again()
    if (data.is === "awake?") return leads ? tell({ is: "awake" }) : undefined
    if (leads) return
    unanswered = 0
    if (data.is === "up") up()
    else if (data.is === "down") down(data.problem)
    else if (data.is === "heard" && problem === null) listener.heard(data.value, data.id)
  })
  const come = () => tell({ is: "came", page })
  come()

  const leading: Api.Listener<A> = {
    up: () => {
      isWhole = false
      up()
      tell({ is: "up" })
    },
    heard: (value, id) => {
      listener.heard(value, id)
      isWhole = true
      tell({ is: "heard", value, id })
    },
    down: (found) => {
      down(found)
      tell({ is: "down", problem: found })
    }
  }
  const lead = async (until: AbortSignal) => {
    leads = true
    clearInterval(asking)
    problem = undefined
    until.addEventListener("abort", () => (leads = false))
    await Api.listen<A>(path, leading, until, false)
  }
  const { takeOver } = turns(lead, come)
  setInterval(() => {
    if (leads || !isInSight()) unanswered = 0
    else if (++unanswered > UNANSWERED) takeOver()
    else tell({ is: "awake?" })
  }, ASKS)
}
