/** `agentd docs`: every page that the index names is listed and printed; a wrong name gets the near ones. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { PROGRAM } from "../../support/Program.ts"

const root = join(import.meta.dirname, "../../..")
const docs = (...args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [PROGRAM, "docs", ...args], { encoding: "utf8", cwd: "/" })

it("lists every document with what it is about", () => {
  const { stdout } = docs("--json")
  const pages: ReadonlyArray<{ readonly page: string; readonly about: string }> = JSON.parse(stdout)
  const files = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && name !== "README.md")
    .map((name) => name.replace(".md", ""))
  assert.deepStrictEqual(pages.map(({ page }) => page).toSorted(), files.toSorted())
  const lines = docs().stdout.split("\n")
  for (const { about, page } of pages)
    assert.isTrue(lines.some((line) => line.startsWith(`${page} `) && line.endsWith(about)))
})

it("prints a page by the names that texts use for it", () => {
  const text = readFileSync(join(root, "docs/reference/commands.md"), "utf8")
  for (const name of ["commands", "reference/commands", "docs/reference/commands.md", "commands.md#agentd-ps"])
    assert.strictEqual(docs(name).stdout, text, name)
  assert.strictEqual(JSON.parse(docs("commands", "--json").stdout).text, text)
})

it.each([
  ["tutorail", "agentd docs tutorial"],
  ["comands", "agentd docs commands"],
  ["approval", "agentd docs approvals"],
  ["../package.json", "agentd docs"],
  ["xyzzy", "List the pages: agentd docs"]
])("refuses %s, and names what was meant", (name, remedy) => {
  const { status, stderr, stdout } = docs(name)
  assert.deepStrictEqual([status, stdout], [2, ""])
  assert.include(stderr, remedy)
})
