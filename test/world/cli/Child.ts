/** The command line: the real bin in a real process of its own, or, where many are asked, the same code in this one. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Console, Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { run } from "../../../src/cli/parse/Cli.ts"
import { Entry } from "../../../src/cli/parse/Invocation.ts"
import { PROGRAM } from "../../support/Program.ts"

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Options {
  /** Null: it does not end. */
  readonly input?: string | null
  readonly cwd?: string
  readonly env?: { readonly [name: string]: string }
  /** Another copy of the program. */
  readonly program?: string
}

/** A process that runs; `ended` says how it ended. It is killed with the scope if it has not. */
export const launch = (
  args: ReadonlyArray<string>,
  { cwd = "/", env = {}, input = "", program = PROGRAM }: Options = {}
) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [program, ...args], {
        cwd,
        env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...env },
        stdio: ["pipe", "pipe", "pipe"]
      })
      let [out, err] = ["", ""]
      child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text))
      child.stdin.on("error", () => {})
      if (input !== null) child.stdin.end(input)
      const closed = new Promise<Ended>((resolve) => child.on("close", (code) => resolve({ code, out, err })))
      return { child, ended: Effect.promise(() => closed), out: () => out, err: () => err }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

export const agentd = (args: ReadonlyArray<string>, options: Options = {}): Effect.Effect<Ended> =>
  Effect.scoped(Effect.flatMap(launch(args, options), ({ ended }) => ended))

const noDaemon = Layer.succeed(Entry)({
  command: [],
  env: {},
  daemon: () => Effect.die("no daemon in a test"),
  foreground: () => Effect.die("no program in a test")
})

/** In this process, without its environment. */
export const inProcess = (args: ReadonlyArray<string>, env: { readonly [name: string]: string } = {}) =>
  Effect.suspend(() => {
    let [out, err] = ["", ""]
    const console = {
      ...globalThis.console,
      log: (line: unknown) => void (out += `${String(line)}\n`),
      error: (line: unknown) => void (err += `${String(line)}\n`)
    }
    return run(args).pipe(
      Effect.provide(Layer.merge(noDaemon, NodeServices.layer)),
      Effect.provideService(Console.Console, console),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
      Effect.map((code): Ended => ({ code, out, err }))
    )
  })
