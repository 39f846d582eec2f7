/**
 * AnswerJson: finds the JSON in an agent's answer. It takes the last fenced block that can be parsed; otherwise the whole
 * text; otherwise the part from the first brace to the last. Pure.
 */
import { Result } from "effect"

const FENCED = /```[a-zA-Z]*[ \t]*\r?\n([\s\S]*?)```/g

const read = (text: string): Result.Result<unknown, string> => {
  try {
    return Result.succeed(JSON.parse(text))
  } catch (error) {
    return Result.fail(error instanceof Error ? error.message : String(error))
  }
}

/** The text without NUL bytes, so that it can be a program's argument: the kernel ends an argument at a NUL byte. */
export const sendable = (text: string): string => text.replaceAll("\u0000", "\uFFFD").toWellFormed()

/** True for an object or a list. Other valid JSON, such as a number, is not accepted as an answer. */
const isWhole = (value: unknown): boolean => typeof value === "object" && value !== null

export const jsonIn = (text: string): Result.Result<unknown, string> => {
  const fenced = [...text.matchAll(FENCED)].map((match) => match[1]!).toReversed()
  const braces = text.slice(Math.max(0, text.indexOf("{")), text.lastIndexOf("}") + 1)
  let first: Result.Result<unknown, string> | undefined
  for (const candidate of [...fenced, text, braces]) {
    const found = read(candidate.trim())
    if (Result.isSuccess(found) && isWhole(found.success)) return found
    first ??= found
  }
  return Result.fail(
    first !== undefined && Result.isFailure(first)
      ? `it contains no JSON object: ${first.failure}`
      : "it contains no JSON object"
  )
}
