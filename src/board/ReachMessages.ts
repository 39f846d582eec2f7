/**
 * ReachMessages: what an agent could reach, as the daemon tells it and `agentd doctor --security --json`
 * prints it. Its shape only grows.
 */
import { Schema } from "effect"

const Names = Schema.Array(Schema.String)

export const AgentReach = Schema.Struct({
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.Literals(["command", "claude", "acp", "model", "exec"]),
  /** False: nothing holds it; it has the rights of the daemon's user. */
  confined: Schema.Boolean,
  by: Schema.NullOr(Schema.Literals(["bubblewrap", "namespaces"])),
  note: Schema.String,
  /** Why a run would not start. */
  refused: Schema.NullOr(Schema.String),
  /** Paths; "/" is all that the daemon's user can. */
  reads: Names,
  writes: Names,
  runs: Schema.String,
  network: Schema.Literals(["host", "gateway", "none"]),
  provider: Schema.NullOr(Schema.String),
  keys: Schema.Struct({
    /** Names of variables. */
    held: Names,
    putInBy: Schema.NullOr(Schema.Literals(["gateway", "daemon"]))
  }),
  environment: Names,
  /** Whether it can call the daemon as its user would. */
  control: Schema.Boolean,
  unheld: Names,
  approvals: Schema.Struct({
    mode: Schema.Literals(["read_only", "auto", "full_access"]),
    always: Names,
    never: Names,
    /** ms; null: a call waits until it is answered. */
    timeout: Schema.NullOr(Schema.Finite),
    /** The calls that they bind, in words. */
    bind: Schema.String
  }),
  limits: Schema.Struct({
    /** ms; null where a run takes turns, of which each has its limits. */
    run: Schema.NullOr(Schema.Finite),
    turn: Schema.optionalKey(
      Schema.Struct({
        /** ms */
        wallTime: Schema.NullOr(Schema.Finite),
        toolCalls: Schema.NullOr(Schema.Int),
        usd: Schema.NullOr(Schema.Finite)
      })
    ),
    /** ms */
    tool: Schema.Finite,
    runsPerHour: Schema.NullOr(Schema.Int),
    tokens: Schema.NullOr(Schema.Int),
    toolCalls: Schema.NullOr(Schema.Int),
    usd: Schema.NullOr(Schema.Finite),
    /** ms */
    wallTime: Schema.NullOr(Schema.Finite),
    /** The share of the machine that a run may take, as the config says it. */
    machine: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]))
  }),
  /** The rights that it has through agentd's own tools. */
  may: Names
})
export type AgentReach = typeof AgentReach.Type
