/**
 * ReachMessages: what an agent can reach, as sent over the control socket and as `agentd doctor --security --json`
 * prints it. Later versions only add fields.
 */
import { Schema } from "effect"

const Names = Schema.Array(Schema.String)

export const AgentReach = Schema.Struct({
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.Literals(["command", "claude", "acp", "model", "exec"]),
  /** False if no sandbox confines the agent: it has the rights of the daemon's user. */
  confined: Schema.Boolean,
  by: Schema.NullOr(Schema.Literals(["bubblewrap", "namespaces"])),
  note: Schema.String,
  /** Why a run would not start; null if it would start. */
  refused: Schema.NullOr(Schema.String),
  /** Paths; "/" stands for everything that the daemon's user can read. */
  reads: Names,
  writes: Names,
  runs: Schema.String,
  network: Schema.Literals(["host", "gateway", "none"]),
  provider: Schema.NullOr(Schema.String),
  keys: Schema.Struct({
    /** Names of environment variables. */
    held: Names,
    putInBy: Schema.NullOr(Schema.Literals(["gateway", "daemon"]))
  }),
  environment: Names,
  /** Whether the agent can call the daemon with its user's rights. */
  control: Schema.Boolean,
  unheld: Names,
  approvals: Schema.Struct({
    mode: Schema.Literals(["read_only", "auto", "full_access"]),
    always: Names,
    never: Names,
    /** Timeout of an approval, ms; null if a call waits until it is answered. */
    timeout: Schema.NullOr(Schema.Finite),
    /** The calls that the approvals apply to, as text. */
    bind: Schema.String
  }),
  limits: Schema.Struct({
    /** Maximum duration of a run, ms; null if the run takes turns, which have their own limits. */
    run: Schema.NullOr(Schema.Finite),
    turn: Schema.optionalKey(
      Schema.Struct({
        /** Maximum duration of a turn, ms; null if there is no limit. */
        wallTime: Schema.NullOr(Schema.Finite),
        toolCalls: Schema.NullOr(Schema.Int),
        usd: Schema.NullOr(Schema.Finite)
      })
    ),
    /** Maximum duration of a tool call, ms. */
    tool: Schema.Finite,
    runsPerHour: Schema.NullOr(Schema.Int),
    tokens: Schema.NullOr(Schema.Int),
    toolCalls: Schema.NullOr(Schema.Int),
    usd: Schema.NullOr(Schema.Finite),
    /** Budget of running time, ms; null if there is none. */
    wallTime: Schema.NullOr(Schema.Finite),
    /** The share of the machine that a run may use, as the config sets it. */
    machine: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]))
  }),
  /** The rights that the agent has through agentd's own tools. */
  may: Names
})
export type AgentReach = typeof AgentReach.Type
