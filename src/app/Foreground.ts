/**
 * Foreground: runs a program in this terminal in place of this process. The program shares the process group of this
 * process. So the shell's job control, and keys such as Ctrl+C, affect the program as if the shell had started it.
 *
 * Guarantees: Ctrl+C and Ctrl+\ affect only the program. A signal sent to this process is passed on to the program,
 * including a hang-up. When the program stops itself, this process stops too; otherwise the shell would never return to
 * its prompt. The program's end is reported in the form that shells use: its exit code, or 128 plus the number of the
 * signal.
 *
 * This module uses Node directly, because Effect's ChildProcess reports the signal that ended a program only as part of
 * a message.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { constants } from "node:os"
import { Effect } from "effect"
import * as ProcessTable from "../runs/process/ProcessTable.ts"
import { NotStarted, type Program, type ProgramOptions } from "../cli/parse/Invocation.ts"

/**
 * Signals that the terminal sends to the whole process group. If this process passed them on, the program would receive
 * them twice.
 */
const FROM_KEYS = ["SIGINT", "SIGQUIT"] as const
const PASSED_ON = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const
/**
 * Delay before this process checks again whether the program is stopped. If the program is running again, the whole
 * group was stopped and continued, including this process.
 */
const SETTLED = "50 millis"

type Listener = readonly [signal: NodeJS.Signals, listener: () => void]

const passOn = (send: (signal: NodeJS.Signals) => void): ReadonlyArray<Listener> => {
  const forward = (signal: NodeJS.Signals): Listener => [signal, () => send(signal)]
  const swallow = (signal: NodeJS.Signals): Listener => [signal, () => {}]
  return [...FROM_KEYS.map(process.stdin.isTTY ? swallow : forward), ...PASSED_ON.map(forward)]
}

/**
 * Passes SIGCONT on to the program. The shell continues the whole process group, but `kill -CONT` can be sent to this
 * process alone.
 */
const wake = (child: ChildProcess, pid: number): Listener => [
  "SIGCONT",
  () => {
    if (ProcessTable.isStopped(pid)) child.kill("SIGCONT")
  }
]

/** When the program has stopped, stops this process by SIGSTOP, so that a waiting shell notices the stop. */
const stopWith = (pid: number) => () => {
  const follow = Effect.sync(() => {
    if (ProcessTable.isStopped(pid)) process.kill(process.pid, "SIGSTOP")
  })
  if (ProcessTable.isStopped(pid)) Effect.runFork(Effect.delay(follow, SETTLED))
}

const NOT_FOUND = 127
const NOT_RUNNABLE = 126

const notStarted = (name: string, error: NodeJS.ErrnoException): NotStarted =>
  error.code === "ENOENT"
    ? new NotStarted({
        message: `There is no program ${name}.`,
        remedy: "Give its path, or make sure that it is on PATH. To give an agent work: agentd send AGENT TEXT",
        exitCode: NOT_FOUND
      })
    : new NotStarted({
        message: `${name} cannot be run: ${error.message}`,
        remedy: "Make sure that it is a program that you can run.",
        exitCode: NOT_RUNNABLE
      })

const statusOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? (signal === null ? 1 : 128 + constants.signals[signal])

/** Starts the program, and returns when it runs. The signal listeners are removed when the program has ended. */
export const start = ({ command: [name = "", ...args], env }: ProgramOptions): Effect.Effect<Program, NotStarted> =>
  Effect.callback((resume) => {
    // Add the listeners before the program starts, because it runs before `spawn` returns, and a signal could be
    // missed. Early signals are passed on afterwards.
    let running: ChildProcess | undefined
    const listeners: Array<Listener> = []
    const listen = (more: ReadonlyArray<Listener>) => {
      for (const [signal, listener] of more) process.on(signal, listener)
      listeners.push(...more)
    }
    const silence = () => {
      for (const [signal, listener] of listeners) process.off(signal, listener)
    }
    listen(passOn((signal) => void running?.kill(signal)))
    const child = spawn(name, args, { stdio: "inherit", env })
    const { pid } = child
    if (pid === undefined) {
      silence()
      child.once("error", (error) => resume(Effect.fail(notStarted(name, error))))
      return
    }
    running = child
    const stopToo = stopWith(pid)
    listen([wake(child, pid), ["SIGCHLD", stopToo]])
    // the program might have stopped before the listener was added, so check now
    stopToo()
    const ended = new Promise<number>((resolve) => {
      child.once("exit", (code, signal) => {
        silence()
        resolve(statusOf(code, signal))
      })
    })
    // a signal to a program that has just ended can be ignored
    child.on("error", () => {})
    resume(Effect.succeed({ pid, ended: Effect.promise(() => ended) }))
  })
