/**
 * LogWorker: starts the log's thread, and exchanges messages with it.
 *
 * Guarantees: the thread opens no file before `open` is called. If the thread ends before a listener is set, the
 * listener still gets the message `Broken`.
 */
import { Worker } from "node:worker_threads"
import type { FromThread, Open, ToThread } from "./LogThread.ts"
import { makeControl, ring, STOP } from "./LogControl.ts"

/** Message that the log's thread has ended, with the reason. */
export interface Broken {
  readonly _tag: "Broken"
  readonly reason: string
}

export class LogWorker {
  readonly control = makeControl()
  private readonly worker: Worker
  private broken: Broken | undefined
  private hasEnded = false
  private hear: ((message: FromThread | Broken) => void) | undefined

  /** `code`: path or URL of the file with the thread's code. */
  constructor(code: string | URL) {
    this.worker = new Worker(code, { workerData: this.control, name: "log" })
    this.worker.on("message", (message: FromThread) => this.hear?.(message))
    this.worker.on("error", (error) => this.broke(String(error)))
    this.worker.on("exit", () => {
      this.hasEnded = true
      this.broke("it ended")
    })
  }

  open(order: Omit<Open, "_tag">): void {
    this.say({ _tag: "Open", ...order })
  }

  onMessage(hear: (message: FromThread | Broken) => void): void {
    this.hear = hear
    if (this.broken !== undefined) hear(this.broken)
  }

  say(message: ToThread): void {
    this.worker.postMessage(message)
    ring(this.control)
  }

  /** Stops the thread after it has processed all received messages. Then calls `ended`. */
  stop(ended: () => void): void {
    if (this.hasEnded) return ended()
    this.worker.once("exit", ended)
    Atomics.store(this.control, STOP, 1)
    ring(this.control)
  }

  private broke(reason: string): void {
    this.broken ??= { _tag: "Broken", reason }
    this.hear?.(this.broken)
  }
}
