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
import { homedir, userInfo } from "node:os"
import { join } from "node:path"
import { type Ask, type Call, doesOutside, linesOf } from "../cli/parse/DeclaredVerb.ts"
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
import { introduction } from "../api/rpc/Version.ts"

const WHOLE = "./agentd.mjs"
/**
 * Imports a file next to this one. The entry file provides this function, because `import` is not available in
 * precompiled scripts.
 */
declare const load: (file: string) => Promise<unknown>

/** Node modules, loaded when needed, so that a verb that the whole program runs does not wait for them. */
const net = () => process.getBuiltinModule("node:net")
const tty = () => process.getBuiltinModule("node:tty")

/**
 * Silence in ms after which the client pings the daemon, and after which it gives up. The whole program uses the same
 * times.
 */
const PING = 5_000
const SILENCE = 20_000

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

/** Frames in the format of `layerNdjson` in effect/rpc: one JSON value per line. */
type Frame =
  | { readonly _tag: "Chunk"; readonly requestId: string; readonly values: ReadonlyArray<unknown> }
  | {
      readonly _tag: "Exit"
      readonly requestId: string
      readonly exit:
        | { readonly _tag: "Success"; readonly value: unknown }
        | { readonly _tag: "Failure"; readonly cause: unknown }
    }
  | { readonly _tag: "Pong" }
  | { readonly _tag: "Defect"; readonly defect: unknown }

type Outcome =
  | { readonly _tag: "Answered"; readonly replies: ReadonlyArray<unknown> }
  /** The daemon refused the call. `error`: the reason and the remedy. */
  | { readonly _tag: "Refused"; readonly error: unknown }
  /** The daemon failed unexpectedly. `error`: the defect. */
  | { readonly _tag: "Broken"; readonly error: unknown }
  /** The call was not sent, because the daemon could not be reached. */
  | { readonly _tag: "Unsent" }
  /** No answer arrived, so the command might have been carried out. */
  | { readonly _tag: "Lost" }

/** The outcome for a failed call: the failure in its cause, otherwise the defect, otherwise an interruption. */
const outcomeOf = (cause: unknown): Outcome => {
  const reasons = Array.isArray(cause)
    ? (cause as ReadonlyArray<{ readonly _tag: string; readonly error?: unknown; readonly defect?: unknown }>)
    : []
  const failed = reasons.find(({ _tag }) => _tag === "Fail")
  if (failed !== undefined) return { _tag: "Refused", error: failed.error }
  const broken = reasons.find(({ _tag }) => _tag === "Die")
  return broken === undefined ? { _tag: "Lost" } : { _tag: "Broken", error: broken.defect }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/**
 * The daemon's reply that it does not support this client, or that no daemon can be started. Another attempt would get
 * the same reply.
 */
const refusalIn = (frame: Frame): Outcome | undefined => {
  if (frame._tag !== "Exit" || frame.exit._tag === "Success") return undefined
  const refused = outcomeOf(frame.exit.cause)
  if (refused._tag !== "Refused" || !isObject(refused.error)) return undefined
  return { _tag: "Refused", error: { ...refused.error, _tag: "DaemonUnreachable" } }
}

const line = (frame: unknown): string => `${JSON.stringify(frame)}\n`

const request = (id: number, { payload, tag }: Pick<Call, "payload" | "tag">): string =>
  line({ _tag: "Request", id: String(id), tag, payload, headers: [] })

interface Limited extends Ask<unknown> {
  /** Silence in ms after which the client gives up; undefined: the same limit as in the whole program. */
  readonly limit: number | undefined
}

/**
 * Sends all calls in one write. Calls that only read are sent together with the introduction; other calls are sent
 * after the daemon has answered the introduction. `done` is called once.
 */
const ask = (socket: string, { calls, limit, repeatable }: Limited, done: (outcome: Outcome) => void): void => {
  const replies: Array<unknown> = calls.map(({ stream }) => (stream ? [] : undefined))
  const introduced = String(calls.length)
  const connection = net().connect(socket)
  let [open, silent, greeted, sent, rest] = [calls.length + 1, 0, false, false, ""]
  const end = (outcome: Outcome): false => {
    connection.removeAllListeners("close").removeAllListeners("data").destroy()
    done(outcome)
    return false
  }
  const send = (): string => {
    sent = true
    return calls.map((call, id) => request(id, call)).join("")
  }
  const lost = (): false => end(sent ? { _tag: "Lost" } : { _tag: "Unsent" })
  const take = (frame: Frame): boolean => {
    if (frame._tag === "Pong") return true
    const isGreeting = frame._tag === "Exit" && frame.requestId === introduced
    const hasFailed = frame._tag === "Exit" ? frame.exit._tag !== "Success" : frame._tag === "Defect"
    const refused = isGreeting ? refusalIn(frame) : undefined
    if (refused !== undefined) return end(refused)
    // the daemon is too old to know the introduction: the whole program explains this
    if ((isGreeting || !greeted) && hasFailed) {
      return end({ _tag: "Unsent" })
    }
    if (isGreeting) greeted = true
    if (!sent) connection.write(send())
    if (frame._tag === "Chunk") {
      const values = replies[Number(frame.requestId)] as Array<unknown>
      for (const value of frame.values) values.push(value)
      connection.write(line({ _tag: "Ack", requestId: frame.requestId }))
      return true
    }
    if (frame._tag !== "Exit") {
      return end(frame._tag === "Defect" ? { _tag: "Broken", error: frame.defect } : { _tag: "Lost" })
    }
    if (frame.exit._tag !== "Success") {
      return end(outcomeOf(frame.exit.cause))
    }
    const at = Number(frame.requestId)
    if (calls[at]?.stream === false) replies[at] = frame.exit.value
    if (--open > 0) return true
    return end({ _tag: "Answered", replies })
  }
  connection.setEncoding("utf8").setTimeout(limit ?? PING, () => {
    silent += PING
    if (limit !== undefined || silent >= SILENCE || !greeted) return lost()
    connection.write(line({ _tag: "Ping" }))
  })
  connection.on("error", () => {})
  connection.on("close", lost)
  connection.on("connect", () => {
    const hello = request(calls.length, { tag: "Hello", payload: introduction() })
    connection.write(repeatable ? hello + send() : hello)
  })
  connection.on("data", (text: string) => {
    silent = 0
    const lines = (rest + text).split("\n")
    rest = lines.pop()!
    try {
      for (const one of lines) if (!take(JSON.parse(one) as Frame)) return
    } catch {
      lost()
    }
  })
}

/** The command-line arguments, with old command names replaced by the current ones. */
const called = present(process.argv.slice(2))

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

const quick = (given: Line): void => {
  if (env["TZ"] !== undefined) settle(env)
  const { input, json, state, verb } = given
  const places = placesOf(
    {
      home: variable("HOME") ?? homedir(),
      stateHome: variable("XDG_STATE_HOME"),
      runtime: variable("XDG_RUNTIME_DIR")
    },
    state
  )
  const caller = { by: userInfo().username, config: configsFrom(".").find((file) => existsSync(file)) ?? null }
  if (verb.wrong?.(input as never, caller) !== undefined) return whole()
  if (doesOutside(verb.several, input, caller) !== undefined) return whole()
  const world = worldOf(places)
  const asked: Ask<unknown> = verb.rpc(input as never, caller, { now: Date.now() })
  const { repeatable, value } = asked
  ask(places.socket, { ...asked, limit: verb.fleeting }, (outcome) => {
    if (verb.fleeting !== undefined && outcome._tag !== "Answered") process.exit(0)
    if (outcome._tag === "Refused") return fail(outcome.error, given, world)
    if (outcome._tag === "Unsent" || (repeatable && outcome._tag !== "Answered")) return whole()
    if (outcome._tag === "Broken") return fail(outcome.error, given, world)
    if (outcome._tag === "Lost") {
      return fail({ _tag: "DaemonUnreachable", ...lostAnswer(places.socket) }, given, world)
    }
    const onTerminal = tty().isatty(1)
    const columns = onTerminal && !json ? (process.stdout.columns ?? 0) : null
    const isAscii = onTerminal && isAsciiOnly(variable)
    const look = { now: Date.now(), colour: coloured(onTerminal) && !json, columns, world }
    let text: string
    try {
      text = linesOf(verb, value(outcome.replies), look, json)
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
const given = WHOLLY.every((name) => variable(name) === undefined) ? parse(called.args, declared) : undefined
if (given === undefined) whole()
else quick(given)
