/** The documents hold together: links and anchors lead somewhere, each page is in the index, examples of settings are taken. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { dirname, join, posix } from "node:path"
import { parse, parseUser } from "../../../src/config/ConfigFile.ts"
import * as Pages from "../../world/docs/Pages.ts"

interface Link {
  readonly page: string
  readonly to: string
}

const linksOf = (page: string): ReadonlyArray<Link> =>
  [...Pages.proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, to]) => ({ page, to: to! }))
    .filter(({ to }) => !/^https?:/.test(to))

/** Why the link leads nowhere; undefined where it does. */
const broken = ({ page, to }: Link): string | undefined => {
  const [path = "", anchor] = to.split("#")
  const target = path === "" ? page : posix.normalize(posix.join(dirname(page), path))
  if (!existsSync(join(Pages.root, target))) return `${page}: ${to}: there is no ${target}`
  if (anchor === undefined || Pages.anchorsOf(target).includes(anchor)) return undefined
  return `${page}: ${to}: no heading of ${target} is called so`
}

const LANGUAGES = [
  "dockerfile",
  "python",
  "js",
  "sh",
  "console",
  "shell",
  "jsonc",
  "json",
  "text",
  "mermaid",
  "ts",
  "http",
  "socket",
  ""
]

const CLAUDE = '"backend": { "type": "claude" }'

/** The files that a piece of one may be of: a project's, an agent's part of it, one's own. */
const wholes = (text: string): ReadonlyArray<string> =>
  text.trimStart().startsWith("{")
    ? [text]
    : [
        `{ ${text}\n}`,
        `{ "agents": { "builder": { ${CLAUDE} }, "tester": { ${CLAUDE} } },\n${text}\n}`,
        `{ "agents": { "builder": { ${/"backend"/.test(text) ? "" : `${CLAUDE},`} ${text}\n} } }`
      ]

describe("the documents", () => {
  it("link to what is there", () => {
    const links = Pages.PAGES.flatMap(linksOf)
    assert.isAbove(links.length, 100)
    assert.deepStrictEqual(
      links.map(broken).filter((problem) => problem !== undefined),
      []
    )
  })

  it("a link that leads nowhere is found", () => {
    assert.include(broken({ page: "docs/goals.md", to: "nothing.md" }), "there is no docs/nothing.md")
    assert.include(broken({ page: "docs/goals.md", to: "channels.md#nothing" }), "no heading")
    assert.isUndefined(broken({ page: "docs/goals.md", to: "#exit-codes" }))
  })

  it("are all in the index", () => {
    const listed = linksOf("docs/README.md").map(({ to }) => `docs/${to}`)
    const pages = Pages.PAGES.filter((page) => page !== "README.md" && page !== "docs/README.md")
    assert.deepStrictEqual(
      pages.filter((page) => !listed.includes(page)),
      []
    )
  })

  it("have no command outside of a block whose language says whether it is run", () => {
    for (const page of Pages.PAGES) {
      for (const { language, line } of Pages.blocksOf(page)) assert.include(LANGUAGES, language, `${page}:${line}`)
      assert.notMatch(Pages.proseOf(page), /\n\n {4}\S/, `${page}: a block is indented: give it a fence`)
    }
  })

  const examples = Pages.PAGES.flatMap((page) => Pages.blocksOf(page).filter(({ language }) => language === "jsonc"))

  it.live("show settings that are taken", () =>
    Effect.forEach(examples, ({ line, page, text }) => {
      const path = `/home/ada/shop/${page}:${line}`
      const readers = wholes(text).flatMap((one) => [parse(one, path), parseUser(one, path)])
      return Effect.firstSuccessOf(readers)
    })
  )
})
