/**
 * Workspace: what INV-TOOL-SANDBOX means for files, broken on purpose with real links,
 * real races, real pipes and devices.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { execFileSync, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import type { FileFailed, WorkspaceError } from "../../../src/runs/sandbox/PathContainment.ts"
import * as Workspace from "../../../src/runs/sandbox/Workspace.ts"

const MAX = { maxBytes: 100_000 }
const SECRET = "the secret outside"

/** A workspace, and a folder beside it that nobody may reach. */
const grounds = (options?: Workspace.WorkspaceOptions) =>
  Effect.gen(function* () {
    const base = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-workspace-")))),
      (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
    )
    const [root, outside] = [path.join(base, "ws"), path.join(base, "outside")]
    for (const folder of [root, outside]) fs.mkdirSync(folder)
    fs.writeFileSync(path.join(outside, "secret"), SECRET)
    const workspace = yield* Workspace.open(root, options)
    return { base, root, outside, workspace }
  })

const failureOf = (effect: Effect.Effect<unknown, WorkspaceError>) =>
  Effect.matchEffect(effect, { onFailure: Effect.succeed, onSuccess: () => Effect.die(new Error("it succeeded")) })
const reasonOf = (effect: Effect.Effect<unknown, WorkspaceError>) =>
  Effect.map(failureOf(effect), (error) => (error._tag === "FileFailed" ? error.reason : error._tag))

/** A process of its own that swaps a name between two things, as fast as it can, for the scope. */
const swapping = (script: string, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof spawn>>((resume) => {
      const child = spawn(process.execPath, ["-e", script, ...args], { stdio: ["ignore", "pipe", "inherit"] })
      child.stdout?.once("data", () => resume(Effect.succeed(child)))
    }),
    (child) =>
      Effect.callback<void>((resume) => {
        if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )

/** [name, link target]: the name is itself, then a link to the target, then itself again; what is made there meanwhile goes. */
const SWAP = `
const fs = require("node:fs")
const [name, target] = process.argv.slice(1)
const [aside, link] = [name + ".aside", name + ".link"]
fs.symlinkSync(target, link)
console.log("swapping")
const attempt = (act) => { try { act() } catch {} }
const step = (from, to) => {
  try { fs.renameSync(from, to) } catch { attempt(() => fs.rmSync(name, { recursive: true, force: true })) }
}
for (;;) {
  step(name, aside)
  step(link, name)
  step(name, link)
  step(aside, name)
  attempt(() => fs.symlinkSync(target, link))
}`

const live = (name: string, body: () => Effect.Effect<void, WorkspaceError | FileFailed, Scope.Scope>) =>
  it.live(name, () => Effect.scoped(body()))

describe("INV-TOOL-SANDBOX: a path that leaves the workspace is a violation, and nothing of it is told or changed", () => {
  const ways: ReadonlyArray<readonly [string, (root: string, outside: string) => string]> = [
    ["by ..", () => "../outside/secret"],
    ["by .. behind a folder that does not exist", () => "a/../../outside/secret"],
    ["by an absolute path", (_, outside) => `${outside}/secret`],
    ["by /etc/passwd", () => "/etc/passwd"],
    ["by a link to a file", (root, outside) => (fs.symlinkSync(`${outside}/secret`, `${root}/l1`), "l1")],
    ["by a link to a folder", (root, outside) => (fs.symlinkSync(outside, `${root}/l2`), "l2/secret")],
    ["by a relative link", (root) => (fs.symlinkSync("../outside", `${root}/l3`), "l3/secret")],
    [
      "by a chain of links",
      (root) => (fs.symlinkSync("l4b", `${root}/l4`), fs.symlinkSync("../outside/secret", `${root}/l4b`), "l4")
    ],
    ["by /proc/self/root", (root, outside) => (fs.symlinkSync("/proc/self/root", `${root}/l5`), `l5${outside}/secret`)],
    ["by /proc/self/cwd", (root) => (fs.symlinkSync("/proc/self/cwd", `${root}/l6`), "l6")],
    ["by the daemon's own descriptors", (root) => (fs.symlinkSync("/proc/self/fd/1", `${root}/l7`), "l7")],
    ["by the daemon's own environment", (root) => (fs.symlinkSync("/proc/self/environ", `${root}/l8`), "l8")],
    ["by a link to a device", (root) => (fs.symlinkSync("/dev/zero", `${root}/l9`), "l9")],
    ["by a name that only begins as the workspace's does", (root) => `${root}-other/x`]
  ]
  for (const [name, way] of ways) {
    live(name, () =>
      Effect.gen(function* () {
        const { root, outside, workspace } = yield* grounds()
        const file = way(root, outside)
        for (const effect of [
          workspace.read(file, MAX),
          workspace.whole(file, 1000),
          workspace.write(file, "overwritten"),
          workspace.list(file, { maxEntries: 10 })
        ]) {
          const error = yield* failureOf(effect)
          assert.strictEqual(error._tag, "WorkspaceViolation")
          assert.notInclude(error.message, SECRET)
          assert.match(error.remedy, /\w/)
        }
        assert.strictEqual(fs.readFileSync(`${outside}/secret`, "utf8"), SECRET)
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret"])
      })
    )
  }

  live("nothing is made outside: new files and folders below a link, and through a link that leads nowhere", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* grounds()
      fs.symlinkSync(outside, `${root}/out`)
      fs.symlinkSync(`${outside}/new`, `${root}/dangling`)
      for (const file of ["out/new", "out/deep/er/new", "dangling", "dangling/new", "dangling/deep/new", "../new"]) {
        assert.strictEqual(yield* reasonOf(workspace.write(file, "x")), "WorkspaceViolation", file)
      }
      assert.deepStrictEqual(fs.readdirSync(outside), ["secret"])
    })
  )

  live("what is hidden stays hidden, by its name and by a link", () =>
    Effect.gen(function* () {
      const { root, base } = yield* grounds()
      fs.mkdirSync(`${root}/state`)
      fs.writeFileSync(`${root}/state/key`, SECRET)
      fs.symlinkSync("state", `${root}/s`)
      const workspace = yield* Workspace.open(root, { hidden: [`${root}/state`, `${base}/none`] })
      for (const file of ["state/key", "s/key", "state/new", "s/new"]) {
        assert.strictEqual(yield* reasonOf(workspace.read(file, MAX)), "WorkspaceViolation")
        assert.strictEqual(yield* reasonOf(workspace.write(file, "x")), "WorkspaceViolation")
      }
      assert.strictEqual(yield* reasonOf(workspace.list("s", { maxEntries: 9 })), "WorkspaceViolation")
      const { entries } = yield* workspace.list("", { maxEntries: 9, depth: 9 })
      assert.notInclude(
        entries.map((entry) => entry.path),
        "state/key"
      )
    })
  )

  live("git's insides and agentd's config are not written, by whatever path", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      fs.mkdirSync(`${root}/.git/hooks`, { recursive: true })
      fs.writeFileSync(`${root}/agentd.jsonc`, "{}")
      fs.symlinkSync("agentd.jsonc", `${root}/innocent`)
      fs.symlinkSync(".git/hooks", `${root}/h`)
      for (const file of [
        ".git/hooks/post-commit",
        ".git",
        "h/post-commit",
        "agentd.jsonc",
        "innocent",
        "sub/.git/config",
        "x/agentd.jsonc"
      ]) {
        assert.strictEqual(yield* reasonOf(workspace.write(file, "x")), "WorkspaceViolation", file)
      }
      assert.strictEqual(fs.readFileSync(`${root}/agentd.jsonc`, "utf8"), "{}")
      assert.deepStrictEqual(fs.readdirSync(`${root}/.git/hooks`), [])
      assert.isFalse(fs.existsSync(`${root}/x`))
    })
  )

  live("a folder that is swapped for a link all the time: nothing outside is read or made", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* grounds()
      fs.mkdirSync(`${root}/dir`)
      fs.writeFileSync(`${root}/dir/secret`, "inside")
      fs.mkdirSync(`${outside}/deep`)
      yield* swapping(SWAP, `${root}/dir`, outside)
      const seen = { inside: 0, refused: 0, written: 0 }
      for (let round = 0; round < 2000 && (seen.inside < 30 || seen.refused < 30 || seen.written < 30); round++) {
        const text = yield* workspace.read("dir/secret", MAX).pipe(
          Effect.map(({ text }) => text),
          Effect.option
        )
        if (text._tag === "Some") assert.strictEqual(text.value, "inside")
        seen[text._tag === "Some" ? "inside" : "refused"]++
        const write = yield* Effect.option(workspace.write(`dir/new${round % 7}`, "x"))
        if (write._tag === "Some") seen.written++
        yield* Effect.ignore(workspace.write(`dir/deep/a${round % 7}/b`, "x"))
        yield* Effect.ignore(workspace.list("dir", { maxEntries: 100, depth: 3 }))
      }
      assert.deepStrictEqual(fs.readdirSync(outside, { recursive: true }).toSorted(), ["deep", "secret"])
      assert.strictEqual(fs.readFileSync(`${outside}/secret`, "utf8"), SECRET)
      assert.isAbove(seen.inside, 0)
      assert.isAbove(seen.refused, 0)
      assert.isAbove(seen.written, 0)
    })
  )

  live("a file that is swapped for a link to a file outside: that one is never read, never overwritten", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* grounds()
      fs.writeFileSync(`${root}/file`, "inside")
      yield* swapping(SWAP, `${root}/file`, `${outside}/secret`)
      const seen = { read: 0, refused: 0 }
      for (let round = 0; round < 2000 && (seen.read < 30 || seen.refused < 30); round++) {
        const text = yield* workspace.whole("file", 1000).pipe(
          Effect.map(({ bytes }) => String(bytes)),
          Effect.option
        )
        if (text._tag === "Some") assert.strictEqual(text.value, "inside")
        seen[text._tag === "Some" ? "read" : "refused"]++
        yield* Effect.ignore(workspace.write("file", "inside"))
      }
      assert.strictEqual(fs.readFileSync(`${outside}/secret`, "utf8"), SECRET)
      assert.isAbove(seen.read, 0)
      assert.isAbove(seen.refused, 0)
    })
  )
})

describe("what is no regular file holds nobody up", () => {
  live("a FIFO, a socket and a device are refused at once, for reading and for writing", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      execFileSync("mkfifo", [`${root}/fifo`])
      const server = yield* Effect.acquireRelease(
        Effect.callback<net.Server>((resume) => {
          const server = net.createServer().listen(`${root}/socket`, () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      assert.isTrue(server.listening)
      if (process.getuid?.() === 0) execFileSync("mknod", [`${root}/zero`, "c", "1", "5"])
      const { entries } = yield* workspace.list("", { maxEntries: 10 })
      assert.isAtLeast(entries.length, 2)
      for (const { path, kind } of entries) {
        assert.strictEqual(kind, "other")
        assert.strictEqual(yield* reasonOf(workspace.read(path, MAX)), "NotAFile")
        assert.strictEqual(yield* reasonOf(workspace.whole(path, 10)), "NotAFile")
        assert.strictEqual(yield* reasonOf(workspace.write(path, "x")), "NotAFile")
      }
    })
  )

  live("a huge file is read in part, and not at all as a whole", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      fs.writeFileSync(`${root}/huge`, "line\n".repeat(5000))
      fs.truncateSync(`${root}/huge`, 2 ** 40)
      const { text, lines, cut } = yield* workspace.read("huge", { maxBytes: 1000, line: 11, limit: 3 })
      assert.deepStrictEqual([text, lines, cut], ["line\nline\nline\n", 3, "limit"])
      assert.strictEqual((yield* workspace.read("huge", { maxBytes: 1000 })).text.length, 1000)
      assert.strictEqual(yield* reasonOf(workspace.whole("huge", 1_000_000)), "TooLarge")
    })
  )

  live("names with NUL are refused, those with newlines and quotes are names as any other", () =>
    Effect.gen(function* () {
      const { workspace } = yield* grounds()
      assert.strictEqual(yield* reasonOf(workspace.read("a\0b", MAX)), "Invalid")
      assert.strictEqual(yield* reasonOf(workspace.write("a\0b", "")), "Invalid")
      assert.strictEqual(yield* reasonOf(workspace.write("x".repeat(300), "")), "Invalid")
      for (const name of ["a\nb", 'a"b', " ", "-rf", "é\u202ex", "a\\b"]) {
        yield* workspace.write(name, name)
        assert.strictEqual((yield* workspace.read(name, MAX)).text, name)
      }
      const error = yield* failureOf(workspace.read("no\nsuch", MAX))
      assert.notInclude(error.message, "\n")
    })
  )
})

describe("files", () => {
  live("absolute paths into the workspace are those in it, also by a link to the workspace", () =>
    Effect.gen(function* () {
      const { root, base } = yield* grounds()
      fs.symlinkSync(root, `${base}/alias`)
      const workspace = yield* Workspace.open(`${base}/alias`)
      yield* workspace.write(`${base}/alias/a/b`, "1")
      assert.strictEqual((yield* workspace.read(`${root}/a/../a/b`, MAX)).text, "1")
      assert.strictEqual(yield* workspace.folder("a"), `${root}/a`)
    })
  )

  live("a link inside to a file inside is read, and written through, and stays a link", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      yield* workspace.write("real/file", "old")
      fs.symlinkSync("real/file", `${root}/link`)
      assert.deepStrictEqual(yield* workspace.write("link", "new"), { created: false })
      assert.isTrue(fs.lstatSync(`${root}/link`).isSymbolicLink())
      assert.strictEqual(fs.readFileSync(`${root}/real/file`, "utf8"), "new")
    })
  )

  live("a write keeps the permissions, leaves nothing beside it, and a reader sees the old or the new whole", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      const [one, two] = ["a".repeat(500_000), "b".repeat(400_000)]
      yield* workspace.write("run.sh", one)
      fs.chmodSync(`${root}/run.sh`, 0o751)
      const writer = yield* Effect.forkScoped(
        Effect.forEach(Array.from({ length: 40 }), (_, index) => workspace.write("run.sh", index % 2 === 0 ? two : one))
      )
      for (let round = 0; round < 100; round++) {
        const text = fs.readFileSync(`${root}/run.sh`, "utf8")
        assert.isTrue(text === one || text === two)
        yield* Effect.yieldNow
      }
      yield* Fiber.join(writer)
      assert.strictEqual(fs.statSync(`${root}/run.sh`).mode & 0o777, 0o751)
      assert.deepStrictEqual(fs.readdirSync(root), ["run.sh"])
    })
  )

  live("with a version, what has changed since is not overwritten", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      yield* workspace.write("file", "1")
      const { version } = yield* workspace.whole("file", 10)
      fs.writeFileSync(`${root}/file`, "2")
      assert.strictEqual(yield* reasonOf(workspace.write("file", "3", { version })), "Changed")
      const now = yield* workspace.whole("file", 10)
      yield* workspace.write("file", "3", { version: now.version })
      assert.strictEqual(fs.readFileSync(`${root}/file`, "utf8"), "3")
    })
  )

  live("lines are counted from 1, the last one needs no end, and a character is not cut in two", () =>
    Effect.gen(function* () {
      const { workspace } = yield* grounds()
      yield* workspace.write("file", "one\ntwo\nthree")
      const read = (line?: number, limit?: number, maxBytes = 100) =>
        Effect.map(workspace.read("file", { line, limit, maxBytes }), ({ text, lines, cut }) => [text, lines, cut])
      assert.deepStrictEqual(yield* read(), ["one\ntwo\nthree", 3, undefined])
      assert.deepStrictEqual(yield* read(3), ["three", 1, undefined])
      assert.deepStrictEqual(yield* read(2, 1), ["two\n", 1, "limit"])
      assert.deepStrictEqual(yield* read(1, 3), ["one\ntwo\nthree", 3, undefined])
      assert.deepStrictEqual(yield* read(1, undefined, 5), ["one\nt", 2, "maxBytes"])
      assert.strictEqual(yield* reasonOf(workspace.read("file", { line: 4, maxBytes: 9 })), "Invalid")
      yield* workspace.write("empty", "")
      assert.strictEqual((yield* workspace.read("empty", MAX)).text, "")
      yield* workspace.write("wide", "ééé")
      assert.strictEqual((yield* workspace.read("wide", { maxBytes: 3 })).text, "é")
      yield* workspace.write("bytes", "a\0b")
      assert.strictEqual(yield* reasonOf(workspace.read("bytes", MAX)), "Binary")
    })
  )

  live("a listing is bounded, sorted, and follows no link", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      for (const file of ["b/x", "a/y/z", "c"]) yield* workspace.write(file, "")
      fs.symlinkSync("..", `${root}/a/up`)
      const paths = (depth: number, maxEntries = 100) =>
        Effect.map(workspace.list(".", { depth, maxEntries, skip: (name) => name === "b" }), ({ entries, more }) => [
          entries.map((entry) => entry.path).join(" "),
          more
        ])
      assert.deepStrictEqual(yield* paths(1), ["a b c", false])
      assert.deepStrictEqual(yield* paths(9), ["a a/up a/y a/y/z b c", false])
      assert.deepStrictEqual(yield* paths(9, 3), ["a a/up a/y", true])
    })
  )

  live("no descriptor is left open", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* grounds()
      const open = () => fs.readdirSync("/proc/self/fd").length
      yield* workspace.write("a/b", "1")
      fs.symlinkSync("/etc", `${root}/out`)
      const before = open()
      for (let round = 0; round < 50; round++) {
        yield* workspace.write("a/b", "1")
        yield* workspace.list("", { maxEntries: 9, depth: 9 })
        yield* Effect.ignore(workspace.read("out/passwd", MAX))
        yield* Effect.ignore(workspace.write("out/x", "1"))
      }
      assert.isAtMost(open(), before + 5)
    })
  )
})
