/**
 * SessionNote: what a session's process notes of what it is about, followed.
 *
 * Guarantees: a note of another session, of a process that is gone, or of a status that is not
 * known counts for nothing; one that has not changed costs one `stat`.
 */
import { Effect, FileSystem, Option } from "effect"
import { basename, dirname, join } from "node:path"
import * as ClaudeSessions from "../runs/claude/ClaudeSessions.ts"
import type { ProcessId } from "../runs/process/ProcessTable.ts"

export interface Noted {
  /** A dialog waits for a permission, or for an answer. */
  readonly status: "idle" | "busy" | "permission" | "question"
  /** Since when, ms since the epoch, by the session's own clock, which is ours. */
  readonly at: number
}

const statusOf = ({ status, waitingFor }: ClaudeSessions.Note): Noted["status"] | undefined => {
  switch (status) {
    case "idle":
    // A shell goes on in the background.
    case "shell":
      return "idle"
    case "busy":
      return "busy"
    case "waiting":
      // a person's own, as of /model: it says nothing of the turn, and a dialog that needs them is told by its hook
      if (waitingFor === "dialog open") return undefined
      return waitingFor === "permission prompt" ? "permission" : "question"
    default:
      return undefined
  }
}

/** Where those note it whose transcripts lie in `<config>/projects/<project>/`. */
export const folderOf = (transcript: string): string | undefined => {
  const projects = dirname(dirname(transcript))
  return basename(projects) === "projects" ? ClaudeSessions.folderIn(dirname(projects)) : undefined
}

/** Statuses by what counts more of two processes: one that waits, then one that works. */
const RANK: ReadonlyArray<Noted["status"]> = ["question", "permission", "busy", "idle"]

export class SessionNote {
  readonly folder: string
  private readonly fs: FileSystem.FileSystem
  /** The notes of the session's processes, by their files. */
  private readonly notes = new Map<string, { readonly mtime: number; readonly note: ClaudeSessions.Note | undefined }>()

  constructor(fs: FileSystem.FileSystem, folder: string) {
    this.fs = fs
    this.folder = folder
  }

  /** The process is kept in reserve for a session that nobody has begun. */
  get isSpare(): boolean {
    return this.notes.values().some(({ note }) => note?.spare === true)
  }

  /** Reads the notes of the session's processes. Without one the session is searched for, where `search` says so. */
  readonly look = Effect.fnUntraced(
    { self: this },
    function* (this: SessionNote, sessionId: string, processes: ReadonlyArray<ProcessId>, search: boolean) {
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
      // what they are about together is as new as the newest
      return status === undefined ? undefined : { status, at: Math.max(...noted.map(({ at }) => at)) }
    }
  )

  private pathOf(pid: number): string {
    return join(this.folder, ClaudeSessions.fileOf(pid))
  }

  private local<A>(effect: Effect.Effect<A, never, FileSystem.FileSystem>): Effect.Effect<A> {
    return Effect.provideService(effect, FileSystem.FileSystem, this.fs)
  }

  private readonly read = Effect.fnUntraced({ self: this }, function* (this: SessionNote, path: string) {
    const info = Option.getOrUndefined(yield* Effect.option(this.fs.stat(path)))
    const mtime = info === undefined ? -1 : Option.match(info.mtime, { onNone: () => -1, onSome: (at) => at.getTime() })
    if (mtime !== -1 && this.notes.get(path)?.mtime === mtime) return
    this.notes.set(path, { mtime, note: yield* this.local(ClaudeSessions.read(path)) })
  })
}
