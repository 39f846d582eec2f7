/**
 * Signals: defines how the daemon reacts to each signal. The program's runner also handles SIGTERM and SIGINT before
 * this module listens.
 *
 * Guarantees: no signal opens a debugger port. A signal that ends the daemon ends it gracefully, and is named in the
 * log. All other signals that would end a program by default are logged and change nothing. SIGTSTP, SIGTTIN and
 * SIGTTOU stop a daemon in a terminal until SIGCONT, as they do with any program. SIGKILL cannot be caught; crash
 * signals and real-time signals are not caught.
 */
import { Effect, Queue } from "effect"
import { isatty } from "node:tty"

/** The reaction to a signal. `hangup`: ends the daemon if its terminal is gone, otherwise does nothing. */
type Deed = "end" | "hangup" | "nothing"

export const DEEDS = {
  SIGTERM: "end",
  SIGINT: "end",
  SIGQUIT: "end",
  /** Sent when the machine's power is failing. */
  SIGPWR: "end",
  /** Sent when the soft limit of CPU time is reached; SIGKILL follows at the hard limit. */
  SIGXCPU: "end",
  SIGHUP: "hangup",
  /** Sent by log rotation tools. Without a listener, Node would open its debugger port. */
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

/** Maximum number of queued signals. If more arrive, the oldest are discarded. */
const MOST = 16
/** Frequent signals, which are not logged. For example, one is sent at each change of a terminal's size. */
const UNTOLD: ReadonlySet<Heard> = new Set(["SIGWINCH", "SIGURG", "SIGPIPE"])

const told = (signal: Heard, isInTerminal: boolean): string | undefined => {
  const deed = DEEDS[signal]
  if (deed === "end" || (deed === "hangup" && isInTerminal)) return undefined
  if (deed === "hangup") return `${signal}: ignored; files are read again when they change`
  return UNTOLD.has(signal) ? "" : `${signal}: ignored`
}

/**
 * Listens for signals until the scope closes. A signal that ends the daemon is passed on as SIGTERM, which the
 * program's runner handles.
 */
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
    yield* Effect.logInfo(`${signal}: the daemon is shutting down`)
    // the program's runner handles SIGTERM and SIGINT itself
    if (signal !== "SIGTERM" && signal !== "SIGINT") process.kill(process.pid, "SIGTERM")
  })
  yield* Effect.forkScoped(Effect.forever(next))
})
