/**
 * Offers: the rules that would have allowed a call, for the person who is asked about it. Pure.
 *
 * Guarantees: each offer, added to the rules in force, allows that very call. The narrowest allows nothing else. There
 * are no offers if a part may only be allowed once: then no rule can be made of it that says no more than the call.
 */
import { isHarmless } from "./CommandPattern.ts"
import type { Lack } from "./Judge.ts"
import { quoted } from "./Parts.ts"
import type { Word } from "./Reading.ts"
import { type RuleSubject, subjectWords } from "./Rule.ts"

export interface OfferedRule {
  readonly effect: "allow"
  readonly subject: RuleSubject
}

export interface Offer {
  /** The rules in words: `npm test`, or `any plain npm test …`. */
  readonly words: string
  readonly rules: ReadonlyArray<OfferedRule>
}

/** The subjects that a part needs: the narrowest, a wider, and the widest one. */
type Widths = readonly [exact: RuleSubject, wide: RuleSubject, widest: RuleSubject]

const wordOf = ({ globs, text, value }: Word): string | undefined =>
  value === undefined || (globs && !/^[\w./]/.test(value)) ? undefined : globs ? text : quoted(value)

const widthsOf = ({ command, others, reading }: Lack): ReadonlyArray<Widths> | undefined => {
  const files = others.map(({ exact, wide }): Widths => [exact, wide, wide])
  if (command === undefined) return files
  const { named, shape, star } = reading
  const set = command.assignments.filter((one) => !isHarmless(one))
  const words = command.words.map(wordOf)
  if (words.includes(undefined) || set.some(({ value }) => value === undefined)) return undefined
  const exact = [...set.map(({ name, value = "" }) => `${name}=${quoted(value)}`), ...words].join(" ")
  const canWiden = star && set.length === 0 && reading.extra.length === 0
  const wide = canWiden ? `${shape.map(quoted).join(" ")} **` : exact
  const widest = canWiden && named ? `${shape.slice(0, -1).map(quoted).join(" ")} * **` : wide
  return [...files, [{ command: exact }, { command: wide }, { command: widest }]]
}

const said = (subject: RuleSubject): string => {
  const words = subjectWords(subject)
  if (!("command" in subject)) return words
  if (words.endsWith(" * **")) return `any ${words.slice(0, -5)} …`
  return words.endsWith(" **") ? `any plain ${words.slice(0, -3)} …` : words
}

const offerOf = (subjects: ReadonlyArray<RuleSubject>): Offer => {
  const each = [...new Map(subjects.map((subject) => [JSON.stringify(subject), subject])).values()]
  return { words: each.map(said).join(" and "), rules: each.map((subject) => ({ effect: "allow", subject })) }
}

export const offersOf = (lacks: ReadonlyArray<Lack>): ReadonlyArray<Offer> => {
  if (lacks.length === 0 || lacks.some(({ isOnce }) => isOnce)) return []
  const widths: Array<Widths> = []
  for (const lack of lacks) {
    const of = widthsOf(lack)
    if (of === undefined || of.length === 0) return []
    widths.push(...of)
  }
  const offers = [0, 1, 2].map((index) => offerOf(widths.map((all) => all[index as 0 | 1 | 2])))
  return offers.filter(({ words }, index) => offers.findIndex((one) => one.words === words) === index)
}
