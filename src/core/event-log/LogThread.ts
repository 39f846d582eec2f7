/**
 * LogThread: the thread that owns the database. It takes the appends that have arrived, commits them as one group, and
 * reports how many appends are durable. While it waits for the disk, more appends arrive and become the next group.
 *
 * Guarantees: the thread opens no store before the `Open` message names one. Until then it has only loaded its code.
 *
 * The thread sleeps in `Atomics.wait`, so a message alone does not wake it. The sender of a message also increments the
 * control word `BELL`. The thread then wakes and reads the message from its port.
 */
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import type { Problem, Sealing } from "./EventLog.ts"
import { type Failure, failureOf, MAX_GROUP, type Outcome } from "./GroupCommit.ts"
import { BELL, DONE, EPOCH, STOP } from "./LogControl.ts"
import { type Change, LogStore, type Opened, type Order } from "./LogStore.ts"
import { IdleScheduler } from "./IdleScheduler.ts"
import type { Row } from "./Row.ts"
import type { Sealed } from "./Sealer.ts"
import { nodeSqlite } from "./Sqlite.ts"
import type { StoreOptions } from "./SqliteStore.ts"

export type ToThread =
  | Open
  | Order
  | { readonly _tag: "Change"; readonly id: number; readonly change: Change }
  | { readonly _tag: "Seal"; readonly id: number; readonly sealing: Sealing }
  | { readonly _tag: "Appends"; readonly appends: ReadonlyArray<ReadonlyArray<Row>> }
  /** Ends the recovery after a failure: all appends received before this message are ignored. */
  | { readonly _tag: "Reset" }

export interface Open {
  readonly _tag: "Open"
  readonly store: StoreOptions
  /** How long (ms) a temporary error is retried. */
  readonly giveUpAfter: number
}

/** Messages from the thread. The number of durable appends is not among them, because it is stored in shared memory. */
export type FromThread =
  | { readonly _tag: "Up"; readonly opened: Opened }
  | { readonly _tag: "NotUp"; readonly failure: Failure }
  | { readonly _tag: "Failed"; readonly failure: Failure }
  | { readonly _tag: "Carried"; readonly id: number; readonly failure: Failure | undefined }
  /** A problem was found in a rune that was in the store before the start. */
  | { readonly _tag: "Damaged"; readonly problem: Problem }
  /** A chore has failed. The thread will retry it later. */
  | { readonly _tag: "Troubled"; readonly message: string }
  | { readonly _tag: "Sealed"; readonly id: number; readonly sealed: Sealed }
  | { readonly _tag: "Closed" }

/** First and longest pause (ms) between retries after a temporary error. */
const FIRST_PAUSE = 5
const LONGEST_PAUSE = 500

type Asked = Exclude<ToThread, { readonly _tag: "Open" | "Appends" | "Reset" }>

const isAsked = (message: ToThread): message is Asked =>
  message._tag !== "Open" && message._tag !== "Appends" && message._tag !== "Reset"

const nextOf = (port: NonNullable<typeof parentPort>): ToThread | undefined =>
  (receiveMessageOnPort(port) as { readonly message: ToThread } | undefined)?.message

class LogThread {
  private readonly giveUpAfter: number
  private readonly port: NonNullable<typeof parentPort>
  private readonly store: LogStore
  private readonly control: Int32Array
  private heard = 0
  private readonly orders: Array<Asked> = []
  private appends: Array<ReadonlyArray<Row>> = []
  private readonly nothing = new Int32Array(new SharedArrayBuffer(4))
  private readonly pace = new IdleScheduler(performance.now())
  private hasFailed = false

  constructor({ giveUpAfter, store }: Open, control: Int32Array, port: NonNullable<typeof parentPort>) {
    this.giveUpAfter = giveUpAfter
    this.port = port
    this.store = new LogStore(store, nodeSqlite, () => performance.now())
    this.control = control
    this.store.onDamage = (problem) => this.say({ _tag: "Damaged", problem })
    this.store.onTrouble = (message) => this.say({ _tag: "Troubled", message })
    this.say({ _tag: "Up", opened: this.store.opened })
  }

  run(): void {
    // sleep only if a full pass finds no work, because one ring of the bell can announce two messages
    let isIdle = false
    for (;;) {
      const told = !isIdle || this.wait(this.pace.patience(performance.now(), this.store))
      if (told && isIdle) this.pace.ask(performance.now())
      isIdle = false
      this.receive()
      const appends = this.hasFailed ? [] : this.take()
      if (appends.length > 0) this.write(appends)
      else if (this.orders.length > 0) this.carryOut(this.orders.shift()!)
      else if (Atomics.load(this.control, STOP) === 1) break
      else {
        if (!told) this.tidy(performance.now())
        isIdle = true
      }
    }
    this.store.close()
    this.say({ _tag: "Closed" })
  }

  /** Does background work, if it is due. Called when there are no appends and no orders. */
  private tidy(now: number): void {
    if (this.pace.isQuiet(now)) this.store.rest()
    if (this.pace.isForChores(now, this.store)) this.store.chore()
  }

  private say(message: FromThread): void {
    this.port.postMessage(message)
  }

  private write(appends: ReadonlyArray<ReadonlyArray<Row>>): void {
    const { done, failure } = this.patiently(appends)
    if (done > 0) {
      Atomics.add(this.control, DONE, done)
      Atomics.notify(this.control, DONE)
    }
    if (failure !== undefined) this.fail(failure)
    else this.store.keepUp()
  }

  private patiently(appends: ReadonlyArray<ReadonlyArray<Row>>): Outcome {
    const writing = this.store.commit(appends)
    let waited = 0
    let pause = FIRST_PAUSE
    for (let step = writing.next(true); ;) {
      if (step.done === true) return step.value
      const again = waited < this.giveUpAfter
      if (again) Atomics.wait(this.nothing, 0, 0, Math.min(pause, this.giveUpAfter - waited))
      waited += pause
      pause = Math.min(pause * 2, LONGEST_PAUSE)
      step = writing.next(again)
    }
  }

  /** Reports a failure. Then waits until the actors' thread has undone all appends that are not durable. */
  private fail(failure: Failure): void {
    this.hasFailed = failure.isFatal
    const epoch = Atomics.load(this.control, EPOCH)
    this.say({ _tag: "Failed", failure })
    Atomics.wait(this.control, EPOCH, epoch)
    for (let message = this.next(); message !== undefined && message._tag !== "Reset"; message = this.next()) {
      if (isAsked(message)) this.orders.push(message)
    }
    this.appends = []
  }

  private next(): ToThread | undefined {
    return nextOf(this.port)
  }

  private receive(): void {
    for (let message = this.next(); message !== undefined; message = this.next()) {
      if (message._tag === "Appends") for (const append of message.appends) this.appends.push(append)
      else if (isAsked(message)) this.orders.push(message)
    }
  }

  /** Sleeps until the bell rings, but at most `atMost` ms. Returns false if the bell did not ring. */
  private wait(atMost: number): boolean {
    const told = Atomics.wait(this.control, BELL, this.heard, atMost) !== "timed-out"
    this.heard = Atomics.load(this.control, BELL)
    return told
  }

  /** Removes and returns whole appends, oldest first, until they have `MAX_GROUP` rows. */
  private take(): ReadonlyArray<ReadonlyArray<Row>> {
    let rows = 0
    let count = 0
    while (count < this.appends.length && rows < MAX_GROUP) rows += this.appends[count++]!.length
    return this.appends.splice(0, count)
  }

  private carryOut(order: Asked): void {
    if (order._tag === "Seal") {
      return this.store.seal(order.sealing, (sealed) => this.say({ _tag: "Sealed", id: order.id, sealed }))
    }
    let failure: Failure | undefined
    try {
      this.store.carryOut(order._tag === "Change" ? order.change : order)
    } catch (error) {
      failure = failureOf(error)
    }
    if (order._tag === "Change") this.say({ _tag: "Carried", id: order.id, failure })
  }
}

/** Sleeps until the `Open` message arrives. Returns undefined if the thread is stopped first. */
const told = (port: NonNullable<typeof parentPort>, control: Int32Array): Open | undefined => {
  for (;;) {
    const heard = Atomics.load(control, BELL)
    const message = nextOf(port)
    if (message?._tag === "Open") return message
    if (Atomics.load(control, STOP) === 1) return undefined
    Atomics.wait(control, BELL, heard)
  }
}

const start = (port: NonNullable<typeof parentPort>): void => {
  const control = workerData as Int32Array
  const open = told(port, control)
  if (open === undefined) return
  let thread: LogThread
  try {
    thread = new LogThread(open, control, port)
  } catch (error) {
    return port.postMessage({ _tag: "NotUp", failure: failureOf(error) } satisfies FromThread)
  }
  thread.run()
}

if (parentPort !== null) start(parentPort)
