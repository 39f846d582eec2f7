/**
 * LiveRun: what is known of the run of an agent that is alive now. In memory only:
 * a turn that this does not know was lost with the daemon that knew it.
 */
import { Effect, Latch } from "effect"
import type { Run } from "../backends/Backend.ts"
import * as Excerpt from "./Excerpt.ts"
import type { RuneRef } from "../event-log/Rune.ts"

/** Bytes of an unfinished answer that are kept. */
const MAX_SAID = 64 * 1024

export class LiveRun {
  /** Once it has said that it is up. */
  run: Run | undefined = undefined
  /** Whether it takes one turn after the other. */
  turns = false
  /** The turn that it works on. */
  turnId: string | undefined = undefined
  /** The turn that inbox, agent and conversation have been told of. */
  begun: string | undefined = undefined
  /** The turn whose input it has. */
  given: string | undefined = undefined
  /** The rune that ended the turn which is being finalized. */
  ended: RuneRef | undefined = undefined
  /** What it has said in the turn since its last tool call; what comes after the limit is left out. */
  private said = ""
  /** It is being ended, and takes no turn any more. */
  ending = false
  /** Something has changed that may give it work. */
  private readonly work = Latch.makeUnsafe(false)
  private readonly over = Latch.makeUnsafe(true)
  private readonly idle = Latch.makeUnsafe(false)

  begin(turnId: string): void {
    this.turnId = turnId
    this.said = ""
    this.over.closeUnsafe()
  }

  say(text: string): void {
    if (this.said.length < MAX_SAID) this.said += text
  }

  /** It goes on to its tools: what it says next is another answer. */
  pause(): void {
    this.said = ""
  }

  /** What there is of the answer, for the event that cuts it short. */
  get partial(): { readonly partialOutput?: string } {
    return this.said === "" ? {} : { partialOutput: Excerpt.text(this.said, MAX_SAID) }
  }

  end(): void {
    this.turnId = undefined
    this.over.openUnsafe()
  }

  gone(): void {
    this.end()
    this.run = undefined
    this.turns = false
    this.ending = false
    this.work.openUnsafe()
  }

  /** Waits until the turn is not worked on any more. */
  readonly turnOver = (turnId: string): Effect.Effect<void> =>
    Effect.suspend(() =>
      this.turnId === turnId ? Effect.andThen(this.over.await, this.turnOver(turnId)) : Effect.void
    )

  /** No turn is active, and everybody has heard of the last one's end. */
  settle(): void {
    this.idle.openUnsafe()
  }

  /** A turn is, from here on. */
  unsettle(): void {
    this.idle.closeUnsafe()
  }

  get settled(): Effect.Effect<void> {
    return this.idle.await
  }

  /** Look for work again. */
  readonly wake: Effect.Effect<void> = Effect.sync(() => void this.work.openUnsafe())

  /** To be called before looking for work: what comes later ends `changed`. */
  attend(): Effect.Effect<void> {
    this.work.closeUnsafe()
    return this.work.await
  }
}
