/**
 * Shared: one stream for all pages of a browser: one of them listens and tells the others, since a browser opens six
 * connections to a daemon, and a stream keeps one of them.
 *
 * Guarantees: when the page that listens goes, another one does; a page that comes is told all that is known first; a
 * daemon that is back is found at once where a page is in sight, though the one that listens be asleep.
 */
import * as Api from "./Api.ts"

const NAME = "agentd-board"
/** Between two requests of a page in sight to try again, ms. */
const AGAIN = 1_000

type Message<A> =
  | { readonly is: "came"; readonly page: string }
  | { readonly is: "up"; readonly to?: string }
  | { readonly is: "heard"; readonly value: A; readonly id: number; readonly to?: string }
  | { readonly is: "down"; readonly problem: Api.Problem; readonly to?: string }
  | { readonly is: "again" }

export interface Options<A> {
  readonly path: string
  readonly listener: Api.Listener<A>
  /** All that was heard, as the first thing that a page hears. */
  readonly whole: () => A
}

/** Listens for as long as the page is there. */
export const listen = <A>({ listener, path, whole }: Options<A>): void => {
  const never = new AbortController().signal
  // without locks (another origin than https or loopback) each page listens for itself
  if (!("locks" in navigator)) return void Api.listen<A>(path, listener, never, false)
  const page = crypto.randomUUID()
  const others = new BroadcastChannel(NAME)
  const tell = (message: Message<A>) => others.postMessage(message)
  let leads = false
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
    if (!leads) asking = setInterval(() => document.visibilityState === "visible" && tell({ is: "again" }), AGAIN)
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
    if (data.is === "came") welcome(data.page)
    else if (data.is === "again") Api.again()
    else if (leads) return
    else if (data.is === "up") up()
    else if (data.is === "down") down(data.problem)
    else if (problem === null) listener.heard(data.value, data.id)
  })
  tell({ is: "came", page })

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
  void navigator.locks.request(NAME, async () => {
    leads = true
    clearInterval(asking)
    problem = undefined
    await Api.listen<A>(path, leading, never, false)
    leads = false
  })
}
