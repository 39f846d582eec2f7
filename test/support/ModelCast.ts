/**
 * ModelCast: a model's API on a real socket, for any number of agents. Each request's input says what to do (Told). The
 * server has no state: a step is one round of the turn.
 */
import { Effect } from "effect"
import type { Asked, Reply } from "../world/backends/ModelStand.ts"
import * as ModelStand from "../world/backends/ModelStand.ts"
import { appeared, answerOf, type Step, stepsIn } from "./Told.ts"

type Message = Asked["body"]["messages"][number]

/**
 * The newest text in a user's message; undefined if it contains only tool results. An input that was interrupted before
 * its answer began is in the same message as the next one.
 */
const inputOf = ({ content, role }: Message): string | undefined => {
  if (role !== "user" || content === null) return undefined
  if (typeof content === "string") return content
  const texts = content.flatMap(({ text, type }) => (type === "text" && text !== undefined ? [text] : []))
  return texts.at(-1)
}

const results = ({ content }: Message): ReadonlyArray<string> =>
  typeof content === "string" || content === null
    ? []
    : content.flatMap((block) => (block.type === "tool_result" ? [String(block.content)] : []))

const isCall = (step: Step): boolean =>
  "ask" in step || "run" in step || "stuck" in step || "mcp" in step || "tool" in step

const callOf = (step: Step, id: string) => {
  if ("mcp" in step) return { id, name: `agentd__${step.mcp[0]}`, arguments: JSON.stringify(step.mcp[1]) }
  if ("tool" in step) return { id, name: step.tool[0], arguments: JSON.stringify(step.tool[1]) }
  const command = "ask" in step ? step.ask : "run" in step ? step.run : "sh -c 'sleep 300' stuck"
  return { id, name: "shell", arguments: JSON.stringify({ command }) }
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const refusal = (type: string, message: string) => JSON.stringify({ error: { type, message } })

/** Refuses the key `wrong`. The first request with the key `limited` is refused with a limit of three seconds. */
const refused = ({ headers }: Asked, before: number): Reply | undefined => {
  const key = headers["x-api-key"]
  if (key === "wrong") return { status: 401, body: refusal("authentication_error", "invalid x-api-key") }
  if (key !== "limited" || before > 1) return undefined
  return { status: 429, headers: { "retry-after": "3" }, body: refusal("rate_limit_error", "the limit is reached") }
}

const reply = async ({ body }: Asked): Promise<Reply> => {
  const { messages } = body
  const at = messages.findLastIndex((message) => inputOf(message) !== undefined)
  const input = inputOf(messages[at]!)!
  const [, agent] = /You are ([\w.-]+), an AI agent/.exec(JSON.stringify(body.system)) ?? []
  const steps = stepsIn(input, agent)
  const calls = steps.filter(isCall)
  const done = messages.slice(at + 1).filter(({ role }) => role === "assistant").length
  const next = calls[done]
  if (next !== undefined) return { calls: [callOf(next, `toolu_${messages.length}`)] }
  let tokens = 10
  for (const step of steps) {
    if ("sleep" in step) await pause(step.sleep)
    if ("until" in step) await appeared(step.until)
    if ("tokens" in step) tokens += step.tokens
  }
  if (steps.some((step) => "hold" in step)) return { text: ["I think"], hang: true, tokens }
  const said = [
    ...steps.flatMap((step) => ("say" in step ? [step.say] : [])),
    ...messages
      .slice(at + 1)
      .flatMap(results)
      .filter((_, index) => "mcp" in calls[index]! || "tool" in calls[index]!)
  ]
  const end = steps.find((step) => "end" in step)
  if (end !== undefined) return { text: said, tokens, stop: end.end === "refusal" ? "refusal" : "length" }
  return { text: [answerOf(input, said)], tokens }
}

/** Starts the server; it is closed with the scope. */
export const make = Effect.suspend(() => {
  let limited = 0
  return ModelStand.provider("anthropic", (asked) => {
    if (asked.headers["x-api-key"] === "limited") limited++
    return refused(asked, limited) ?? reply(asked)
  })
})
