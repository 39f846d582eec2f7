/** Secrets that systemd has handed over: which become variables, and that those of the environment go before them. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { credentials } from "../../../src/cli/setup/Credentials.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { folder } from "../rpc/World.ts"

const noted = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8").trim() : "")

describe("credentials", () => {
  it.live(
    "count where they are named like a variable; of several lines the first; one that cannot be read is left out",
    () =>
      Effect.gen(function* () {
        const at = yield* folder
        writeFileSync(join(at, "ANTHROPIC_API_KEY"), "sk-one\nsecond line\n")
        writeFileSync(join(at, "smtp"), "sesame\n")
        mkdirSync(join(at, "A_FOLDER"))
        assert.deepStrictEqual(yield* credentials(at), { ANTHROPIC_API_KEY: "sk-one" })
        assert.deepStrictEqual(yield* credentials(join(at, "nothing")), {})
        assert.deepStrictEqual(yield* credentials(undefined), {})
      }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.live("reach an agent that is given them by name, where the variable is not set", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const at = join(box.folder, "credentials")
      mkdirSync(at)
      writeFileSync(join(at, "FIRST_KEY"), "of the credential\n")
      writeFileSync(join(at, "SECOND_KEY"), "of the credential\n")
      Object.assign(box.environment, { CREDENTIALS_DIRECTORY: at, SECOND_KEY: "of the environment" })
      const shell = 'echo "$FIRST_KEY, $SECOND_KEY, ${CREDENTIALS_DIRECTORY-none}" > seen; cat > /dev/null'
      box.configure({ agents: { one: { backend: { type: "command", shell, passEnv: ["FIRST_KEY", "SECOND_KEY"] } } } })
      yield* box.up()
      yield* box.cli("send", "one", "look")
      const seen = yield* box.until(
        "it has looked",
        Effect.sync(() => noted(box.file("seen"))),
        (text) => text !== ""
      )
      assert.strictEqual(seen, "of the credential, of the environment, none")
    }).pipe(Effect.scoped)
  )
})
