/** Comments say what a thing is: a doc comment begins with a noun or a verb, and with no pronoun that makes its reader guess. */
import { assert, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"

const root = join(import.meta.dirname, "..")

const FOLDERS = ["src", "scripts", "test"]

const GUESS = /^(?:It|Its|That|This|These|Those|They|Who|Whoever|Whose|What|Whatever|Which|One|He|She|There|Here)\b/

/** File, line and beginning of each doc comment that makes its reader guess. */
const guesses = (file: string): ReadonlyArray<string> => {
  const text = readFileSync(file, "utf8")
  return [...text.matchAll(/\/\*\*([\s\S]*?)\*\//g)].flatMap((match) => {
    const said = match[1]!.replaceAll(/^\s*\*\s?/gm, "").trim()
    const line = text.slice(0, match.index).split("\n").length
    return GUESS.test(said) ? [`${relative(root, file)}:${line}: ${said.slice(0, 60)}`] : []
  })
}

const files = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(root, folder, name))

for (const folder of FOLDERS) {
  it(`${folder}: no doc comment begins with a pronoun`, () => {
    assert.deepStrictEqual(files(folder).flatMap(guesses), [])
  })
}

it("a comment that makes its reader guess is found", () => {
  assert.isTrue(GUESS.test("What a worker does."))
  assert.isTrue(GUESS.test("It ends."))
  assert.isFalse(GUESS.test("Items of the list."))
})
