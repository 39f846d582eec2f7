/** A shell or a program whose descriptors are closed: what follows of it later touches none of another, which may have their numbers by then. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stand from "./Stand.ts"

const NAMES = ["a", "b", "c", "d", "e", "f"]
const ROUNDS = 40

/** All that is kept of a stream, whatever its files are called. */
const onDisk = (folder: string, name: string): string =>
  readdirSync(folder)
    .filter((file) => file.startsWith(`${name}.`))
    .toSorted((a, b) => Number(a.slice(name.length + 1)) - Number(b.slice(name.length + 1)))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("")

it.live("what is told to its anchor once it has ended comes into no output of a program", () =>
  Effect.gen(function* () {
    const folder = yield* Stand.stand
    // each piece of output in a file of its own: it takes the lowest descriptor that is free
    const daemon = yield* Stand.daemon(folder, { segment: 1 })
    for (const name of NAMES) yield* Stand.script(daemon, name, "exec cat")
    yield* daemon.vanish
    // its name is taken on the disk, which shows only once a shell has been chosen for it
    mkdirSync(Stand.runFolder(folder, "taken"))
    writeFileSync(join(Stand.runFolder(folder, "taken"), "exit"), "{}")
    const owner = yield* Stand.owner(folder)
    for (let round = 1; round <= ROUNDS; round++) {
      for (const run of NAMES) owner.tell({ op: "write", run, seq: round, data: `${round}\n` })
      const { error } = yield* owner.ask({ op: "spawn", run: "taken", script: "exit" }, "20 seconds")
      assert.strictEqual(error, "EEXIST")
    }
    const whole = Array.from({ length: ROUNDS }, (_, at) => `${at + 1}\n`).join("")
    const outOf = (name: string) => onDisk(Stand.runFolder(folder, name), "out")
    // what a program was told to echo comes, or something else comes in its place
    yield* Stand.until(() => NAMES.every((name) => !whole.startsWith(outOf(name)) || outOf(name) === whole))
    for (const name of NAMES) {
      assert.strictEqual(outOf(name), whole, name)
      assert.strictEqual(onDisk(Stand.runFolder(folder, name), "err"), "", name)
    }
  }).pipe(Effect.scoped)
)

it.live("one that has ended is forgotten without a descriptor of those that began meanwhile", () =>
  Effect.gen(function* () {
    const folder = yield* Stand.stand
    const daemon = yield* Stand.daemon(folder)
    const short = yield* Stand.script(daemon, "short", "exit 3")
    yield* short.exited
    yield* daemon.vanish
    let owner = yield* Stand.owner(folder)
    // by then all of it is closed
    while (owner.runs[0]?.ended !== true) owner = yield* Effect.delay(Stand.owner(folder), "20 millis")
    for (const run of NAMES)
      assert.isUndefined((yield* owner.ask({ op: "spawn", run, script: "exec cat >out" }, null)).error)
    yield* owner.ask({ op: "forget", run: "short" }, null)
    for (const run of NAMES)
      assert.deepInclude(yield* owner.ask({ op: "write", run, seq: 1, data: "up\n" }, null), { seq: 1 })
    yield* Stand.until(() => NAMES.every((name) => onDisk(Stand.runFolder(folder, name), "out") === "up\n"))
  }).pipe(Effect.scoped)
)
