/**
 * ServerActor: a state in memory behind a mailbox (OTP's gen_server).
 *
 * Guarantees: a batch's new state counts once its `commit` has succeeded, and
 * asks are answered after that; each incarnation starts from `init`. What must
 * survive a crash belongs in a `MachineActor`.
 */
import { Effect, Exit, type Scope } from "effect"
import { Actor, type ActorOptions, Kind as ActorKind, scoped } from "./Actor.ts"
import type { Envelope } from "./Mailbox.ts"

export interface Options<S, M, A, R> extends ActorOptions {
  readonly init: () => S
  /** Pure: the state after the message. A throw is a crash. */
  readonly receive: (state: S, message: M) => S
  /** What an asker of this message is told, from the state after it. */
  readonly answer: (state: S, message: M) => A
  /** Once for a whole batch, before its asks are answered; not interruptible. A failure is a crash; the batch stays in the mailbox. */
  readonly commit?: (state: S, messages: ReadonlyArray<M>) => Effect.Effect<void, unknown, R>
}

class ServerKind<S, M, A> extends ActorKind {
  readonly options: Options<S, M, A, never>

  constructor(options: Options<S, M, A, never>, context: ConstructorParameters<typeof ActorKind>[1]) {
    super(options, context)
    this.options = options
  }
}

export class ServerActor<S, M, A> extends Actor<M, A, never> {
  declare protected readonly kind: ServerKind<S, M, A>
  private state: S

  constructor(address: string, kind: ServerKind<S, M, A>) {
    super(address, kind)
    this.state = kind.options.init()
  }

  protected override begin(): undefined {
    this.state = this.kind.options.init()
  }

  protected batch(limit: number): Effect.Effect<void, unknown> | undefined {
    const { receive, answer, commit } = this.kind.options
    let state = this.state
    let answers: Array<{ readonly envelope: Envelope<M>; readonly exit: Exit.Exit<A> }> | undefined
    let count = 0
    try {
      for (; count < limit; count++) {
        const envelope = this.mailbox.at(count)
        if (envelope.isVoid) continue
        const next = receive(state, envelope.message)
        if (envelope.asker !== undefined) {
          ;(answers ??= []).push({ envelope, exit: Exit.succeed(answer(next, envelope.message)) })
        }
        state = next
      }
    } catch (defect) {
      // The batch ends before it; the message is then the first of the next one.
      if (count === 0) return this.poisoned(defect) as undefined
    }
    const settle = () => {
      this.state = state
      this.mailbox.settle(count)
      for (const { envelope, exit } of answers ?? []) envelope.asker!.settle(exit)
    }
    if (commit === undefined) return settle() as undefined
    const messages = Array.from({ length: count }, (_, index) => this.mailbox.at(index)).flatMap((envelope) =>
      envelope.isVoid ? [] : [envelope.message]
    )
    return Effect.uninterruptible(Effect.map(commit(state, messages), settle))
  }
}

export interface Kind<S, M, A> {
  /** A new actor, closed with the scope. It is its own `ChildSpec`. */
  readonly make: (address: string) => Effect.Effect<ServerActor<S, M, A>, never, Scope.Scope>
}

/** Captures the context that `commit` runs in. */
export const kind = <S, M, A, R = never>(options: Options<S, M, A, R>): Effect.Effect<Kind<S, M, A>, never, R> =>
  Effect.map(Effect.context<R>(), (context) => {
    const shared = new ServerKind<S, M, A>(options as Options<S, M, A, never>, context)
    return { make: (address) => scoped(() => new ServerActor(address, shared)) }
  })
