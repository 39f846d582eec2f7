/**
 * SessionStatusFile: follows the status notes that a session's processes write to files.
 *
 * Guarantees: a note is ignored if another session or a process that is gone wrote it, or if its status is unknown. An
 * unchanged note costs one `stat`.
 */
import { Effect, FileSystem, Option } from "effect"
import { basename, dirname, join } from "node:path"
import * as ClaudeSessions from "../runs/claude/ClaudeSessions.ts"
import type { ProcessId } from "../runs/process/ProcessTable.ts"

export interface Noted {
  /** Status in a note. `permission` and `question`: a dialog waits for a permission, or for an answer. */
  readonly status: "idle" | "busy" | "permission" | "question"
  /** When the status began, ms since the epoch. The session runs on this machine and has the same clock. */
  readonly at: number
}

const statusOf = ({ status, waitingFor }: ClaudeSessions.Note): Noted["status"] | undefined => {
  switch (status) {
    case "idle":
    // A shell is still running in the background.
    case "shell":
      return "idle"
    case "busy":
      return "busy"
    case "waiting":
      // a dialog that the user opened, such as /model, says nothing about the turn; other dialogs are reported by hooks
      if (waitingFor === "dialog open") return undefined
      return waitingFor === "permission prompt" ? "permission" : "question"
    default:
      return undefined
  }
}

/** The folder of the notes of sessions whose transcripts are in `<config>/projects/<project>/`. */
export const folderOf = (transcript: string): string | undefined => {
  const projects = dirname(dirname(transcript))
  return basename(projects) === "projects" ? ClaudeSessions.folderIn(dirname(projects)) : undefined
}

/** Statuses by priority, if a session has several processes: a process that waits comes first, then one that works. */
const RANK: ReadonlyArray<Noted["status"]> = ["question", "permission", "busy", "idle"]

export class SessionStatusFile {
  readonly folder: string
  private readonly fs: FileSystem.FileSystem
  /** The note of each of the session's processes, by file path. */
  private readonly notes = new Map<string, { readonly mtime: number; readonly note: ClaudeSessions.Note | undefined }>()

  constructor(fs: FileSystem.FileSystem, folder: string) {
    this.fs = fs
    this.folder = folder
  }

  /** True if Claude Code keeps the process in reserve: no session has begun in it. */
  get isSpare(): boolean {
    return this.notes.values().some(({ note }) => note?.spare === true)
  }

  /** Reads the notes of the session's processes. If none is known and `search` is true, finds one by session id. */
  readonly look = Effect.fnUntraced(
    { self: this },
    function* (this: SessionStatusFile, sessionId: string, processes: ReadonlyArray<ProcessId>, search: boolean) {
      const paths = new Set(processes.map(({ pid }) => this.pathOf(pid)))
      for (const path of this.notes.keys()) {
        if (processes.length === 0) paths.add(path)
        else if (!paths.has(path)) this.notes.delete(path)
      }
      if (paths.size === 0 && search) {
        const found = (yield* this.local(ClaudeSessions.all(this.folder))).find((note) => note.sessionId === sessionId)
        if (found !== undefined) paths.add(this.pathOf(found.pid))
      }
      for (const path of paths) yield* this.read(path)
      const noted: Array<Noted> = []
      for (const { note } of this.notes.values()) {
        if (note?.sessionId !== sessionId || !(yield* ClaudeSessions.lives(note))) continue
        const status = statusOf(note)
        if (status !== undefined && note.statusUpdatedAt !== undefined) noted.push({ status, at: note.statusUpdatedAt })
      }
      const status = RANK.find((first) => noted.some((one) => one.status === first))
      // the combined status is as new as the newest note
      return status === undefined ? undefined : { status, at: Math.max(...noted.map(({ at }) => at)) }
    }
  )

  private pathOf(pid: number): string {
    return join(this.folder, ClaudeSessions.fileOf(pid))
  }

  private local<A>(effect: Effect.Effect<A, never, FileSystem.FileSystem>): Effect.Effect<A> {
    return Effect.provideService(effect, FileSystem.FileSystem, this.fs)
  }

  private readonly read = Effect.fnUntraced({ self: this }, function* (this: SessionStatusFile, path: string) {
    const info = Option.getOrUndefined(yield* Effect.option(this.fs.stat(path)))
    const mtime = info === undefined ? -1 : Option.match(info.mtime, { onNone: () => -1, onSome: (at) => at.getTime() })
    if (mtime !== -1 && this.notes.get(path)?.mtime === mtime) return
    this.notes.set(path, { mtime, note: yield* this.local(ClaudeSessions.read(path)) })
  })
}
