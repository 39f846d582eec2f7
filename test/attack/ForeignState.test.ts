/**
 * State folders that somebody else has laid: nothing in them is opened, made or changed, and no link in them leads a
 * write into a file of this user's.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../support/Sandbox.ts"

const MALLORY = 61_003
const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? it.live : it.live.skip
if (!isRoot) console.warn("SKIPPED: a folder of a second user needs root")

const DOTFILE = "alias ls='ls --color'\n"
/** Files that agentd opens in its state directory. */
const OPENED = ["lock.db", "lock.json", "runes.db", "daemon.log", "http-hooks.token"]

/** A folder in which each name that agentd opens is a link to a file of the home. */
const trapped = Effect.fnUntraced(function* (mode = 0o700) {
  const box = yield* Sandbox.make()
  box.configure({ agents: {} })
  mkdirSync(box.state, { mode })
  chmodSync(box.state, mode)
  for (const name of OPENED) {
    writeFileSync(join(box.folder, `.${name}`), DOTFILE)
    symlinkSync(join(box.folder, `.${name}`), join(box.state, name))
  }
  return box
})

/** All that writes in a state directory. */
const VERBS = [["up"], ["start"], ["hooks", "install"], ["hook", "session-start"], ["doctor"]]

const listed = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder)
    .map((name) => `${name} ${lstatSync(join(folder, name)).mode} ${lstatSync(join(folder, name)).uid}`)
    .toSorted()

const untouched = Effect.fnUntraced(function* (box: Sandbox.Sandbox, says: RegExp) {
  const before = listed(box.state)
  for (const verb of VERBS) {
    const { code, stderr } = yield* box.cli(...verb)
    const what = verb.join(" ")
    assert.deepStrictEqual(listed(box.state), before, what)
    for (const name of OPENED) {
      assert.strictEqual(readFileSync(join(box.folder, `.${name}`), "utf8"), DOTFILE, `${what}: ${name}`)
    }
    if (verb[0] === "hook" || verb[0] === "doctor") continue
    assert.strictEqual(code, 78, `${what}: ${stderr}`)
    assert.match(stderr, says, what)
    assert.include(stderr, "→", what)
  }
})

describe("a state directory", () => {
  it.live("in which links lie is refused before anything is written", () =>
    Effect.gen(function* () {
      yield* untouched(yield* trapped(), /is a link: what is written there would be written elsewhere/)
    })
  )

  it.live("in which others can write is refused before anything is written", () =>
    Effect.gen(function* () {
      yield* untouched(yield* trapped(0o777), /Others may write in the state directory .* \(mode 777\)/)
    })
  )

  asRoot("of another user's is refused before anything is written", () =>
    Effect.gen(function* () {
      const box = yield* trapped(0o755)
      chownSync(box.state, MALLORY, MALLORY)
      yield* untouched(box, new RegExp(`belongs to user ${MALLORY}, not to you`))
    })
  )

  asRoot("in which another user's file lies, or to which another user's link leads, is refused", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: {} })
      mkdirSync(box.state, { mode: 0o700 })
      writeFileSync(join(box.state, "runes.db"), "")
      chownSync(join(box.state, "runes.db"), MALLORY, MALLORY)
      assert.match((yield* box.cli("up")).stderr, new RegExp(`runes.db belongs to user ${MALLORY}`))
      rmSync(box.state, { recursive: true })
      mkdirSync(join(box.folder, "own"))
      symlinkSync(join(box.folder, "own"), box.state)
      // the folder's owner is the link's, too
      const { lchownSync } = yield* Effect.promise(() => import("node:fs"))
      lchownSync(box.state, MALLORY, MALLORY)
      assert.match((yield* box.cli("up")).stderr, /belongs to user/)
      assert.deepStrictEqual(readdirSync(join(box.folder, "own")), [])
    })
  )

  it.live(
    "of one's own holds files that only its owner reads, the lock among them, also where an older agentd made it",
    () =>
      Effect.gen(function* () {
        const box = yield* Sandbox.make()
        box.configure({ agents: {} })
        mkdirSync(box.state, { mode: 0o700 })
        writeFileSync(join(box.state, "lock.db"), "", { mode: 0o644 })
        yield* box.up()
        const open = readdirSync(box.state).filter((name) => {
          const stat = statSync(join(box.state, name))
          return (stat.isFile() || stat.isSocket()) && (stat.mode & 0o077) !== 0
        })
        assert.deepStrictEqual(open, [])
        assert.strictEqual(statSync(join(box.state, "lock.db")).mode & 0o777, 0o600)
      })
  )
})
