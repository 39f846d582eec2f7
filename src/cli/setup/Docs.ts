/**
 * `agentd docs [PAGE]`: lists the documents that come with the program, or prints one of them as it is written.
 *
 * Guarantees: only pages of the program's own folder `docs` are read. No daemon is needed.
 */
import { Console, Effect, FileSystem, Path } from "effect"
import { didYouMean } from "../../config/DidYouMean.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { cut } from "../render/Output.ts"

interface Page {
  /** Path in the folder without `.md`, such as "reference/commands". */
  readonly page: string
  readonly about: string
}

/** The pages in the rows of docs/README.md: `| [Title](page.md) | about |`. */
const listed = (index: string): ReadonlyArray<Page> =>
  [...index.matchAll(/^\| \[[^\]]+\]\(([\w/-]+)\.md\) \| ([^|\n]+) \|$/gm)].map(([, page = "", about = ""]) => ({
    page,
    about
  }))

/** The folder `docs` of this program: in the clone or the package that contains the started script. */
const folder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { command } = yield* Entry
  let at = path.dirname(yield* Effect.orElseSucceed(fs.realPath(command.at(-1) ?? ""), () => "/"))
  for (; at !== path.dirname(at); at = path.dirname(at)) {
    const own = [path.join(at, "package.json"), path.join(at, "docs", "README.md")]
    const there = yield* Effect.forEach(own, (file) => Effect.orElseSucceed(fs.exists(file), () => false))
    if (there.every(Boolean)) return path.join(at, "docs")
  }
  return yield* new VerbFailed({
    message: "The documents are not beside this program.",
    remedy: "Install agentd from a package or a clone, which contain them; or see: agentd --help",
    exitCode: ExitCode.failed
  })
})

const unknown = (page: string, pages: ReadonlyArray<Page>) => {
  const names = pages.flatMap((one) => [one.page, one.page.replace("reference/", "")])
  const near = didYouMean(page, names)
  const parts = pages.filter((one) => page.length > 2 && one.page.includes(page)).map((one) => one.page)
  const meant = [...new Set([...(near === undefined ? [] : [near]), ...parts])].slice(0, 3)
  return new VerbFailed({
    message: `There is no page "${page.slice(0, 64)}".`,
    remedy:
      meant.length === 0 ? "List the pages: agentd docs" : meant.map((name) => `agentd docs ${name}`).join(", or "),
    exitCode: ExitCode.usage
  })
}

export const run = Effect.fnUntraced(function* ({ page: given }: { readonly page: string | undefined }) {
  const { columns, json } = yield* Invocation
  const fs = yield* FileSystem.FileSystem
  const docs = yield* folder
  const fileOf = (page: string) => `${docs}/${page}.md`
  const index = yield* Effect.orDie(fs.readFileString(fileOf("README")))
  const pages = yield* Effect.filter(listed(index), ({ page }) =>
    Effect.orElseSucceed(fs.exists(fileOf(page)), () => false)
  )
  if (given === undefined) {
    const width = Math.max(...pages.map(({ page }) => page.length))
    const lines = pages.map(({ about, page }) => `${page.padEnd(width)}  ${about}`)
    return yield* print(pages, () => [
      ...lines.map((line) => (columns === null ? line : cut(line, columns))),
      "",
      "Print a page: agentd docs tutorial"
    ])
  }
  const name = given
    .toLowerCase()
    .split("#")[0]!
    .replace(/^(\.\/)?docs\//, "")
    .replace(/\.md$/, "")
  const found = pages.find(({ page }) => page === name || page === `reference/${name}`)
  if (found === undefined) return yield* unknown(name, pages)
  const text = yield* Effect.orDie(fs.readFileString(fileOf(found.page)))
  yield* json ? print({ ...found, text }, () => []) : Console.log(text.trimEnd())
})
