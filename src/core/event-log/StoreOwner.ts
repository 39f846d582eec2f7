/**
 * StoreOwner: finds the process that holds a store, without using the lock file. A user can delete that file, and some
 * file systems do not support locks. The search uses two sources: the note in which the holder has described itself,
 * and the list of processes that have the database open for writing.
 *
 * Guarantees: the search changes nothing. A holder on another machine counts until its note is deleted, because this
 * machine cannot know whether that process is alive. On this machine, a note counts only while exactly that process is
 * alive, because another process can have the same pid now. Processes are found only on systems with `/proc`.
 */
import { Context, Option, Schema } from "effect"
import * as fs from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"

export const STORE = "runes.db"

const Holder = Schema.Struct({
  pid: Schema.Int,
  socket: Schema.NullOr(Schema.String),
  host: Schema.optionalKey(Schema.String),
  /** `boot`: id of the machine's boot. `start`: when the process started, in clock ticks since that boot. */
  boot: Schema.optionalKey(Schema.String),
  start: Schema.optionalKey(Schema.String)
})
export type Holder = typeof Holder.Type

const decodeHolder = Schema.decodeUnknownOption(Schema.fromJsonString(Holder))

const textOf = (path: string): string | undefined => {
  try {
    return fs.readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

const bootOf = (): string | undefined => textOf("/proc/sys/kernel/random/boot_id")?.trim()

/** When a process started, in clock ticks since boot; undefined if it has ended, or if its start is not known. */
const startOf = (pid: number): string | undefined => {
  const text = textOf(`/proc/${pid}/stat`)
  // the process name can contain any text: read the state after its last bracket, and the start 18 fields later
  const [state, ...fields] = text?.slice(text.lastIndexOf(")") + 2).split(" ") ?? []
  return state === undefined || state === "Z" || state === "X" ? undefined : fields[18]
}

/** Path of the holder's note. The note is not in the lock file, because a locked lock file cannot be read. */
export const noteFile = (folder: string): string => join(folder, "lock.json")

/** The holder of the store according to its note; undefined if there is no valid note. */
export const noted = (folder: string): Holder | undefined =>
  Option.getOrUndefined(decodeHolder(textOf(noteFile(folder)) ?? ""))

export const self = (socket: string | null): Holder => {
  const [boot, start] = [bootOf(), startOf(process.pid)]
  return {
    pid: process.pid,
    socket,
    host: hostname(),
    ...(boot === undefined ? {} : { boot }),
    ...(start === undefined ? {} : { start })
  }
}

export const isElsewhere = ({ boot, host }: Holder): boolean =>
  host !== undefined && host !== hostname() && boot !== bootOf()

const isAlive = ({ boot, pid, start }: Holder): boolean =>
  pid !== process.pid && boot !== undefined && boot === bootOf() && start !== undefined && startOf(pid) === start

/** Returns true if this file descriptor of a process is the file, opened for writing. */
const writes = (descriptor: string, name: string, file: fs.Stats): boolean => {
  try {
    if (!fs.readlinkSync(`/proc/${descriptor}`).endsWith(name)) return false
    const { dev, ino } = fs.statSync(`/proc/${descriptor}`)
    if (dev !== file.dev || ino !== file.ino) return false
    const flags = /^flags:\s*([0-7]+)$/m.exec(textOf(`/proc/${descriptor.replace("/fd/", "/fdinfo/")}`) ?? "")?.[1]
    return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0
  } catch {
    return false
  }
}

const entriesOf = (folder: string): ReadonlyArray<string> => {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}

/** Pid of another process that has the store's database open for writing; undefined if none is found. */
export const writerOf = (folder: string, name: string): number | undefined => {
  const file = fs.statSync(join(folder, name), { throwIfNoEntry: false })
  if (file === undefined) return undefined
  const pids = entriesOf("/proc").filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
  const found = pids.find((pid) =>
    entriesOf(`/proc/${pid}/fd`).some((descriptor) => writes(`${pid}/fd/${descriptor}`, `/${name}`, file))
  )
  return found === undefined ? undefined : Number(found)
}

/** The other process that holds the store; undefined if none is found. */
export const found = (folder: string, name: string): Holder | undefined => {
  const note = noted(folder)
  if (note !== undefined && (isElsewhere(note) || isAlive(note))) return note
  const pid = writerOf(folder, name)
  return pid === undefined ? undefined : note?.pid === pid ? note : { pid, socket: null }
}

/** Pid of the process on this machine that holds the store; undefined if none is found. */
export const here = (folder: string): number | undefined => {
  const holder = found(folder, STORE)
  return holder === undefined || isElsewhere(holder) ? undefined : holder.pid
}

/**
 * Pid of the process that holds the caller's store; undefined if it is not known. Used in the error message about a
 * daemon that does not answer.
 */
export const Here = Context.Reference<() => number | undefined>("agentd/event-log/StoreOwner/Here", {
  defaultValue: () => () => undefined
})
