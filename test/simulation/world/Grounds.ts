/**
 * Grounds: the workspaces of agents among the files of the world, as far as an agent reaches them
 * through agentd: texts are read and written; a path outside is refused.
 */
import { Effect } from "effect"
import type { open, Workspace } from "../../../src/runs/sandbox/Workspace.ts"
import { FileFailed, WorkspaceViolation } from "../../../src/runs/sandbox/PathContainment.ts"
import type { Files } from "./Files.ts"

const absent = () => Effect.die("nobody asks for this here")

export const groundsOf =
  (files: Files): typeof open =>
  (root) => {
    const inside = (path: string) =>
      path.startsWith(`${root}/`)
        ? Effect.void
        : Effect.fail(new WorkspaceViolation({ message: `${path} lies outside the workspace`, remedy: "stay in it" }))
    const workspace: Workspace = {
      root,
      read: Effect.fnUntraced(function* (path) {
        yield* inside(path)
        const text = files.text(path)
        if (text === undefined)
          return yield* new FileFailed({ reason: "NotFound", message: `${path} is not there`, remedy: "write it" })
        return { text, line: 1, lines: text.split("\n").length, cut: undefined, size: text.length }
      }),
      write: Effect.fnUntraced(function* (path, text) {
        yield* inside(path)
        const created = !files.has(path)
        files.write(path, text)
        return { created }
      }),
      whole: absent,
      list: absent,
      folder: absent
    }
    return Effect.succeed(workspace)
  }
