/**
 * Sessions: people's own sessions of Claude Code on the simulated machine: their processes, how
 * their hooks come to a daemon, or late, twice or never, and the files that they are told by.
 *
 * A hook over HTTP that finds no daemon is lost, as with the real one; a start is dropped into
 * the spool, which waits for the next daemon.
 */
import { Effect } from "effect"
import type { Lookup, Process } from "../../../src/runs/process/ProcessTable.ts"
import { foldersOf } from "../../../src/api/http/Spool.ts"
import { Chance } from "../Chance.ts"
import { EPOCH, type Life, type Universe, type Wall } from "../Universe.ts"
import type { Files } from "./Files.ts"
import { Session } from "./Session.ts"

/** How sessions are in a world. */
export interface Habits {
  readonly sessions: number
  /** Between two prompts, ms. */
  readonly pause: number
  /** Probability that a session notes what it is about. */
  readonly noted: number
  /** Probabilities of a hook. */
  readonly lost: number
  readonly late: number
  readonly twice: number
  /** Probabilities of a session, of a turn, of a dialog. */
  readonly crashes: number
  readonly fails: number
  /** The probability that a dialog can be answered through agentd. */
  readonly approvals: number
  /** The probability that a session was started through a program that registers its plate. */
  readonly wrapped: number
  /** The probability that the pid of a gone session is used again. */
  readonly reuses: number
  /** So late a late hook may come, ms. */
  readonly latest: number
  /** The probability that a hook comes once more, as late; that a session's plate is registered again while a hook comes. */
  readonly strays: number
  readonly registersAgain: number
}

/** The answer to a hook's sender. */
export interface Answer {
  readonly status: number
  readonly text: string
  readonly decision: "allow" | "deny" | undefined
}

export interface Request {
  readonly method: "POST"
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}

/** Where a daemon takes requests. */
export interface Door {
  readonly life: Life
  readonly ask: (request: Request, answered: (status: number, text: string) => void) => void
}

/** The view of sessions from outside, for checks. */
export interface Onlooker {
  sessions: ReadonlyArray<Session>
  registering(plateId: string): void
  registered(plateId: string): void
  leaves(start: Dropped): void
  stopping(plateId: string): (ok: boolean) => void
  decided(session: Session, decision: "allow" | "deny", of: { readonly tool: string; readonly input: string }): void
  sometimes(what: string): void
}

/** A start that was left in the spool. */
export interface Dropped {
  readonly plateId: string | undefined
  readonly sessionId: string
  readonly source: string
  readonly pid: number
  /** True while the start lies there. */
  readonly isThere: () => boolean
}

interface Dialog {
  /** Whether its hook waits for an answer of agentd's. */
  readonly through: boolean
  /** The tool's input. */
  readonly input: string
  readonly answered: (answer: Answer) => void
}

/** Clock ticks since the machine was started, at the world's beginning. */
const BOOTED = 100_000
/** The time of a hook on its way, ms. */
const WAY = { least: 0.2, most: 4 } as const
const INIT = 1

type Fields = { readonly [field: string]: unknown }

export class Sessions {
  readonly universe: Universe
  readonly files: Files
  readonly habits: Habits
  readonly all: ReadonlyArray<Session>
  /** Whether anything may still go wrong, and whether people want anything. */
  isUnruly = true
  door: Door | undefined = undefined
  /** Whether the machine's clock shows less than it has shown before. */
  isBehind: () => boolean = () => false
  /** Agents' processes that live, besides. */
  agents: () => ReadonlyArray<number> = () => []
  private readonly wallClock: Wall
  private readonly spool: string
  private readonly onlooker: Onlooker
  private readonly chance: Chance
  private readonly table = new Map<number, Process>()
  private pids = 50_000
  private drops = 0
  private plates = 0
  /** Plates whose registration was answered. */
  private readonly taken = new Set<string>()

  constructor(
    universe: Universe,
    of: {
      readonly seed: number
      readonly habits: Habits
      readonly files: Files
      readonly wall: Wall
      readonly state: string
      readonly onlooker: Onlooker
    }
  ) {
    this.universe = universe
    this.files = of.files
    this.habits = of.habits
    this.wallClock = of.wall
    this.spool = foldersOf(of.state).spool
    this.onlooker = of.onlooker
    this.chance = new Chance(of.seed, "sessions")
    this.all = Array.from(
      { length: of.habits.sessions },
      (_, number) => new Session(this, number, new Chance(of.seed, `session ${number}`))
    )
    of.onlooker.sessions = this.all
    of.files.told.set("/proc/uptime", () => `${((BOOTED + this.ticks) / 100).toFixed(2)} 0.00\n`)
    for (const session of this.all) this.begins(session)
  }

  /** ms since the epoch, as the machine's clock shows. */
  get wall(): number {
    return EPOCH + this.universe.now + this.wallClock.skew
  }

  sometimes(what: string): void {
    this.onlooker.sometimes(what)
  }

  private get ticks(): number {
    return Math.floor(this.universe.now / 10)
  }

  // Processes.

  readonly lookup: Lookup = {
    identify: (pid) => ({ pid, start: this.startOf(pid) }),
    isAlive: ({ pid, start }) => start !== 0 && this.startOf(pid) === start,
    isAvailable: () => true,
    snapshot: Effect.sync(() => [...this.table.values()]),
    programs: Effect.succeed([])
  }

  startOf(pid: number): number {
    return this.table.get(pid)?.start ?? (this.agents().includes(pid) ? 1 : 0)
  }

  fork(parent = INIT): number {
    return this.lives(++this.pids, parent)
  }

  private lives(pid: number, parent: number): number {
    this.table.set(pid, { pid, start: BOOTED + this.ticks, parent, group: pid, session: pid })
    return pid
  }

  /** A command of the Bash tool's; the answer ends it. */
  shell(parent: number): () => void {
    const pid = this.fork(parent)
    const line = `/proc/${pid}/cmdline`
    this.files.told.set(line, () => `/bin/bash\0-c\0source /home/ada/.claude/shell-snapshots/s.sh && make\0`)
    const ends = () => {
      this.table.delete(pid)
      this.files.told.delete(line)
    }
    // it may outlive its session by a moment
    this.universe.later(60_000, ends)
    return ends
  }

  /** The session is over: its process is gone, and another one may get its pid. */
  exits(session: Session): void {
    const { pid, plate } = session
    this.table.delete(pid)
    if (this.isUnruly && this.chance.is(this.habits.reuses)) {
      this.universe.later(this.chance.skewed(1_000, 60_000), () => {
        this.sometimes("a pid is used again")
        this.lives(pid, INIT)
      })
    }
    // its wrapper tells that it has ended
    if (plate !== undefined && this.chance.is(0.7)) this.tellsStopped(plate, this.chance.is(0.5) ? pid : undefined)
    this.begins(session)
  }

  private begins(session: Session): void {
    this.universe.later(this.chance.skewed(1_000, this.habits.pause * 4), () => {
      if (!this.isUnruly || !session.isGone) return
      if (session.bornAt > 0) this.sometimes("session: resumed")
      session.start(session.bornAt > 0 ? "resume" : "startup")
    })
  }

  // What tells the daemon.

  private ask(request: Omit<Request, "method" | "headers">, plate: string | undefined, answered: Answered): void {
    const { door } = this
    if (door === undefined || door.life.isDead) return answered(0, "")
    const headers = { "x-agentd-plate": plate ?? "$AGENTD_PLATE", "x-agentd-run": "" }
    door.ask({ method: "POST", headers, ...request }, answered)
  }

  /** A hook over HTTP. The session goes on when it is answered: hooks come in order unless one is late. */
  hook(session: Session, body: Fields, path = "/hooks/claude", answered: Answered = () => {}): void {
    const { chance, habits, isUnruly, universe } = this
    const send = (isLate: boolean) => this.sends(session, { path, body: JSON.stringify(body) }, { isLate, answered })
    if (isUnruly && chance.is(habits.lost)) return this.sometimes("a hook is lost")
    if (isUnruly && chance.is(habits.late)) {
      this.sometimes("a hook is late")
      universe.later(chance.skewed(100, habits.latest), () => send(true))
      return
    }
    if (isUnruly && habits.strays > 0) this.strays(session, send)
    session.busyUntil = Math.max(session.busyUntil + 0.01, universe.now + chance.skewed(WAY.least, WAY.most))
    universe.later(session.busyUntil - universe.now, () => send(false))
    if (!isUnruly || !chance.is(habits.twice)) return
    this.sometimes("a hook comes twice")
    session.busyUntil += 0.1
    universe.later(session.busyUntil - universe.now, () => send(false))
  }

  /** In odd worlds: the hook once more, by a sender that was slow, and the wrapper's word. */
  private strays(session: Session, send: (isLate: boolean) => void): void {
    const { chance, habits, universe } = this
    if (chance.is(habits.strays)) {
      this.sometimes("a hook comes again, much later")
      universe.later(chance.skewed(1_000, habits.latest), () => send(true))
    }
    const { plate } = session
    // a wrapper that found no daemon does not try again
    if (plate === undefined || !this.taken.has(plate) || !chance.is(habits.registersAgain)) return
    this.sometimes("a plate is registered again")
    this.register(plate, session)
  }

  private sends(
    session: Session,
    { body, path }: { readonly body: string; readonly path: string },
    { answered, isLate }: { readonly answered: Answered; readonly isLate: boolean }
  ): void {
    const { universe } = this
    const { hook_event_name: name, session_id: id, reason } = JSON.parse(body) as { readonly [field: string]: string }
    universe.note(`hook ${session.number} ${name} ${isLate ? "late" : ""}`)
    if (this.door === undefined || this.door.life.isDead) return this.sometimes("a hook finds no daemon")
    if (id === session.id) session.postedAt = universe.now
    if (isLate) session.disorderedAt = universe.now
    if (name === "SessionEnd" && reason === "prompt_input_exit") session.saidEndAt = universe.now
    this.ask({ path, body }, session.plate, (status, text) => {
      if (status >= 400 && status !== 503) this.onlooker.sometimes(`hook ${name}: ${status}`)
      answered(status, text)
    })
  }

  /** A hook that asks for leave. */
  request(session: Session, body: Fields, { answered, input, through }: Dialog): void {
    if (!through) return this.hook(session, body)
    this.hook(session, body, "/hooks/claude/permission", (status, text) => {
      const decision = decisionIn(status, text)
      if (decision !== undefined)
        this.onlooker.decided(session, decision, { tool: String(body["tool_name"]), input: `${input} ${text}` })
      answered({ status, text, decision })
    })
  }

  /** A session's start, which comes by the spool. */
  drop(session: Session, body: Fields): void {
    const { chance, habits, isUnruly, universe } = this
    if (!this.files.has(this.spool)) return this.sometimes("a start finds no spool")
    if (isUnruly && chance.is(habits.lost / 2)) return this.sometimes("a start is lost")
    const { pid } = session
    const head = `pid=${pid}\nplate=${session.plate ?? ""}\nrun=\n\n`
    const name = `${++this.drops}-${pid}`
    universe.later(chance.skewed(1, 10), () => {
      session.postedAt = universe.now
      const file = `${this.spool}/${name}.hook`
      this.files.write(file, `${head}${JSON.stringify(body)}`, this.wall)
      const { session_id: sessionId, source } = body as { readonly [field: string]: string }
      this.onlooker.leaves({
        plateId: session.plate,
        sessionId: sessionId!,
        source: source!,
        pid,
        isThere: () => this.files.has(file)
      })
    })
  }

  /** A program starts it, and registers its plate first. */
  wrap(session: Session): string {
    const plateId = `w${session.number}-${++this.plates}`
    this.onlooker.registering(plateId)
    this.register(plateId, session)
    return plateId
  }

  private register(plateId: string, session: Session): void {
    const body = { plate_id: plateId, cwd: session.cwd, ...(this.chance.is(0.5) ? { pid: session.pid } : {}) }
    this.ask({ path: "/plates/register", body: JSON.stringify(body) }, undefined, (status) => {
      this.sometimes(`register: ${status}`)
      if (status !== 200) return
      this.taken.add(plateId)
      this.onlooker.registered(plateId)
    })
  }

  private tellsStopped(plateId: string, pid: number | undefined): void {
    const answered = this.onlooker.stopping(plateId)
    const body = { plate_id: plateId, ...(pid === undefined ? {} : { pid }) }
    this.ask({ path: "/plates/stopped", body: JSON.stringify(body) }, undefined, (status) => {
      this.sometimes(`stopped: ${status}`)
      answered(status === 204)
    })
  }
}

type Answered = (status: number, text: string) => void

const decisionIn = (status: number, text: string): Answer["decision"] => {
  if (status !== 200) return undefined
  const { decision } = (JSON.parse(text) as { readonly hookSpecificOutput: { readonly decision: Fields } })
    .hookSpecificOutput
  return decision["behavior"] === "allow" ? "allow" : "deny"
}
