/**
 * ServerActor: a state in memory behind a mailbox (OTP's gen_server).
 *
 * Guarantees: a batch's new state counts once its `commit` has succeeded, and
 * asks are answered after that; each incarnation starts from `init`. What must
 * survive a crash belongs in a `MachineActor`.
 */
import { Effect, type Scope } from "effect"
import { Actor, type ActorOptions, Kind as ActorKind, makeKind } from "./Actor.ts"
import { Ask, Envelope } from "./Mailbox.ts"

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
    const { mailbox } = this
    const { answer, commit, receive } = this.kind.options
    let state = this.state
    let asks: Array<Ask<M>> | undefined
    let answers: Array<A> | undefined
    let count = 0
    try {
      for (; count < limit; count++) {
        const item = mailbox.peek(count)
        if (!(item instanceof Envelope)) {
          state = receive(state, item)
          continue
        }
        if (item.isVoid) continue
        const next = receive(state, item.message)
        if (item instanceof Ask) {
          ;(answers ??= []).push(answer(next, item.message))
          ;(asks ??= []).push(item)
        }
        state = next
      }
    } catch (defect) {
      // The batch ends before it; the message is then the first of the next one.
      if (count === 0) return this.poisoned(defect) as undefined
    }
    if (commit === undefined) return this.settle(state, count, asks, answers) as undefined
    const messages = Array.from({ length: count }, (_, index) => mailbox.at(index)).flatMap((envelope) =>
      envelope.isVoid ? [] : [envelope.message]
    )
    return Effect.uninterruptible(Effect.map(commit(state, messages), () => this.settle(state, count, asks, answers)))
  }

  private settle(
    state: S,
    count: number,
    asks: ReadonlyArray<Ask<M>> | undefined,
    answers: ReadonlyArray<A> | undefined
  ): void {
    this.state = state
    this.mailbox.settle(count)
    if (asks !== undefined) this.settleAsks(asks, answers!)
  }
}

export interface Kind<S, M, A> {
  /** A new actor, which is its own `ChildSpec`. */
  readonly make: (address: string) => Effect.Effect<ServerActor<S, M, A>>
}

/** Captures the context that `commit` runs in. Its actors are closed with the scope. */
export const kind = <S, M, A, R = never>(
  options: Options<S, M, A, R>
): Effect.Effect<Kind<S, M, A>, never, R | Scope.Scope> =>
  Effect.map(
    makeKind<ServerKind<S, M, A>, R>((context) => new ServerKind(options as Options<S, M, A, never>, context)),
    (shared) => ({ make: (address) => Effect.sync(() => new ServerActor(address, shared)) })
  )
