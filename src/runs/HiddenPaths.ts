/**
 * HiddenPaths: the paths that no tool of an agent may see: agentd's own state and settings, and files that contain
 * keys.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../config/Attempt.ts"
import type { ModelBackend } from "../config/BackendConfig.ts"
import type { Host } from "./Host.ts"

/** The real path of a file; if the file does not exist, its absolute path. */
export const real = (file: string): string => attempt(() => fs.realpathSync(file)) ?? path.resolve(file)

export const of = (host: Host, ...more: ReadonlyArray<string>): ReadonlyArray<string> => {
  const env = host.environment
  const folder = (base: string | undefined, ...rest: ReadonlyArray<string>) =>
    base === undefined || !path.isAbsolute(base) ? [] : [path.join(base, ...rest, "agentd")]
  return [
    ...folder(env["XDG_STATE_HOME"]),
    ...folder(env["HOME"], ".local", "state"),
    ...folder(env["XDG_RUNTIME_DIR"]),
    ...(host.hidden ?? []),
    ...(host.sessions === undefined ? [] : [host.sessions]),
    ...more
  ].map(real)
}

/**
 * The hidden paths, without those that contain the workspace: a workspace can be a work tree inside a hidden folder.
 */
export const around = (workspace: string, hidden: ReadonlyArray<string>): ReadonlyArray<string> =>
  hidden.filter((one) => !real(workspace).startsWith(`${one}/`))

export const ofModel = ({ keyFile }: ModelBackend, host: Host, workspace: string): ReadonlyArray<string> =>
  of(host, ...(keyFile === undefined ? [] : [path.resolve(workspace, keyFile)]))
