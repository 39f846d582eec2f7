/**
 * CapturedServices: captures the services of the current context, so that code in another context can use them.
 *
 * Guarantees: The scope of the current context is not included. Resources that are created later with these services
 * belong to the scope of their caller.
 */
import { Context, Effect, Scope } from "effect"

export const services = <R>(): Effect.Effect<
  Context.Context<Exclude<R, Scope.Scope>>,
  never,
  Exclude<R, Scope.Scope>
> =>
  Effect.map(Effect.context<Exclude<R, Scope.Scope>>(), (context) =>
    Context.omit(Scope.Scope)(context as Context.Context<Exclude<R, Scope.Scope> | Scope.Scope>)
  ) as never
