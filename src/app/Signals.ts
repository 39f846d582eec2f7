/**
 * Signals: what becomes of each signal that a daemon may get. SIGTERM and SIGINT end it wherever this is not heard yet.
 *
 * Guarantees: none opens a debugger's port; one that ends the daemon ends it in order, and its log says which it was;
 * any other that would end a program is noted, and changes nothing. SIGTSTP, SIGTTIN and SIGTTOU stop a daemon in a
 * terminal until SIGCONT, as any program. SIGKILL, the signals of a crash and real-time ones cannot be, or are not, caught.
 */
import { Effect, Queue } from "effect"
import { isatty } from "node:tty"

/** `hangup`: the end where a terminal is gone, else nothing. */
type Deed = "end" | "hangup" | "nothing"

export const DEEDS = {
  SIGTERM: "end",
  SIGINT: "end",
  SIGQUIT: "end",
  /** The machine's power fails. */
  SIGPWR: "end",
  /** The limit of processor time is reached: beyond it comes SIGKILL. */
  SIGXCPU: "end",
  SIGHUP: "hangup",
  /** Sent by log rotation; Node would open its debugger's port. */
  SIGUSR1: "nothing",
  SIGUSR2: "nothing",
  SIGALRM: "nothing",
  SIGVTALRM: "nothing",
  SIGPROF: "nothing",
  SIGIO: "nothing",
  SIGPIPE: "nothing",
  SIGSYS: "nothing",
  SIGXFSZ: "nothing",
  SIGSTKFLT: "nothing",
  SIGURG: "nothing",
  SIGWINCH: "nothing"
} as const satisfies { readonly [signal in NodeJS.Signals]?: Deed }

type Heard = keyof typeof DEEDS

/** Told of so many that wait; what comes faster is left out. */
const MOST = 16
/** The window of a terminal changes all the time. */
const UNTOLD: ReadonlySet<Heard> = new Set(["SIGWINCH", "SIGURG", "SIGPIPE"])

const told = (signal: Heard, isInTerminal: boolean): string | undefined => {
  const deed = DEEDS[signal]
  if (deed === "end" || (deed === "hangup" && isInTerminal)) return undefined
  if (deed === "hangup") return `${signal}: nothing is done; each file is read as it changes`
  return UNTOLD.has(signal) ? "" : `${signal}: nothing is done`
}

/** Hears them for the length of the scope; an end is left to whoever hears SIGTERM. */
export const follow = Effect.gen(function* () {
  const isInTerminal = isatty(0)
  const heard = yield* Queue.sliding<Heard>(MOST)
  const names = Object.keys(DEEDS) as ReadonlyArray<Heard>
  const listeners = names.map((signal) => [signal, () => void Queue.offerUnsafe(heard, signal)] as const)
  yield* Effect.acquireRelease(
    Effect.sync(() => listeners.forEach(([signal, listener]) => process.on(signal, listener))),
    () => Effect.sync(() => listeners.forEach(([signal, listener]) => process.off(signal, listener)))
  )
  const next = Effect.gen(function* () {
    const signal = yield* Queue.take(heard)
    const nothing = told(signal, isInTerminal)
    if (nothing !== undefined) return yield* nothing === "" ? Effect.void : Effect.logInfo(nothing)
    yield* Effect.logInfo(`${signal}: the daemon ends in order`)
    // those two are heard by whoever runs the program
    if (signal !== "SIGTERM" && signal !== "SIGINT") process.kill(process.pid, "SIGTERM")
  })
  yield* Effect.forkScoped(Effect.forever(next))
})
