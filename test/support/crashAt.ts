/**
 * crashAt: is loaded into a daemon before its own code (NODE_OPTIONS), and kills it with SIGKILL at the n-th boundary
 * of a kind: AGENTD_CRASH_AT="commit: before 7". The program itself is not changed. If AGENTD_CRASH_COUNTS names a
 * file, a daemon that ends in order writes there how often each of its threads passed each boundary.
 *
 * A boundary is around a call that leaves the process: `before` the call is made, and `after` it has returned.
 */
import * as childProcess from "node:child_process"
import * as fs from "node:fs"
import { createRequire, syncBuiltinESMExports } from "node:module"
import { Socket } from "node:net"
import { DatabaseSync, StatementSync } from "node:sqlite"
import { threadId } from "node:worker_threads"

type Call = (this: unknown, ...args: Array<any>) => unknown
/** The name of a call's boundary; undefined if the call is no boundary. */
type Named = (self: unknown, args: ReadonlyArray<unknown>) => string | undefined

const kill = process.kill.bind(process)
const { writeFileSync } = fs
const [, kind, number] = /^(.*) (\d+)$/.exec(process.env["AGENTD_CRASH_AT"] ?? "") ?? []
const counts = new Map<string, number>()

const pass = (boundary: string): void => {
  const count = (counts.get(boundary) ?? 0) + 1
  counts.set(boundary, count)
  if (boundary !== kind || count !== Number(number)) return
  kill(process.pid, "SIGKILL")
  for (;;);
}

const around = (on: object, method: string, named: Named): void => {
  const calls = on as { [method: string]: Call }
  const call = calls[method]!
  calls[method] = function (...args) {
    const boundary = named(this, args)
    if (boundary === undefined) return call.apply(this, args)
    pass(`${boundary}: before`)
    const answer = call.apply(this, args)
    pass(`${boundary}: after`)
    return answer
  }
}

/** The boundary for the peer of a socket: a client (`answer`), a server (`tcp`), or an agent's process (`stdin`). */
const listener = (self: unknown): string | undefined => {
  const { fd = 3, remotePort, server } = self as { fd?: number; remotePort?: number; server?: object | null }
  if (fd <= 2) return undefined
  // null: this side made the connection, or the socket is a pipe
  return (server ?? null) !== null ? "answer" : remotePort !== undefined ? "tcp" : "stdin"
}

/** The boundary of an SQL statement: `rewrite` commits the erasure of one rune's texts. */
const told = (sql: string): string | undefined => {
  if (sql === "COMMIT") return "index"
  if (sql === "DELETE FROM erasing; COMMIT") return "rewrite"
  return sql.startsWith("PRAGMA wal_checkpoint") ? "checkpoint" : undefined
}

const FILES = ["rename", "renameSync", "fsync", "fsyncSync", "unlink", "unlinkSync", "rm", "rmSync", "mkdir"]
const WRITES = ["write", "writev", "writeFile", "writeFileSync"]

const install = (): void => {
  // only changes of the CommonJS objects reach the ES modules, by syncBuiltinESMExports
  const require = createRequire(import.meta.url)
  around(StatementSync.prototype, "run", (self) =>
    (self as StatementSync).sourceSQL === "COMMIT" ? "commit" : undefined
  )
  around(DatabaseSync.prototype, "exec", (_, [sql]) => told(String(sql)))
  around(require("node:child_process") as typeof childProcess, "spawn", () => "spawn")
  around(process, "kill", (_, [, signal]) => (signal === 0 ? undefined : "signal"))
  around(Socket.prototype, "write", listener)
  around(Socket.prototype, "end", (self, [last]) =>
    typeof last === "string" || last instanceof Uint8Array ? listener(self) : undefined
  )
  const files = require("node:fs") as typeof fs
  for (const method of FILES) around(files, method, () => `file ${method.replace("Sync", "")}`)
  for (const method of WRITES) around(files, method, (_, [to]) => (to === 1 || to === 2 ? undefined : "file write"))
  syncBuiltinESMExports()
  const file = process.env["AGENTD_CRASH_COUNTS"]
  if (file !== undefined)
    process.on("exit", () => writeFileSync(`${file}.${threadId}`, JSON.stringify(Object.fromEntries(counts))))
}

// installed in the daemon's threads too, but not in its child processes
if (process.argv.includes("up")) process.env["AGENTD_CRASH_PID"] = String(process.pid)
if (process.env["AGENTD_CRASH_PID"] === String(process.pid)) install()
