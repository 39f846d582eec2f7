/**
 * StoreHolder: who has a store, by what can be seen of it beside the lock's file, which a person may remove and some
 * file systems do not keep: what the holder noted of itself, and the processes that have the database open for writing.
 *
 * Guarantees: a look changes nothing. A holder on another machine counts until its note is gone: nobody here can tell
 * whether it lives. On this machine a note counts as long as its very process lives, since its pid may be another's by
 * now; processes are found where there is a `/proc`.
 */
import { Context, Option, Schema } from "effect"
import * as fs from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"

export const STORE = "runes.db"

const Holder = Schema.Struct({
  pid: Schema.Int,
  socket: Schema.NullOr(Schema.String),
  /** The machine, as people call it. */
  host: Schema.optionalKey(Schema.String),
  /** The machine's start; its processes' starts, in ticks since. */
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

/** When a process began; undefined where it has ended, or that cannot be seen. */
const startOf = (pid: number): string | undefined => {
  const text = textOf(`/proc/${pid}/stat`)
  // the name may hold anything, so behind its last bracket: the state, and 18 fields later the start
  const [state, ...fields] = text?.slice(text.lastIndexOf(")") + 2).split(" ") ?? []
  return state === undefined || state === "Z" || state === "X" ? undefined : fields[18]
}

/** Beside the lock, for nobody can read the locked file itself. */
export const noteFile = (folder: string): string => join(folder, "lock.json")

/** The holder of the store, as far as that is written down. */
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

/** Whether a process has the file open for writing, at the descriptor. */
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

/** Another process that has the store's database open for writing. */
export const writerOf = (folder: string, name: string): number | undefined => {
  const file = fs.statSync(join(folder, name), { throwIfNoEntry: false })
  if (file === undefined) return undefined
  const pids = entriesOf("/proc").filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
  const found = pids.find((pid) =>
    entriesOf(`/proc/${pid}/fd`).some((descriptor) => writes(`${pid}/fd/${descriptor}`, `/${name}`, file))
  )
  return found === undefined ? undefined : Number(found)
}

/** The other holder of the store, as far as it can be seen. */
export const found = (folder: string, name: string): Holder | undefined => {
  const note = noted(folder)
  if (note !== undefined && (isElsewhere(note) || isAlive(note))) return note
  const pid = writerOf(folder, name)
  return pid === undefined ? undefined : note?.pid === pid ? note : { pid, socket: null }
}

/** The process of this machine that has the store. */
export const here = (folder: string): number | undefined => {
  const holder = found(folder, STORE)
  return holder === undefined || isElsewhere(holder) ? undefined : holder.pid
}

/** The pid that holds the caller's store, for an error that says that the daemon does not answer. */
export const Here = Context.Reference<() => number | undefined>("agentd/event-log/StoreHolder/Here", {
  defaultValue: () => () => undefined
})
