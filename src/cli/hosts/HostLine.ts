/**
 * HostLine: finds the host that a command line names, with `--host` or before an agent's name (`cellar:shop/builder`),
 * and decides how the verb runs on that host. Pure.
 *
 * Guarantees: the rest of the program sees the command line as it would be typed on the host itself.
 */
import { isAbsolute } from "node:path"
import { isFar, isName, parse, type SavedHost } from "../../config/Host.ts"

export interface HostLine {
  /** The command line without the host. */
  readonly args: ReadonlyArray<string>
  /** The host as it was typed: a saved name, or an address. Undefined: this machine. */
  readonly host: string | undefined
  /** True for this machine and all saved hosts. */
  readonly all: boolean
}

export interface Refused {
  readonly message: string
  readonly remedy: string
}

/** An agent, a goal or a call of a saved host: `cellar:shop/builder`, `cellar:01k9abcd`. */
const NAMED = /^([a-z0-9][a-z0-9-]{0,31}):([\w.*?#-]+\/[\w.*?#/-]+|01[0-9a-z]{6,24})$/

/** Position of the first word that is no global flag: the verb. */
const verbAt = (args: ReadonlyArray<string>): number => {
  const at = args.findIndex((arg, n) => !arg.startsWith("-") && !/^--(state|host)$/.test(args[n - 1] ?? ""))
  return at < 0 ? args.length : at
}

/** The arguments of agentd itself: not those of a program that it runs, and nothing after `--`. */
const ownOf = (args: ReadonlyArray<string>): number => {
  const verb = verbAt(args)
  const end = args.indexOf("--")
  const all = end < 0 ? args.length : end
  return args[verb] === "run" ? Math.min(verb, all) : all
}

/** True if the command line could name a host, so that the saved hosts must be read. */
export const mayBeFar = (args: ReadonlyArray<string>): boolean =>
  args.some((arg) => /^--(host(=|$)|all-hosts$)/.test(arg) || NAMED.test(arg))

export const split = (
  args: ReadonlyArray<string>,
  hosts: ReadonlyMap<string, SavedHost> = new Map()
): HostLine | Refused => {
  const own = ownOf(args)
  const found: Array<string> = []
  const rest: Array<string> = []
  let all = false
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!
    const [, name = "", thing = ""] = NAMED.exec(arg) ?? []
    if (at < own && arg === "--host") {
      const host = args[++at]
      if (host === undefined || at >= own)
        return { message: "--host needs a host.", remedy: "Give a saved name or an address: agentd host ls" }
      found.push(host)
    } else if (at < own && arg === "--all-hosts") all = true
    else if (at < own && arg.startsWith("--host=")) found.push(arg.slice("--host=".length))
    else if (at < own && hosts.has(name)) {
      found.push(name)
      rest.push(thing)
    } else rest.push(arg)
  }
  const [host, ...others] = new Set(found)
  if (host !== undefined && all)
    return { message: "--host and --all-hosts cannot be used together.", remedy: "Use one of them." }
  if (others.length > 0)
    return {
      message: `The command names several hosts: ${[...new Set(found)].join(", ")}.`,
      remedy: "Type one command for each host."
    }
  if (host !== undefined && rest.slice(0, own).some((arg) => /^--state(=|$)/.test(arg)))
    return {
      message: "--host and --state cannot be used together.",
      remedy: "Put the state directory of the host into its address: --host ssh://user@machine/STATE-DIRECTORY"
    }
  return { args: rest, host, all }
}

/** The address of a host as it was typed. `file`: path of the file with the saved hosts. */
export const addressOf = (host: string, hosts: ReadonlyMap<string, SavedHost>): string | Refused => {
  const url = isFar(host) ? host : hosts.get(host)?.url
  if (url === undefined)
    return {
      message: isName(host) ? `There is no host "${host}".` : `${JSON.stringify(host)} cannot be a host.`,
      remedy: isName(host)
        ? `Add it: agentd host add ${host} ssh://user@machine. List the hosts: agentd host ls`
        : "Give a saved name (agentd host ls), or an address: ssh://user@machine"
    }
  const problem = parse(url)
  return typeof problem === "string"
    ? { message: `The address of --host cannot be used: ${problem}.`, remedy: "See: agentd host --help" }
    : url
}

/** Verbs that read or write files, start programs or ask in a terminal: the agentd of the host runs them. */
const THERE: ReadonlySet<string> = new Set([
  "approvals",
  "backup",
  "conformance",
  "demo",
  "doctor",
  "focus",
  "gc",
  "goal merge",
  "hook",
  "hooks",
  "project rename",
  "project restart",
  "repair",
  "restore",
  "run",
  "service",
  "uninstall",
  "verify"
])

/** Verbs that act on the daemon if they name no agent. */
const LIVES: ReadonlySet<string> = new Set(["start", "stop", "restart"])

/** Verbs that have no meaning on another host, each with its reason and what to do. */
const HERE: { readonly [verb: string]: readonly [reason: string, remedy: string] } = {
  completions: ["it is for the shell of this machine", "Use it without --host."],
  docs: ["the documents are those of the installed program", "Use it without --host."],
  host: ["it lists the hosts that this machine knows", "Use it without --host."],
  init: ["it writes into the folder in which it runs", "Log in on the host, and run it in the project's folder: ssh"],
  login: ["the browser of the login must reach the same machine", "Log in on the host, and run it there: ssh"],
  logout: ["the login is on the other machine", "Log in on the host, and run it there: ssh"],
  mcp: ["it is the connection of an agent to the daemon of its own machine", "Use it without --host."],
  open: ["the page is only served to the machine of the daemon", "Open the page of this machine: agentd open"],
  "project new": [
    "it starts the project of the folder in which it runs",
    "Log in on the host, and run it in the project's folder: ssh"
  ],
  schema: ["the schema is that of the installed program", "Use it without --host."],
  up: ["the daemon would end with the connection", "Start it in the background: agentd start"]
}

/** How a verb runs on a host: by calls over the connection, as a program there, or not at all. */
export type Way = "calls" | "there" | Refused

/** The options of the verb that name a file which the daemon reads. */
const FILES = /^--plan(=|$)/

export const wayOf = (args: ReadonlyArray<string>, host: string): Way => {
  const at = verbAt(args)
  const verb = args[at] ?? ""
  const words = [verb, `${verb} ${args[at + 1] ?? ""}`]
  const refused = words.map((name) => HERE[name]).find((one) => one !== undefined)
  if (refused !== undefined) {
    const [reason, remedy] = refused
    return { message: `agentd ${verb} does not run on ${host}: ${reason}.`, remedy }
  }
  const rest = args.slice(at + 1)
  if (LIVES.has(verb) && rest.every((arg) => arg.startsWith("-") && !/^(-l|--label)/.test(arg))) return "there"
  if (words.some((name) => THERE.has(name))) return "there"
  const plan = rest.findIndex((arg) => FILES.test(arg))
  const file =
    words[1] === "goal plan" ? rest.at(-1) : plan < 0 ? undefined : (rest[plan]!.split("=")[1] ?? rest[plan + 1])
  if (file !== undefined && !isAbsolute(file))
    return {
      message: `The plan ${file} must be a file on ${host}, because the daemon there reads it.`,
      remedy: "Copy it there, and give its absolute path."
    }
  return "calls"
}
