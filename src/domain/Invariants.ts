/**
 * Invariants: the table of all rules that agentd checks about its own behaviour.
 *
 * If a rule is violated, the severity decides what happens. FATAL: the stream's writer stops and a mail is sent. ERROR:
 * the rune is rejected if the rule is checked on append, `invariant.violated` is written and a mail is sent. WARN: only
 * `invariant.violated` is written. A test ensures that each rule has its own test, which is named after the rule's id
 * and violates the rule on purpose.
 */

export type Where =
  /** Checked when a rune is about to be appended to the log. */
  | "append"
  /** Checked periodically, while the daemon is running. */
  | "sweep"
  /** Checked by the command `agentd verify`, which reads the whole store. */
  | "verify"
  | "test"

/** A rule in the table. `checked` is empty if agentd does not yet have the feature to which the rule applies. */
export interface Invariant {
  readonly id: string
  readonly holds: string
  readonly severity: "FATAL" | "ERROR" | "WARN"
  readonly checked: ReadonlyArray<Where>
}

export const invariants = [
  {
    id: "INV-EVENTID-MONOTONIC",
    holds: "event ids strictly increase within a stream",
    severity: "FATAL",
    checked: ["append", "verify"]
  },
  {
    id: "INV-RUNE-IMMUTABLE",
    holds: "an appended rune never changes; a rewind appends new runes",
    severity: "FATAL",
    checked: ["append", "verify"]
  },
  {
    id: "INV-HASH-VALID",
    holds: "each rune's hash matches its content and the rune before it",
    severity: "FATAL",
    checked: ["append", "verify"]
  },
  {
    id: "INV-TURN-SEQUENTIAL",
    holds: "at most one active turn per agent",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  { id: "INV-TURN-TERMINAL", holds: "every started turn ends", severity: "ERROR", checked: ["sweep"] },
  {
    id: "INV-TURN-ORDER",
    holds: "turn ids increase within a conversation, in the order of the turn.started runes",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-TOOL-TERMINAL",
    holds: "exactly one tool.result per tool.call",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-TOOL-CALL-BEFORE-RESULT",
    holds: "each tool.result comes after its tool.call",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-TOOL-APPROVAL-BEFORE-EXEC",
    holds: "a call that needs approval does not run before it is approved",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-TOOL-SANDBOX",
    holds: "no tool of agentd reaches outside its workspace or breaks the network rules",
    severity: "ERROR",
    checked: ["test"]
  },
  {
    id: "INV-AGENT-SUPERVISED",
    holds: "every agent is supervised; its crash affects no other agent",
    severity: "ERROR",
    checked: ["test"]
  },
  {
    id: "INV-AGENT-BUDGET",
    holds: "no agent continues when its budget is exceeded",
    severity: "WARN",
    checked: ["sweep"]
  },
  {
    id: "INV-RUN-FENCED",
    holds: "no event from an older run changes an agent's state",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-FLOOR-SINGLE",
    holds: "at most one ACTIVE seat per channel",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-TASK-SINGLE",
    holds: "a task has one owner and is completed only once",
    severity: "ERROR",
    checked: ["append", "verify"]
  },
  {
    id: "INV-RECOVERY-BOUNDED",
    holds:
      "a session leaves an attention state within 12 s after its cause has ended; a suspended machine and a blind window of 2 s do not count",
    severity: "ERROR",
    checked: ["test"]
  },
  {
    id: "INV-RESUME-NO-DUPLICATES",
    holds: "a subscriber that resumes at a cursor gets each later rune once",
    severity: "ERROR",
    checked: ["test"]
  },
  {
    id: "INV-RESUME-NO-GAPS",
    holds: "a subscriber that resumes at a cursor gets every later rune, or an explicit gap",
    severity: "WARN",
    checked: ["test"]
  },
  {
    id: "INV-REPLAY-DETERMINISTIC",
    holds: "folding the log gives the live state",
    severity: "ERROR",
    checked: ["test"]
  },
  {
    id: "INV-REPLAY-IDEMPOTENT",
    holds: "folding the log repeatedly always gives the same state",
    severity: "ERROR",
    checked: ["test"]
  }
] as const satisfies ReadonlyArray<Invariant>

export type InvariantId = (typeof invariants)[number]["id"]

const severities = new Map<string, Invariant["severity"]>(invariants.map(({ id, severity }) => [id, severity]))

/** Returns the severity of an invariant. Undefined: the rule is no invariant, for example a size limit or a schema. */
export const severityOf = (rule: string): Invariant["severity"] | undefined => severities.get(rule)
