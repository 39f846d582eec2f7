/**
 * SessionSource: describes how a coding CLI other than Claude Code reports its sessions, through hooks or in records.
 * Each CLI has one file in `sources`.
 *
 * Guarantees: pure. A hook is translated to a hook of Claude Code, so that one state machine and one intake serve all
 * CLIs. A record of its transcript is translated likewise. If the CLI has no translation for records, its transcript is
 * not read.
 */
import { createHash } from "node:crypto"
import { MADE } from "./PlateState.ts"
import { INTERRUPTED } from "./TranscriptView.ts"

export type Body = { readonly [field: string]: unknown }

/** A hook of Claude Code; undefined if the hook says nothing about the session's state. */
export type Translate = (body: Body) => Body | undefined

export interface Source {
  /** The name in commands and in the daemon's routes. */
  readonly id: string
  readonly name: string
  /** The version on which the mapping was measured. */
  readonly version: string
  /** Gives a hook the fields of Claude Code's hooks, if the CLI names its fields differently. */
  readonly shape?: (body: Body) => Body
  /** True if no hook reports a session's start: a new session of a process continues the row of the one before. */
  readonly startless?: true
  /** True if the hooks are records that the CLI writes to a file, so that nothing is installed. */
  readonly recorded?: true
  /** The CLI's hooks, or records, each with its translation. */
  readonly hooks: { readonly [event: string]: Translate }
  /**
   * Translates a record of the CLI's transcript to a record of Claude Code; undefined if it says nothing about the
   * session's state. Undefined if the transcript is not read.
   */
  readonly record?: Translate
  /** For each question of the board, the signal that answers it; "no: …" if none does. */
  readonly tells: { readonly found: string; readonly work: string; readonly asks: string; readonly error: string }
}

/** A CLI in whose settings hooks are installed. */
export interface SessionSource extends Source {
  /**
   * The file in the user's home folder to which the hooks are added. `variable`: the environment variable that names
   * the folder, if it is set. `ending`: if present, the file is a folder in which each hook is an executable file of its
   * own, whose name is the hook's with this ending.
   */
  readonly file: {
    readonly variable?: string
    readonly folder: string
    readonly name: string
    readonly ending?: string
  }
  /** True if the file is a plugin of agentd, and not settings to which hooks are added. */
  readonly plugin?: true
  /** True if the file can have comments. */
  readonly comments?: true
  /** Number of the file's time units in a second. */
  readonly timeUnit: 1 | 1000
  /** Fields of the file without which the CLI runs no hooks. */
  readonly requires?: { readonly [field: string]: { readonly [field: string]: boolean } }
  /** The tool that runs commands, and a part of the command line of its processes, which no hook's process has. */
  readonly shell?: { readonly tool: string; readonly mark: string }
  /** An action that the user must take once, after the hooks were installed. */
  readonly then?: string
}

/** Translates to the hook with this name. All other fields stay. */
export const as =
  (name: string, change: (body: Body) => Body = (body) => body): Translate =>
  (body) => ({ ...change(body), hook_event_name: name })

/** A hook that shows only that the session is alive. */
export const alive: Translate = as("FileChanged")

/** An id for the call of a CLI that gives its calls none: two calls with the same input have the same id. */
const madeId = ({ tool_input, tool_name }: Body): string =>
  MADE +
  createHash("sha256")
    .update(JSON.stringify([tool_name, tool_input]))
    .digest("hex")
    .slice(0, 16)

/** A tool call. `question`: the tool with which the CLI asks the user. */
export const callOf =
  (question: string) =>
  (body: Body): Body => ({
    ...body,
    tool_use_id: typeof body["tool_use_id"] === "string" ? body["tool_use_id"] : madeId(body),
    tool_name: body["tool_name"] === question ? "AskUserQuestion" : body["tool_name"]
  })

/** A dialog of which the tool is unknown. */
export const dialog = as("PermissionRequest", (body) => ({ ...body, tool_name: "*", tool_input: undefined }))

/** Notifications by their type. */
export const notification =
  (types: { readonly [type: string]: Translate }): Translate =>
  (body) => {
    const type = body["notification_type"]
    return typeof type === "string" && Object.hasOwn(types, type) ? types[type]!(body) : alive(body)
  }

/** The record of a turn that the user has interrupted. */
export const interrupted = (timestamp: unknown): Body => ({
  type: "user",
  timestamp,
  message: { content: INTERRUPTED }
})

/** The record of a turn that has failed. */
export const failed = (timestamp: unknown, error: unknown): Body => ({
  type: "assistant",
  timestamp,
  message: { content: [] },
  isApiErrorMessage: true,
  error
})
