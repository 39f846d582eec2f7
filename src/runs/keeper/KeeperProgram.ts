/**
 * KeeperProgram: the daemon's view of a program that a keeper holds.
 *
 * Guarantees: Output is read from files at known positions. The bytes at a position never change, even if the daemon or
 * the keeper dies in between. An input is written once, in the order of the calls, and is sent again if the keeper died
 * before accepting it. The exit is reported once, without code and signal if the keeper that started the program has
 * died. If output that was reported is missing, the output ends there, and the program counts as lost. The position of
 * a checkpoint never decreases.
 */
import { Clock, Deferred, Effect, Semaphore } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { KeeperLink } from "./KeeperLink.ts"
import type { Exit, Listed, StreamName, Tale } from "./Protocol.ts"

/** An input that was sent to the program, with its note. */
export interface Input {
  readonly seq: number
  readonly note: string
}

/** Access to the keeper that holds the program. If that keeper has died, `link` waits for the next one. */
export interface Reach {
  readonly link: Effect.Effect<KeeperLink>
  /** Pid of the newest keeper. */
  readonly keeper: number | undefined
  /**
   * Number of bytes of output after which the keeper is told how much has been read: a fraction of the keeper's limit
   * for unread output.
   */
  readonly mark: number
  /** Number of bytes of output after which a new checkpoint is due. */
  readonly worth: number
}

/** A checkpoint from which the next daemon continues to read. */
export interface Point {
  readonly out: number
  readonly err: number
  /** Number of the last input before the checkpoint. */
  readonly seq: number
  /** The state at the checkpoint, in a form that the state's reader defines. */
  readonly known: unknown
}

/** Format version of the checkpoint file. */
const FORMAT = 1
/**
 * Buffer for all reads, which run one after another. A separate buffer for each read would cost 64 kB for every line.
 */
const room = Buffer.allocUnsafeSlow(1 << 16)
const BUSY = "100 millis"

const fileOf = (folder: string, name: StreamName, base: number) => path.join(folder, `${name}.${base}`)

const replaced = (file: string, content: string): void => {
  fs.writeFileSync(`${file}.tmp`, content, { mode: 0o600 })
  fs.renameSync(`${file}.tmp`, file)
}

const lineOf = ({ note, seq }: Input): string => `${seq} ${note.replaceAll("\n", " ")}\n`

/** Reads the notes. If two notes have the same number, the later one is used. */
const notesIn = (folder: string): ReadonlyArray<Input> => {
  // a keeper of version 1 wrote the notes itself, to `inputs`
  const files = ["inputs", "notes"].map((name) => path.join(folder, name)).filter((file) => fs.existsSync(file))
  const lines = files.flatMap((file) => fs.readFileSync(file, "utf8").split("\n").slice(0, -1))
  const all = new Map(lines.map((line) => [Number(line.split(" ", 1)[0]), line.slice(line.indexOf(" ") + 1)]))
  return [...all].map(([seq, note]) => ({ seq, note }))
}

const isPoint = (value: unknown): value is Point & { readonly format: number } => {
  const { err, out, seq } = (value ?? {}) as Partial<Point>
  return [err, out, seq].every(Number.isInteger)
}

/** The stored checkpoint; undefined if there is none, "lost" if it cannot be read. */
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

/** Reads the segment files of one output stream, one after another. */
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

  /** The next bytes; undefined if no bytes are available now. */
  read(): Uint8Array | undefined {
    if (this.fd < 0) this.open(this.baseOf(this.position))
    if (this.fd < 0) return undefined
    const from = this.position - this.base
    const size = fs.readSync(this.fd, room, 0, room.length, from)
    if (size > 0) {
      this.position += size
      return Buffer.from(room.subarray(0, size))
    }
    // the next segment begins where this one ends
    if (from === 0 || !fs.existsSync(fileOf(this.folder, this.name, this.position))) return undefined
    this.open(this.position)
    return this.read()
  }

  /** Removes the segment files that end before this position. */
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
    // a keeper removes the folder of a forgotten program
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

export class KeeperProgram {
  readonly name: string
  readonly pid: number
  readonly start: number
  /** Number of processes that the machine had started before this program. */
  readonly births: number | undefined
  /** The shell that the keeper runs next to the program. The keeper ends this shell after the program has ended. */
  readonly anchor: { readonly pid: number; readonly start: number } | undefined
  /** How many inputs the program had received, and the size of its output, when this daemon resumed it. */
  readonly inputs: ReadonlyArray<Input>
  readonly before: { readonly out: number; readonly err: number; readonly seq: number }
  /** The checkpoint from which output and inputs are read; undefined if they are read from the beginning. */
  readonly point: Point | undefined
  /** True if the beginning of the output has been removed and the checkpoint that replaces it cannot be read. */
  readonly isCut: boolean
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
    // if the keeper did not accept an input, its note is stored again under the same number
    this.inputs = notesIn(folder).filter((input) => input.seq > seq && input.seq <= listed.seq)
    this.listed(listed)
  }

  /** Updates the state from the keeper's list when a connection begins. */
  listed({ ended, err, exit, out, seq }: Omit<Listed, "run" | "pid" | "start">): void {
    this.taken = seq
    this.grown("out", out)
    this.grown("err", err)
    if (exit !== undefined) this.exitedWith(exit)
    if (ended) this.over()
  }

  /** Called if the program is not known to any keeper any more. */
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

  /** True if the exit is known and all output has been received. */
  get isWhole(): boolean {
    return this.isOver
  }

  get exited(): Effect.Effect<Exit> {
    return Deferred.await(this.end)
  }

  /** Reads the next bytes of output, starting at the beginning or at the checkpoint; undefined at the end. */
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

  /** Ends the output because a part of it is missing. The program then counts as lost. */
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

  /** Tells the keeper from time to time how much has been read. */
  private read_(): Effect.Effect<void> {
    const { err, out } = this.readers
    if (out.position + err.position - this.marked < this.reach.mark || this.isOver) return Effect.void
    this.marked = out.position + err.position
    return Effect.map(this.reach.link, (link) => this.mark(link))
  }

  /** Tells the keeper how many bytes have been read. A new keeper does not know this. */
  mark(link: KeeperLink): void {
    const { err, out } = this.readers
    link.tell({ op: "mark", run: this.name, out: out.position, err: err.position })
  }

  /** Whether enough output was written since the last checkpoint to make a new one. */
  isDue(out: number, err: number): boolean {
    return !this.isOver && out + err - this.kept >= this.reach.worth
  }

  /** Stores the checkpoint from which the next daemon continues to read, and removes older output. */
  keep({ err, known, out, seq }: Point): Effect.Effect<void> {
    return Effect.suspend(() => {
      // a keeper removes the folder of a forgotten program; a later checkpoint has already removed older output
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

  /**
   * Writes to the program's input. Returns when the pipe has accepted the data, or when the program can no longer read
   * it. `note`: one line.
   */
  write(data: string | null, note: string): Effect.Effect<void> {
    return this.writing.withPermit(
      Effect.gen({ self: this }, function* () {
        let seq = ++this.seq
        while (!this.isOver && this.taken < seq) {
          const link = yield* this.reach.link
          // a new list shows that the input was accepted, or the program was forgotten
          if (this.taken >= seq || !this.noted(seq, note)) return
          const { error, seq: last = 0 } = yield* link.ask({ op: "write", run: this.name, seq, data }, null)
          if (error === "gone") continue
          if (error === "busy") yield* Effect.sleep(BUSY)
          // an earlier write was interrupted before the keeper received it
          else if (error === "gap") seq = this.seq = last + 1
          else return void (this.taken = Math.max(this.taken, seq))
        }
      })
    )
  }

  /** Stores the note of an input before the input is sent. Returns false if the program's folder is gone. */
  private noted(seq: number, note: string): boolean {
    if (!fs.existsSync(this.folder)) return false
    fs.appendFileSync(path.join(this.folder, "notes"), lineOf({ seq, note }), { mode: 0o600 })
    return true
  }

  /**
   * Returns how much of the grace period remains, ms. It counts from when a daemon first asked the program to end, and
   * the next daemon continues it.
   */
  graceLeft(grace: number): Effect.Effect<number> {
    return Effect.map(Clock.monotonicTimeNanos, (nanos) => {
      // monotonic time since boot is enough, because no program survives a reboot
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
