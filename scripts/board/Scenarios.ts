/**
 * Scenarios: what is played on each coding CLI to measure the board, and the answers of the model in them.
 *
 * A prompt names its own answer: `board answers text 3` is the third prompt, answered with text.
 */
import type { Decide, Fields } from "../conformance/Models.ts"

/** A state as a person reads it from the terminal. */
export type State = "ready" | "working" | "approval" | "question" | "idle" | "error" | "closed"

export type Answer = "text" | "brief" | "run" | "long" | "fail" | "ask" | "question" | "error" | "retry"
export type Step =
  | { readonly say: Answer }
  /** Until the terminal shows the state. */
  | { readonly see: State; readonly within?: number }
  | { readonly wait: number }
  | { readonly press: "allow" | "deny" | "answer" | "escape" }
  | { readonly type: "quit" | "clear" }
  | { readonly kill: NodeJS.Signals }
  /** Ends the session and starts it again, with its conversation. */
  | { readonly resume: true }
  | { readonly daemon: "down" | "up" }
  /** A second session in the same folder, which works while the first one goes on. */
  | { readonly beside: Answer }

export interface Scenario {
  readonly name: string
  readonly steps: ReadonlyArray<Step>
  /** Without hooks. */
  readonly bare?: true
}

const begun: ReadonlyArray<Step> = [{ see: "ready", within: 40 }, { wait: 2 }]
const done: ReadonlyArray<Step> = [{ see: "idle", within: 40 }, { wait: 2 }]
const end: ReadonlyArray<Step> = [{ type: "quit" }, { see: "closed", within: 15 }, { wait: 1 }]
const play = (name: string, ...steps: ReadonlyArray<Step>): Scenario => ({ name, steps: [...begun, ...steps, ...end] })

export const scenarios: ReadonlyArray<Scenario> = [
  play("idle before the first prompt", { wait: 8 }),
  play("work", { say: "text" }, { see: "working" }, ...done),
  play("tool", { say: "run" }, { see: "working" }, ...done),
  play("tool fails", { say: "fail" }, { see: "working" }, ...done),
  play("asked, allowed", { say: "ask" }, { see: "approval" }, { wait: 3 }, { press: "allow" }, ...done),
  play("asked, denied", { say: "ask" }, { see: "approval" }, { wait: 3 }, { press: "deny" }, ...done),
  play("asked, Esc", { say: "ask" }, { see: "approval" }, { wait: 3 }, { press: "escape" }, ...done),
  play("question", { say: "question" }, { see: "question" }, { wait: 3 }, { press: "answer" }, ...done),
  play("Esc in an answer", { say: "text" }, { see: "working" }, { wait: 2 }, { press: "escape" }, ...done),
  play("Esc in a tool", { say: "run" }, { see: "working" }, { wait: 2 }, { press: "escape" }, ...done),
  play("API error", { say: "error" }, { see: "error", within: 60 }, { wait: 4 }, { say: "text" }, ...done),
  play("retries", { say: "retry" }, { see: "working" }, { see: "idle", within: 60 }, { wait: 2 }),
  {
    name: "kill",
    steps: [...begun, { say: "text" }, { see: "working" }, { wait: 2 }, { kill: "SIGKILL" }, { wait: 3 }]
  },
  {
    name: "hang-up",
    steps: [...begun, { say: "run" }, { see: "working" }, { wait: 2 }, { kill: "SIGHUP" }, { wait: 3 }]
  },
  play(
    "resume",
    { say: "brief" },
    ...done,
    { resume: true },
    { see: "idle", within: 40 },
    { wait: 2 },
    { say: "text" },
    { see: "working" },
    ...done
  ),
  play(
    "found in mid-turn",
    { daemon: "down" },
    { say: "long" },
    { see: "working" },
    { wait: 1 },
    { daemon: "up" },
    ...done
  ),
  play(
    "clear",
    { say: "brief" },
    ...done,
    { type: "clear" },
    { wait: 3 },
    { say: "text" },
    { see: "working" },
    ...done
  ),
  play(
    "two in one folder",
    { say: "ask" },
    { see: "approval" },
    { beside: "text" },
    { wait: 3 },
    { press: "allow" },
    ...done
  ),
  { ...play("no hooks", { say: "ask" }, { see: "approval" }, { wait: 3 }, { press: "allow" }, ...done), bare: true },
  { ...play("no hooks, API error", { say: "error" }, { see: "error", within: 60 }, { wait: 4 }), bare: true }
]

/** Shells and questions of the CLIs, by the name of the tool. `asks`: a command that needs an approval. */
const SHELLS: { readonly [name: string]: (command: string, asks: boolean) => Fields } = {
  Bash: (command) => ({ command, description: "A command of the board's test" }),
  bash: (command) => ({ command, description: "A command of the board's test" }),
  run_shell_command: (command) => ({ command, description: "A command of the board's test" }),
  exec_command: (cmd, asks) =>
    asks ? { cmd, sandbox_permissions: "require_escalated", justification: "A test of the board" } : { cmd },
  run_commands: (command) => ({ commands: [command] })
}
const choice = [
  { label: "Red", description: "A warm one" },
  { label: "Blue", description: "A cold one" }
]
const asked = { question: "Which colour?", header: "Colour", options: choice }
const QUESTIONS: { readonly [name: string]: Fields } = {
  AskUserQuestion: { questions: [{ ...asked, multiSelect: false }] },
  ask_user: { questions: [{ ...asked, type: "choice" }], question: asked.question, choices: ["Red", "Blue"] },
  ask_user_question: { questions: [{ ...asked, multiSelect: false }] },
  request_user_input: { questions: [{ ...asked, id: "colour" }] },
  question: { questions: [{ ...asked, multiple: false }] },
  ask_question: { question: asked.question, options: ["Red", "Blue"] }
}

export const PROMPT = /board answers (\w+) (\d+)/g
const CALLED = /"tool"|"tool_result"|"function_call_output"|"functionResponse"/
const COMMANDS = {
  run: "sleep 4",
  long: "sleep 20",
  fail: "sleep 2; ls /no-such-folder",
  ask: "touch made.txt; sleep 4"
} as const

/** The model of the scenarios. */
export const model = (): Decide => {
  const failed = new Map<string, number>()
  return (messages, offers) => {
    const at = messages.findLastIndex((message) => JSON.stringify(message).match(PROMPT) !== null)
    const [, answer, number] = [...JSON.stringify(messages[at] ?? "").matchAll(PROMPT)].at(-1) ?? []
    const shell = Object.keys(SHELLS).find(offers)
    const question = Object.keys(QUESTIONS).find(offers)
    // a request without tools is one of the CLI's own, for example for a title
    if (answer === undefined || shell === undefined) return { pieces: ["Hello."] }
    if (CALLED.test(JSON.stringify(messages.slice(at)))) return { pieces: ["It ", "is ", "done."], pause: 200 }
    if (answer === "error") return { status: 401, message: "the key is not valid" }
    const times = failed.get(number!) ?? 0
    failed.set(number!, times + 1)
    if (answer === "retry" && times < 2) return { status: 503, message: "no capacity" }
    if (answer === "question" && question !== undefined) {
      return { call: { name: question, input: QUESTIONS[question]! } }
    }
    if (answer === "run" || answer === "long" || answer === "fail" || answer === "ask") {
      return { call: { name: shell, input: SHELLS[shell]!(COMMANDS[answer], answer === "ask") } }
    }
    const length = answer === "text" ? 25 : 3
    return { pieces: Array.from({ length }, (_, line) => `Line ${line} of the answer.\n`), pause: 200 }
  }
}
