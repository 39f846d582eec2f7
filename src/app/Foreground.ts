/**
 * Foreground: runs a program in this terminal in our place: it shares our process
 * group, so that the shell's job control and the keys that send signals reach it
 * as if it had been started by itself.
 *
 * Guarantees: Ctrl+C and Ctrl+\ are the program's alone; a signal sent to us goes
 * on to it, a hang-up too; when it stops itself, so do we, or the shell would wait
 * for ever; its end is told as a shell tells it: its exit code, or 128 and the
 * signal's number.
 *
 * Directly on Node: a ChildProcess of Effect's says only in words which signal
 * ended it, and this is about signals.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { constants } from "node:os"
import { Effect } from "effect"
import * as ProcessTable from "../runs/process/ProcessTable.ts"
import { NotStarted, type Program, type ProgramOptions } from "../cli/parse/Invocation.ts"

/** The terminal sends these to the whole group: to pass them on would make two of one. */
const FROM_KEYS = ["SIGINT", "SIGQUIT"] as const
const PASSED_ON = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const
/** A stop that is over when it is looked at again was the group's, and we stopped with it. */
const SETTLED = "50 millis"

type Listener = readonly [signal: NodeJS.Signals, listener: () => void]

/** `send`: to the program. */
const passOn = (send: (signal: NodeJS.Signals) => void): ReadonlyArray<Listener> => {
  const forward = (signal: NodeJS.Signals): Listener => [signal, () => send(signal)]
  const swallow = (signal: NodeJS.Signals): Listener => [signal, () => {}]
  return [...FROM_KEYS.map(process.stdin.isTTY ? swallow : forward), ...PASSED_ON.map(forward)]
}

/** The shell wakes the whole group; `kill -CONT` of us alone is meant for the program too. */
const wake = (child: ChildProcess, pid: number): Listener => [
  "SIGCONT",
  () => {
    if (ProcessTable.isStopped(pid)) child.kill("SIGCONT")
  }
]

/** Stops the process by SIGSTOP, so that a waiting shell sees it stopped. */
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
        remedy: "Give its path, or see that it is on PATH.",
        exitCode: NOT_FOUND
      })
    : new NotStarted({
        message: `${name} cannot be run: ${error.message}`,
        remedy: "See that it is a program that you may run.",
        exitCode: NOT_RUNNABLE
      })

const statusOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? (signal === null ? 1 : 128 + constants.signals[signal])

/** Returns when it runs; our listeners are gone when it has ended. */
export const start = ({ command: [name = "", ...args], env }: ProgramOptions): Effect.Effect<Program, NotStarted> =>
  Effect.callback((resume) => {
    // It is at work before `spawn` returns: a signal must not find us without listeners then. It is heard after.
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
    // It may have stopped before anybody listened.
    stopToo()
    const ended = new Promise<number>((resolve) => {
      child.once("exit", (code, signal) => {
        silence()
        resolve(statusOf(code, signal))
      })
    })
    // A signal that cannot be passed on to who has just ended is nobody's affair.
    child.on("error", () => {})
    resume(Effect.succeed({ pid, ended: Effect.promise(() => ended) }))
  })
