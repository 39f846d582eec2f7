/** Gemini CLI begins its sessions anew: its house-keeping takes the file with the conversation for damaged. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as GeminiSessions from "../../../src/runs/acp/GeminiSessions.ts"

const SESSION = "6b87bcc7-c204-4537-accf-831a9f5bb783"
const NOW = Date.parse("2026-11-24T16:37:40Z")

const line = (record: object) => `${JSON.stringify(record)}\n`
const begun = line({ sessionId: SESSION, projectHash: "h", startTime: "t", lastUpdated: "t", kind: "main" })
const context = { id: "1", type: "user", content: [{ text: "<session_context>\nThis is the Gemini CLI." }] }
const EMPTY = begun + line({ $set: { messages: [context], lastUpdated: "t" } })
const HELD =
  EMPTY + line({ id: "2", type: "user", content: [{ text: "remember 42" }] }) + line({ $set: { lastUpdated: "t" } })
/** Written whole, as a session that was gone on with is. */
const WHOLE = begun + line({ $set: { messages: [context, { id: "2", type: "user", content: [{ text: "42" }] }] } })

/** The names that are left of these files. */
const kept = Effect.fnUntraced(
  function* (files: { readonly [name: string]: string }, now = NOW) {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "agentd-gemini-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(home, { recursive: true })))
    const chats = path.join(home, ".gemini/tmp/project/chats")
    fs.mkdirSync(chats, { recursive: true })
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(chats, name), text)
    yield* GeminiSessions.keep(home, SESSION, now)
    return fs.readdirSync(chats).toSorted()
  },
  Effect.provide(NodeFileSystem.layer),
  Effect.scoped
)

describe("the files of a Gemini CLI session that is gone on with", () => {
  it.effect("an empty one, which its next start would delete with the conversation, does not stand beside that", () =>
    Effect.gen(function* () {
      for (const held of [HELD, WHOLE]) {
        const files = {
          "session-2026-11-24T16-35-6b87bcc7.jsonl": held,
          "session-2026-11-24T16-36-6b87bcc7.jsonl": EMPTY
        }
        assert.deepStrictEqual(yield* kept(files), ["session-2026-11-24T16-35-6b87bcc7.jsonl"])
      }
    })
  )

  it.effect("the conversation's gives up the name that the load would take in the same minute", () =>
    Effect.gen(function* () {
      const held = { "session-2026-11-24T16-37-6b87bcc7.jsonl": HELD }
      assert.deepStrictEqual(yield* kept(held), ["session-2026-11-24T16-36-6b87bcc7.jsonl"])
    })
  )

  it.effect("what is another session's, the only one, or cannot be read is left alone", () =>
    Effect.gen(function* () {
      const files = {
        "session-2026-11-24T16-30-11111111.jsonl": EMPTY,
        "session-2026-11-24T16-31-6b87bcc7.jsonl": EMPTY,
        "session-2026-11-24T16-32-6b87bcc7.jsonl": "{half",
        "notes-6b87bcc7.jsonl": EMPTY
      }
      assert.deepStrictEqual(yield* kept({ "session-2026-11-24T16-31-6b87bcc7.jsonl": EMPTY }), [
        "session-2026-11-24T16-31-6b87bcc7.jsonl"
      ])
      assert.deepStrictEqual(
        yield* kept(files),
        Object.keys(files)
          .filter((name) => !name.includes("16-31"))
          .toSorted()
      )
    })
  )

  it("knows the program by its name", () => {
    const is = (...argv: ReadonlyArray<string>) => GeminiSessions.isGemini(argv)
    assert.isTrue(is("gemini", "--acp"))
    assert.isTrue(is("/opt/bin/gemini", "--acp"))
    assert.isTrue(is("npx", "@google/gemini-cli", "--acp"))
    assert.isFalse(is("opencode", "acp"))
  })
})
