/**
 * Activation: the sockets on which systemd listens in the daemon's place, and which it hands over when it starts the
 * daemon (sd_listen_fds(3)).
 *
 * Guarantees: only what was meant for this very process counts; a socket is known by its name, and taken for what it
 * is bound to, not for what somebody says.
 */
import { readFileSync, readlinkSync } from "node:fs"

export type Environment = { readonly [name: string]: string | undefined }

/** The variables that tell of them: nobody whom the daemon starts is to believe them. */
export const VARIABLES = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"] as const

/** As the unit of the control socket calls it. */
export const CONTROL = "control"

const FIRST = 3

/** Pure. The descriptors by their names; none where they are another process's. */
export const handed = (environment: Environment, pid: number): ReadonlyMap<string, number> => {
  const { LISTEN_FDNAMES = "", LISTEN_FDS = "0", LISTEN_PID } = environment
  if (LISTEN_PID !== `${pid}` || !/^\d{1,3}$/.test(LISTEN_FDS)) return new Map()
  const names = LISTEN_FDNAMES.split(":")
  return new Map(Array.from({ length: Number(LISTEN_FDS) }, (_, at) => [names[at] || `unknown-${at}`, FIRST + at]))
}

/** Pure. The path that a socket is bound to, by the kernel's table of unix sockets. */
export const boundTo = (inode: string, table: string): string | undefined =>
  table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[6] === inode)
    ?.slice(7)
    .join(" ")

/** The path that the descriptor's socket is bound to; undefined where that cannot be seen. */
export const pathOf = (descriptor: number): string | undefined => {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1]
    return inode === undefined ? undefined : boundTo(inode, readFileSync("/proc/self/net/unix", "utf8"))
  } catch {
    return undefined
  }
}
