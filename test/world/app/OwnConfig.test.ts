/**
 * OwnConfig: a typo in the user's own config.jsonc, by a real daemon: what was in force stays in force, also over
 * restarts, is told, and notices raised meanwhile are sent.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"
import { long } from "../../support/Long.ts"

const TYPO = '{ "mail": 7, "notify" }'
const failing = { maxConsecutiveErrors: 1, backend: { type: "command", shell: "cat > /dev/null; exit 3" } }

const stand = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  const config = join(box.folder, "config", "agentd", "config.jsonc")
  const told = box.file("told")
  const program = ["/bin/sh", "-c", `cat >> ${told}; echo >> ${told}`]
  const channels = { own: { type: "command", argv: program } }
  const good = { orphanGrace: "0 seconds", notify: { channels, digestWindow: "1 second" } }
  const heard = () => (existsSync(told) ? readFileSync(told, "utf8") : "")
  return { box, config, good, heard }
})

/** In one step: a file that is seen half written is another trouble. */
const put = (file: string, text: string) => {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

const rowOf = /your own config\.jsonc cannot be used; the last usable version stays in force/

long.live("a typo is told, stops no notice and no daemon, and is over once the file is mended", () =>
  Effect.gen(function* () {
    const { box, config, good, heard } = yield* stand
    box.setUser(good)
    box.configure({ agents: { one: failing, two: failing } })
    yield* box.up()
    put(config, TYPO)
    const waiting = yield* box.until(
      "it is a row",
      Effect.map(box.cli("waiting"), ({ stdout }) => stdout),
      (text) => rowOf.test(text)
    )
    assert.include(waiting, `${config}:1`)
    assert.match((yield* box.cli("ps")).stdout, /config\.jsonc cannot be used/)
    yield* box.cli("send", "one", "fail")
    yield* box.until("a notice raised meanwhile is sent", Effect.sync(heard), (text) => /shop\/one/.test(text))

    const before = box.daemon!.pid
    const restarted = yield* box.cli("restart", "--yes")
    assert.strictEqual(restarted.code, 78)
    assert.match(restarted.stderr, /config\.jsonc:1.*[^]*the daemon was not stopped/)
    assert.strictEqual((yield* box.cli("ps")).code, 0)
    assert.isNull(box.daemon!.exitCode)
    assert.strictEqual(box.daemon!.pid, before)

    // nobody asks before a kill
    yield* box.kill9
    yield* box.up()
    assert.match((yield* box.cli("waiting")).stdout, rowOf)
    const joined = yield* box.cli("start")
    assert.strictEqual(joined.code, 78)
    assert.match(joined.stdout, /config\.jsonc cannot be used; the last usable version stays in force/)
    yield* box.cli("send", "two", "fail")
    yield* box.until("also after that", Effect.sync(heard), (text) => /shop\/two/.test(text))

    put(config, JSON.stringify(good))
    yield* box.until(
      "it is no row any more",
      Effect.map(box.cli("waiting"), ({ stdout }) => stdout),
      (text) => !rowOf.test(text)
    )
    assert.strictEqual((yield* box.cli("start")).code, 0)
    const states = (yield* box.runes("config.changed")).map(({ payload }) => payload["state"])
    assert.deepStrictEqual(states, ["broken", "in_force"])
    put(config, TYPO)
    assert.strictEqual((yield* box.cli("stop", "--daemon", "--yes")).code, 0)
  }).pipe(Effect.scoped)
)

it.live("where nothing was ever in force, a file that cannot be used is an error", () =>
  Effect.gen(function* () {
    const { box, config } = yield* stand
    writeFileSync(config, TYPO)
    box.configure({ agents: {} })
    const { code, stderr } = yield* box.cli("start")
    assert.strictEqual(code, 78)
    assert.include(stderr, `${config}:1`)
  }).pipe(Effect.scoped)
)
