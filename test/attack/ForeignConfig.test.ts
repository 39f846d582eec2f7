/**
 * Attacks by other users of the machine: a config, or a file that a config names, that
 * somebody else wrote, could write, or put in the way of this user's own.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { spawnSync } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { load, loadUser } from "../../src/config/ConfigFile.ts"
import { readSecret, reading } from "../../src/config/OwnFile.ts"
import * as Sandbox from "../support/Sandbox.ts"

const MALLORY = 61_003
const isRoot = process.getuid?.() === 0
/** Only root can give a file to another user. */
const asRoot = isRoot ? it.live : it.live.skip
if (!isRoot) console.warn("SKIPPED: attacks by a second user need root")

const config = { agents: { a: { backend: { type: "command", shell: "touch ../ran; cat" } } } }

const folderOf = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "agentd-foreign-")))),
  (folder) => Effect.sync(() => void spawnSync("rm", ["-rf", folder]))
)

/** A file with a config in a folder of its own. */
const laid = Effect.map(folderOf, (folder) => {
  const path = join(folder, "agentd.jsonc")
  writeFileSync(path, JSON.stringify(config))
  return { folder, path }
})

const refusal = (path: string) => Effect.flip(load(path))

describe("a config that somebody else could have written", () => {
  asRoot("another user's agentd.jsonc in a shared parent folder is not obeyed by `agentd start` below it", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      chmodSync(box.folder, 0o1777)
      const below = join(box.folder, "mine", "deep")
      mkdirSync(below, { recursive: true })
      const planted = join(box.folder, "agentd.jsonc")
      writeFileSync(planted, JSON.stringify(config))
      chownSync(planted, MALLORY, MALLORY)
      const started = yield* box.cliIn(below, "start")
      assert.strictEqual(started.code, 78)
      assert.include(started.stderr, `${planted}: is not used: ${planted} belongs to another user (uid ${MALLORY})`)
      assert.include(started.stderr, "make it yours: chown")
      assert.deepStrictEqual(yield* box.rows, [])
      yield* box.cli("stop", "--yes")
    })
  )

  it.live("a config that others can write to is refused, and its remedy helps", () =>
    Effect.gen(function* () {
      const { path } = yield* laid
      chmodSync(path, 0o666)
      const { message, reason, remedy } = yield* refusal(path)
      assert.strictEqual(reason, "unreadable")
      assert.include(message, `others can write to ${path} (mode 666)`)
      assert.include(remedy, `chmod go-w ${path}`)
      chmodSync(path, 0o644)
      yield* load(path)
    })
  )

  it.live("a folder above it in which others can write is refused; one with the sticky bit is not", () =>
    Effect.gen(function* () {
      const { folder, path } = yield* laid
      chmodSync(folder, 0o777)
      assert.include((yield* refusal(path)).message, `the folder ${folder}`)
      chmodSync(folder, 0o1777)
      yield* load(path)
    })
  )

  asRoot("a folder above it that belongs to another user is refused", () =>
    Effect.gen(function* () {
      const { folder, path } = yield* laid
      chownSync(folder, MALLORY, MALLORY)
      assert.include((yield* refusal(path)).message, `the folder ${folder} belongs to another user`)
    })
  )

  asRoot("another user's link to a file of one's own is refused; one's own link is followed", () =>
    Effect.gen(function* () {
      const { folder, path } = yield* laid
      const elsewhere = join(yield* folderOf, "agentd.jsonc")
      symlinkSync(path, elsewhere)
      yield* load(elsewhere)
      const shared = join(folder, "shared")
      mkdirSync(shared)
      chmodSync(shared, 0o1777)
      const planted = join(shared, "agentd.jsonc")
      symlinkSync(path, planted)
      spawnSync("chown", ["-h", String(MALLORY), planted])
      assert.include((yield* refusal(planted)).message, `the link ${planted} belongs to another user`)
    })
  )

  it.live("a link into a folder in which others can write is refused, and a circle of links ends", () =>
    Effect.gen(function* () {
      const { folder, path } = yield* laid
      const link = join(yield* folderOf, "agentd.jsonc")
      symlinkSync(path, link)
      chmodSync(folder, 0o777)
      assert.include((yield* refusal(link)).message, `the folder ${folder}`)
      const circle = join(yield* folderOf, "agentd.jsonc")
      symlinkSync(circle, circle)
      assert.include((yield* refusal(circle)).message, "loop")
    })
  )

  it.live("a pipe does not hold the reader up", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf
      spawnSync("mkfifo", [join(folder, "agentd.jsonc")])
      assert.include((yield* refusal(join(folder, "agentd.jsonc"))).message, "is not a file")
    })
  )

  asRoot("a group counts as others unless this user is alone in it", () =>
    Effect.gen(function* () {
      const { path } = yield* laid
      chmodSync(path, 0o664)
      chownSync(path, 0, MALLORY)
      assert.include((yield* refusal(path)).message, "others can write")
      chownSync(path, 0, 0)
      yield* load(path)
      // whose group is another's
      assert.strictEqual((yield* Effect.flip(reading(MALLORY)(path, 1000))).reason, "foreign")
    })
  )
})

describe("other files that decide", () => {
  it.live("the user's own config.jsonc, and a file with a password or a key", () =>
    Effect.gen(function* () {
      const { path } = yield* laid
      writeFileSync(path, "{}")
      chmodSync(path, 0o622)
      assert.include((yield* Effect.flip(loadUser(path))).message, "others can write")
      assert.include((yield* Effect.flip(readSecret(path))).message, "others can write")
      chmodSync(path, 0o600)
      yield* loadUser(path)
      assert.strictEqual(yield* readSecret(path), "{}")
    })
  )
})
