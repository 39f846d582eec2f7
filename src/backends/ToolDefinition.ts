/**
 * ToolDefinition: makes a tool from a schema of its input and what it does with it.
 *
 * Guarantees: input that the schema refuses is an outcome that names the field, and runs
 * nothing; a violation of the workspace is told as one; a defect is an outcome, too, and is
 * logged; the output is bounded.
 */
import { Cause, Effect, Schema, type Scope } from "effect"
import type { WorkspaceError } from "./Beneath.ts"
import * as Excerpt from "./Excerpt.ts"
import type { Tool, ToolContext, ToolOutcome } from "./Tools.ts"

export interface Definition<S extends Schema.Codec<unknown, unknown>> extends Omit<Tool, "inputSchema" | "run"> {
  readonly input: S
  readonly run: (input: S["Type"], context: ToolContext) => Effect.Effect<ToolOutcome, WorkspaceError, Scope.Scope>
}

/** What a model reads of one call, in UTF-16 units: about 15,000 tokens at most. */
export const MAX_HEAD = 40_000
export const MAX_TAIL = 20_000

export const success = (output: string): ToolOutcome => ({ status: "success", output })
export const failure = (output: string): ToolOutcome => ({ status: "error", output })

const toldOf = (error: WorkspaceError): ToolOutcome => ({
  status: error._tag === "WorkspaceViolation" ? "sandbox_violation" : "error",
  output: `${error.message}: ${error.remedy}`
})

const schemaOf = (schema: Schema.Constraint): Tool["inputSchema"] => {
  const { schema: body, definitions } = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
  return { ...body, ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }) }
}

export const define = <S extends Schema.Codec<unknown, unknown>>(definition: Definition<S>): Tool => {
  const { input: schema, run, ...tool } = definition
  const decode = Schema.decodeUnknownEffect(schema)
  return {
    ...tool,
    inputSchema: schemaOf(schema),
    run: (input, context) =>
      decode(input, { onExcessProperty: "error" }).pipe(
        Effect.matchEffect({
          onFailure: (error) =>
            Effect.succeed(failure(`the input of ${tool.name} is not as its schema asks: ${error.message}`)),
          onSuccess: (value) => Effect.catch(run(value, context), (error) => Effect.succeed(toldOf(error)))
        }),
        Effect.catchDefect((defect) =>
          Effect.as(
            Effect.logError(`the tool ${tool.name} has failed`, Cause.die(defect)),
            failure(`${tool.name} failed within agentd: this is a bug, and the log says more; try another way`)
          )
        ),
        Effect.map(({ status, output }) => ({ status, output: Excerpt.of(output, MAX_HEAD, MAX_TAIL) })),
        // what it opened and started is closed and gone when its outcome is there
        Effect.scoped
      )
  }
}
