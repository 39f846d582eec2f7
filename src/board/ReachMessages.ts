/**
 * ReachMessages: what an agent can reach, in the form in which it is sent over the control socket and printed by
 * `agentd doctor --security --json`. Later versions only add fields.
 */
import { Schema } from "effect"

const Names = Schema.Array(Schema.String)

export const AgentReach = Schema.Struct({
  project: Schema.String,
  agent: Schema.String,
  backend: Schema.Literals(["command", "claude", "codex", "acp", "model", "exec"]),
  /** False if no sandbox confines the agent, so that it has the rights of the daemon's user. */
  confined: Schema.Boolean,
  by: Schema.NullOr(Schema.Literals(["bubblewrap", "namespaces"])),
  note: Schema.String,
  /** The reason why a run would not start; null if it would start. */
  refused: Schema.NullOr(Schema.String),
  /** Paths; "/" stands for everything that the daemon's user can read. */
  reads: Names,
  writes: Names,
  runs: Schema.String,
  network: Schema.Literals(["host", "gateway", "none"]),
  provider: Schema.NullOr(Schema.String),
  keys: Schema.Struct({
    /** Names of the environment variables that contain keys. */
    held: Names,
    putInBy: Schema.NullOr(Schema.Literals(["gateway", "daemon"]))
  }),
  environment: Names,
  /** Folders that all agents of the project write to (`worktree.cache` with `shared`); omitted if there are none. */
  sharedCaches: Schema.optionalKey(Names),
  /** True if the agent can call the daemon with the rights of the daemon's user. */
  control: Schema.Boolean,
  unheld: Names,
  approvals: Schema.Struct({
    mode: Schema.Literals(["read_only", "auto", "full_access"]),
    always: Names,
    never: Names,
    /**
     * Set if `approvals.inside` is "run". True: calls that stay in the sandbox run without approval. False: they do
     * not, because no sandbox without a network is required for the agent.
     */
    inside: Schema.optionalKey(Schema.Boolean),
    /** Timeout of an approval, ms; null if a call waits until it is answered. */
    timeout: Schema.NullOr(Schema.Finite),
    /** Description of the calls to which the approvals apply. */
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
    /** Limits on a run's use of the machine, such as memory, as set in the config. */
    machine: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]))
  }),
  /** The rights that the agent has when it uses agentd's own tools. */
  may: Names
})
export type AgentReach = typeof AgentReach.Type
