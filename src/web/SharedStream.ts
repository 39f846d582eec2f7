/**
 * SharedStream: shares one stream between all open pages of a browser. One page listens and forwards the values to the
 * others, because a browser opens only six connections to a daemon, and a stream occupies one of them.
 *
 * Guarantees: when the listening page is closed, or the browser suspends it, another page takes over. A new page first
 * receives all data that has already arrived. If any page is visible, it notices at once when the daemon is back.
 */
import * as Api from "./Api.ts"

const NAME = "agentd-board"
/** Interval in ms at which a visible page requests another connection attempt. */
const AGAIN = 1_000
/** Interval in ms at which a visible page asks whether the listening page is awake. */
const ASKS = 5_000
/** Number of unanswered questions after which the listening page counts as asleep. */
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
  /** All data that has been received so far. It becomes the first value for a new page. */
  readonly whole: () => A
}

const isInSight = () => document.visibilityState === "visible"

/** Lets one page listen at a time. When that page is closed, the next one listens. */
const turns = (lead: (until: AbortSignal) => Promise<void>, lost: () => void) => {
  let waiting = new AbortController()
  let takes = false
  /**
   * Waits for the lock, then listens. Returns false if another page has taken the lock, or if this page should take it.
   */
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
      // if locks are not available because the browser stores nothing for this origin, this page opens its own stream
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
    /** Takes the lock away from a page that is asleep. */
    takeOver: () => {
      takes = true
      waiting.abort()
    }
  }
}

/** Listens to the shared stream while the page is open. */
export const listen = <A>({ listener, path, whole }: Options<A>): void => {
  // without locks (an origin other than https or loopback), each page opens its own stream
  if (!("locks" in navigator)) return void Api.listen<A>(path, listener, new AbortController().signal, false)
  const page = crypto.randomUUID()
  const others = new BroadcastChannel(NAME)
  const tell = (message: Message<A>) => others.postMessage(message)
  let leads = false
  let unanswered = 0
  /** True if this page's rows are complete. False between a reconnection and the first value. */
  let isWhole = false
  /** The connection's problem; null if connected; undefined if not known yet. */
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
    // if the rows are not complete yet, wait: the next value of the stream will also be the new page's first value
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
