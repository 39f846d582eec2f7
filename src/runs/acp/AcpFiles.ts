/**
 * AcpFiles: the files that an agent reads and writes through agentd.
 *
 * Guarantees: each access is a call of the agent that was emitted and allowed (AcpClientMethods). Only regular files in
 * the workspace are accessed: the location of the open file is checked (see Workspace). The agent gets the reason for
 * each refusal. The user gets a notice about each path outside the workspace. The size of a read is limited.
 */
import type { ReadTextFileResponse } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import type { AcpClientMethods } from "./AcpClientMethods.ts"
import * as Messages from "./AcpMessages.ts"
import { INTERNAL_ERROR, INVALID_PARAMS, type Refusal } from "./AcpWire.ts"
import { NOT_FOUND } from "./AcpFault.ts"
import type { WorkspaceError } from "../sandbox/PathContainment.ts"
import type { Workspace } from "../sandbox/Workspace.ts"

/**
 * Maximum size of one read, bytes. This is more than agents read at once, and even when escaped it fits into one
 * message.
 */
const MAX_BYTES = 2 * 1024 * 1024

const refusalOf = (error: WorkspaceError): Refusal => {
  const message = `${error.message}; ${error.remedy}`
  if (error._tag === "WorkspaceViolation") return { code: INVALID_PARAMS, message }
  return { code: error.reason === "NotFound" ? NOT_FOUND : INTERNAL_ERROR, message }
}

const malformed = (method: string): Refusal => ({
  code: INVALID_PARAMS,
  message: `${method}: path or content is missing`
})

export const make = (workspace: Workspace, deeds: AcpClientMethods, notice: (text: string) => Effect.Effect<void>) => {
  const refused = (verb: string) => (error: WorkspaceError) =>
    Effect.andThen(
      error._tag === "WorkspaceViolation"
        ? notice(`the agent was not allowed to ${verb}: ${error.message}`)
        : Effect.void,
      Effect.fail(refusalOf(error))
    )
  return {
    read: Effect.fnUntraced(function* (params: unknown, missingIsEmpty: boolean, id: unknown) {
      const request = Messages.read(Messages.ReadFile, params)
      if (request === undefined) return yield* Effect.fail(malformed("fs/read_text_file"))
      const { limit, line, path } = request
      const where = { path, ...(line == null ? {} : { line }), ...(limit == null ? {} : { limit }) }
      const read = workspace
        .read(path, { maxBytes: MAX_BYTES, line: line ?? undefined, limit: limit ?? undefined })
        .pipe(
          Effect.catchIf(
            (error) => missingIsEmpty && error._tag === "FileFailed" && error.reason === "NotFound",
            () => Effect.succeed({ text: "", cut: undefined })
          ),
          Effect.catch(refused("read")),
          Effect.filterOrFail(
            ({ cut }) => cut !== "maxBytes",
            (): Refusal => ({
              code: INTERNAL_ERROR,
              message: `${path} is too long to be read at once: ask for fewer lines, by line and limit`
            })
          ),
          Effect.map(({ text }): ReadTextFileResponse => ({ content: text }))
        )
      return yield* deeds.perform(
        { tool: "fs/read_text_file", arguments: where, readOnly: true, request: id },
        read,
        ({ content }) => `${content.length} characters were read`
      )
    }),
    write: Effect.fnUntraced(function* (params: unknown, id: unknown) {
      const request = Messages.read(Messages.WriteFile, params)
      if (request === undefined) return yield* Effect.fail(malformed("fs/write_text_file"))
      const { content, path } = request
      return yield* deeds.perform(
        { tool: "fs/write_text_file", arguments: { path, content }, readOnly: false, request: id },
        workspace.write(path, content).pipe(Effect.as({}), Effect.catch(refused("write"))),
        () => `${content.length} characters were written`
      )
    })
  }
}
