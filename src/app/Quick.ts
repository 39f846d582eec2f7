/**
 * Quick: the first module of the bundled program. It runs declared verbs over the control socket without loading
 * Effect, Schema and the command-line library. For everything else it loads the whole program in the same process.
 *
 * Guarantees: it prints exactly what the whole program would print. If it does not know an argument, cannot reach the
 * daemon, or cannot read a reply, the whole program runs instead, and the quick entry prints nothing. A refusal is
 * printed in the daemon's own words, by the same function as in the whole program. A command that might have been
 * carried out is never sent again: the quick entry prints the outcome itself.
 *
 * The bundler turns this module into a single CommonJS file, without any npm package.
 */
import { existsSync, writeSync } from "node:fs"
import * as Account from "../config/Account.ts"
import { join } from "node:path"
import { fileOf } from "../config/Host.ts"
import * as HostsFile from "../config/HostsFile.ts"
import { addressOf, mayBeFar, split, wayOf } from "../cli/hosts/HostLine.ts"
import { dial } from "./DialStdio.ts"
import { type Ask, doesOutside, linesOf } from "../cli/parse/DeclaredVerb.ts"
import { declared } from "../cli/parse/DeclaredVerbs.ts"
import { explain, told } from "../cli/render/ErrorText.ts"
import { inWorld } from "../cli/parse/HintCommand.ts"
import { settle } from "../cli/render/OwnZone.ts"
import { configsFrom, placesOf, worldOf } from "../config/Places.ts"
import { ascii, isAsciiOnly } from "../cli/render/Ascii.ts"
import { type Line, parse } from "../cli/parse/QuickArgs.ts"
import { present } from "../cli/parse/Renamed.ts"
import { through } from "../cli/render/TerminalDoor.ts"
import { lostAnswer } from "../api/rpc/ConnectionLost.ts"
import { ask } from "../api/rpc/Wire.ts"

const WHOLE = "./agentd.mjs"
/**
 * Imports a file next to this one. The entry file provides this function, because `import` is not available in
 * precompiled scripts.
 */
declare const load: (file: string) => Promise<unknown>

/** A Node module, loaded when needed, so that a verb that the whole program runs does not wait for it. */
const tty = () => process.getBuiltinModule("node:tty")

const { env } = process

/** The value of an environment variable. An empty variable counts as unset. */
const variable = (name: string): string | undefined => (env[name] === "" ? undefined : env[name])

/** Runs the whole program as if it had been started directly. */
const whole = (): void => {
  process.argv[1] = join(import.meta.dirname, WHOLE)
  void load(WHOLE)
}

/** True if the output is coloured, by the rules of TerminalCapabilities in effect/cli. */
const coloured = (onTerminal: boolean): boolean => {
  const force = variable("FORCE_COLOR")
  if (env["TERM"] === "dumb" || variable("NO_COLOR") !== undefined) return false
  return onTerminal || (force !== undefined && force !== "0" && force.toLowerCase() !== "false")
}

/**
 * Writes a text completely, because a pipe with a slow reader accepts only a part at a time. If nobody reads the pipe
 * any more, writing ends without an error.
 */
const write = (file: 1 | 2, text: string): void => {
  let bytes = Buffer.from(text)
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(file, bytes))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === "EPIPE") return
      if (code !== "EAGAIN") throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

const typed = process.argv.slice(2)

const home = variable("HOME") ?? Account.home()

/** The saved hosts if the command line could name one; a file that cannot be used is reported by the whole program. */
const hosts = mayBeFar(typed) ? HostsFile.read(fileOf(variable("XDG_CONFIG_HOME"), home)) : new Map<string, never>()
const line = typeof hosts === "string" ? undefined : split(typed, hosts)

/** The command-line arguments, with old command names replaced by the current ones. */
const called = present(line !== undefined && "args" in line ? line.args : typed)

/** The daemon of a host; null for that of this machine; undefined if only the whole program can run the command. */
const farOf = (): { readonly name: string; readonly url: string } | null | undefined => {
  if (line === undefined || typeof hosts === "string" || !("args" in line)) return undefined
  const { all, host } = line
  if (all) return undefined
  if (host === undefined) return null
  if (variable("AGENTD_RUN") !== undefined || wayOf(called.args, host) !== "calls") return undefined
  const url = addressOf(host, hosts)
  return typeof url === "string" ? { name: host, url } : undefined
}

/**
 * Prints the new name of a renamed command. With `--json` nothing is printed, because a script then reads standard
 * error as JSON.
 */
const sayNewName = (): void => {
  if (called.note !== undefined && !called.args.includes("--json")) write(2, `${called.note}\n`)
}

const fail = (error: unknown, { json }: Line, world: string | null): void => {
  sayNewName()
  const explanation = explain(error)
  const text = told({ ...explanation, remedy: inWorld(explanation.remedy, world) }, json)
  write(2, `${through(text, false)}\n`)
  process.exit(explanation.exitCode)
}

const quick = (given: Line, far: { readonly name: string; readonly url: string } | null): void => {
  if (env["TZ"] !== undefined) settle(env)
  const { input, json, state, verb } = given
  const places = placesOf(
    {
      home,
      stateHome: variable("XDG_STATE_HOME"),
      runtime: variable("XDG_RUNTIME_DIR")
    },
    state
  )
  const config = far === null ? (configsFrom(".").find((file) => existsSync(file)) ?? null) : null
  const caller = { by: Account.userName(), config }
  if (verb.wrong?.(input as never, caller) !== undefined) return whole()
  if (doesOutside(verb.several, input, caller) !== undefined) return whole()
  const world = worldOf({ ...places, host: far?.name })
  const address = far?.url ?? places.socket
  const asked: Ask<unknown> = verb.rpc(input as never, caller, { now: Date.now() })
  const { calls, repeatable, value } = asked
  const streams: ReadonlyArray<Array<unknown>> = calls.map(() => [])
  const take = (call: number, values: ReadonlyArray<unknown>, more: () => void): void => {
    for (const one of values) streams[call]!.push(one)
    more()
  }
  ask(address, { calls, repeatable, limit: verb.fleeting, take }, (outcome) => {
    if (verb.fleeting !== undefined && outcome._tag !== "Answered") process.exit(0)
    if (outcome._tag === "Refused") return fail(outcome.error, given, world)
    if (outcome._tag === "Unsent" && outcome.trouble !== undefined)
      return fail({ _tag: "DaemonUnreachable", ...outcome.trouble }, given, world)
    if (outcome._tag === "Unsent" || (repeatable && outcome._tag !== "Answered")) return whole()
    if (outcome._tag === "Broken") return fail(outcome.error, given, world)
    if (outcome._tag === "Lost") {
      return fail({ _tag: "DaemonUnreachable", ...lostAnswer(address) }, given, world)
    }
    const onTerminal = tty().isatty(1)
    const columns = onTerminal && !json ? (process.stdout.columns ?? 0) : null
    const isAscii = onTerminal && isAsciiOnly(variable)
    const look = { now: Date.now(), colour: coloured(onTerminal) && !json, columns, world }
    let text: string
    try {
      const found = value(outcome.replies.map((reply, call) => (calls[call]!.stream ? streams[call] : reply)))
      const absent = verb.absent?.(found as never)
      if (absent !== undefined) return fail({ _tag: "VerbFailed", ...absent }, given, world)
      text = linesOf(verb, found, look, json)
        .map((one) => `${isAscii ? ascii(through(one, look.colour)) : through(one, look.colour)}\n`)
        .join("")
    } catch (error) {
      // the reply has the format of another version: if the call only reads, the whole program repeats the call and
      // reports the problem
      return repeatable ? whole() : fail(error, given, world)
    }
    sayNewName()
    write(1, text)
    process.exit(0)
  })
}

/** Environment variables for features of the whole program only: details of a failure, and spans for a collector. */
const WHOLLY = ["AGENTD_DEBUG", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
if (typed.at(-1) === "dial-stdio") dial(typed, env)
else {
  const far = WHOLLY.every((name) => variable(name) === undefined) ? farOf() : undefined
  const given = far === undefined ? undefined : parse(called.args, declared)
  if (far === undefined || given === undefined) whole()
  else quick(given, far)
}
