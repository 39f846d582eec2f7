/**
 * Activities: runs the activities of one actor: work that runs while the actor's committed state requires it. The actor
 * handles mail at the same time.
 *
 * Guarantees: at most one activity of each name runs at a time, even if an earlier one was killed or abandoned. A new
 * activity starts only when the earlier one of the same name and its finalizers have ended. An incarnation never
 * restarts an activity that has ended, unless its key has changed. If an activity fails, the scope crashes.
 */
import { Cause, Effect, Exit, type Fiber } from "effect"
import type { Acting, Activity } from "./EventSourcedActor.ts"
import type { ActorHandle } from "./ActorHandle.ts"

/** Runs activities. Implemented by the scope's current incarnation, whose end interrupts them. */
export interface Runner {
  run(effect: Effect.Effect<void, unknown>): Fiber.Fiber<void, unknown>
}

export interface Active extends ActorHandle<unknown, unknown> {
  readonly isRunning: boolean
  readonly definition: {
    /** Runs an activity. The result is an Effect. */
    readonly run?: (activity: Activity, acting: never) => unknown
  }
  readonly scope: {
    readonly stream: string
    readonly incarnation: Runner | undefined
    readonly system: {
      readonly scheduler: { alone(task: () => void): void }
      warn(message: string, cause: Cause.Cause<unknown>): void
    }
    crashed(cause: Cause.Cause<unknown>): void
  }
}

interface Slot {
  readonly name: string
  fiber: Fiber.Fiber<void, unknown> | undefined
  wanted: Activity | undefined
  /** Key of the activity that was started last. Undefined: an activity with any key can be started in this slot. */
  begun: string | number | undefined
}

const NONE: ReadonlyArray<never> = []

export class Activities {
  private member: Active
  /** List of slots, one for each activity name. An actor has few activities, so searching the list is fast enough. */
  private slots: ReadonlyArray<Slot> = NONE

  constructor(member: Active) {
    this.member = member
  }

  get isOver(): boolean {
    for (const { fiber } of this.slots) if (fiber !== undefined) return false
    return true
  }

  /** Transfers the slots of a removed actor to the new actor that has its name. */
  handTo(member: Active): void {
    this.member = member
  }

  /** Starts the given activities if they are not running, and stops all others. */
  set(activities: ReadonlyArray<Activity>): void {
    for (const slot of this.slots) {
      if (!activities.some(({ name }) => name === slot.name)) this.want(slot, undefined)
    }
    for (const activity of activities) {
      let slot = this.slots.find(({ name }) => name === activity.name)
      if (slot === undefined) {
        slot = { name: activity.name, fiber: undefined, wanted: undefined, begun: undefined }
        // `concat` instead of a spread, because spreading an empty array allocates capacity for 17 entries
        this.slots = this.slots.concat(slot)
      }
      this.want(slot, activity)
    }
  }

  /** Interrupts all activities because the incarnation ends. */
  leave(): void {
    for (const slot of this.slots) {
      slot.wanted = undefined
      slot.begun = undefined
      slot.fiber?.interruptUnsafe()
    }
  }

  private want(slot: Slot, activity: Activity | undefined): void {
    if (slot.wanted?.key === activity?.key) return
    slot.wanted = activity
    if (slot.fiber !== undefined) slot.fiber.interruptUnsafe()
    else this.begin(slot)
  }

  private begin(slot: Slot): void {
    const { member } = this
    const { wanted } = slot
    if (wanted === undefined || wanted.key === slot.begun || !member.isRunning) return
    // run this in a separate turn: `slot.fiber` is not set yet, so messages that the activity sends now must be queued
    member.scope.system.scheduler.alone(() => this.fill(slot, wanted))
  }

  private fill(slot: Slot, wanted: Activity): void {
    const { member } = this
    slot.begun = wanted.key
    const { seq } = wanted
    const cause = seq === undefined || seq === 0 ? null : { stream: member.scope.stream, seq }
    const acting: Acting<unknown, unknown> = { self: member, state: member.state, cause }
    const effect = Effect.scoped(
      Effect.suspend(() => member.definition.run!(wanted, acting as never) as Effect.Effect<void, unknown>)
    )
    const incarnation = member.scope.incarnation!
    const fiber = incarnation.run(effect)
    slot.fiber = fiber
    fiber.addObserver((exit) => {
      slot.fiber = undefined
      if (Exit.isFailure(exit)) this.failed(slot, wanted, exit.cause, incarnation)
      this.begin(slot)
    })
  }

  private failed(slot: Slot, { key, name }: Activity, cause: Cause.Cause<unknown>, incarnation: Runner): void {
    const { member } = this
    const isCurrent = member.isRunning && member.scope.incarnation === incarnation
    const isWanted = isCurrent && slot.wanted?.key === key
    if (isWanted && Cause.hasInterruptsOnly(cause)) {
      const message = `${member.address}: the activity ${name} was interrupted by its own code`
      member.scope.crashed(Cause.die(new Error(message)))
    } else if (isWanted || (isCurrent && Cause.hasDies(cause))) member.scope.crashed(cause)
    else if (Cause.hasDies(cause))
      member.scope.system.warn(`${member.address}: the activity ${name} failed while it was ending`, cause)
  }
}
