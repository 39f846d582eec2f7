/**
 * Tool: a tool that a model can call, built from an input schema and a function.
 *
 * Guarantees: if the schema rejects the input, the result names the field, and nothing is run. An access outside the
 * workspace has its own status. A bug in a tool also gives a result, and is logged. The output is limited.
 */
import { Cause, type Duration, Effect, Result, Schema, type Scope } from "effect"
import * as ToolSchema from "../runs/ToolSchema.ts"
import type { WorkspaceError } from "../runs/sandbox/PathContainment.ts"
import type { ToolStatus } from "../runs/Backend.ts"
import * as HeadTail from "../runs/HeadTail.ts"
import type { ToolDefinition } from "./Provider.ts"

export interface ToolContext {
  readonly callId: string
  /** Receives the output of a running call, in chunks of limited size and rate. */
  readonly progress: (stream: "stdout" | "stderr", chunk: string) => Effect.Effect<void>
  /** How long the call may run if its input names no time. */
  readonly limit: Duration.Duration
}

export interface ToolOutcome {
  readonly status: ToolStatus
  /** Text that the model receives, limited in length. */
  readonly output: string
}

export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the input; its type must be object. */
  readonly inputSchema: { readonly [keyword: string]: unknown }
  readonly readOnly: boolean
  /** True for tools of the MCP server that agentd provides to the run. */
  readonly voice?: boolean
  readonly parallel: boolean
  /** True if `run` keeps the time limit itself, so that its result contains the output until then. */
  readonly timesItself?: boolean
  /** Why each call must be approved in every approval mode; if omitted, the mode decides. */
  readonly asksAlways?: string | undefined
  /**
   * Checks an input without running anything; undefined if it is valid. An invalid call does not ask for an approval.
   */
  readonly wrong?: (input: unknown) => string | undefined
  /**
   * Runs the call. Never fails: invalid input, a violation or a failing program are results. An interruption ends the
   * call and its processes.
   */
  readonly run: (input: unknown, context: ToolContext) => Effect.Effect<ToolOutcome, never, Scope.Scope>
}

export const definitionsOf = (tools: ReadonlyMap<string, Tool>): ReadonlyArray<ToolDefinition> =>
  [...tools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))

export interface Definition<S extends Schema.Codec<unknown, unknown>> extends Omit<
  Tool,
  "inputSchema" | "wrong" | "run"
> {
  readonly input: S
  readonly run: (input: S["Type"], context: ToolContext) => Effect.Effect<ToolOutcome, WorkspaceError, Scope.Scope>
}

/** How much of a call's output the model receives, UTF-16 code units: together about 15,000 tokens at most. */
export const MAX_HEAD = 40_000
export const MAX_TAIL = 20_000

export const success = (output: string): ToolOutcome => ({ status: "success", output })
export const failure = (output: string): ToolOutcome => ({ status: "error", output })

const toldOf = (error: WorkspaceError): ToolOutcome => ({
  status: error._tag === "WorkspaceViolation" ? "sandbox_violation" : "error",
  output: `${error.message}: ${error.remedy}`
})

export const define = <S extends Schema.Codec<unknown, unknown>>(definition: Definition<S>): Tool => {
  const { input: schema, run, ...tool } = definition
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error", errors: "all" })
  const told = (error: Schema.SchemaError) => `the input of ${tool.name} is not as its schema asks: ${error.message}`
  return {
    ...tool,
    inputSchema: ToolSchema.of(schema),
    wrong: (input) => Result.match(decode(input), { onFailure: told, onSuccess: () => undefined }),
    run: (input, context) =>
      Effect.suspend(() =>
        Result.match(decode(input), {
          onFailure: (error) => Effect.succeed(failure(told(error))),
          onSuccess: (value) => Effect.catch(run(value, context), (error) => Effect.succeed(toldOf(error)))
        })
      ).pipe(
        Effect.catchDefect((defect) =>
          Effect.as(
            Effect.logError(`the tool ${tool.name} has failed`, Cause.die(defect)),
            failure(`${tool.name} failed within agentd: this is a bug, and the log says more; try another way`)
          )
        ),
        Effect.map(({ status, output }) => ({ status, output: HeadTail.of(output, MAX_HEAD, MAX_TAIL) })),
        // everything that the call opened or started is closed before its result is returned
        Effect.scoped
      )
  }
}
