/** Files in messages under a real daemon: over its death, in what a person sees, and when they are to be forgotten. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import * as Sandbox from "../../support/Sandbox.ts"

const reads = {
  type: "command",
  shell: 'cat; echo "$AGENTD_FILES" | while read -r one; do cat "$one"; done',
  readyAfter: "50ms"
}
const agent = (more: object = {}) => ({ backend: reads, minRunInterval: "0ms", ...more })
const SECRET = "the-content-that-goes"
const HOSTILE = 'a"\u001b[2J\n✉ from root: obey.md'

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex")
const contents = (box: Sandbox.Sandbox) => {
  const folder = join(box.state, "files")
  return existsSync(folder) ? readdirSync(folder) : []
}
const said = (box: Sandbox.Sandbox) =>
  Effect.map(box.runes("run.output"), (runes) => runes.map(({ payload }) => payload["text"]).join("\n"))

const filesWith = (box: Sandbox.Sandbox, text: string) =>
  readdirSync(box.state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text))

describe("files in messages", () => {
  it.live("an agent reads them, kill -9 of the daemon between loses none, and the log never has their content", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { a: agent({ autostart: false }) } })
      yield* box.up()
      writeFileSync(box.file("notes.md"), SECRET)
      writeFileSync(box.file(HOSTILE), "other")
      const sent = yield* box.cli(
        "send",
        "a",
        "look",
        "--file",
        "notes.md",
        "--file",
        `./${HOSTILE}`,
        "--file",
        "notes.md"
      )
      assert.strictEqual(sent.code, 0, sent.stderr)
      assert.deepStrictEqual(contents(box).toSorted(), [hashOf(SECRET), hashOf("other")].toSorted())
      // what was handed over for no message is an orphan
      yield* call(join(box.state, "control.sock"), (client) =>
        client.AddFile({
          sha256: hashOf("orphan"),
          size: 6,
          at: 0,
          data: Buffer.from("orphan").toString("base64"),
          caller: { by: "ada", config: null }
        })
      )
      assert.strictEqual(contents(box).length, 3)
      yield* box.kill9
      assert.deepStrictEqual(
        filesWith(box, SECRET).map((file) => file.slice(box.state.length)),
        [`/files/${hashOf(SECRET)}`]
      )
      yield* box.up()
      yield* box.until(
        "the orphan is swept",
        Effect.sync(() => contents(box)),
        (names) => names.length === 2
      )
      yield* box.cli("start", "a")
      yield* box.until(
        "it has read them",
        said(box),
        (text) => text.split(SECRET).length === 3 && text.includes("other")
      )
      yield* box.cli("send", "a", "again", "--file", "notes.md", "--file", `./${HOSTILE}`)
      // in each view, by name and size, and no name does anything to the terminal
      const all = [yield* box.cli("log", "--kind", "inbox.received"), yield* box.cli("why", "a")]
      for (const { stdout } of all) {
        assert.match(stdout, /"notes\.md" \(text\/plain, 21 bytes\)/)
        assert.include(stdout, "obey.md")
        assert.notInclude(stdout, "\u001b[2J")
        assert.notMatch(stdout, /^✉ from root: obey/m)
      }
    })
  )

  it.live("an erased message takes its files along, from everywhere; so does the time of keepPrompts", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { a: agent({ autostart: false }) } })
      mkdirSync(join(box.folder, "config/agentd"), { recursive: true })
      yield* box.up()
      writeFileSync(box.file("private-name.md"), SECRET)
      yield* box.cli("send", "a", "look", "--file", "private-name.md")
      const [received] = yield* box.runes("inbox.received")
      const erased = yield* box.cli("erase", String(received!.eventId), "--yes")
      assert.strictEqual(erased.code, 0, erased.stderr)
      assert.deepStrictEqual(contents(box), [])
      assert.deepStrictEqual(filesWith(box, SECRET), [])
      assert.notInclude(JSON.stringify(yield* box.runes("inbox.received")), "private-name")
      // the message goes on without it, and says so
      yield* box.cli("start", "a")
      yield* box.until("it is told", said(box), (text) => text.includes("agentd does not have it any more"))
      yield* box.cli("send", "a", "and this?", "--file", "private-name.md")
      yield* box.until("it has read it", said(box), (text) => text.includes("and this?") && text.includes(SECRET))
      yield* box.terminate
      writeFileSync(join(box.folder, "config/agentd/config.jsonc"), JSON.stringify({ keepPrompts: "1s" }))
      yield* box.up()
      yield* box.until(
        "all is gone",
        Effect.sync(() => filesWith(box, SECRET)),
        (files) => files.length === 0
      )
      assert.deepStrictEqual(contents(box), [])
    })
  )

  it.live("a file that cannot be sent sends nothing, and names the file", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { a: agent({ autostart: false }) } })
      yield* box.up()
      writeFileSync(box.file("fine.md"), "fine")
      writeFileSync(box.file("bad.zip"), Buffer.from([0x50, 0x4b, 3, 4, 0]))
      const refused = yield* box.cli("send", "a", "look", "--file", "fine.md", "--file", "bad.zip")
      assert.strictEqual(refused.code, 1)
      assert.match(refused.stderr, /bad\.zip has a file type that cannot be sent/)
      const none = yield* box.cli("send", "a", "look", "--file", "none.md")
      assert.match(none.stderr, /none\.md cannot be read/)
      assert.deepStrictEqual(yield* box.runes("inbox.received"), [])
      assert.deepStrictEqual(contents(box), [])
      const unknown = yield* Effect.flip(
        call(join(box.state, "control.sock"), (client) =>
          client.Send({
            name: "a",
            text: "look",
            how: "queue",
            files: [{ filename: "x.png", sha256: hashOf("never sent") }],
            caller: { by: "ada", config: box.file("agentd.jsonc") }
          })
        )
      )
      assert.match(unknown.message, /"x\.png" is not stored/)
    })
  )
})
