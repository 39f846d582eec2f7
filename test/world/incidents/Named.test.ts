/** The names of the incidents: docs/incidents.md has each, and a test here is called so. */
import { assert, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

const names = [
  ...readFileSync(resolve(import.meta.dirname, "../../../docs/incidents.md"), "utf8").matchAll(/^\| ([^|]+) \|/gm)
]
  .map(([, name]) => name!)
  .slice(1)

const tests = readdirSync(import.meta.dirname)
  .map((file) => readFileSync(join(import.meta.dirname, file), "utf8"))
  .flatMap((text) => [...text.matchAll(/^ *describe(?:\.concurrent)?\("([^"]+)"/gm)].map(([, name]) => name!))

it("each incident is a test by its name", () => {
  assert.lengthOf(names, 18)
  assert.deepStrictEqual(
    names.filter((name) => !tests.includes(name)),
    []
  )
})
