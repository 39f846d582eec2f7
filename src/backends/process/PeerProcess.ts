/**
 * PeerProcess: which process is at the other end of a connection over a unix socket, and whether
 * that is a run's.
 *
 * Guarantees: a run's mark counts wherever it stands, in the process or in those above it; where
 * several processes hold the end, one that is marked is enough; a peer that is not found is
 * unknown, and no person; a look-up takes a bounded time. A search asks `ss` (20 ms); a caller that
 * says which process it is may be believed at once, where nothing is decided. It tells honest callers apart and is no
 * boundary: a process of the same user that leaves its parents and takes the mark off passes as
 * a person.
 */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import type { Socket } from "node:net"
import * as ProcessTable from "./ProcessTable.ts"

export type Peer =
  | { readonly _tag: "Run"; readonly runId: string }
  | { readonly _tag: "Person" }
  | { readonly _tag: "Unknown"; readonly why: string }
  /** Nothing on this machine tells. */
  | { readonly _tag: "Untold" }

/** Never by the PATH: what stands there may be an agent's. */
const PLACES = ["/usr/bin/ss", "/bin/ss", "/usr/sbin/ss", "/sbin/ss", "/run/current-system/sw/bin/ss"]
/** ms */
const LIMIT = 5_000
const MAX_OUTPUT = 64 * 1024 * 1024
/** Processes above one another that are looked at. */
const MAX_DEPTH = 64

const unknown = (why: string): Peer => ({ _tag: "Unknown", why })

/** The inode of our end. */
const inodeOf = (socket: Socket): string | undefined => {
  const { fd } = (socket as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle ?? {}
  if (fd === undefined || fd < 0) return undefined
  try {
    return /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/self/fd/${fd}`))?.[1]
  } catch {
    return undefined
  }
}

/** All connected unix sockets with their processes, a line each; undefined where that failed. */
const connections = (program: string): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const child = execFile(
      program,
      ["-xpnH", "state", "connected"],
      { timeout: LIMIT, killSignal: "SIGKILL", maxBuffer: MAX_OUTPUT, env: {} },
      (error, stdout) => resume(Effect.succeed(error === null ? stdout : undefined))
    )
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/**
 * The processes that hold the end whose peer has this inode. A line may be made to name it that is another's: it
 * adds processes, and takes none away.
 */
export const holdersIn = (lines: string, inode: string): ReadonlyArray<number> => {
  const named = `* ${inode} `
  return lines
    .split("\n")
    .filter((line) => `${line} `.includes(named))
    .flatMap((line) => [...line.matchAll(/pid=(\d+)/g)].map(([, pid]) => Number(pid)))
}

/** The process and those above it, up to the daemon's own or the machine's first. */
const lineOf = (pid: number): ReadonlyArray<number> => {
  const line: Array<number> = []
  let at = ProcessTable.find(pid)
  while (at !== undefined && at.pid > 1 && at.pid !== process.pid && line.length < MAX_DEPTH) {
    line.push(at.pid)
    at = ProcessTable.find(at.parent)
  }
  return line
}

/** The run's mark of this store that the process, or one above it, was started with; undefined: none has one. */
const markOf = Effect.fnUntraced(function* (pid: number, store: string) {
  const line = lineOf(pid)
  if (line.length === 0) return "gone"
  const environments = yield* Effect.forEach(line, ProcessTable.environment, { concurrency: "unbounded" })
  for (const env of environments) {
    const runId = env.find((entry) => entry.startsWith("AGENTD_RUN="))?.slice("AGENTD_RUN=".length)
    // what a run starts has a mark of its own, after a plus
    if (runId !== undefined && env.includes(`AGENTD_STORE=${store}`)) return { runId: runId.split("+")[0]! }
  }
  return undefined
})

const peerOf = (mark: Effect.Success<ReturnType<typeof markOf>>): Peer =>
  mark === "gone"
    ? unknown("it ended while it was looked at")
    : mark === undefined
      ? { _tag: "Person" }
      : { _tag: "Run", runId: mark.runId }

/** Looks at the process that a caller says it is, without a search: a few files of /proc. */
export const believe = (pid: number, store: string): Effect.Effect<Peer> =>
  ProcessTable.isAvailable() ? Effect.map(markOf(pid, store), peerOf) : Effect.succeed({ _tag: "Untold" })

/** Looks the peer up, for the runs of one store. */
export const look = Effect.fnUntraced(function* (socket: Socket, store: string): Effect.fn.Return<Peer> {
  const program = PLACES.find((file) => fs.existsSync(file))
  if (program === undefined || !ProcessTable.isAvailable()) return { _tag: "Untold" }
  const inode = inodeOf(socket)
  if (inode === undefined) return unknown("its connection is over")
  const lines = yield* connections(program)
  if (lines === undefined) return unknown(`${program} did not tell`)
  const holders = holdersIn(lines, inode)
  if (holders.length === 0) return unknown("no process of this user holds the other end")
  let found: Peer = { _tag: "Person" }
  for (const pid of holders) {
    const peer = peerOf(yield* markOf(pid, store))
    if (peer._tag === "Run") return peer
    if (peer._tag === "Unknown") found = peer
  }
  return found
})
