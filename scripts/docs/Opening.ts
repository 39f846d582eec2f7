/** Opening: reads the doc comment that a file of src opens with. */
import { readFileSync } from "node:fs"
import { join } from "node:path"

const src = join(import.meta.dirname, "../../src")

const paragraphsOf = (file: string): ReadonlyArray<string> => {
  const source = readFileSync(join(src, file), "utf8")
  const comment = /^\/\*\*\s*(?:\* )?([\s\S]*?)\s*\*\//.exec(source)?.[1]
  if (comment === undefined) throw new Error(`src/${file} does not open with a doc comment: write one`)
  const text = comment.replaceAll(/^ \* ?/gm, "").replace(/^\w+: /, "")
  return (text.charAt(0).toUpperCase() + text.slice(1)).split("\n\n").map((one) => one.replaceAll(/\s+/g, " ").trim())
}

/** The whole comment, without the module's name. */
export const openingOf = (file: string): string => paragraphsOf(file).join(" ")

/** The first paragraph, which says what the file is for. */
export const aboutOf = (file: string): string => paragraphsOf(file)[0]!
