/**
 * HeldProgram: a program that a keeper holds, as the daemon has it.
 *
 * Guarantees: its output is read from files, by position: the same bytes for the same position, to the end, whoever
 * of daemon and keeper has died meanwhile; an input is written once, in the order of the calls, and tried again
 * where the keeper died before it took it; how it ended is told once, with no code and no signal where the
 * keeper that would know has died; where output is gone that was told, that is its end, and nobody looks for it in a
 * circle; a point never goes back.
 */
import { Clock, Deferred, Effect, Semaphore } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { KeeperLink } from "./KeeperLink.ts"
import type { Exit, Listed, StreamName, Tale } from "./Protocol.ts"

/** An input that the program has been given: the note that came with it. */
export interface Input {
  readonly seq: number
  readonly note: string
}

/** The way to the keeper that holds the program; waits for the next one where that has died. */
export interface Reach {
  readonly link: Effect.Effect<KeeperLink>
  /** The newest one's pid. */
  readonly keeper: number | undefined
  /** The keeper hears so seldom how far its output is read, bytes: a part of what it lets wait. */
  readonly mark: number
  /** So much output is worth a further point, bytes. */
  readonly worth: number
}

/** A place from which the next daemon reads on. */
export interface Point {
  readonly out: number
  readonly err: number
  /** The last input before it. */
  readonly seq: number
  /** All that is to be known of before, in the words of whoever reads the output. */
  readonly known: unknown
}

/** The form of a point's file. */
const FORMAT = 1
/** All reads go through it, one after the other: room of its own for each would be 64 kB for every line. */
const room = Buffer.allocUnsafeSlow(1 << 16)
const BUSY = "100 millis"

const fileOf = (folder: string, name: StreamName, base: number) => path.join(folder, `${name}.${base}`)

const replaced = (file: string, content: string): void => {
  fs.writeFileSync(`${file}.tmp`, content, { mode: 0o600 })
  fs.renameSync(`${file}.tmp`, file)
}

const lineOf = ({ note, seq }: Input): string => `${seq} ${note.replaceAll("\n", " ")}\n`

/** Notes of the inputs that a program was to be given; of two with one number, the later one. */
const notesIn = (folder: string): ReadonlyArray<Input> => {
  // a keeper of version 1 has noted them itself
  const files = ["inputs", "notes"].map((name) => path.join(folder, name)).filter((file) => fs.existsSync(file))
  const lines = files.flatMap((file) => fs.readFileSync(file, "utf8").split("\n").slice(0, -1))
  const all = new Map(lines.map((line) => [Number(line.split(" ", 1)[0]), line.slice(line.indexOf(" ") + 1)]))
  return [...all].map(([seq, note]) => ({ seq, note }))
}

const isPoint = (value: unknown): value is Point & { readonly format: number } => {
  const { err, out, seq } = (value ?? {}) as Partial<Point>
  return [err, out, seq].every(Number.isInteger)
}

/** The point in a program's folder; undefined: there is none, "lost": there is one that cannot be read. */
const pointIn = (folder: string): Point | "lost" | undefined => {
  const file = path.join(folder, "point")
  if (!fs.existsSync(file)) return undefined
  try {
    const point: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
    return isPoint(point) && point.format === FORMAT ? point : "lost"
  } catch {
    return "lost"
  }
}

/** Reads segments one after the other. */
class Segments {
  position: number
  private readonly folder: string
  private readonly name: StreamName
  private base = -1
  private fd = -1

  constructor(folder: string, name: StreamName, position: number) {
    this.folder = folder
    this.name = name
    this.position = position
  }

  /** The next bytes; undefined where none are there now. */
  read(): Uint8Array | undefined {
    if (this.fd < 0) this.open(this.baseOf(this.position))
    if (this.fd < 0) return undefined
    const from = this.position - this.base
    const size = fs.readSync(this.fd, room, 0, room.length, from)
    if (size > 0) {
      this.position += size
      return Buffer.from(room.subarray(0, size))
    }
    // the next one begins where this one ends
    if (from === 0 || !fs.existsSync(fileOf(this.folder, this.name, this.position))) return undefined
    this.open(this.position)
    return this.read()
  }

  /** Removes the files of what lies before. */
  free(position: number): void {
    const bases = this.bases()
    for (const [index, base] of bases.entries()) {
      const next = bases[index + 1]
      if (next !== undefined && next <= position) fs.rmSync(fileOf(this.folder, this.name, base), { force: true })
    }
  }

  close(): void {
    if (this.fd >= 0) fs.closeSync(this.fd)
    this.fd = -1
  }

  private open(base: number | undefined): void {
    this.close()
    if (base === undefined) return
    this.base = base
    this.fd = fs.openSync(fileOf(this.folder, this.name, base), "r")
  }

  private baseOf(position: number): number | undefined {
    // a keeper removes the folder of what was forgotten
    return fs.existsSync(this.folder) ? this.bases().findLast((base) => base <= position) : undefined
  }

  private bases(): ReadonlyArray<number> {
    return fs
      .readdirSync(this.folder)
      .filter((file) => file.startsWith(`${this.name}.`))
      .map((file) => Number(file.slice(this.name.length + 1)))
      .toSorted((one, other) => one - other)
  }
}

export class HeldProgram {
  readonly name: string
  readonly pid: number
  readonly start: number
  /** So many processes the machine had begun before it. */
  readonly births: number | undefined
  /** The keeper's shell beside it, which is told to end when the program has. */
  readonly anchor: { readonly pid: number; readonly start: number } | undefined
  /** Inputs that it had been given, and the size of its output, when this daemon took it up. */
  readonly inputs: ReadonlyArray<Input>
  readonly before: { readonly out: number; readonly err: number; readonly seq: number }
  /** Where its output is read from, and after which its inputs are; undefined: the beginning. */
  readonly point: Point | undefined
  /** The beginning of its output is gone, and nobody knows what was to be known of it. */
  readonly isCut: boolean
  /** The next who asks for it has it. */
  isTaken = false
  private readonly reach: Reach
  private readonly folder: string
  private readonly readers: { readonly [name in StreamName]: Segments }
  private readonly size = { out: 0, err: 0 }
  private readonly end = Deferred.makeUnsafe<Exit>()
  private isOver = false
  private seq: number
  private taken: number
  private marked = 0
  private kept: number
  private readonly writing = Semaphore.makeUnsafe(1)
  private waiting: { [name in StreamName]: Array<() => void> } = { out: [], err: [] }

  constructor(reach: Reach, folder: string, listed: Listed) {
    this.reach = reach
    this.folder = folder
    this.name = listed.run
    this.pid = listed.pid
    this.start = Number(listed.start)
    this.births = listed.births
    this.anchor =
      listed.anchor === undefined ? undefined : { pid: listed.anchor.pid, start: Number(listed.anchor.start) }
    const point = pointIn(folder)
    this.isCut = point === "lost"
    this.point = point === "lost" ? undefined : point
    const { err = 0, out = 0, seq = 0 } = this.point ?? {}
    this.kept = out + err
    this.readers = { out: new Segments(folder, "out", out), err: new Segments(folder, "err", err) }
    this.before = { out: listed.out, err: listed.err, seq: listed.seq }
    this.seq = listed.seq
    this.taken = listed.seq
    // what was noted and not taken comes again under the same number
    this.inputs = notesIn(folder).filter((input) => input.seq > seq && input.seq <= listed.seq)
    this.listed(listed)
  }

  /** As a keeper lists it at its beginning. */
  listed({ ended, err, exit, out, seq }: Omit<Listed, "run" | "pid" | "start">): void {
    this.taken = seq
    this.grown("out", out)
    this.grown("err", err)
    if (exit !== undefined) this.exitedWith(exit)
    if (ended) this.over()
  }

  /** No keeper knows it any more. */
  lost(): void {
    this.exitedWith({ code: null, signal: null })
    this.over()
  }

  heard(tale: Tale): void {
    if (tale.tell === "output") return this.grown(tale.stream, tale.size)
    this.exitedWith({ code: tale.code, signal: tale.signal })
    if (tale.tell === "exited") return
    this.grown("out", tale.out)
    this.grown("err", tale.err)
    this.over()
  }

  private grown(name: StreamName, size: number): void {
    if (size <= this.size[name]) return
    this.size[name] = size
    this.wake(name)
  }

  private wake(name: StreamName): void {
    for (const one of this.waiting[name].splice(0)) one()
  }

  private exitedWith({ code, signal }: Exit): void {
    Deferred.doneUnsafe(this.end, Effect.succeed({ code, signal }))
  }

  private over(): void {
    this.isOver = true
    this.wake("out")
    this.wake("err")
  }

  get keeper(): number | undefined {
    return this.reach.keeper
  }

  /** True once its end is known and all of its output is there. */
  get isWhole(): boolean {
    return this.isOver
  }

  get exited(): Effect.Effect<Exit> {
    return Deferred.await(this.end)
  }

  /** The next bytes of its output, from its beginning or its point; none at the end. */
  read(name: StreamName): Effect.Effect<Uint8Array | undefined> {
    return Effect.suspend(() => {
      const reader = this.readers[name]
      const bytes = reader.read()
      if (bytes !== undefined) return Effect.as(this.read_(), bytes)
      if (this.isOver) return Effect.succeed(undefined)
      if (this.size[name] > reader.position) return this.torn(name)
      return Effect.andThen(this.grows(name), this.read(name))
    })
  }

  /** Ends its output where that is gone: nobody can hear the program any more. */
  private torn(name: StreamName): Effect.Effect<undefined> {
    const { position } = this.readers[name]
    this.lost()
    return Effect.as(
      Effect.logWarning(`output of ${this.name} is gone from ${this.folder}: ${name} from byte ${position} on`),
      undefined
    )
  }

  private grows(name: StreamName): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.isOver || this.size[name] > this.readers[name].position) return resume(Effect.void)
      const wake = () => resume(Effect.void)
      this.waiting[name].push(wake)
      return Effect.sync(() => void (this.waiting[name] = this.waiting[name].filter((one) => one !== wake)))
    })
  }

  /** Tells the keeper now and then how much is read. */
  private read_(): Effect.Effect<void> {
    const { err, out } = this.readers
    if (out.position + err.position - this.marked < this.reach.mark || this.isOver) return Effect.void
    this.marked = out.position + err.position
    return Effect.map(this.reach.link, (link) => this.mark(link))
  }

  /** Tells the keeper how much is read: a new one does not know. */
  mark(link: KeeperLink): void {
    const { err, out } = this.readers
    link.tell({ op: "mark", run: this.name, out: out.position, err: err.position })
  }

  /** Whether a point there is worth its while. */
  isDue(out: number, err: number): boolean {
    return !this.isOver && out + err - this.kept >= this.reach.worth
  }

  /** The next daemon reads on from there: what came before it is freed. */
  keep({ err, known, out, seq }: Point): Effect.Effect<void> {
    return Effect.suspend(() => {
      // a keeper removes the folder of what was forgotten; a later point has freed what lies before it
      if (this.isOver || out + err < this.kept || !fs.existsSync(this.folder)) return Effect.void
      replaced(path.join(this.folder, "point"), JSON.stringify({ format: FORMAT, out, err, seq, known }))
      this.kept = out + err
      this.readers.out.free(out)
      this.readers.err.free(err)
      const notes = notesIn(this.folder).filter((input) => input.seq > seq)
      replaced(path.join(this.folder, "notes"), notes.map(lineOf).join(""))
      return Effect.void
    })
  }

  /** Returns when the pipe has it, or when nobody reads it any more. `note`: one line. */
  write(data: string | null, note: string): Effect.Effect<void> {
    return this.writing.withPermit(
      Effect.gen({ self: this }, function* () {
        let seq = ++this.seq
        while (!this.isOver && this.taken < seq) {
          const link = yield* this.reach.link
          // listed anew meanwhile, or forgotten
          if (this.taken >= seq || !this.noted(seq, note)) return
          const { error, seq: last = 0 } = yield* link.ask({ op: "write", run: this.name, seq, data }, null)
          if (error === "gone") continue
          if (error === "busy") yield* Effect.sleep(BUSY)
          // a writer before this one was interrupted before the keeper had heard it
          else if (error === "gap") seq = this.seq = last + 1
          else return void (this.taken = Math.max(this.taken, seq))
        }
      })
    )
  }

  /** The note is there before the input is. False: the program's folder is gone. */
  private noted(seq: number, note: string): boolean {
    if (!fs.existsSync(this.folder)) return false
    fs.appendFileSync(path.join(this.folder, "notes"), lineOf({ seq, note }), { mode: 0o600 })
    return true
  }

  /** ms of its grace that are left since a daemon first asked for its end; the next daemon goes on with it. */
  graceLeft(grace: number): Effect.Effect<number> {
    return Effect.map(Clock.monotonicTimeNanos, (nanos) => {
      // since the machine's start, which no program outlives
      const now = Number(nanos / 1_000_000n)
      const file = path.join(this.folder, "asked")
      if (!fs.existsSync(this.folder)) return grace
      const since = fs.existsSync(file) ? Number(fs.readFileSync(file, "utf8")) : Number.NaN
      if (since <= now) return Math.max(0, grace - (now - since))
      replaced(file, `${now}`)
      return grace
    })
  }

  close(): void {
    this.readers.out.close()
    this.readers.err.close()
  }
}
