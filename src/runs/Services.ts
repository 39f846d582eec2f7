/**
 * Services: those of the place where this is asked, for use in another one.
 *
 * Guarantees: the scope of that place is not among them. What is made with them
 * later lives in the scope of whoever makes it, and ends with that.
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
