import { Effect, Exit } from "effect"
import { make } from "../src/actors/Supervisor.ts"
class Idle {
  observer: any = undefined
  stop() {
    this.observer?.childExited(Exit.interrupt())
  }
  onExit(o: any) {
    this.observer = o
  }
}
const mem = () => {
  ;(globalThis as any).gc()
  ;(globalThis as any).gc()
  return process.memoryUsage().heapUsed
}
const N = 100_000
const program = Effect.gen(function* () {
  const answer = Effect.sync(() => new Idle())
  const sup = yield* make({ name: "s", strategy: "dynamic", maxChildren: 1e6, traceCapacity: 0 })
  yield* sup.startChild({ id: "warm", start: answer })
  let before = mem()
  let t = process.hrtime.bigint()
  for (let n = 0; n < N; n++) yield* sup.startChild({ id: `c${n}`, start: answer })
  console.log("idle child B", (mem() - before) / N, "µs/start", Number(process.hrtime.bigint() - t) / 1e3 / N)
  t = process.hrtime.bigint()
  for (let n = 0; n < N; n++) yield* sup.terminateChild(`c${n}`)
  console.log("µs/terminate", Number(process.hrtime.bigint() - t) / 1e3 / N, "left B", (mem() - before) / N)
  before = mem()
  for (let n = 0; n < N; n++) yield* sup.startChild({ id: `c${n}`, start: Effect.succeed(Effect.never) })
  console.log("fiber child B", (mem() - before) / N)
  t = process.hrtime.bigint()
  sup.stop("shutdown")
  yield* sup.ended
  console.log("stop all fibers ms", Number(process.hrtime.bigint() - t) / 1e6)
  before = mem()
  const sups = []
  for (let n = 0; n < 10_000; n++) sups.push(yield* make({ name: "x", traceCapacity: 64 }))
  console.log("idle supervisor B", (mem() - before) / 10_000)
})
Effect.runPromise(Effect.scoped(program))
