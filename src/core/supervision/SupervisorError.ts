/**
 * SupervisorError: what a supervisor refuses, by OTP's names, each with its remedy.
 */
import { Schema } from "effect"

const refused = { supervisor: Schema.String, child: Schema.String }

/** A child of this id runs. */
export class AlreadyStarted extends Schema.TaggedError<AlreadyStarted>()("AlreadyStarted", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} runs already; use it, or terminate it first`
  }
}

/** A child of this id is known but does not run: it ended, was terminated, or is restarting. */
export class AlreadyPresent extends Schema.TaggedError<AlreadyPresent>()("AlreadyPresent", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is known but down; restart it, or delete it and start it anew`
  }
}

/** Only a child that is down can be restarted or deleted by hand. */
export class Running extends Schema.TaggedError<Running>()("Running", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} runs; terminate it first`
  }
}

/** The supervisor is about to try this child's start again. */
export class Restarting extends Schema.TaggedError<Restarting>()("Restarting", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is restarting; wait, or terminate it to end the attempts`
  }
}

export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", refused) {
  override get message() {
    return `${this.supervisor}: no child ${this.child}; see whichChildren for those it has`
  }
}

/** Children of a dynamic supervisor have no life after their end: nothing to restart or delete. */
export class SimpleOneForOne extends Schema.TaggedError<SimpleOneForOne>()("SimpleOneForOne", refused) {
  override get message() {
    return `${this.supervisor} is dynamic and keeps no specification of ${this.child}; start a new child instead`
  }
}

export class TooManyChildren extends Schema.TaggedError<TooManyChildren>()("TooManyChildren", {
  ...refused,
  limit: Schema.Finite
}) {
  override get message() {
    return `${this.supervisor} has ${this.limit} children and takes no ${this.child}; terminate some, or raise maxChildren`
  }
}

/** A handle is run by one supervisor at a time. */
export class AlreadySupervised extends Schema.TaggedError<AlreadySupervised>()("AlreadySupervised", {
  ...refused,
  by: Schema.String
}) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is supervised by ${this.by}; terminate it there first, or make another one`
  }
}

/** A child's start failed, took too long, or was cancelled by a stop. */
export class StartFailed extends Schema.TaggedError<StartFailed>()("StartFailed", {
  ...refused,
  cause: Schema.Defect()
}) {
  override get message() {
    return `${this.supervisor}: child ${this.child} did not start: ${String(this.cause)}`
  }
}

/** Why a start was given up. */
export class StartTimeout extends Schema.TaggedError<StartTimeout>()("StartTimeout", {
  child: Schema.String,
  millis: Schema.Finite
}) {
  override get message() {
    return `the start of ${this.child} took longer than ${this.millis} ms; make it faster, or raise its initTimeout`
  }
}

/** Options or a specification that make no sense. `child` is empty if the supervisor's own options are meant. */
export class InvalidSpec extends Schema.TaggedError<InvalidSpec>()("InvalidSpec", {
  ...refused,
  problem: Schema.String
}) {
  override get message() {
    return `${this.supervisor}${this.child === "" ? "" : `, child ${this.child}`}: ${this.problem}`
  }
}

/** The supervisor is no more (OTP's `noproc`). */
export class SupervisorEnded extends Schema.TaggedError<SupervisorEnded>()("SupervisorEnded", {
  supervisor: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.supervisor} has ended (${this.reason}); look it up again, its parent may have restarted it`
  }
}
