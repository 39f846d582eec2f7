/**
 * Question: what an agent asks a person to choose, and what was said to it. Pure.
 *
 * An answer names options by number or label, or is a text of one's own; several options
 * of a question that takes several have commas between them. Several questions get an
 * answer each, in order, or one text to all of them.
 */
import { Schema } from "effect"

export const Question = Schema.Struct({
  question: Schema.String,
  /** May be none: then any text is an answer. */
  options: Schema.Array(Schema.Struct({ label: Schema.String, description: Schema.String })),
  /** Takes more than one of them. */
  several: Schema.Boolean
})
export type Question = typeof Question.Type

/** An answer that does not fit its question. */
export interface Unanswered {
  readonly message: string
  readonly remedy: string
}

/** The option's label; undefined where none is meant. A label goes before a number. */
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

/** A number where options have numbers, and none has that. */
const isSlip = (question: Question, said: string): boolean =>
  question.options.length > 0 && /^\d{1,2}$/.test(said.trim()) && meant(question, said) === undefined

const noOption = ({ options, question }: Question, said: string): Unanswered => ({
  message: `"${said.trim()}" is no option of: ${question}`,
  remedy: `Give a number from 1 to ${options.length}, or a text.`
})

/** Answers for questions, one for each, or a single one to all of several. `said`: a text for each, or one with semicolons between. */
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
  // a text of one's own answers all; a number would be the option of nobody knows which
  if (each.length === 1 && !/^[\d\s,;]+$/.test(whole)) return [whole.trim()]
  return {
    message: `${count === 1 ? "One question is" : `${count} questions are`} asked, and ${each.length} answered.`,
    remedy: count === 1 ? "Put the answer in quotes." : "Give an answer for each, in their order, or one text to all."
  }
}

/** Requests to a person, by the id that answers name. */
export interface Asking {
  readonly id: string
  readonly tool: string
  /** None where it asks for leave. */
  readonly questions: ReadonlyArray<Question>
}

/** The chosen answers, where the request asks for a choice; undefined for leave that is given. */
export const chosen = (
  { id, questions, tool }: Asking,
  said: ReadonlyArray<string> | undefined
): ReadonlyArray<string> | undefined | Unanswered => {
  if (questions.length > 0 && said !== undefined) return answersTo(questions, said)
  if (questions.length === 0 && said === undefined) return undefined
  return said === undefined
    ? {
        message: `${id} asks you to choose, and not for leave.`,
        remedy: `Give the number of an option, or a text: agentd answer ${id} 1`
      }
    : {
        message: `${id} asks for leave to use ${tool}, and no question.`,
        remedy: `Let it, or not: agentd approve ${id}`
      }
}
