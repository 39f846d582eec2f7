/**
 * Host: another machine on which this user runs agentd, and its address `ssh://[user@]machine[:port][/STATE]`. Pure.
 *
 * Guarantees: no part of an address can be read as an option or as several words by `ssh` or by a shell.
 */
import { join } from "node:path"
import { attempt } from "./Attempt.ts"

export interface Host {
  /** `machine`, or `user@machine`. */
  readonly target: string
  readonly port: number | undefined
  /** Absolute path of the state directory there; undefined: the default one. */
  readonly state: string | undefined
}

/** A saved host: its address, and the socket of the ssh-agent that the daemon may use for it. */
export interface SavedHost {
  readonly url: string
  readonly agent?: string
}

export const SCHEME = "ssh://"

/** True if the address of a daemon is that of another machine, not the path of a socket. */
export const isFar = (address: string): boolean => address.startsWith(SCHEME)

const ADDRESS =
  /^ssh:\/\/((?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?)([A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(\/[A-Za-z0-9_./@+-]*)?$/

const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/

export const isName = (name: string): boolean => NAME.test(name)

/** Parses an address. The result is the problem if it is not valid. */
export const parse = (url: string): Host | string => {
  const found = ADDRESS.exec(url)
  if (found === null) {
    return url.slice(SCHEME.length).split("@", 1)[0]?.includes(":") === true && url.includes("@")
      ? "the address contains a password; ssh must find your key without one"
      : "the address must have the form ssh://user@machine, ssh://machine:port or ssh://machine/STATE-DIRECTORY"
  }
  const [, user = "", machine = "", port, folder = ""] = found
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return "the port must be from 1 to 65535"
  const state = folder.endsWith("/") ? folder.slice(0, -1) : folder
  return {
    target: user + machine.replace(/^\[(.*)\]$/, "$1"),
    port: port === undefined ? undefined : Number(port),
    state: state === "" ? undefined : state
  }
}

/** Path of the file with the saved hosts, in the folder of the user's own config. */
export const fileOf = (configHome: string | undefined, home: string): string =>
  join(configHome ?? join(home, ".config"), "agentd", "hosts.json")

/** The saved hosts in the file's text; the problem if the text is not valid. */
export const parseFile = (text: string): ReadonlyMap<string, SavedHost> | string => {
  const all: unknown = attempt(() => JSON.parse(text) as unknown)
  if (typeof all !== "object" || all === null || Array.isArray(all)) return "it is not a JSON object of hosts by name"
  for (const [name, host] of Object.entries(all)) {
    if (!isName(name)) return `"${name}" cannot be a host's name: use lower-case letters, digits and hyphens`
    const { agent, url } = (typeof host === "object" && host !== null ? host : {}) as { [field: string]: unknown }
    const problem = typeof url === "string" ? parse(url) : "it has no url"
    if (typeof problem === "string") return `"${name}": ${problem}`
    if (agent !== undefined && (typeof agent !== "string" || !agent.startsWith("/")))
      return `"${name}": agent must be the absolute path of an ssh-agent's socket`
  }
  return new Map(Object.entries(all as { [name: string]: SavedHost }))
}
