/** Backups of a store that is written to, and restores; kills and damage on the way. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Random, Stream } from "effect"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { DatabaseSync } from "node:sqlite"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import * as Access from "../../../src/access/Access.ts"
import * as BackupFile from "../../../src/backup/BackupFile.ts"
import * as Restoring from "../../../src/backup/Restoring.ts"
import * as Tar from "../../../src/backup/Tar.ts"
import { agentd, launch } from "../cli/Child.ts"
import { folder, layer, note, withInlineLog, withLog } from "../event-log/Disk.ts"
import { seeded } from "../event-log/Seed.ts"
import { sample, long } from "../../support/Long.ts"

const sealer = fileURLToPath(new URL("../../support/sealer.ts", import.meta.url))

/** A store that is appended to and sealed, until the scope closes. */
const busy = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [sealer, file], { stdio: ["ignore", "pipe", "inherit"] })
      const said: Array<string> = []
      let rest = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n")
        rest = lines.pop()!
        said.push(...lines)
      })
      return { child, said }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const gone = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    child.once("close", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

const until = (is: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (is() ? Effect.void : Effect.andThen(Effect.sleep("10 millis"), until(is))))

/** Every file below, with its content. */
const all = (base: string): { readonly [name: string]: string } =>
  Object.fromEntries(
    (fs.readdirSync(base, { recursive: true, encoding: "utf8" }) as Array<string>)
      .filter((name) => fs.statSync(join(base, name)).isFile())
      // a lock's own files, and what reading makes
      .filter((name) => !/^lock\.|-shm$|runes\.db-wal$/.test(name))
      .toSorted()
      .map((name) => [
        name,
        createHash("sha256")
          .update(fs.readFileSync(join(base, name)))
          .digest("hex")
      ])
  )

const makeIt = (state: string, file: string) =>
  BackupFile.make({ state, file, force: false, version: "test", progress: () => {} })

/** A small store with files beside it, and a backup of an earlier moment of it. */
const twoStores = Effect.gen(function* () {
  const base = yield* folder
  const state = join(base, "s")
  const file = join(base, "b.tar.zst")
  yield* withInlineLog({ file: join(state, "runes.db") }, (log) => log.append([note("a", 1), note("b", 2)]))
  for (const name of ["files", "waiting", "archive", "worktrees"]) fs.mkdirSync(join(state, name), { mode: 0o700 })
  for (const name of ["files/old", "waiting/old", "archive/old", "worktrees/w"])
    fs.writeFileSync(join(state, name), name)
  yield* makeIt(state, file)
  yield* withInlineLog({ file: join(state, "runes.db") }, (log) => log.append([note("a", 3)]))
  fs.writeFileSync(join(state, "files/new"), "new")
  fs.rmSync(join(state, "waiting"), { recursive: true })
  return { base, state, file }
})

const restored = (state: string, file: string) =>
  Effect.scoped(Effect.andThen(Restoring.unpack(state, file), Restoring.swap(state, file, "aside")))

const headOf = (state: string) => withInlineLog({ file: join(state, "runes.db") }, (log) => log.head)

const pieces = async function* (bytes: Buffer, size = 700) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

describe("Tar", () => {
  it.live("what is written is read again, and by tar: long names, other letters, all sizes", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const entries = [0, 1, 511, 512, 513, 100_000].map((size, index) => ({
        name: index % 2 === 0 ? `sessions/${"ä".repeat(90)}/${index}` : `files/é${index}`,
        size,
        bytes: Buffer.alloc(size, index + 1)
      }))
      const file = join(base, "x.tar")
      yield* Effect.promise(async () => {
        const pieces: Array<Uint8Array> = []
        for await (const piece of Tar.write(entries.map(({ bytes, ...entry }) => ({ ...entry, content: [bytes] }))))
          pieces.push(piece)
        fs.writeFileSync(file, Buffer.concat(pieces))
      })
      const names = execFileSync("tar", ["-tf", file, "--quoting-style=literal"], {
        encoding: "utf8",
        env: { ...process.env, LC_ALL: "C.UTF-8" }
      })
      assert.deepStrictEqual(
        names.trim().split("\n"),
        entries.map(({ name }) => name)
      )
      const found: Array<{ name: string; size: number; bytes: Buffer }> = []
      yield* Effect.promise(() =>
        Tar.read(fs.createReadStream(file, { highWaterMark: 700 }), async (entry, content) => {
          const pieces: Array<Uint8Array> = []
          for await (const piece of content) pieces.push(piece)
          found.push({ ...entry, bytes: Buffer.concat(pieces) })
        })
      )
      assert.deepStrictEqual(found, entries)
    })
  )

  for (const format of ["ustar", "pax", "gnu"])
    it.live(`a name of over 100 bytes that tar wrote in the format ${format} comes out whole`, () =>
      Effect.gen(function* () {
        const base = yield* folder
        const name = `sessions/${"s".repeat(90)}/${"n".repeat(60)}`
        fs.mkdirSync(join(base, name, ".."), { recursive: true })
        fs.writeFileSync(join(base, name), "text")
        const tar = execFileSync("tar", [`--format=${format}`, "-cf", "-", name], { cwd: base })
        const found: Array<string> = []
        yield* Effect.promise(() =>
          Tar.read(pieces(tar), async (entry, content) => {
            found.push(entry.name, `${entry.size}`, Buffer.concat(await Array.fromAsync(content)).toString())
          })
        )
        assert.deepStrictEqual(found, [name, "4", "text"])
      })
    )

  it.live("a byte that is not zero behind an entry's content is refused, wherever the pieces are cut", () =>
    Effect.gen(function* () {
      const entries = [3, 512, 70_000, 1].map((size, index) => ({ name: `${index}`, size }))
      const tar = Buffer.concat(
        yield* Effect.promise(() =>
          Array.fromAsync(Tar.write(entries.map((entry) => ({ ...entry, content: [Buffer.alloc(entry.size, 1)] }))))
        )
      )
      const read = (bytes: Buffer, cut: number) =>
        Effect.promise(async () => {
          const sizes: Array<number> = []
          return Tar.read(pieces(bytes, cut), async (_, content) => {
            sizes.push(Buffer.concat(await Array.fromAsync(content)).length)
          }).then(
            () => sizes,
            (error: unknown) => `${error}`
          )
        })
      // an end of each entry's padding: 2 blocks of the first, 2 of the second, 1 and 137 of the third
      const ends = [1024, (5 + 137) * 512, (5 + 137 + 2) * 512]
      for (const cut of [1, 512, 700, 65_536]) {
        assert.deepStrictEqual(
          yield* read(tar, cut),
          entries.map(({ size }) => size)
        )
        for (const end of ends) {
          const damaged = Buffer.from(tar)
          damaged[end - 1] = 1
          assert.match(`${yield* read(damaged, cut)}`, /damaged/, `byte ${end - 1} in pieces of ${cut}`)
        }
      }
    })
  )

  it.live("an entry that is no plain file is refused", () =>
    Effect.gen(function* () {
      const base = yield* folder
      fs.symlinkSync("/etc/passwd", join(base, "link"))
      fs.mkdirSync(join(base, "folder"))
      for (const name of ["link", "folder"]) {
        const tar = execFileSync("tar", ["-cf", "-", name], { cwd: base })
        const outcome = yield* Effect.promise(() =>
          Tar.read(pieces(tar), async () => {}).then(
            () => "read",
            (error: unknown) => `${error}`
          )
        )
        assert.match(outcome, /not a plain file/, name)
      }
    })
  )
})

describe("backup", () => {
  it.live(
    "of a store that is written to and sealed: what was acknowledged before it began is in it, and it is whole",
    () =>
      Effect.gen(function* () {
        const base = yield* folder
        const state = join(base, "s")
        const { child, said } = yield* busy(join(state, "runes.db"))
        yield* until(() => said.some((line) => /sealed \d/.test(line)))
        for (let round = 0; round < sample(20, 2); round++) {
          const before = said.filter((line) => !line.startsWith("sealed")).flatMap((line) => line.split(" "))
          const target = join(base, `r${round}`)
          const file = join(base, `b${round}.tar.zst`)
          const made = yield* agentd(["--state", state, "backup", file, "--json"])
          assert.deepStrictEqual({ code: made.code, err: made.err }, { code: 0, err: "" })
          assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
          const back = yield* agentd(["--state", target, "restore", file, "--json"])
          assert.deepStrictEqual({ code: back.code, err: back.err }, { code: 0, err: "" })
          assert.isAbove(fs.readdirSync(join(target, "segments")).length, 0)
          const places = yield* withLog({ file: join(target, "runes.db") }, (log) =>
            Effect.gen(function* () {
              assert.deepStrictEqual((yield* log.verify).problems, [])
              const runes = yield* Stream.runCollect(log.read({}))
              return new Set(runes.map(({ eventId, seq, stream }) => `${eventId}:${stream}#${seq}`))
            })
          )
          assert.deepStrictEqual(
            before.filter((place) => !places.has(place)),
            [],
            `of round ${round}`
          )
        }
        assert.strictEqual(child.exitCode, null, "the writer works on")
        assert.deepStrictEqual(
          fs.readdirSync(base).filter((name) => name.includes(".part")),
          []
        )
      })
  )

  long.live("killed at any moment, it leaves the store as it is and no file that looks like a backup", () =>
    seeded(
      Effect.gen(function* () {
        const base = yield* folder
        const state = join(base, "s")
        const { child, said } = yield* busy(join(state, "runes.db"))
        yield* until(() => said.some((line) => /sealed \d/.test(line)))
        const file = join(base, "b.tar.zst")
        for (let round = 0; round < sample(30, 2); round++) {
          const running = yield* launch(["--state", state, "backup", file, "--force"])
          yield* Effect.sleep(yield* Random.nextIntBetween(100, 500))
          running.child.kill("SIGKILL")
          yield* running.ended
          if (fs.existsSync(file)) yield* Effect.scoped(Restoring.unpack(state, file))
        }
        assert.strictEqual((yield* agentd(["--state", state, "backup", file, "--force"])).code, 0)
        assert.deepStrictEqual(fs.readdirSync(base).toSorted(), ["b.tar.zst", "s"])
        yield* gone(child)
        assert.strictEqual((yield* agentd(["--state", state, "verify"])).code, 0)
      })
    )
  )

  it.live("a file that is there is left alone, unless --force is given", () =>
    Effect.gen(function* () {
      const { file, state } = yield* twoStores
      const before = fs.readFileSync(file)
      const again = yield* agentd(["--state", state, "backup", file])
      assert.strictEqual(again.code, 1)
      assert.include(again.err, `agentd --state ${state} backup --force '${file}'`)
      assert.deepStrictEqual(fs.readFileSync(file), before)
      assert.strictEqual((yield* agentd(["--state", state, "backup", file, "--force"])).code, 0)
      assert.notDeepEqual(fs.readFileSync(file), before)
      assert.strictEqual((yield* agentd(["--state", join(state, "none"), "backup", `${file}2`])).code, 1)
    })
  )

  it.live("a segment that is not as the store lists it: no backup is made", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const state = join(base, "s")
      const { child, said } = yield* busy(join(state, "runes.db"))
      yield* until(() => said.some((line) => /sealed \d/.test(line)))
      yield* gone(child)
      const [name] = fs.readdirSync(join(state, "segments"))
      fs.appendFileSync(join(state, "segments", name!), "x")
      const error = yield* Effect.flip(makeIt(state, join(base, "b")))
      assert.match(error.message, /differs from the store's list/)
      assert.deepStrictEqual(fs.readdirSync(base), ["s"])
    })
  )
})

describe("restore", () => {
  it.live("asks; the store that was there lies beside it, whole, and what is no part of a backup stays", () =>
    Effect.gen(function* () {
      const { file, state } = yield* twoStores
      const before = all(state)
      const asked = yield* agentd(["--state", state, "restore", file])
      assert.strictEqual(asked.code, 2)
      assert.deepStrictEqual(all(state), before)
      const done = yield* agentd(["--state", state, "restore", file, "--yes", "--json"])
      const { aside, runes } = JSON.parse(done.out) as { aside: string; runes: number }
      assert.strictEqual(runes, 2)
      const { "worktrees/w": work, ...old } = before
      assert.deepStrictEqual(all(aside), old)
      assert.strictEqual(yield* headOf(state), 2)
      assert.deepStrictEqual(fs.readdirSync(join(state, "files")), ["old"])
      assert.deepStrictEqual(fs.readdirSync(join(state, "waiting")), ["old"])
      assert.strictEqual(all(state)["worktrees/w"], work)
    })
  )

  it.live("revokes every token and says so: one that was revoked since the backup opens nothing again", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const [state, file] = [join(base, "s"), join(base, "b.tar.zst")]
      const access = <A, E>(at: string, use: (access: Access.Access["Service"]) => Effect.Effect<A, E>) =>
        Effect.flatMap(Access.Access, use).pipe(
          Effect.provide(Layer.provide(Access.layer, layer({ file: join(at, "runes.db") })), { local: true })
        )
      const tokens = yield* access(state, ({ grant }) =>
        Effect.all([
          grant({ right: "act", label: "page" }, { by: "ada" }),
          grant({ right: "view", label: "ci" }, { by: "ada" })
        ])
      )
      yield* makeIt(state, file)
      yield* access(state, ({ revoke }) => revoke(tokens[0].id, { by: "ada" }))
      for (const target of [state, join(base, "other")]) {
        const { err, out } = yield* agentd(["--state", target, "restore", file, "--yes"])
        assert.strictEqual(err, "")
        assert.include(out, "2 tokens were revoked")
        assert.include(out, " access new ")
        const left = yield* access(target, (access) =>
          Effect.all([access.list, ...tokens.map(({ token }) => access.of(token))])
        )
        assert.deepStrictEqual(left, [[], undefined, undefined])
        assert.strictEqual((yield* agentd(["--state", target, "verify"])).code, 0)
        const again = yield* agentd(["--state", target, "restore", file, "--yes", "--json"])
        assert.strictEqual((JSON.parse(again.out) as { readonly revoked: number }).revoked, 2)
      }
      const none = yield* twoStores
      const done = yield* agentd(["--state", none.state, "restore", none.file, "--yes"])
      assert.notInclude(done.out, "token")
    })
  )

  it.live("of a backup that is damaged, cut off, or none: refused, and all is as it was", () =>
    Effect.gen(function* () {
      const { base, file, state } = yield* twoStores
      const before = all(state)
      const good = fs.readFileSync(file)
      const tar = zstdDecompressSync(good)
      const flipped = (bytes: Buffer, at: number) => {
        const copy = Buffer.from(bytes)
        copy[at]! ^= 1
        return copy
      }
      const renamed = Buffer.from(tar)
      const damaged: ReadonlyArray<Buffer> = [
        Buffer.alloc(0),
        Buffer.from("no backup"),
        zstdCompressSync(Buffer.alloc(2048)),
        ...[0.1, 0.5, 0.9].map((part) => good.subarray(0, good.length * part)),
        ...[0.3, 0.6].map((part) => flipped(good, Math.floor(good.length * part))),
        ...Array.from({ length: 30 }, (_, n) => zstdCompressSync(tar.subarray(0, Math.floor((tar.length * n) / 30)))),
        ...Array.from({ length: 30 }, (_, n) =>
          zstdCompressSync(flipped(tar, 700 + Math.floor(((tar.length - 3_000) * n) / 30)))
        ),
        zstdCompressSync(
          renamed.fill(Buffer.from("../../x\0\0"), tar.indexOf("files/old"), tar.indexOf("files/old") + 9)
        )
      ]
      for (const [index, bytes] of damaged.entries()) {
        const one = join(base, `d${index}`)
        fs.writeFileSync(one, bytes)
        const outcome = yield* Effect.exit(restored(state, one))
        assert.strictEqual(outcome._tag, "Failure", `sample ${index}`)
        assert.deepStrictEqual(all(state), before, `sample ${index}`)
      }
      const refused = yield* agentd(["--state", state, "restore", join(base, "d4"), "--yes"])
      assert.strictEqual(refused.code, 4)
      assert.match(refused.err, /Nothing was changed/)
    })
  )

  it.live("of a backup whose log does not hold: refused before anything is touched", () =>
    Effect.gen(function* () {
      const { base, file, state } = yield* twoStores
      const evil = join(base, "evil")
      fs.mkdirSync(evil)
      yield* restored(evil, file)
      const store = new DatabaseSync(join(evil, "runes.db"))
      store.exec("DROP TRIGGER runes_are_immutable; UPDATE runes SET at = at + 1 WHERE event_id = 1")
      store.close()
      const forged = join(base, "forged")
      yield* makeIt(evil, forged)
      const before = all(state)
      const { code, err } = yield* agentd(["--state", state, "restore", forged, "--yes"])
      assert.strictEqual(code, 4)
      assert.match(err, /The log in .* is damaged/)
      assert.deepStrictEqual(all(state), before)
    })
  )

  it.live("cut off between any two of its moves, it is undone by the next who comes", () =>
    Effect.gen(function* () {
      const { file, state } = yield* twoStores
      const before = all(state)
      const { renameSync, rmSync } = fs
      let cuts = 0
      for (let moves = 0; ; moves++) {
        let left = moves
        fs.renameSync = (from, to) => {
          if (left-- <= 0) throw new Error("killed")
          renameSync(from, to)
        }
        // who is killed tidies nothing
        fs.rmSync = (path, options) => {
          if (left <= 0) throw new Error("killed")
          rmSync(path, options)
        }
        syncBuiltinESMExports()
        const outcome = yield* Effect.exit(
          Effect.scoped(
            Effect.gen(function* () {
              left = Number.POSITIVE_INFINITY
              yield* Restoring.unpack(state, file)
              left = moves
              return yield* Restoring.swap(state, file, "aside")
            })
          )
        )
        fs.renameSync = renameSync
        fs.rmSync = rmSync
        syncBuiltinESMExports()
        if (outcome._tag === "Success") break
        cuts++
        Restoring.undo(state)
        assert.isBelow(moves, 100)
        rmSync(join(state, "restore.json.new"), { force: true })
        rmSync(join(state, "aside"), { force: true, recursive: true })
        rmSync(join(state, "restore.part"), { force: true, recursive: true })
        assert.deepStrictEqual(all(state), before, `after ${moves} moves`)
      }
      assert.isAbove(cuts, 6)
      assert.strictEqual(yield* headOf(state), 2)
    })
  )

  it.live("never puts a store where another one lies", () =>
    Effect.gen(function* () {
      const { file, state } = yield* twoStores
      yield* restored(state, file)
      const before = all(state)
      const error = yield* Effect.flip(restored(state, file))
      assert.match(error.message, /EEXIST/)
      assert.deepStrictEqual(all(state), before)
    })
  )

  long.live("killed at any moment: the next start finds the store as it was, or as it shall be", () =>
    seeded(
      Effect.gen(function* () {
        const { file, state } = yield* twoStores
        for (let round = 0; round < sample(40, 2); round++) {
          const head = yield* headOf(state)
          const running = yield* launch(["--state", state, "restore", file, "--yes"])
          yield* Effect.sleep(yield* Random.nextIntBetween(150, 700))
          running.child.kill("SIGKILL")
          yield* running.ended
          Restoring.undo(state)
          assert.include([head, 2], yield* headOf(state))
          assert.strictEqual((yield* agentd(["--state", state, "verify"])).code, 0)
        }
      })
    )
  )

  it.live("of a store that is in use: refused", () =>
    Effect.gen(function* () {
      const { file, state } = yield* twoStores
      const holder = yield* Effect.acquireRelease(
        Effect.callback<ChildProcess>((resume) => {
          const script = fileURLToPath(new URL("../../support/lockHolder.ts", import.meta.url))
          const child = spawn(process.execPath, [script, state, "/run/x.sock"], {
            stdio: ["ignore", "pipe", "inherit"]
          })
          child.stdout.once("data", () => resume(Effect.succeed(child)))
        }),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      const { code, err } = yield* agentd(["--state", state, "restore", file, "--yes"])
      assert.strictEqual(code, 75)
      assert.include(err, `pid ${holder.pid}`)
      assert.include(err, "agentd --state")
    })
  )
})
