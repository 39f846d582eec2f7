/**
 * CopilotSessions: finds the sessions of GitHub's Copilot CLI, and follows the records that each writes to its
 * `events.jsonl`. Nothing is installed for this.
 *
 * Guarantees: only a session whose lock file names a live process that is older than the lock is followed. Records from
 * before the process opened the session are ignored. Of the records that exist when a session is found, only those of
 * the last turn are used. A file of another form is ignored. Without an open session, a round costs one small file.
 */
import { Clock, Effect, FileSystem, Option, Result } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { join } from "node:path"
import type { AgentSession } from "../domain/AgentPort.ts"
import { type ProcessId, ticksNow } from "../runs/process/ProcessTable.ts"
import type { EventIntake, Origin } from "./EventIntake.ts"
import { type Heard, parseOf } from "./HookEvent.ts"
import * as Programs from "./Programs.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"
import type { Body } from "./SessionSource.ts"
import { Copilot } from "./sources/Copilot.ts"
import { Transcript } from "./Transcript.ts"

const INTERVAL = "500 millis"
/** Interval while no session is open. */
const IDLE_INTERVAL = "10 seconds"
const MAX_SESSIONS = 100
const MAX_INDEX = 1024 * 1024
/** Maximum number of reads with which the end of a file is read at first. */
const MAX_READS = 8
const TICK_MS = 10

/** Copilot's folder, determined in the same way as Copilot does. */
export const configOf = (env: { readonly [name: string]: string | undefined }): string =>
  env["COPILOT_HOME"] || join(env["HOME"] ?? "/", ".copilot")

interface Parts {
  readonly registry: PlateRegistry
  readonly intake: EventIntake
  readonly fs: FileSystem.FileSystem
  readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  readonly config: string
}

/** Collects the lines of `events.jsonl`. */
class Lines {
  lines: Array<string> = []
  take(line: string): void {
    this.lines.push(line)
  }
  passOver(): void {}
}

interface Session {
  readonly id: string
  readonly cwd: string
  readonly process: ProcessId
  readonly origin: Origin
  readonly lock: string
  /** When the process opened the session, ms since the epoch. */
  readonly opened: number
  readonly file: Transcript<Lines>
  /** The open calls: a permission request names only the call's id. */
  readonly calls: Map<string, Body>
  isNew: boolean
}

const within = (value: unknown): Body => (isObject(value) ? value : {})

/** The record as a hook, with the fields that Claude Code's hooks have. */
const hookOf = (record: Body, { calls, cwd, id }: Pick<Session, "calls" | "cwd" | "id">): Body => {
  const data = within(record["data"])
  const callId = data["toolCallId"] ?? within(data["permissionRequest"])["toolCallId"]
  const key = typeof callId === "string" ? callId : undefined
  const call = "toolName" in data ? { tool_name: data["toolName"], tool_input: data["arguments"] } : undefined
  if (key !== undefined && call !== undefined) calls.set(key, call)
  const open = key === undefined ? {} : { tool_name: "*", ...calls.get(key), tool_use_id: key }
  if (key !== undefined && record["type"] === "tool.execution_complete") calls.delete(key)
  const requests = data["toolRequests"]
  return {
    hook_event_name: record["type"],
    session_id: id,
    cwd,
    ...open,
    ...(typeof record["agentId"] === "string" ? { agent_id: record["agentId"] } : {}),
    ...(Array.isArray(requests) ? { calls: requests.length } : {}),
    prompt: data["content"],
    error: data["message"]
  }
}

const BOUNDS = new Set(["HookUserPromptSubmit", "HookStop", "HookStopFailure"])

export class CopilotSessions {
  private readonly parts: Parts
  private readonly open = new Map<string, Session>()

  constructor(parts: Parts) {
    this.parts = parts
  }

  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    if (!this.parts.registry.processes.isAvailable()) return yield* Effect.never
    while (true) {
      if (this.parts.intake.isOpen) yield* this.round
      yield* Effect.sleep(this.open.size > 0 ? INTERVAL : IDLE_INTERVAL)
    }
  })

  private readonly round = Effect.gen({ self: this }, function* () {
    for (const id of yield* this.ids) {
      if (this.open.has(id) || this.open.size >= MAX_SESSIONS) continue
      const session = yield* this.find(id)
      if (session !== undefined && (yield* this.meet(session))) this.open.set(id, session)
    }
    for (const [id, session] of this.open) {
      const isOver = !this.parts.registry.processes.isAlive(session.process) || !(yield* this.has(session.lock))
      yield* this.follow(session)
      if (isOver) this.open.delete(id)
    }
  })

  private has(path: string): Effect.Effect<boolean> {
    return Effect.orElseSucceed(this.parts.fs.exists(path), () => false)
  }

  /** Reads a small file; "" if it is none. Opens only regular files, because a pipe would block the daemon. */
  private read(path: string): Effect.Effect<string> {
    const { fs } = this.parts
    return fs.stat(path).pipe(
      Effect.filterOrFail(({ size, type }) => type === "File" && Number(size) <= MAX_INDEX),
      Effect.andThen(fs.readFileString(path)),
      Effect.orElseSucceed(() => "")
    )
  }

  /** The ids of the sessions that Copilot lists as open. A killed process leaves its own behind. */
  private readonly ids = Effect.suspend(() =>
    Effect.map(this.read(join(this.parts.config, "open-sessions-state.json")), (text) => {
      const listed = Result.getOrElse(
        Result.try(() => within(JSON.parse(text))),
        () => ({})
      )
      return Object.keys(listed).filter((id) => /^[\w-]{1,128}$/.test(id))
    })
  )

  /** The session, if a live process has it open. */
  private readonly find = Effect.fnUntraced({ self: this }, function* (this: CopilotSessions, id: string) {
    const { config, fs, registry } = this.parts
    const folder = join(config, "session-state", id)
    const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
    for (const name of names) {
      const pid = Number(/^inuse\.(\d+)\.lock$/.exec(name)?.[1])
      if (Number.isNaN(pid)) continue
      const process = registry.processes.identify(pid)
      const lock = join(folder, name)
      const info = Option.getOrUndefined(yield* Effect.option(fs.stat(lock)))
      const opened = Option.getOrUndefined(info?.mtime ?? Option.none())?.getTime()
      if (opened === undefined || process.start === 0 || !(yield* isOlder(process, opened))) continue
      const cwd = /^cwd: (.+)$/m.exec(yield* this.read(join(folder, "workspace.yaml")))?.[1] ?? "/"
      const file = new Transcript(fs, join(folder, "events.jsonl"), () => new Lines())
      const { plate, run } = yield* Programs.namesOf(pid)
      const origin = { plate, run, pid }
      return { id, cwd, process, origin, lock, opened, file, calls: new Map(), isNew: true } satisfies Session
    }
    return undefined
  })

  /** Opens the session's plate, unless it is open. False if the session has none: it is agentd's own, or forgotten. */
  private readonly meet = Effect.fnUntraced({ self: this }, function* (this: CopilotSessions, session: Session) {
    const { intake, registry, sessions } = this.parts
    const { cwd, id, opened, origin, process } = session
    if ((yield* sessions).some((own) => own.isUp && (own.pid === process.pid || own.sessionId === id))) return false
    if (registry.isForgotten(id, { pid: process.pid, startedAt: opened })) return false
    const known = registry.ofSession(id)
    if (known?.isOpen === true && known.process?.pid === process.pid) return true
    const event = { _tag: "HookSessionStart", at: opened, sessionId: id, source: "noted", noted: true } as const
    const heard = { name: "SessionStart", cli: Copilot.name, sessionId: id, cwd, transcriptPath: undefined, event }
    return yield* this.told(intake.take(heard, origin))
  })

  private readonly follow = Effect.fnUntraced({ self: this }, function* (this: CopilotSessions, session: Session) {
    const { file, isNew } = session
    let found = yield* file.look
    for (let reads = isNew ? 1 : MAX_READS; found._tag === "Behind" && reads < MAX_READS; reads++) {
      found = yield* file.look
    }
    if (found._tag === "Absent") return
    const now = yield* Clock.currentTimeMillis
    const heard = file.view.lines.splice(0).flatMap((line) => heardOf(line, session, now))
    session.isNew = false
    const last = isNew ? heard.findLastIndex(({ event }) => event !== undefined && BOUNDS.has(event._tag)) : 0
    for (const one of heard.slice(Math.max(0, last))) yield* this.told(this.parts.intake.take(one, session.origin))
  })

  private told<E extends { readonly message: string }>(taken: Effect.Effect<void, E>): Effect.Effect<boolean> {
    return taken.pipe(
      Effect.as(true),
      Effect.catch(({ message }) => Effect.as(Effect.logWarning(`a session of ${Copilot.name}: ${message}`), false))
    )
  }
}

const heardOf = (line: string, session: Session, now: number): ReadonlyArray<Heard> => {
  const record = Result.getOrElse(
    Result.try(() => within(JSON.parse(line))),
    (): Body => ({})
  )
  const at = Date.parse(String(record["timestamp"]))
  if (typeof record["type"] !== "string" || !(at >= session.opened)) return []
  const heard = Result.getOrElse(parseOf(Copilot, hookOf(record, session), Math.min(now, at)), () => undefined)
  return heard === undefined ? [] : [heard]
}

/** Whether the process started before this time, ms since the epoch. A later one has only got the pid of another. */
const isOlder = (process: ProcessId, time: number): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const started = now - (ticksNow() - process.start) * TICK_MS
    return Number.isNaN(started) || started <= time + 2_000
  })
