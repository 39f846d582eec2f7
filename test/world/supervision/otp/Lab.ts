/**
 * Lab: children that do as they are told, and a log of what they lived through.
 * Each start and end of a child is a line in `log`, written by the child itself.
 */
import { Deferred, Effect, Exit, Option, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { type ChildSpec, ignore, type Started } from "../../../../src/core/supervision/Child.ts"
import { Shutdown } from "../../../../src/core/supervision/Restart.ts"
import { make } from "../../../../src/core/supervision/Supervisor.ts"
import type { Supervisor } from "../../../../src/core/supervision/Supervisor.ts"
import type { Options } from "../../../../src/core/supervision/SupervisorOptions.ts"

/** The next starts of a child; `ok` where nothing is planned. */
export type Start = "ok" | "error" | "ignore" | "hang"

export type End = "normal" | "shutdown" | "shutdown_term" | "abnormal" | "kill"

export const exits: { readonly [end in End]: Exit.Exit<unknown, unknown> } = {
  normal: Exit.void,
  shutdown: Exit.interrupt(),
  shutdown_term: Exit.fail(new Shutdown({ reason: "some_info" })),
  abnormal: Exit.fail("abnormal"),
  kill: Exit.die("killed")
}

export class Lab {
  readonly log: Array<string> = []
  private readonly plans = new Map<string, Array<Start>>()
  private readonly ends = new Map<string, Deferred.Deferred<unknown, unknown>>()
  private readonly incarnations = new Map<string, number>()

  /** `error` for ever: `always(id, "error")`. */
  private readonly standing = new Map<string, Start>()

  plan(id: string, ...starts: ReadonlyArray<Start>): void {
    this.plans.set(id, [...starts])
  }

  always(id: string, start: Start): void {
    this.standing.set(id, start)
  }

  /** How often it was started with success. */
  starts(id: string): number {
    return this.incarnations.get(id) ?? 0
  }

  spec(id: string, options: Partial<ChildSpec> & { readonly onStop?: Effect.Effect<void> } = {}): ChildSpec {
    const { onStop = Effect.void, ...rest } = options
    return { id, start: this.start(id, onStop), ...rest }
  }

  specs(ids: string, options: Partial<ChildSpec> = {}): ReadonlyArray<ChildSpec> {
    return ids.split(" ").map((id) => this.spec(id, options))
  }

  private start(id: string, onStop: Effect.Effect<void>): Effect.Effect<Started, unknown, Scope.Scope> {
    const begin = Effect.gen({ self: this }, function* () {
      const how = this.plans.get(id)?.shift() ?? this.standing.get(id) ?? "ok"
      if (how === "ignore") {
        this.log.push(`ignore ${id}`)
        return ignore
      }
      if (how === "error") {
        this.log.push(`error ${id}`)
        return yield* Effect.fail("start_child_error")
      }
      if (how === "hang") return yield* Effect.never
      const end = yield* Deferred.make<unknown, unknown>()
      this.ends.set(id, end)
      this.incarnations.set(id, this.starts(id) + 1)
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          onStop,
          Effect.sync(() => {
            if (this.ends.get(id) === end) this.ends.delete(id)
            this.log.push(`stop ${id}`)
          })
        )
      )
      this.log.push(`start ${id}`)
      return end
    })
    return Effect.map(begin, (end) => (end === ignore ? ignore : Deferred.await(end)))
  }

  alive(id: string): boolean {
    return this.ends.has(id)
  }

  /** The running incarnation ends by itself. */
  end(id: string, how: End): Effect.Effect<boolean> {
    return Deferred.done(this.ends.get(id)!, exits[how])
  }

  /** The log so far, emptied. */
  take(): ReadonlyArray<string> {
    return this.log.splice(0)
  }
}

/** `child:status` for all, in start order. */
export const statuses = (supervisor: Supervisor) =>
  Effect.map(supervisor.whichChildren, (children) => children.map(({ id, status }) => `${id}:${status}`).join(" "))

/** specs, active, supervisors, workers: the order of OTP's own suite. */
export const counts = (supervisor: Supervisor) =>
  Effect.map(supervisor.countChildren, ({ specs, active, supervisors, workers }) => [
    specs,
    active,
    supervisors,
    workers
  ])

/** The name of the effect's error, or `ok`. */
export const tag = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, { onSuccess: () => "ok", onFailure: (error) => error._tag })

/** All that was under way is done: nothing is timed, so a bounded number of turns is enough. */
export const settled = Effect.forEach(Array.from({ length: 200 }), () => Effect.yieldNow, { discard: true })

/** A supervisor in a Scope of the test's own, to be stopped by hand. It restarts at once, as OTP's. */
export const start = (options: Partial<Options>) =>
  make({ name: "sup", traceCapacity: 10_000, backoff: "none", ...options })

/** A child that ends by itself, and the supervisor that has dealt with it. */
export const die = (lab: Lab, id: string, how: End) => Effect.andThen(lab.end(id, how), settled)

/** Time passes, second by second, and all that follows from it is done. */
export const pass = (seconds: number) =>
  Effect.gen(function* () {
    yield* settled
    for (let second = 0; second < seconds; second++) {
      yield* TestClock.adjust("1 second")
      yield* settled
    }
  })

/** Ask a supervisor to end and wait, with `seconds` of time passing meanwhile. */
export const stop = (supervisor: Supervisor, seconds = 0) =>
  Effect.gen(function* () {
    supervisor.stop("shutdown")
    yield* pass(seconds)
    return yield* supervisor.ended
  })

/** How it ended, if it has. */
export const endOf = (supervisor: Supervisor) =>
  Effect.map(Effect.timeoutOption(supervisor.ended, 0), (end) => Option.getOrUndefined(end)?.reason)
