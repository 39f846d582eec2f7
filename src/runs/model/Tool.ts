/**
 * Tool: what a model can call, and how one is made from a schema of its input and what it does.
 *
 * Guarantees: input that the schema refuses is an outcome that names the field, and runs
 * nothing; a violation of the workspace is told as one; a defect is an outcome, too, and is
 * logged; the output is bounded.
 */
import { Cause, Effect, Result, Schema, type Scope } from "effect"
import * as ToolSchema from "../ToolSchema.ts"
import type { WorkspaceError } from "../sandbox/PathContainment.ts"
import type { ToolStatus } from "../Backend.ts"
import * as HeadTail from "../HeadTail.ts"
import type { ToolDefinition } from "./Provider.ts"

export interface ToolContext {
  readonly callId: string
  /** Takes the call's output, as it comes, in chunks of bounded size and rate. */
  readonly progress: (stream: "stdout" | "stderr", chunk: string) => Effect.Effect<void>
}

export interface ToolOutcome {
  readonly status: ToolStatus
  /** For the model; bounded. */
  readonly output: string
}

export interface Tool {
  readonly name: string
  readonly description: string
  /** A JSON Schema of type object. */
  readonly inputSchema: { readonly [keyword: string]: unknown }
  readonly readOnly: boolean
  /** Of the server that agentd gave the run. */
  readonly voice?: boolean
  /** May run beside other calls. */
  readonly parallel: boolean
  /** Why each call must be approved, whatever the policy; left out, the policy alone decides. */
  readonly asksAlways?: string | undefined
  /** Says what is wrong with an input, without running anything: nobody is asked about a call that cannot be. */
  readonly wrong?: (input: unknown) => string | undefined
  /** Never fails: bad input, a violation, a program that dies are outcomes. Interruption ends it and all its processes. */
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

/** The part of a call's output that a model reads, in UTF-16 units: about 15,000 tokens at most. */
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
        // what it opened and started is closed and gone when its outcome is there
        Effect.scoped
      )
  }
}
