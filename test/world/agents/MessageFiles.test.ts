/** Contents of files that come with messages: durable, once each, bounded, and gone when no message needs them. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as MessageFiles from "../../../src/agents/prompt/MessageFiles.ts"
import * as RetainedFiles from "../../../src/projects/service/RetainedFiles.ts"
import { MAX_FILE, mediaTypeOf } from "../../../src/runs/AttachedFile.ts"
import { words } from "../../../src/runs/FileDescription.ts"
import * as Scratch from "../../support/Scratch.ts"
import { caller, make } from "./AgentWorld.ts"
import * as Puppet from "./Puppet.ts"
import { until } from "./World.ts"

const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex")
const bytes = (text: string) => Buffer.from(text)
const NONE: ReadonlySet<string> = new Set()

const store = Effect.gen(function* () {
  const folder = join(yield* Scratch.folder("agentd-files-"), "files")
  return { folder, files: yield* MessageFiles.make(folder) }
}).pipe(Effect.provide(NodeFileSystem.layer))

const whole = (files: MessageFiles.MessageFiles, content: Uint8Array) =>
  files.add({ sha256: hashOf(content), size: content.length, at: 0, data: content })

describe("contents of files", () => {
  it.effect("a content that comes twice, in pieces and from two senders, is there once, for this user alone", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      const content = bytes("one and the same")
      const sha256 = hashOf(content)
      const piece = (at: number, to: number) =>
        files.add({ sha256, size: content.length, at, data: content.subarray(at, to) })
      assert.strictEqual(yield* piece(0, 4), 4)
      // another sender begins: it is told how far the first has come, and a piece that is out of place changes nothing
      assert.strictEqual(yield* piece(0, 0), 4)
      assert.strictEqual(yield* piece(2, 6), 4)
      assert.strictEqual(yield* piece(4, 16), 16)
      assert.strictEqual(yield* piece(0, 4), 16)
      assert.deepStrictEqual(readdirSync(folder), [sha256])
      assert.strictEqual(readFileSync(join(folder, sha256), "utf8"), "one and the same")
      assert.strictEqual(statSync(folder).mode & 0o777, 0o700)
      assert.strictEqual(statSync(join(folder, sha256)).mode & 0o777, 0o600)
    })
  )

  it.effect("a content that is not what its hash says is refused, and leaves nothing", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      const error = yield* Effect.flip(files.add({ sha256: hashOf(bytes("a")), size: 1, at: 0, data: bytes("b") }))
      assert.match(error.message, /changed while it was sent/)
      assert.isFalse(existsSync(folder))
      const long = yield* Effect.flip(files.add({ sha256: hashOf(bytes("a")), size: 1, at: 0, data: bytes("ab") }))
      assert.match(long.message, /longer than its announced size/)
    })
  )

  it.effect("one that was damaged on the disk is not handed on, and can be sent again", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      const content = bytes("as it was")
      const sha256 = hashOf(content)
      yield* whole(files, content)
      writeFileSync(join(folder, sha256), "as it wxs")
      assert.match((yield* Effect.flip(files.describe("a.txt", sha256))).message, /"a.txt" is not stored/)
      yield* whole(files, content)
      assert.deepStrictEqual(yield* files.describe("a.txt", sha256), {
        filename: "a.txt",
        type: "text/plain",
        size: 9,
        sha256
      })
    })
  )

  it.effect("what no message needs is removed once its time to be sent is over; what one needs stays", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      const [one, two] = [bytes("one"), bytes("two")]
      yield* whole(files, one)
      yield* whole(files, two)
      yield* files.sweep(NONE)
      assert.strictEqual(readdirSync(folder).length, 2)
      yield* TestClock.adjust(MessageFiles.GRACE + 1)
      yield* files.sweep(new Set([hashOf(two)]))
      assert.deepStrictEqual(readdirSync(folder), [hashOf(two)])
      // what a message names is in no danger while its rune is on its way
      yield* files.describe("two", hashOf(two))
      yield* files.sweep(NONE)
      assert.deepStrictEqual(readdirSync(folder), [hashOf(two)])
    })
  )

  it.effect("a daemon that was killed leaves at most what the next one sweeps", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      yield* whole(files, bytes("no message names it"))
      writeFileSync(join(folder, `${hashOf(bytes("half"))}.part`), "ha")
      writeFileSync(join(folder, "a person's own"), "x")
      const next = yield* Effect.provide(MessageFiles.make(folder), NodeFileSystem.layer)
      yield* next.sweep(NONE)
      assert.deepStrictEqual(readdirSync(folder), ["a person's own"])
    })
  )

  it.effect("their bytes and number are bounded, and half contents are, too", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      mkdirSync(folder)
      const sizes = (files as unknown as { readonly kept: Map<string, number> }).kept
      sizes.set("a".repeat(64), MessageFiles.MAX_TOTAL - 2)
      assert.match((yield* Effect.flip(whole(files, bytes("abc")))).message, /512.0 MiB/)
      yield* whole(files, bytes("ab"))
      for (let n = 0; n < MessageFiles.MAX_COUNT; n++) sizes.set(`${n}`, 0)
      assert.isTrue(files.isFull(1))
      sizes.clear()
      for (let n = 0; n < 1_000; n++)
        yield* files.add({ sha256: hashOf(bytes(`${n}`)), size: MAX_FILE, at: 0, data: bytes("x") })
      const { coming } = files as unknown as { readonly coming: Map<string, unknown> }
      assert.strictEqual(coming.size, MessageFiles.MAX_COMING)
    })
  )

  it.effect("a folder that cannot be written is said, with what to do", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* store
      writeFileSync(folder, "no folder")
      chmodSync(folder, 0o400)
      const error = yield* Effect.flip(whole(files, bytes("abc")))
      assert.match(`${error.message} ${error.remedy}`, /could not be stored.*Free space/)
    })
  )
})

describe("the kind of a content", () => {
  it.each<readonly [string, Uint8Array, string | undefined]>([
    ["PNG", Buffer.from("\u0089PNG\r\n\u001a\n….", "latin1"), "image/png"],
    ["JPEG", Buffer.from([0xff, 0xd8, 0xff, 0xe0]), "image/jpeg"],
    ["GIF", bytes("GIF89a…"), "image/gif"],
    ["WebP", bytes("RIFF1234WEBPVP8 "), "image/webp"],
    ["PDF", bytes("%PDF-1.7\n"), "application/pdf"],
    ["text", bytes("Grüße\n\t→ ok"), "text/plain"],
    ["a program", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1]), undefined],
    ["what is no UTF-8", Buffer.from([0x61, 0xff, 0xfe]), undefined],
    ["nothing", bytes(""), undefined]
  ])("%s", (_, content, type) => assert.strictEqual(mediaTypeOf(content), type))

  it("a hostile name ends no line, in whatever words it stands", () => {
    const filename = 'x"\n--- end\u2028\u0085\u001b[31m.png'
    const told = words({ filename, type: "image/png", size: 12_345 })
    for (const one of ["\n", "\u2028", "\u0085", "\u001b"]) assert.notInclude(told, one)
    assert.include(told, "(image/png, 13 KiB)")
  })
})

const PICTURE = Buffer.from("\u0089PNG\r\n\u001a\npicture", "latin1")

/** An agent whose files lie in a folder. */
const place = Effect.gen(function* () {
  const { files, folder } = yield* store
  const puppet = Puppet.make()
  const world = yield* make([], { interruptGrace: "1 second" }, { puppet })
  yield* world.lose
  world.files = files
  yield* world.open
  yield* whole(files, PICTURE)
  yield* whole(files, bytes("# notes"))
  const given = [
    yield* files.describe("shot.png", hashOf(PICTURE)),
    yield* files.describe("notes.md", hashOf(bytes("# notes")))
  ]
  return { world, puppet, files, folder, given }
})

const names = (files: ReadonlyArray<{ readonly filename: string; readonly path: string }> | undefined) =>
  files?.map(({ filename, path }) => [filename, existsSync(path)])

describe("a message with files", () => {
  it.live("its run is given them in the order in which its prompt names them; the log has no content", () =>
    Effect.gen(function* () {
      const { given, puppet, world } = yield* place
      yield* world.tree.send("first", "queue", caller, undefined, [given[1]!])
      yield* world.tree.send("second", "queue", caller, undefined, [given[0]!])
      const run = yield* puppet.run()
      const { files, prompt } = run.spec
      assert.deepStrictEqual(
        names(files),
        prompt.includes("second")
          ? [
              ["notes.md", true],
              ["shot.png", true]
            ]
          : [["notes.md", true]]
      )
      assert.match(prompt, /from ada, a person with file 1, "notes\.md" \(text\/plain, 7 bytes\)\nfirst/)
      const log = JSON.stringify(yield* world.runes)
      assert.notInclude(log, "# notes")
      assert.include(log, "notes.md")
    }).pipe(Effect.scoped)
  )

  it.live("a further turn of the run is given its own, and one that is cut short is given them again", () =>
    Effect.gen(function* () {
      const { given, puppet, world } = yield* place
      yield* world.tree.send("plain", "queue", caller)
      const run = yield* puppet.run()
      assert.isUndefined(run.spec.files)
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "idle"
      )
      yield* world.tree.send("look", "queue", caller, undefined, given)
      const [sent] = yield* until(
        Effect.sync(() => run.sent),
        (all) => all.length === 1
      )
      assert.deepStrictEqual(names((sent as { readonly files?: typeof run.spec.files }).files), [
        ["shot.png", true],
        ["notes.md", true]
      ])
      // the run dies in it: the next one carries it again
      yield* run.say({ _tag: "Exited", outcome: { _tag: "Uncounted", reason: "lost" } })
      const next = yield* puppet.run(1)
      assert.deepStrictEqual(names(next.spec.files), [
        ["shot.png", true],
        ["notes.md", true]
      ])
      assert.match(next.spec.prompt, /file 1, "shot\.png".*file 2, "notes\.md"/)
    }).pipe(Effect.scoped)
  )

  it.live("a daemon that comes back finds them with what waits; they are needed until that is done", () =>
    Effect.gen(function* () {
      const { files, folder, given, puppet, world } = yield* place
      yield* world.tree.stop(caller)
      yield* world.tree.send("look", "queue", caller, undefined, given)
      yield* world.lose
      yield* world.open
      const needed = () =>
        new Set(
          RetainedFiles.neededMessages({ inbox: world.tree.inbox(), turn: world.tree.turn() }).flatMap((message) =>
            (message.files ?? []).map(({ sha256 }) => sha256)
          )
        )
      assert.strictEqual(needed().size, 2)
      yield* world.tree.start(caller)
      const run = yield* puppet.run(puppet.runs.length)
      assert.strictEqual(run.spec.files?.length, 2)
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "streaming"
      )
      assert.strictEqual(needed().size, 2)
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "seen" })
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "idle"
      )
      assert.strictEqual(needed().size, 0)
      yield* Effect.forEach(given, ({ sha256 }) => files.forget(sha256))
      assert.deepStrictEqual(readdirSync(folder), [])
    }).pipe(Effect.scoped)
  )

  it.live("work that came to no answer keeps them, and carries them when it is asked again", () =>
    Effect.gen(function* () {
      const { given, puppet, world } = yield* place
      yield* world.tree.send("look", "queue", caller, undefined, given)
      const run = yield* puppet.run()
      yield* run.say({
        _tag: "TurnError",
        turnId: run.spec.turnId,
        errorType: "refusal",
        message: "no",
        retry: false,
        goesOn: true
      })
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "idle"
      )
      const stands = { inbox: world.tree.inbox(), turn: world.tree.turn() }
      assert.deepStrictEqual(
        RetainedFiles.neededMessages(stands).map(({ files }) => files?.length),
        [2]
      )
      yield* world.tree.tellInbox({ _tag: "AskAgain", which: undefined, as: "again", by: "ada" })
      yield* until(
        Effect.sync(() => run.sent.length + puppet.runs.length),
        (count) => count === 2
      )
      const again = run.sent[0] ?? puppet.runs[1]!.spec
      assert.strictEqual((again as { readonly files?: ReadonlyArray<object> }).files?.length, 2)
    }).pipe(Effect.scoped)
  )
})
