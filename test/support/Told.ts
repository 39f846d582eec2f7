/**
 * Told: agents that do what their input tells them: `do: [steps]` is for whoever reads
 * it, `do NAME: [steps]` for one of them. The fakes of Claude Code and ACP and the model's
 * server (ModelCast) all play these steps, so that one script runs on each backend, and a
 * message that is offered again is played again.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { createInterface } from "node:readline"

export type Step =
  | { readonly say: string }
  /** A command, once a person or the policy allows it. */
  | { readonly ask: string }
  /** A command without a question. */
  | { readonly run: string }
  /** A command that goes on until the turn is interrupted. */
  | { readonly stuck: true }
  /** Works on without a word until the turn is interrupted. */
  | { readonly hold: true }
  /** ms */
  | { readonly sleep: number }
  /** Has a command in the background until there is a file of that name; does the steps in a turn of its own then. */
  | { readonly later: readonly [file: string, ...steps: ReadonlyArray<Step>] }
  /** Works on until there is a file of that name. */
  | { readonly until: string }
  /** A tool of the server `agentd`, and its arguments. */
  | { readonly mcp: readonly [string, object] }
  /** A tool of that name, and its input: of a model, or one of Claude Code's that asks. */
  | { readonly tool: readonly [string, object] }
  /** A request of the Agent Client Protocol's, and its parameters. */
  | { readonly acp: readonly [string, object] }
  | { readonly tokens: number }
  /** A request to its model that takes so many tokens, told at once; not by a model. */
  | { readonly request: number }
  /** To its own process. */
  | { readonly signal: NodeJS.Signals }
  | { readonly noise: ReadonlyArray<string> }
  /** Ends the turn so, with what was said until then: a refusal, or an answer that is cut off. */
  | { readonly end: "refusal" | "max_tokens" }

export const told = (...steps: ReadonlyArray<Step>): string => `do: ${JSON.stringify(steps)}`

/** In a channel: only this agent is meant. */
export const toldTo = (agent: string, ...steps: ReadonlyArray<Step>): string => `do ${agent}: ${JSON.stringify(steps)}`

/** Until there is such a file. */
export const appeared = (path: string): Promise<void> =>
  new Promise((resolve) => {
    const look = () => (existsSync(path) ? resolve() : void setTimeout(look, 20))
    look()
  })

const isTrouble = (step: Step): boolean => "stuck" in step || "hold" in step || "signal" in step || "tokens" in step

/**
 * The steps that an input asks of this agent; in a channel its posts are quoted. Work that is taken up
 * again goes well: its prompt says that it ended early.
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

/** The last answer, from what was said; in a channel it gives the floor away. */
export const answerOf = (input: string, said: ReadonlyArray<string>): string => {
  const isFloor = /^(You have the floor in the channel|In the channel .*, where you have the floor,)/m.test(input)
  const all = isFloor ? [...said, "TURN_COMPLETE"] : said
  return all.length === 0 ? "done" : all.join("\n")
}

export interface Server {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

/** A client of one MCP server, as the fakes have it. */
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

  /** The tool's answer, a refusal included. */
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
