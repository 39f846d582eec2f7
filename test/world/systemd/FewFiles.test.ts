/** A start where too few files may be open says so, and which limit that is. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Sandbox from "../../support/Sandbox.ts"

it.live("a daemon that may open too few files names that limit", () =>
  Effect.gen(function* () {
    const box = yield* Sandbox.make()
    box.under = ["/bin/sh", "-c", 'ulimit -n 32; exec "$@"', "sh"]
    box.environment["XDG_RUNTIME_DIR"] = ""
    const { code, stderr } = yield* box.cliUnder("start")
    assert.notStrictEqual(code, 0)
    assert.include(stderr, "Only 32 files may be open here: raise that limit (ulimit -n 1024).")
    assert.notInclude(stderr, "    at ")
  })
)
