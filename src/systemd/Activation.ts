/**
 * Activation: finds the sockets on which systemd listens for the daemon and which systemd passes to the daemon at its
 * start (sd_listen_fds(3)).
 *
 * Guarantees: only sockets that were passed to this process are used. A socket is found by its name, but its path or
 * port is read from the kernel.
 */
import { readFileSync, readlinkSync } from "node:fs"

export type Environment = { readonly [name: string]: string | undefined }

/** The variables that describe the sockets. They must be hidden from programs that the daemon starts. */
export const VARIABLES = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"] as const

/** Name of the control socket in its systemd unit. */
export const CONTROL = "control"
/** Name of the web page's sockets in their systemd unit. */
export const PAGE = "page"

const FIRST = 3

export type Handed = ReadonlyMap<string, ReadonlyArray<number>>

/**
 * The passed descriptors by name; several descriptors can have the same name. Empty if they were passed to another
 * process. Pure.
 */
export const handed = (environment: Environment, pid: number): Handed => {
  const { LISTEN_FDNAMES = "", LISTEN_FDS = "0", LISTEN_PID } = environment
  if (LISTEN_PID !== `${pid}` || !/^\d{1,3}$/.test(LISTEN_FDS)) return new Map()
  const names = LISTEN_FDNAMES.split(":")
  const descriptors = Array.from({ length: Number(LISTEN_FDS) }, (_, at) => FIRST + at)
  return Map.groupBy(descriptors, (descriptor) => names[descriptor - FIRST] || `unknown-${descriptor - FIRST}`)
}

/** The path to which a socket is bound, from the kernel's table of unix sockets. Pure. */
export const boundTo = (inode: string, table: string): string | undefined =>
  table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[6] === inode)
    ?.slice(7)
    .join(" ")

/** The port to which a socket is bound, from one of the kernel's tables of TCP sockets. Pure. */
export const portIn = (inode: string, table: string): number | undefined => {
  const row = table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[9] === inode)
  const hex = row?.[1]?.split(":").at(-1)
  return hex === undefined ? undefined : Number.parseInt(hex, 16)
}

/**
 * Applies `look` to the inode of the descriptor's socket and to the named kernel table; undefined if either cannot be
 * read.
 */
const seen = <A>(descriptor: number, table: string, look: (inode: string, table: string) => A): A | undefined => {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1]
    return inode === undefined ? undefined : look(inode, readFileSync(`/proc/self/net/${table}`, "utf8"))
  } catch {
    return undefined
  }
}

export const pathOf = (descriptor: number): string | undefined => seen(descriptor, "unix", boundTo)

/** The loopback address and the port to which a descriptor's socket is bound. */
export const portOf = (descriptor: number): { readonly host: string; readonly port: number } | undefined => {
  const [four, six] = [seen(descriptor, "tcp", portIn), seen(descriptor, "tcp6", portIn)]
  if (four !== undefined) return { host: "127.0.0.1", port: four }
  return six === undefined ? undefined : { host: "::1", port: six }
}
