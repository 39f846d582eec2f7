/**
 * Discovery: finds sessions that no hook has reported: those opened before the hooks were installed, and those on a
 * machine without hooks.
 *
 * Guarantees: only Claude Code's notes of live interactive processes are used. A session that the user told agentd to
 * forget stays forgotten until a hook reports it, or until it continues in another process. Hooks that arrive later
 * find the same plate. A round costs one directory listing and one small file per Claude Code process.
 */
import { Clock, Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as ClaudeSessions from "../runs/claude/ClaudeSessions.ts"
import type { EventIntake } from "./EventIntake.ts"
import type { AgentSession } from "../domain/AgentPort.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"

const INTERVAL = "10 seconds"
/** Time for which a new session is skipped, ms. Its hook usually arrives in this time, and has more details. */
const SETTLES = 3_000
const MAX_MET = 10_000

/** The name that Claude Code gives the folder of a project's transcripts. */
const slug = (cwd: string): string => cwd.replaceAll(/[^A-Za-z0-9]/g, "-")

interface Parts {
  readonly registry: PlateRegistry
  readonly intake: EventIntake
  readonly fs: FileSystem.FileSystem
  readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  /** Claude Code's configuration folder, such as `~/.claude`. */
  readonly config: string
}

export class Discovery {
  private readonly parts: Parts
  private readonly met = new Set<string>()

  constructor(parts: Parts) {
    this.parts = parts
  }

  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    while (true) {
      if (this.parts.intake.isOpen) yield* this.round
      yield* Effect.sleep(INTERVAL)
    }
  })

  private readonly round = Effect.gen({ self: this }, function* () {
    const now = yield* Clock.currentTimeMillis
    const notes = yield* Effect.provideService(
      ClaudeSessions.all(ClaudeSessions.folderIn(this.parts.config)),
      FileSystem.FileSystem,
      this.parts.fs
    )
    const ours = (yield* this.parts.sessions).filter(({ isUp }) => isUp)
    for (const note of notes) {
      if (!ClaudeSessions.isPersons(note) || now - (note.startedAt ?? now) < SETTLES) continue
      this.join(note, now)
      // the session of an agent's run has no plate: the run reports everything itself
      if (ours.some(({ pid, sessionId }) => pid === note.pid || sessionId === note.sessionId)) continue
      if (this.isKnown(note)) continue
      // this session and the remaining ones are tried again in the next round
      if (!(yield* this.meet(note, now))) return
    }
  })

  /** Adds another process to a session's plate if that process has the session open, too. */
  private join({ cwd = "/", pid, procStart, sessionId }: ClaudeSessions.Note, now: number): void {
    const plate = this.parts.registry.ofSession(sessionId)
    if (plate?.isOpen !== true || plate.process === undefined || plate.stand.data.runId !== null) return
    if (plate.processes.some((process) => process.pid === pid)) return
    const { plateId } = plate
    plate.tell({ _tag: "Registered", at: now, plateId, cwd: plate.stand.data.cwd ?? cwd, pid, pidStart: procStart })
  }

  /** Whether the session has an open plate, or the user told agentd to forget the session. */
  private isKnown({ pid, sessionId, startedAt = 0 }: ClaudeSessions.Note): boolean {
    if (this.parts.registry.ofSession(sessionId)?.isOpen === true) return true
    return this.parts.registry.isForgotten(sessionId, { pid, startedAt })
  }

  /** Creates the plate of a session that was found. False if there is no room for the plate. */
  private readonly meet = Effect.fnUntraced(
    { self: this },
    function* (this: Discovery, note: ClaudeSessions.Note, now: number) {
      const { cwd = "/", pid, procStart, sessionId, statusUpdatedAt = now } = note
      const key = `${pid}.${procStart}.${sessionId}`
      if (this.met.has(key)) return true
      this.met.add(key)
      if (this.met.size > MAX_MET) this.met.delete(this.met.values().next().value!)
      const transcriptPath = join(this.parts.config, "projects", slug(cwd), `${sessionId}.jsonl`)
      // The event has the time of the note, so that it does not override newer signals.
      const at = Math.min(now, statusUpdatedAt)
      const event = { _tag: "HookSessionStart", at, sessionId, source: "noted", noted: true } as const
      const heard = { name: "SessionStart", sessionId, cwd, transcriptPath, event }
      return yield* this.parts.intake.take(heard, { plate: undefined, run: undefined, pid }).pipe(
        Effect.as(true),
        Effect.catch(({ message }) => {
          this.met.delete(key)
          return Effect.as(Effect.logWarning(`session ${sessionId}: ${message}`), false)
        })
      )
    }
  )
}
