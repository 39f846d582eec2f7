/** Hostile files at the end of `--file`: none is waited for, followed, cut off or read beyond its bound. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { appendFileSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { MAX_FILE, MAX_FILES, MAX_MESSAGE } from "../../src/runs/AttachedFile.ts"
import * as FilesToSend from "../../src/cli/agents/FilesToSend.ts"
import * as Scratch from "../support/Scratch.ts"

const folder = Scratch.folder("agentd-hostile-")
const refusal = (...paths: ReadonlyArray<string>) => Effect.flip(FilesToSend.read(paths))

describe("a file to be sent", () => {
  it.effect("an ordinary one is read whole, under its name and hash; the same twice is two", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "notes.md")
      writeFileSync(path, "hello")
      const files = yield* FilesToSend.read([path, path])
      assert.deepStrictEqual(
        files.map(({ content, filename }) => [filename, Buffer.from(content).toString()]),
        [
          ["notes.md", "hello"],
          ["notes.md", "hello"]
        ]
      )
      assert.match(files[0]!.sha256, /^2cf24dba5fb0a30e/)
    })
  )

  it.live("a link is not followed: what an agent has made of shot.png may be a key", () =>
    Effect.gen(function* () {
      const at = yield* folder
      writeFileSync(join(at, "key"), "secret")
      symlinkSync(join(at, "key"), join(at, "shot.png"))
      symlinkSync("nowhere", join(at, "loose.png"))
      const error = yield* refusal(join(at, "shot.png"))
      assert.strictEqual(error.message, `${join(at, "shot.png")} is a link to ${join(at, "key")}.`)
      assert.match((yield* refusal(join(at, "loose.png"))).message, /is a link to nowhere/)
    })
  )

  it.live("a pipe, a folder, a socket and a device are no files, and are not waited for", () =>
    Effect.gen(function* () {
      const at = yield* folder
      execFileSync("mkfifo", [join(at, "pipe")])
      mkdirSync(join(at, "folder"))
      const server = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const one = createServer()
          one.listen(join(at, "socket"), () => resume(Effect.succeed(one)))
        }),
        (one) => Effect.sync(() => one.close())
      )
      assert.isTrue(server.listening)
      assert.match((yield* refusal(join(at, "pipe"))).message, /pipe is a pipe/)
      assert.match((yield* refusal(join(at, "folder"))).message, /folder is a folder/)
      assert.match((yield* refusal(join(at, "socket"))).message, /socket cannot be read/)
      assert.match((yield* refusal("/dev/zero")).message, /\/dev\/zero is a device/)
      assert.match((yield* refusal(join(at, "none"))).message, /none cannot be read: there is no such file/)
    })
  )

  it.live("one that is empty, too large, or of no kind that agents take is refused by its name", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const path = (name: string, content: string | Uint8Array) => {
        writeFileSync(join(at, name), content)
        return join(at, name)
      }
      assert.match((yield* refusal(path("empty.png", ""))).message, /empty\.png is empty/)
      const huge = path("huge.png", "\u0089PNG")
      truncateSync(huge, 1024 ** 4)
      assert.match((yield* refusal(huge)).message, /huge\.png is larger than 5\.0 MiB/)
      const limit = path("limit.txt", "x".repeat(MAX_FILE))
      assert.strictEqual((yield* FilesToSend.read([limit]))[0]!.content.length, MAX_FILE)
      const error = yield* refusal(path("program.png", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0])))
      assert.match(
        `${error.message} ${error.remedy}`,
        /program\.png has a file type that cannot be sent\. These can be sent: PNG, JPEG.*name its path/
      )
    })
  )

  it.live("one whose size the system does not tell, or that grows meanwhile, is not sent half", () =>
    Effect.gen(function* () {
      assert.match((yield* refusal("/proc/self/status")).message, /changed while it was read/)
      const path = join(yield* folder, "grows.txt")
      writeFileSync(path, "x".repeat(1024 * 1024))
      let isOver = false
      const grow = () => {
        if (isOver) return
        appendFileSync(path, "y")
        setImmediate(grow)
      }
      setImmediate(grow)
      const error = yield* Effect.ensuring(
        refusal(path),
        Effect.sync(() => (isOver = true))
      )
      assert.match(error.message, /grows\.txt (changed while|is larger than)/)
    })
  )

  it.live("too many, and too much together, are refused before anything is sent", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const paths = Array.from({ length: 1_000 }, (_, n) => join(at, `${n}.txt`))
      // none of them is there: they are counted first
      assert.match((yield* refusal(...paths)).message, new RegExp(`at most ${MAX_FILES} files, but you passed 1000`))
      const large = join(at, "large.txt")
      writeFileSync(large, "x".repeat(MAX_FILE))
      const many = Array.from({ length: Math.floor(MAX_MESSAGE / MAX_FILE) + 1 }, () => large)
      assert.match((yield* refusal(...many)).message, /With .*large\.txt the files are larger than 16\.0 MiB/)
    })
  )
})
