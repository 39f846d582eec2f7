/**
 * Question: the questions that an agent asks the user, and the user's answers. Pure.
 *
 * An answer is the number or label of an option, or any text. If a question allows several options, commas separate
 * them. Several questions get one answer each, in order, or one text for all of them.
 */
import { Schema } from "effect"

export const Question = Schema.Struct({
  question: Schema.String,
  /** Options from which the user chooses; if empty, any text is an answer. */
  options: Schema.Array(Schema.Struct({ label: Schema.String, description: Schema.String })),
  /** True if more than one option can be chosen. */
  several: Schema.Boolean
})
export type Question = typeof Question.Type

/** An answer that does not match its question. */
export interface Unanswered {
  readonly message: string
  readonly remedy: string
}

/** The option that an answer selects; undefined if no option matches. Labels take precedence over numbers. */
const meant = ({ options }: Question, said: string): string | undefined => {
  const word = said.trim().toLowerCase()
  const named = options.find(({ label }) => label.trim().toLowerCase() === word)
  return (named ?? (/^[1-9]\d?$/.test(word) ? options[Number(word) - 1] : undefined))?.label
}

const answerTo = (question: Question, said: string): string => {
  const one = meant(question, said)
  if (one !== undefined) return one
  const all = question.several ? said.split(",").map((part) => meant(question, part)) : [undefined]
  return all.every((label) => label !== undefined) ? [...new Set(all)].join(", ") : said.trim()
}

/** True if the answer is a number to which no option belongs. */
const isSlip = (question: Question, said: string): boolean =>
  question.options.length > 0 && /^\d{1,2}$/.test(said.trim()) && meant(question, said) === undefined

const noOption = ({ options, question }: Question, said: string): Unanswered => ({
  message: `"${said.trim()}" is not an option of: ${question}`,
  remedy: `Give a number from 1 to ${options.length}, or a text.`
})

/**
 * Returns one answer for each question, or a single answer for all of them. `said`: one entry for each question, or one
 * entry with semicolons between the answers.
 */
export const answersTo = (
  questions: ReadonlyArray<Question>,
  said: ReadonlyArray<string>
): ReadonlyArray<string> | Unanswered => {
  const count = questions.length
  const [whole = ""] = said
  const parts = said.length === 1 && count > 1 ? whole.split(";") : said
  const each = parts.length === count ? parts : said
  if (each.some((text) => text.trim() === ""))
    return { message: "An answer is empty.", remedy: "Give the number of an option, or a text." }
  if (each.length === count) {
    const slip = each.findIndex((text, index) => isSlip(questions[index]!, text))
    if (slip >= 0) return noOption(questions[slip]!, each[slip]!)
    return each.map((text, index) => answerTo(questions[index]!, text))
  }
  // free text answers all questions; a number could mean an option of any question
  if (each.length === 1 && !/^[\d\s,;]+$/.test(whole)) return [whole.trim()]
  return {
    message: `${count === 1 ? "One question is" : `${count} questions are`} asked, and ${each.length} answered.`,
    remedy:
      count === 1
        ? "Put the answer in quotes."
        : "Give one answer for each question, in their order, or one text for all of them."
  }
}

/** A request to the user. The user's answer names it by `id`. */
export interface Asking {
  readonly id: string
  readonly tool: string
  /** Questions to the user; empty if the request asks for an approval. */
  readonly questions: ReadonlyArray<Question>
}

/** The answers to a request's questions; undefined if the request asks for an approval. */
export const chosen = (
  { id, questions, tool }: Asking,
  said: ReadonlyArray<string> | undefined
): ReadonlyArray<string> | undefined | Unanswered => {
  if (questions.length > 0 && said !== undefined) return answersTo(questions, said)
  if (questions.length === 0 && said === undefined) return undefined
  return said === undefined
    ? {
        message: `${id} asks you to choose, not to approve.`,
        remedy: `Give the number of an option, or a text: agentd answer ${id} 1`
      }
    : {
        message: `${id} asks for approval to use ${tool}; it is not a question.`,
        remedy: `Approve or deny it: agentd approve ${id}`
      }
}
