/**
 * Told: test agents that do what their input says. A line `do: [steps]` is for every agent that reads it, `do NAME:
 * [steps]` for one of them. The fakes of Claude Code and ACP and the model's server (ModelCast) all run these steps. So
 * one script runs on each backend, and a message that is delivered again is run again.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { createInterface } from "node:readline"

export type Step =
  | { readonly say: string }
  /** Runs a command once a person or the policy allows it. */
  | { readonly ask: string }
  /** Runs a command without asking. */
  | { readonly run: string }
  /** Runs a command that continues until the turn is interrupted. */
  | { readonly stuck: true }
  /** Continues without output until the turn is interrupted. */
  | { readonly hold: true }
  /** Pauses, in ms. */
  | { readonly sleep: number }
  /** Runs a background command until the file exists, and then does the steps in a new turn. */
  | { readonly later: readonly [file: string, ...steps: ReadonlyArray<Step>] }
  /** Continues until the file exists. */
  | { readonly until: string }
  /** Calls a tool of the MCP server `agentd`, with these arguments. */
  | { readonly mcp: readonly [string, object] }
  /** Calls a tool with this input: a tool of a model, or one of Claude Code's that asks. */
  | { readonly tool: readonly [string, object] }
  /** Sends a request of the Agent Client Protocol, with these parameters. */
  | { readonly acp: readonly [string, object] }
  | { readonly tokens: number }
  /** Reports at once a model request that used this many tokens; not supported by the model backend. */
  | { readonly request: number }
  /** Sends a signal to its own process. */
  | { readonly signal: NodeJS.Signals }
  /** Ends its own process with this exit code; not supported by the model backend. */
  | { readonly exit: number }
  /** Ends its own process with exit code 0 after this time, ms, in a turn or not; not supported by the model backend. */
  | { readonly leave: number }
  | { readonly noise: ReadonlyArray<string> }
  /** Ends the turn with the output so far, as a refusal or as an answer that is cut off. */
  | { readonly end: "refusal" | "max_tokens" }

export const told = (...steps: ReadonlyArray<Step>): string => `do: ${JSON.stringify(steps)}`

/** Steps for one agent of a channel. */
export const toldTo = (agent: string, ...steps: ReadonlyArray<Step>): string => `do ${agent}: ${JSON.stringify(steps)}`

/** Waits until the file exists. */
export const appeared = (path: string): Promise<void> =>
  new Promise((resolve) => {
    const look = () => (existsSync(path) ? resolve() : void setTimeout(look, 20))
    look()
  })

const isTrouble = (step: Step): boolean =>
  "stuck" in step || "hold" in step || "signal" in step || "exit" in step || "tokens" in step

/**
 * The steps in an input for this agent; in a channel, posts are quoted. If the prompt says that the last run or turn
 * ended early, the steps that cause trouble are omitted, so that the retry succeeds.
 */
export const stepsIn = (input: string, agent: string | undefined): ReadonlyArray<Step> => {
  const isAgain = /^Your last (run|turn) ended early/m.test(input)
  return input.split("\n").flatMap((line): ReadonlyArray<Step> => {
    const [, name, written] = /^(?:> )?do(?: ([\w.-]+))?: (\[.*\])$/.exec(line) ?? []
    if (written === undefined || (name !== undefined && name !== agent)) return []
    const steps: ReadonlyArray<Step> = JSON.parse(written)
    return isAgain ? steps.filter((step) => !isTrouble(step)) : steps
  })
}

/**
 * The text of the last answer. In a channel it also releases the floor, unless it says itself what follows: `WAIT: …`,
 * or `…` to keep the floor.
 */
export const answerOf = (input: string, said: ReadonlyArray<string>): string => {
  const isFloor = /^(You have the floor in the channel|In the channel .*, where you have the floor,)/m.test(input)
  const all = isFloor && !/^WAIT: |…$/.test(said.at(-1) ?? "") ? [...said, "TURN_COMPLETE"] : said
  return all.length === 0 ? "done" : all.join("\n")
}

export interface Server {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

/** A client of one MCP server, for the fakes. */
export class Voice {
  private readonly child: ChildProcess
  private readonly waiting = new Map<number, (answer: { result?: Called; error?: { message: string } }) => void>()
  private last = 0

  constructor({ args, command, env }: Server) {
    this.child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] })
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      const answer = JSON.parse(line)
      this.waiting.get(answer.id)?.(answer)
    })
  }

  private request(method: string, params: object): Promise<{ result?: Called; error?: { message: string } }> {
    const id = ++this.last
    this.child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    return new Promise((resolve) => this.waiting.set(id, resolve))
  }

  /** Calls a tool; returns its answer, or the error's message. */
  async call(name: string, input: object): Promise<string> {
    if (this.last === 0) {
      const clientInfo = { name: "fake", version: "1" }
      await this.request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo })
      this.child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`)
    }
    const { error, result } = await this.request("tools/call", { name, arguments: input })
    return error?.message ?? (result?.content ?? []).map(({ text = "" }) => text).join("\n")
  }

  end(): void {
    this.child.stdin!.end()
  }
}

interface Called {
  readonly content?: ReadonlyArray<{ readonly text?: string }>
}
