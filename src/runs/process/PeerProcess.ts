/**
 * PeerProcess: which process is at the other end of a connection over a unix socket, or over a port from this machine,
 * and whether that is a run's.
 *
 * Guarantees: a run's mark counts wherever it stands, in the process or in those above it; where
 * several processes hold the end, one that is marked is enough; a peer that is not found is
 * unknown, and no person; a look-up takes a bounded time; a process is asked for its mark once, and none
 * above one that has been asked before. A search asks `ss` (20 ms); a caller that
 * says which process it is may be believed at once, where nothing is decided. It tells honest callers apart and is no
 * boundary: a process of the same user that leaves its parents and takes the mark off passes as
 * a person.
 */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import type { Socket } from "node:net"
import { attempt } from "../../config/Attempt.ts"
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
const MAX_KNOWN = 1_000

const unknown = (why: string): Peer => ({ _tag: "Unknown", why })

/** The inode of our end. */
const inodeOf = (socket: Socket): string | undefined => {
  const { fd } = (socket as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle ?? {}
  if (fd === undefined || fd < 0) return undefined
  return attempt(() => /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/self/fd/${fd}`))?.[1])
}

/** Sockets with their processes, a line each; undefined where that failed. */
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
 * The processes that hold the end whose peer has this inode. A line may be made to name it that is another's: it
 * adds processes, and takes none away.
 */
export const holdersIn = (lines: string, inode: string): ReadonlyArray<number> => {
  const named = `* ${inode} `
  return lines
    .split("\n")
    .filter((line) => `${line} `.includes(named))
    .flatMap(pidsIn)
}

const pidsIn = (line: string): ReadonlyArray<number> => [...line.matchAll(/pid=(\d+)/g)].map(([, pid]) => Number(pid))

/** A process as it was found: the run whose mark it, or one above it, bears. */
interface Known {
  readonly start: number
  readonly runId: string | undefined
}

const runOf = (env: ReadonlyArray<string>, store: string): string | undefined => {
  const runId = env.find((entry) => entry.startsWith("AGENTD_RUN="))?.slice("AGENTD_RUN=".length)
  // what a run starts has a mark of its own, after a plus
  return runId !== undefined && env.includes(`AGENTD_STORE=${store}`) ? runId.split("+")[0]! : undefined
}

/** The peers of one store's daemon. */
export interface Peers {
  readonly search: (socket: Socket) => Effect.Effect<Peer>
  /** Looks at the process that a caller says it is, without a search: a few files of /proc. */
  readonly believe: (pid: number) => Effect.Effect<Peer>
}

/** `environment`: that a process was started with. */
export const make = (store: string, environment = ProcessTable.environment): Peers => {
  const known = new Map<number, Known>()

  const remember = (pid: number, one: Known): void => {
    known.delete(pid)
    known.set(pid, one)
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value!)
  }

  /** The run's mark that the process, or one above it, up to the daemon's own or the machine's first, was started with. */
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
    if (line.length === 0) return unknown("it ended while it was looked at")
    const environments = yield* Effect.forEach(line, (one) => environment(one.pid), { concurrency: "unbounded" })
    // from above: the mark of the nearest counts
    for (const [index, { pid, start }] of [...line.entries()].toReversed()) {
      runId = runOf(environments[index]!, store) ?? runId
      // what ends, or begins another program, has none for a moment
      if (index > 0 || environments[index]!.length > 0) remember(pid, { start, runId })
    }
    return runId === undefined ? { _tag: "Person" } : { _tag: "Run", runId }
  })

  /** Processes that hold the other end; in words: why nobody is found. */
  const holdersOf = Effect.fnUntraced(function* (socket: Socket, program: string) {
    const inode = inodeOf(socket)
    if (inode === undefined) return "its connection is over"
    const lines = yield* listed(program, ["-xpnH", "state", "connected"])
    if (lines === undefined) return `${program} did not tell`
    const holders = holdersIn(lines, inode)
    return holders.length === 0 ? "no process of this user holds the other end" : holders
  })

  /** On a port who comes in is known by a token or a proof: one whose process is not found (a relay's, another user's) is that. */
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
