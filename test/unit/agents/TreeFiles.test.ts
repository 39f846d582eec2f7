/** Patterns of a project that is a subfolder of its repository. */
import { assert, it } from "@effect/vitest"
import { inRepository } from "../../../src/agents/workplace/TreeFiles.ts"

it("a pattern with a slash begins at the project's root, another one matches anywhere in it", () => {
  for (const [pattern, prefix, expected] of [
    [".env", "", ".env"],
    ["conf/*.json", "", "conf/*.json"],
    [".env", "pack", ".env"],
    ["node_modules/", "pack", "node_modules/"],
    ["conf/*.json", "pack", "/pack/conf/*.json"],
    ["/.env", "pack/b", "/pack/b/.env"],
    ["!conf/x", "pack", "!/pack/conf/x"],
    ["conf/x", "a[1]*", "/a\\[1]\\*/conf/x"]
  ] as const)
    assert.strictEqual(inRepository(pattern, prefix), expected)
})
