/** SupervisorError: the errors of a supervisor. Their names are those of OTP, and each message says what to do. */
import { Schema } from "effect"

const refused = { supervisor: Schema.String, child: Schema.String }

export class AlreadyStarted extends Schema.TaggedError<AlreadyStarted>()("AlreadyStarted", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is already running; use it, or terminate it first`
  }
}

/** A child with this id exists but is not running: it ended, was terminated, or is restarting. */
export class AlreadyPresent extends Schema.TaggedError<AlreadyPresent>()("AlreadyPresent", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} exists but is not running; restart it, or delete it and start it again`
  }
}

/** The child is running. Only a child that is not running can be restarted or deleted. */
export class Running extends Schema.TaggedError<Running>()("Running", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is running; terminate it first`
  }
}

export class Restarting extends Schema.TaggedError<Restarting>()("Restarting", refused) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is restarting; wait, or terminate it to stop the retries`
  }
}

export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", refused) {
  override get message() {
    return `${this.supervisor}: there is no child ${this.child}; whichChildren lists the children`
  }
}

/** The supervisor is dynamic. It keeps no specification of an ended child, so it cannot restart or delete the child. */
export class SimpleOneForOne extends Schema.TaggedError<SimpleOneForOne>()("SimpleOneForOne", refused) {
  override get message() {
    return `${this.supervisor} is dynamic and has no specification of ${this.child}; start a new child instead`
  }
}

export class TooManyChildren extends Schema.TaggedError<TooManyChildren>()("TooManyChildren", {
  ...refused,
  limit: Schema.Finite
}) {
  override get message() {
    return `${this.supervisor} has ${this.limit} children and cannot start ${this.child}; terminate some, or increase maxChildren`
  }
}

/** The handle is already running under another supervisor. A handle can run under only one supervisor at a time. */
export class AlreadySupervised extends Schema.TaggedError<AlreadySupervised>()("AlreadySupervised", {
  ...refused,
  by: Schema.String
}) {
  override get message() {
    return `${this.supervisor}: child ${this.child} is already supervised by ${this.by}; terminate it there first, or create another one`
  }
}

/** The start of a child failed, took too long, or was cancelled because the supervisor was stopped. */
export class StartFailed extends Schema.TaggedError<StartFailed>()("StartFailed", {
  ...refused,
  cause: Schema.Defect()
}) {
  override get message() {
    return `${this.supervisor}: child ${this.child} did not start: ${String(this.cause)}`
  }
}

export class StartTimeout extends Schema.TaggedError<StartTimeout>()("StartTimeout", {
  child: Schema.String,
  millis: Schema.Finite
}) {
  override get message() {
    return `the start of ${this.child} took longer than ${this.millis} ms; make it faster, or increase its initTimeout`
  }
}

/**
 * The options of a supervisor, or the specification of a child, are invalid. `child` is empty if the supervisor's
 * options are invalid.
 */
export class InvalidSpec extends Schema.TaggedError<InvalidSpec>()("InvalidSpec", {
  ...refused,
  problem: Schema.String
}) {
  override get message() {
    return `${this.supervisor}${this.child === "" ? "" : `, child ${this.child}`}: ${this.problem}`
  }
}

/** The supervisor has ended (`noproc` in OTP). */
export class SupervisorEnded extends Schema.TaggedError<SupervisorEnded>()("SupervisorEnded", {
  supervisor: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.supervisor} has ended (${this.reason}); get the supervisor again, because its parent may have restarted it`
  }
}
