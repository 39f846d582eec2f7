/** BoardTerminal: a terminal of its own for a program, which `script` of util-linux makes. */
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { PATIENCE } from "./Patience.ts"
import { TerminalGrid } from "./TerminalGrid.ts"

export const hasPty = spawnSync("script", ["--version"]).status === 0

/** Runs a command line in a terminal until the scope closes. */
export const terminal = (line: string, environment: { readonly [name: string]: string } = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const env = {
        PATH: process.env["PATH"] ?? "",
        HOME: "/nonexistent",
        LANG: "C.UTF-8",
        TERM: "xterm-256color",
        ...environment
      }
      const child = spawn("script", ["-qec", `stty cols 120 rows 30; ${line}`, "/dev/null"], {
        stdio: ["pipe", "pipe", "ignore"],
        env
      })
      let out = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
      const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
      const grid = new TerminalGrid(120, 30)
      child.stdout.on("data", (text: string) => grid.take(text))
      return {
        grid,
        press: (keys: string) => Effect.sync(() => void child.stdin.write(keys)),
        shows: see,
        ended: Effect.promise(() => ended),
        kill: () => child.kill("SIGKILL"),
        all: () => out
      }
      function see(text: string | RegExp): Effect.Effect<void> {
        const has = (line: string) => (typeof text === "string" ? line.includes(text) : text.test(line))
        const deadline = Date.now() + PATIENCE
        const look: Effect.Effect<void> = Effect.suspend(() => {
          if (grid.lines.some(has)) return Effect.void
          if (Date.now() > deadline) throw new Error(`never on the screen: ${text}\n${grid.lines.join("\n")}`)
          return Effect.andThen(Effect.sleep(20), look)
        })
        return look
      }
    }),
    ({ kill }) => Effect.sync(kill)
  )
