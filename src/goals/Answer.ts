/**
 * Answer: the JSON in what an agent answered: in a fenced block, the last one that
 * can be read; else the whole text; else from its first brace to its last. Pure.
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

/** Text that a prompt can hold: a NUL byte would end an argument in the kernel. */
export const sendable = (text: string): string => text.replaceAll("\u0000", "\uFFFD").toWellFormed()

/** True for an object or a list; plain words that happen to be JSON are no answer. */
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
      ? `it holds no JSON object: ${first.failure}`
      : "it holds no JSON object"
  )
}
