import { Context, Effect, Scope } from "effect"
const mem = () => {
  ;(globalThis as any).gc()
  ;(globalThis as any).gc()
  return process.memoryUsage().heapUsed
}
const N = 50_000
const m = (name: string, f: () => unknown) => {
  const keep: unknown[] = new Array(N)
  for (let i = 0; i < 10; i++) f()
  const b = mem()
  for (let n = 0; n < N; n++) keep[n] = f()
  console.log(name, (mem() - b) / N - 0)
  return keep.length
}
const ctx = Context.empty() as any
const fork = Effect.runForkWith(ctx)
m("raw never", () => fork(Effect.never))
m("latchlike callback", () => fork(Effect.callback<never>(() => {})))
m("scope", () => Scope.makeUnsafe())
m("ctx.add", () => Context.add(ctx, Scope.Scope, Scope.makeUnsafe()))
m("fork with ctx.add", () => Effect.runForkWith(Context.add(ctx, Scope.Scope, Scope.makeUnsafe()))(Effect.never))
m("provide+onExit", () => {
  const s = Scope.makeUnsafe()
  return Effect.never.pipe(
    Scope.provide(s),
    Effect.onExit((e) => Scope.close(s, e)),
    fork
  )
})
m("scoped", () => fork(Effect.scoped(Effect.never)))
m("flatMap", () => fork(Effect.flatMap(Effect.succeed(1), () => Effect.never)))
