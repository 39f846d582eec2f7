/**
 * EndedPrograms: programs in a keeper's folder that no keeper manages any more. They ended while an earlier keeper
 * managed them, or the next keeper could not resume them.
 *
 * Guarantees: If a file is damaged, only the information in it is lost. A failure that was recorded before the
 * machine's last boot is ignored, because the shutdown can have caused it.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import type { Exit, Listed, StreamName } from "./Protocol.ts"

const folderOf = (folder: string, run: string): string => path.join(folder, "runs", run)

const jsonIn = (file: string): { readonly [key: string]: unknown } => {
  try {
    const value: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
    return typeof value === "object" && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/** Id of the machine's last boot; empty if the machine has none. */
export const boot = (): string => {
  const file = "/proc/sys/kernel/random/boot_id"
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : ""
}

/** Returns the size of a stream in bytes, from its remaining files. */
const sizeOf = (folder: string, name: StreamName): number => {
  const files = fs.readdirSync(folder).filter((file) => file.startsWith(`${name}.`))
  return Math.max(
    0,
    ...files.map((file) => Number(file.slice(name.length + 1)) + fs.statSync(path.join(folder, file)).size)
  )
}

const whole = (value: unknown): number | undefined => (Number.isInteger(value) ? Number(value) : undefined)

const exitOf = (code: unknown, signal: unknown): Exit => ({
  code: whole(code) ?? null,
  signal: typeof signal === "string" ? (signal as NodeJS.Signals) : null
})

const listed = (folder: string, run: string): Listed => {
  const { boot: of, pid, start } = jsonIn(path.join(folder, "meta"))
  const { code, err, out, seq, signal } = jsonIn(path.join(folder, "exit"))
  const [taken = "0"] = fs.existsSync(path.join(folder, "seq"))
    ? fs.readFileSync(path.join(folder, "seq"), "utf8").trim().split(" ")
    : []
  return {
    run,
    // a pid that no process has
    pid: whole(pid) ?? 2 ** 31 - 1,
    start: typeof start === "string" ? start : "0",
    seq: whole(seq) ?? (Number(taken) || 0),
    out: whole(out) ?? sizeOf(folder, "out"),
    err: whole(err) ?? sizeOf(folder, "err"),
    exit: code === 0 || of === boot() ? exitOf(code, signal) : { code: null, signal: null },
    ended: true
  }
}

/** Programs that no keeper manages any more. `held`: programs that the current keeper holds. */
export const of = (folder: string, held: ReadonlySet<string>): ReadonlyArray<Listed> => {
  const runs = path.join(folder, "runs")
  if (!fs.existsSync(runs)) return []
  const left = fs.readdirSync(runs).filter((run) => !run.startsWith("slot-") && !held.has(run))
  return left.map((run) => listed(path.join(runs, run), run))
}

/** Deletes everything that is stored for this program. */
export const clear = (folder: string, run: string): void => {
  const { cgroup } = jsonIn(path.join(folderOf(folder, run), "meta"))
  fs.rmSync(folderOf(folder, run), { recursive: true, force: true })
  if (typeof cgroup !== "string" || cgroup === "") return
  try {
    fs.rmdirSync(cgroup)
  } catch {
    // already removed, or a process is still in it
  }
}
