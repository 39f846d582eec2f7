/**
 * main: the first module of `agentd model-agent`, the model agent as a program that speaks the Agent Client Protocol on
 * its standard input and output.
 *
 * Guarantees: `initialize` is answered before anything else is loaded, so that a client soon knows that the program
 * lives. Standard output contains the protocol alone; everything else goes to standard error.
 */
import { HELLO } from "./Hello.ts"

/** Longest first line that is read here; a longer one is left to the server. */
const MAX_LINE = 65_536

/** The id of an `initialize` request; undefined if the line is none. */
const idOf = (line: string): string | number | undefined => {
  try {
    const { id, method } = JSON.parse(line) as { readonly id?: unknown; readonly method?: unknown }
    return method === "initialize" && (typeof id === "string" || typeof id === "number") ? id : undefined
  } catch {
    return undefined
  }
}

/** Reads the first line, and puts the rest back. An `initialize` is answered. Returns whether it was one. */
const greet = (): Promise<boolean> =>
  new Promise((resolve) => {
    let text = Buffer.alloc(0)
    const done = (isGreeted: boolean, rest: Buffer) => {
      process.stdin.off("data", take)
      process.stdin.off("end", end)
      process.stdin.pause()
      if (rest.length > 0) process.stdin.unshift(rest)
      resolve(isGreeted)
    }
    const end = () => done(false, text)
    const take = (chunk: Buffer) => {
      text = Buffer.concat([text, chunk])
      const at = text.indexOf(10)
      if (at < 0) return text.length > MAX_LINE ? done(false, text) : undefined
      const id = idOf(text.toString("utf8", 0, at))
      if (id === undefined) return done(false, text)
      process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: HELLO })}\n`)
      return done(true, text.subarray(at + 1))
    }
    process.stdin.on("data", take)
    process.stdin.on("end", end)
  })

const isGreeted = await greet()
const { start } = await import("./Program.ts")
start({ environment: process.env, isGreeted, hello: HELLO })
