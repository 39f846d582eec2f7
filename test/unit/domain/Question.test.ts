import { assert, describe, it } from "@effect/vitest"
import { answersTo, type Question } from "../../../src/runs/Question.ts"

const asked = (several: boolean, ...labels: ReadonlyArray<string>): Question => ({
  question: "Which?",
  options: labels.map((label) => ({ label, description: "" })),
  several
})
const colour = asked(false, "Red", "Blue")
const sizes = asked(true, "S", "M", "L")
const workers = asked(false, "4", "1")

describe("an answer to a question", () => {
  it.each<readonly [string, ReadonlyArray<Question>, ReadonlyArray<string>, ReadonlyArray<string>]>([
    ["a number names an option", [colour], ["2"], ["Blue"]],
    ["a label, in any case", [colour], [" red "], ["Red"]],
    ["a label goes before a number", [workers], ["1"], ["1"]],
    ["a number is a text where there are no options", [asked(false)], ["7"], ["7"]],
    ["a longer number is a text", [workers], ["120"], ["120"]],
    ["a text of one's own", [colour], ["rather mauve, or so"], ["rather mauve, or so"]],
    ["several options, each once", [sizes], ["1, l,S"], ["S, L"]],
    ["a comma is no list where some part is no option", [sizes], ["S, and XL"], ["S, and XL"]],
    ["a comma is no list where one option is taken", [colour], ["1,2"], ["1,2"]],
    ["one for each question", [colour, sizes], ["1", "2,3"], ["Red", "M, L"]],
    ["one for each, with semicolons between", [colour, sizes], ["1; 2,3"], ["Red", "M, L"]],
    ["one text to all of them", [colour, sizes], ["do as you like"], ["do as you like"]]
  ])("%s", (_, questions, said, is) => assert.deepStrictEqual(answersTo(questions, said), is))

  it.each<readonly [string, ReadonlyArray<Question>, ReadonlyArray<string>]>([
    ["nothing", [colour], []],
    ["a number of no option", [colour], ["7"]],
    ["a number of no option, one of two", [colour, sizes], ["1", "9"]],
    ["an empty text", [colour], [" "]],
    ["an empty part", [colour, sizes], ["1;"]],
    ["a number to nobody knows which of two questions", [colour, sizes], ["1"]],
    ["more answers than questions", [colour], ["so", "be", "it"]],
    ["fewer answers than questions", [colour, sizes, colour], ["1", "2"]]
  ])("%s is none", (_, questions, said) => {
    const found = answersTo(questions, said)
    assert.isTrue("message" in found && found.remedy !== "")
  })
})
