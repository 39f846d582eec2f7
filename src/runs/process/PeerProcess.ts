/**
 * PeerProcess: finds the process at the other end of a connection, and whether it belongs to a run. The connection uses
 * a unix socket, or a TCP port from this machine.
 *
 * Guarantees: A process belongs to a run if the process or one of its ancestors has the run's mark. If several
 * processes hold the other end, one with a mark is enough. A peer that is not found is reported as unknown, not as the
 * user. The time for a search is limited. A process's mark is read only once, and the upward search stops at a process
 * that was read before.
 *
 * A search runs `ss` (20 ms). If nothing depends on the result, a caller that reports its own pid can be believed
 * without a search. The result identifies honest callers, but is not a security boundary: a process of the same user
 * that detaches from its parents and removes the mark counts as the user.
 */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import type { Socket } from "node:net"
import { attempt } from "../../config/Attempt.ts"
import * as ProcessTable from "./ProcessTable.ts"

/** Id of a store, with which the processes of its runs are marked. All daemons of a store have the same id. */
export const storeId = (state: string): string => createHash("sha256").update(state).digest("hex").slice(0, 16)

export type Peer =
  | { readonly _tag: "Run"; readonly runId: string }
  | { readonly _tag: "Person" }
  | { readonly _tag: "Unknown"; readonly why: string }
  /** Result if this machine offers no way to find the peer. */
  | { readonly _tag: "Untold" }

/** Absolute paths of `ss`. PATH is not used, because an agent could have put another program there. */
const PLACES = ["/usr/bin/ss", "/bin/ss", "/usr/sbin/ss", "/sbin/ss", "/run/current-system/sw/bin/ss"]
/** Timeout for `ss`, ms. */
const LIMIT = 5_000
const MAX_OUTPUT = 64 * 1024 * 1024
/** Maximum number of ancestors that are examined. */
const MAX_DEPTH = 64
const MAX_KNOWN = 1_000

const unknown = (why: string): Peer => ({ _tag: "Unknown", why })

/** Inode of the socket at this end of the connection. */
const inodeOf = (socket: Socket): string | undefined => {
  const { fd } = (socket as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle ?? {}
  if (fd === undefined || fd < 0) return undefined
  return attempt(() => /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/self/fd/${fd}`))?.[1])
}

/** Returns the output of `ss`: one socket per line, with its processes. Undefined if the command failed. */
const listed = (program: string, which: ReadonlyArray<string>): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const child = execFile(
      program,
      which,
      { timeout: LIMIT, killSignal: "SIGKILL", maxBuffer: MAX_OUTPUT, env: {} },
      (error, stdout) => resume(Effect.succeed(error === null ? stdout : undefined))
    )
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/**
 * Returns the pids of the processes that hold the socket whose peer has this inode. A forged line can contain another
 * socket's inode: this adds pids, but never removes any.
 */
export const holdersIn = (lines: string, inode: string): ReadonlyArray<number> => {
  const named = `* ${inode} `
  return lines
    .split("\n")
    .filter((line) => `${line} `.includes(named))
    .flatMap(pidsIn)
}

const pidsIn = (line: string): ReadonlyArray<number> => [...line.matchAll(/pid=(\d+)/g)].map(([, pid]) => Number(pid))

/**
 * A process that was examined before. `runId`: the run whose mark the process or an ancestor has; undefined if there is
 * none.
 */
interface Known {
  readonly start: number
  readonly runId: string | undefined
}

const runOf = (env: ReadonlyArray<string>, store: string): string | undefined => {
  const runId = env.find((entry) => entry.startsWith("AGENTD_RUN="))?.slice("AGENTD_RUN=".length)
  // each program of a run has a mark of its own: the run id, a plus sign and a suffix
  return runId !== undefined && env.includes(`AGENTD_STORE=${store}`) ? runId.split("+")[0]! : undefined
}

export interface Peers {
  readonly search: (socket: Socket) => Effect.Effect<Peer>
  /** Looks at the process with the pid that the caller reported, without a search. Reads only a few files of /proc. */
  readonly believe: (pid: number) => Effect.Effect<Peer>
}

/** Creates the service. `environment`: reads the environment with which a process was started. */
export const make = (store: string, environment = ProcessTable.environment): Peers => {
  const known = new Map<number, Known>()

  const remember = (pid: number, one: Known): void => {
    known.delete(pid)
    known.set(pid, one)
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value!)
  }

  /**
   * Finds the run whose mark the process or one of its ancestors had in its environment when it started. Stops at the
   * daemon itself and at pid 1.
   */
  const peerOf = Effect.fnUntraced(function* (pid: number): Effect.fn.Return<Peer> {
    const line: Array<ProcessTable.ProcessId> = []
    let runId: string | undefined
    for (let at = ProcessTable.find(pid); at !== undefined; at = ProcessTable.find(at.parent)) {
      if (at.pid <= 1 || at.pid === process.pid || line.length >= MAX_DEPTH) break
      const before = known.get(at.pid)
      if (before?.start === at.start) {
        runId = before.runId
        if (line.length === 0) return runId === undefined ? { _tag: "Person" } : { _tag: "Run", runId }
        break
      }
      line.push(at)
    }
    if (line.length === 0) return unknown("it ended during the search")
    const environments = yield* Effect.forEach(line, (one) => environment(one.pid), { concurrency: "unbounded" })
    // from the oldest ancestor down, so that the nearest mark wins
    for (const [index, { pid, start }] of [...line.entries()].toReversed()) {
      runId = runOf(environments[index]!, store) ?? runId
      // a process that is ending, or that is just starting another program, has no environment for a moment
      if (index > 0 || environments[index]!.length > 0) remember(pid, { start, runId })
    }
    return runId === undefined ? { _tag: "Person" } : { _tag: "Run", runId }
  })

  /** Returns the pids of the processes that hold the other end, or why none was found. */
  const holdersOf = Effect.fnUntraced(function* (socket: Socket, program: string) {
    const inode = inodeOf(socket)
    if (inode === undefined) return "its connection is closed"
    const lines = yield* listed(program, ["-xpnH", "state", "connected"])
    if (lines === undefined) return `${program} failed`
    const holders = holdersIn(lines, inode)
    return holders.length === 0 ? "no process of this user holds the other end" : holders
  })

  /**
   * Callers on a port authenticate with a token or a proof. If their process is not found, because the connection comes
   * from a relay or another user, only this authentication decides.
   */
  const holdersByPort = Effect.fnUntraced(function* ({ localPort, remotePort }: Socket, program: string) {
    if (remotePort === undefined) return []
    const which = ["-tpnH", "state", "established", `( sport = :${remotePort} and dport = :${localPort} )`]
    return pidsIn((yield* listed(program, which)) ?? "")
  })

  const search = Effect.fnUntraced(function* (socket: Socket): Effect.fn.Return<Peer> {
    const program = PLACES.find((file) => fs.existsSync(file))
    if (program === undefined || !ProcessTable.isAvailable()) return { _tag: "Untold" }
    const isPort = socket.localPort !== undefined
    const holders = yield* isPort ? holdersByPort(socket, program) : holdersOf(socket, program)
    if (typeof holders === "string") return unknown(holders)
    if (holders.length === 0) return { _tag: "Untold" }
    let found: Peer = { _tag: "Person" }
    for (const pid of holders) {
      const peer = yield* peerOf(pid)
      if (peer._tag === "Run") return peer
      if (peer._tag === "Unknown") found = peer
    }
    return found
  })

  return {
    search,
    believe: (pid) => (ProcessTable.isAvailable() ? peerOf(pid) : Effect.succeed({ _tag: "Untold" }))
  }
}
