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
/** As the unit of the page's port calls its sockets. */
export const PAGE = "page"

const FIRST = 3

export type Handed = ReadonlyMap<string, ReadonlyArray<number>>

/** Pure. The descriptors by their names, of which several may have one; none where they are another process's. */
export const handed = (environment: Environment, pid: number): Handed => {
  const { LISTEN_FDNAMES = "", LISTEN_FDS = "0", LISTEN_PID } = environment
  if (LISTEN_PID !== `${pid}` || !/^\d{1,3}$/.test(LISTEN_FDS)) return new Map()
  const names = LISTEN_FDNAMES.split(":")
  const descriptors = Array.from({ length: Number(LISTEN_FDS) }, (_, at) => FIRST + at)
  return Map.groupBy(descriptors, (descriptor) => names[descriptor - FIRST] || `unknown-${descriptor - FIRST}`)
}

/** Pure. The path that a socket is bound to, by the kernel's table of unix sockets. */
export const boundTo = (inode: string, table: string): string | undefined =>
  table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[6] === inode)
    ?.slice(7)
    .join(" ")

/** Pure. The port that a socket is bound to, by one of the kernel's tables of TCP sockets. */
export const portIn = (inode: string, table: string): number | undefined => {
  const row = table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[9] === inode)
  const hex = row?.[1]?.split(":").at(-1)
  return hex === undefined ? undefined : Number.parseInt(hex, 16)
}

/** Answer of `look` for the descriptor's socket in a table of the kernel's; undefined where that cannot be seen. */
const seen = <A>(descriptor: number, table: string, look: (inode: string, table: string) => A): A | undefined => {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1]
    return inode === undefined ? undefined : look(inode, readFileSync(`/proc/self/net/${table}`, "utf8"))
  } catch {
    return undefined
  }
}

/** The path that the descriptor's socket is bound to. */
export const pathOf = (descriptor: number): string | undefined => seen(descriptor, "unix", boundTo)

/** The loopback address and the port that the descriptor's socket is bound to. */
export const portOf = (descriptor: number): { readonly host: string; readonly port: number } | undefined => {
  const [four, six] = [seen(descriptor, "tcp", portIn), seen(descriptor, "tcp6", portIn)]
  if (four !== undefined) return { host: "127.0.0.1", port: four }
  return six === undefined ? undefined : { host: "::1", port: six }
}
