/** Files of the user's checkout that an agent's work tree gets: copies, mounts, and what must never come. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { createServer } from "node:http"
import { dirname, join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

const HELD = { sandbox: "on", network: false }

const IGNORED = "agentd.jsonc\n.env\n*.local.json\nnode_modules/\n.venv/\nkeys/\nran\nran.*\n"

/** A project with one commit of these files, and others that git ignores or does not know. `below`: its subfolder. */
const project = Effect.fnUntraced(function* (
  tracked: { readonly [name: string]: string } = {},
  others: { readonly [name: string]: string } = {}
) {
  const box = yield* Sandbox.make()
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", box.project, ...args], { encoding: "utf8" })
  const write = (files: { readonly [name: string]: string }) => {
    for (const [name, text] of Object.entries(files)) {
      fs.mkdirSync(dirname(box.file(name)), { recursive: true })
      fs.writeFileSync(box.file(name), text, { mode: name.endsWith(".sh") ? 0o755 : 0o644 })
    }
  }
  git("init", "-q", "-b", "main")
  write({ ".gitignore": IGNORED, "a.txt": "a\n", ...tracked })
  git("add", "-A")
  git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "first")
  write(others)
  const configure = (worktree: object | true, shell = "cat > ran", backend: object = {}, more: object = {}) =>
    box.configure({
      agents: {
        builder: {
          backend: { type: "command", shell, readyAfter: "50ms", killGrace: "1 second", ...backend },
          minRunInterval: "0ms",
          worktree
        },
        ...more
      }
    })
  const send = (text: string) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* box.cli("send", "builder", text)).code, 0)
      const row = yield* box.untilAgent(
        "builder",
        "has done it",
        ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt"
      )
      return row.cwd!
    })
  const stopped = Effect.map(
    box.untilAgent("builder", "stops", ({ state }) => state === "Stopped"),
    ({ detail }) => detail
  )
  const told = Effect.map(box.runes("run.notice"), (runes) => runes.map(({ payload }) => String(payload["text"])))
  return { box, git, write, configure, send, stopped, told }
})

const OTHERS = {
  ".env": "TOKEN=1\n",
  "sub/.env": "TOKEN=2\n",
  "sub/untracked": "u\n",
  "conf/dev.local.json": "{}\n",
  "node_modules/a/index.js": "1\n",
  "node_modules/a/.env": "of a package\n",
  "keys/model.key": "secret\n",
  "keys/other": "o\n"
}

const read = (...at: ReadonlyArray<string>) => {
  try {
    return fs.readFileSync(join(...at), "utf8")
  } catch {
    return undefined
  }
}

describe("copies for a work tree", () => {
  it.live("are of files that git does not bring; what is there stays, and what was removed does not come again", () =>
    Effect.gen(function* () {
      const { box, configure, send, told } = yield* project({ "conf/real.json": "{}\n" }, OTHERS)
      configure({ copy: [".env", "conf/*.json"] })
      yield* box.up()
      const cwd = yield* send("one")
      assert.strictEqual(read(cwd, ".env"), OTHERS[".env"])
      assert.strictEqual(read(cwd, "sub/.env"), OTHERS["sub/.env"], "a pattern without a slash matches anywhere")
      assert.strictEqual(read(cwd, "conf/dev.local.json"), "{}\n")
      assert.strictEqual(read(cwd, "sub/untracked"), undefined)
      assert.isFalse(fs.existsSync(join(cwd, "node_modules")), "a folder that git ignores is closed to patterns")
      assert.notStrictEqual(fs.statSync(join(cwd, ".env")).ino, fs.statSync(box.file(".env")).ino)
      assert.match(
        (yield* told).join("\n"),
        /its work tree got copies from your checkout: \.env, conf\/dev\.local\.json/
      )
      fs.writeFileSync(join(cwd, ".env"), "mine\n")
      fs.rmSync(join(cwd, "sub/.env"))
      yield* send("two")
      assert.isFalse(fs.existsSync(join(cwd, "sub/.env")))
      configure({ copy: [".env", "conf/*.json", "node_modules"] })
      yield* box.agree
      yield* send("three")
      assert.strictEqual(read(cwd, ".env"), "mine\n")
      assert.strictEqual(read(cwd, "node_modules/a/index.js"), "1\n")
      assert.strictEqual(read(box.file(".env")), OTHERS[".env"])
    })
  )

  it.live.each([
    ["left out", ["keys"], undefined],
    ["copied if it is named in full", ["keys", "keys/model.key"], "secret\n"]
  ] as const)("what the config calls a secret is %s", ([, copy, expected]) =>
    Effect.gen(function* () {
      // only the config can name a secret
      const { configure, send, box } = yield* project({ ".worktreeinclude": "keys/model.key\n" }, OTHERS)
      configure(
        { copy },
        "cat > ran",
        {},
        {
          writer: {
            autostart: false,
            backend: { type: "model", provider: "anthropic", model: "m", keyFile: "keys/first.key" },
            fallback: [{ keyFile: "keys/model.key" }]
          }
        }
      )
      yield* box.up()
      const cwd = yield* send("one")
      assert.deepStrictEqual([read(cwd, "keys/other"), read(cwd, "keys/model.key")], ["o\n", expected])
    })
  )

  it.live.each([
    ["a link that is named", { copy: ["out"] }, /worktree\.copy "out" leads through the symbolic link out/],
    ["a file behind a link", { copy: ["out/passwd"] }, /"out\/passwd" leads through the symbolic link out/],
    ["a link that a star matches", { copy: ["ou*"] }, /leads through the symbolic link out/],
    ["a linked folder", { link: ["mods"] }, /worktree\.link "mods" leads through the symbolic link mods/]
  ] as const)("%s stops the agent with the pattern's name", ([, worktree, expected]) =>
    Effect.gen(function* () {
      const { box, configure, stopped } = yield* project({}, OTHERS)
      fs.symlinkSync("/etc", box.file("out"))
      fs.symlinkSync("node_modules", box.file("mods"))
      configure(worktree)
      yield* box.up()
      assert.match(yield* stopped, expected)
    })
  )

  it.live("a link of the agent in the tree is not written through", () =>
    Effect.gen(function* () {
      const { box, configure, send, stopped } = yield* project({ "conf/real.json": "{}\n" }, OTHERS)
      configure(
        true,
        `cat >/dev/null; rm -r conf; ln -s ${box.file("..")}/elsewhere conf; ln -s ${box.file("..")}/env .env; touch ran`
      )
      fs.mkdirSync(join(box.file(".."), "elsewhere"))
      yield* box.up()
      const cwd = yield* send("one")
      assert.isTrue(fs.lstatSync(join(cwd, "conf")).isSymbolicLink())
      configure({ copy: [".env", "conf/*.local.json"] }, "cat > ran.2")
      yield* box.agree
      assert.strictEqual((yield* box.cli("send", "builder", "two")).code, 0)
      assert.match(yield* stopped, /conf\/dev\.local\.json cannot be copied: .*conf is a symbolic link/)
      assert.deepStrictEqual(fs.readdirSync(join(box.file(".."), "elsewhere")), [])
      assert.isFalse(fs.existsSync(join(box.file(".."), "env")))
    })
  )

  it.live("a copy that fails half way leaves nothing behind, and is made at the next start", () =>
    Effect.gen(function* () {
      const { box, configure, send, stopped } = yield* project({}, OTHERS)
      // cp on a disk that becomes full: it has written a part
      const bin = join(box.folder, "bin")
      fs.mkdirSync(bin)
      const full = `/bin/cp "$@"; echo "cp: error writing 'keys/other': No space left on device" >&2; exit 1`
      fs.writeFileSync(join(bin, "cp"), `#!/bin/sh\n${full}\n`, { mode: 0o755 })
      box.environment["PATH"] = `${bin}:${process.env["PATH"]}`
      configure({ copy: [".env", "keys"] })
      yield* box.up()
      const why = yield* stopped
      assert.match(
        why,
        /^copying \.env, keys, sub\/\.env to .* failed: cp: error writing .*No space left on device; it needs 1 MB$/
      )
      const trees = execFileSync(
        "find",
        [join(box.state, "worktrees"), "-name", "other", "-o", "-name", "agentd-copy"],
        {
          encoding: "utf8"
        }
      )
      assert.strictEqual(trees, "")
      fs.rmSync(join(bin, "cp"))
      assert.strictEqual((yield* box.cli("start", "builder")).code, 0)
      const cwd = yield* send("go")
      assert.strictEqual(read(cwd, "keys/other"), "o\n")
    })
  )
})

describe("files that come to the checkout later", () => {
  it.live("are copied before the next run, and replace nothing; a pattern that matches nothing is told once", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project({}, { "conf/one.local.json": "1\n" })
      configure({ copy: [".env", "conf/*.local.json"], link: ["node_modules"] }, "cat >> ran")
      yield* box.up()
      const cwd = yield* send("one")
      const bounds = Effect.map(box.runes("agent.bound_reached"), (all) =>
        all.flatMap(({ payload }) => /worktree\.\w+ ".*?" matches no file/.exec(String(payload["text"]))?.[0] ?? [])
      )
      const expected = ['worktree.copy ".env" matches no file', 'worktree.link "node_modules" matches no file']
      assert.deepStrictEqual(yield* bounds, expected)
      fs.rmSync(join(cwd, "conf/one.local.json"))
      fs.writeFileSync(join(cwd, "conf/three.local.json"), "own\n")
      for (const [name, text] of [
        [".env", "A=1\n"],
        ["conf/two.local.json", "2\n"],
        ["conf/three.local.json", "3\n"]
      ] as const)
        fs.writeFileSync(box.file(name), text)
      yield* send("two")
      assert.deepStrictEqual([read(cwd, ".env"), read(cwd, "conf/two.local.json")], ["A=1\n", "2\n"])
      assert.strictEqual(read(cwd, "conf/three.local.json"), "own\n")
      assert.isFalse(fs.existsSync(join(cwd, "conf/one.local.json")), "the agent has removed it")
      // what cannot be copied now does not stop an agent that has its tree
      fs.symlinkSync("/etc/hostname", box.file("conf/four.local.json"))
      yield* send("three")
      assert.deepStrictEqual(yield* bounds, expected)
    })
  )
})

describe("links for a work tree", () => {
  it.live("are read-only for a confined agent and its set-up, and copies for another one", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project({}, OTHERS)
      const shell =
        "cat >/dev/null; cat node_modules/a/index.js > ran; echo x >> node_modules/a/index.js || echo held > ran.2"
      configure({ link: ["node_modules"], setup: "cp node_modules/a/index.js ran.1" }, shell, HELD)
      yield* box.up()
      const cwd = yield* send("one")
      assert.deepStrictEqual([read(cwd, "ran.1"), read(cwd, "ran"), read(cwd, "ran.2")], ["1\n", "1\n", "held\n"])
      assert.strictEqual(read(box.file("node_modules/a/index.js")), "1\n")
    })
  )

  it.live("of an agent without a sandbox are copies", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project({}, OTHERS)
      configure({ link: ["node_modules"] }, "cat >/dev/null; echo x >> node_modules/a/index.js; touch ran")
      yield* box.up()
      const cwd = yield* send("one")
      assert.strictEqual(read(cwd, "node_modules/a/index.js"), "1\nx\n")
      assert.strictEqual(read(box.file("node_modules/a/index.js")), "1\n")
    })
  )
})

describe(".worktreeinclude and scripts", () => {
  it.live("wait for the user's trust when they change; only ignored files are copied by them", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project({ ".worktreeinclude": "# files\n.env\n" }, OTHERS)
      configure(true)
      yield* box.up()
      const cwd = yield* send("one")
      assert.strictEqual(read(cwd, ".env"), "TOKEN=1\n")
      fs.writeFileSync(box.file(".worktreeinclude"), ".env\nkeys/other\nsub/untracked\n")
      yield* box.until("the change waits", box.cli("config", "diff"), ({ stdout }) => stdout.includes("keys/other"))
      const { stdout } = yield* box.cli("config", "diff")
      assert.match(stdout, /\.worktreeinclude has changed: agentd reads it for work trees/)
      assert.match(stdout, /\+keys\/other/)
      yield* send("two")
      assert.isFalse(fs.existsSync(join(cwd, "keys/other")))
      yield* box.agree
      yield* send("three")
      assert.strictEqual(read(cwd, "keys/other"), "o\n")
      assert.isFalse(fs.existsSync(join(cwd, "sub/untracked")), "git does not ignore it")
      // a restarted daemon keeps the trusted text
      fs.writeFileSync(box.file(".worktreeinclude"), "node_modules\n")
      yield* box.kill9
      yield* box.up()
      yield* send("four")
      assert.isFalse(fs.existsSync(join(cwd, "node_modules")))
    })
  )

  it.live("a script is the text that was trusted, not the one in the agent's branch nor a later one", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project({ "scripts/setup.sh": "#!/bin/sh\necho first > ran.1\n" })
      configure({ setup: "scripts/setup.sh" })
      yield* box.up()
      const cwd = yield* send("one")
      assert.strictEqual(read(cwd, "ran.1"), "first\n")
      fs.writeFileSync(box.file("scripts/setup.sh"), "#!/bin/sh\necho second > ran.1\n")
      // the script's own folder is watched
      yield* box.until("the project's row says it", box.cli("status"), ({ stdout }) =>
        /waits for you.*trust shop/.test(stdout)
      )
      assert.match((yield* box.cli("config", "diff")).stdout, /scripts\/setup\.sh has changed/)
      yield* send("two")
      assert.strictEqual(read(cwd, "ran.1"), "first\n")
      fs.writeFileSync(join(cwd, "scripts/setup.sh"), "#!/bin/sh\necho planted > ran.1\n")
      yield* box.agree
      yield* send("three")
      assert.strictEqual(read(cwd, "ran.1"), "second\n")
    })
  )
})

describe("a work tree that is removed", () => {
  it.live(
    "copies are no work that keeps it; its trusted tear-down script runs with its ports, also for a removed agent",
    () =>
      Effect.gen(function* () {
        const { box, configure, send } = yield* project({ "scripts/down.sh": "#!/bin/sh\n" }, { "notes.txt": "n\n" })
        const out = join(box.folder, "down")
        fs.writeFileSync(box.file("scripts/down.sh"), `#!/bin/sh\necho "port $PORT" > ${out}\n`, { mode: 0o755 })
        configure({ copy: ["notes.txt"], teardown: "./scripts/down.sh", ports: 1, setup: "A=./b/c true" }, "cat")
        yield* box.up()
        const cwd = yield* send("one")
        assert.strictEqual(read(cwd, "notes.txt"), "n\n")
        assert.strictEqual(execFileSync("git", ["-C", cwd, "status", "--porcelain"], { encoding: "utf8" }), "")
        box.configure({ agents: { other: { autostart: false, backend: { type: "command", shell: "cat" } } } })
        yield* box.agree
        const [removed] = yield* box.until(
          "the tree is removed",
          box.runes("worktree.removed"),
          (runes) => runes.length > 0
        )
        assert.notProperty(removed!.payload, "teardown")
        assert.match(read(out) ?? "", /^port \d+\n$/)
      })
  )
})

describe("a project whose tests need more than git brings", () => {
  const TEST = `import { readFileSync } from "node:fs"
import { test } from "node:test"
import { equal } from "node:assert"
import { answer } from "answer"
test("it works", () => equal(answer, Number(/ANSWER=(\\d+)/.exec(readFileSync(".env", "utf8"))[1])))
`
  const needs = {
    ".env": "ANSWER=42\n",
    "node_modules/answer/package.json": '{ "name": "answer", "type": "module", "exports": "./index.js" }',
    "node_modules/answer/index.js": "export const answer = 42\n"
  }
  const run = `cat >/dev/null; ${process.execPath} --test > ran 2>&1; echo "exit $?" > ran.1`

  it.live.each([
    ["without any of this they fail", true, "exit 1\n"],
    ["with the installed packages and .env they pass", { copy: [".env"], link: ["node_modules"] }, "exit 0\n"]
  ] as const)("%s", ([, worktree, expected]) =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project(
        { "package.json": '{ "type": "module" }', "it.test.js": TEST },
        needs
      )
      configure(worktree, run)
      yield* box.up()
      const cwd = yield* send("run the tests")
      assert.strictEqual(read(cwd, "ran.1"), expected, read(cwd, "ran"))
    })
  )
})

const hasPython = spawnSync("python3", ["--version"]).status === 0

describe("a Python project", () => {
  const files = {
    ".gitignore": `${IGNORED}__pycache__/\n`,
    "packages/answer.py": "ANSWER = 42\n",
    "test_it.py": `import unittest
from answer import ANSWER

class It(unittest.TestCase):
    def test_it(self):
        self.assertEqual(ANSWER, int(open(".env").read().split("=")[1]))
`
  }
  // as pip installs a folder with -e, without a network
  const setup =
    'python3 -m venv --without-pip .venv && echo "$PWD/packages" > "$(echo .venv/lib/python3*/site-packages)/shop.pth"'
  const run = 'cat >/dev/null; .venv/bin/python -m unittest > ran 2>&1; echo "exit $?" > ran.1'

  it.live.skipIf(!hasPython)("runs its tests with the venv of its set-up and the copied .env", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project(files, { ".env": "ANSWER=42\n" })
      configure({ copy: [".env"], setup }, run)
      yield* box.up()
      const cwd = yield* send("run the tests")
      assert.strictEqual(read(cwd, "ran.1"), "exit 0\n", read(cwd, "ran"))
      assert.isFalse(fs.existsSync(box.file(".venv")))
      assert.strictEqual(execFileSync("git", ["-C", cwd, "status", "--porcelain"], { encoding: "utf8" }), "")
    })
  )
})

/**
 * A container engine: `docker compose` asks a server outside the agent's processes to publish a port of the compose
 * file, and returns when it listens.
 */
const engine = Effect.fnUntraced(function* (box: Sandbox.Sandbox) {
  const folder = join(box.folder, "engine")
  fs.mkdirSync(folder)
  const script = `#!/bin/sh
echo "$* $COMPOSE_PROJECT_NAME $PORT_0" >> ${folder}/calls
[ "$2" = up ] || exit 0
eval "echo $(sed -n 's/.*"\\(.*\\):80".*/\\1/p' compose.yaml)" > ${folder}/up.part && mv ${folder}/up.part ${folder}/up
until [ -e ${folder}/ready ]; do sleep 0.05; done
`
  fs.writeFileSync(join(folder, "docker"), script, { mode: 0o755 })
  box.environment["PATH"] = `${folder}:${process.env["PATH"]}`
  const server = createServer((_, response) => response.end("served"))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      while (!fs.existsSync(join(folder, "up"))) yield* Effect.sleep(20)
      const port = Number(read(folder, "up"))
      server.listen(port, "127.0.0.1", () => fs.writeFileSync(join(folder, "ready"), ""))
    })
  )
  return Effect.sync(() => read(folder, "calls")?.trim().split("\n") ?? [])
})

describe("a compose project", () => {
  const files = {
    "compose.yaml": 'services:\n  web:\n    image: nginx\n    ports: ["${PORT_0:-8080}:80"]\n',
    "it.test.mjs": `import { test } from "node:test"
import { equal } from "node:assert"
test("it serves", async () => equal(await (await fetch("http://127.0.0.1:" + process.env.PORT_0)).text(), "served"))
`
  }
  const run = `cat >/dev/null; ${process.execPath} --test it.test.mjs > ran 2>&1; echo "exit $? $PORT_0" >> ran.1`

  it.live("runs its tests against containers on the agent's ports, which it keeps while they listen", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project(files)
      const calls = yield* engine(box)
      configure({ ports: 1, setup: "docker compose up -d --wait", teardown: "docker compose down" }, run)
      yield* box.up()
      const cwd = yield* send("one")
      yield* send("two")
      // a restarted daemon still knows the containers
      yield* box.kill9
      yield* box.up()
      yield* send("three")
      const [first = "", ...others] = (read(cwd, "ran.1") ?? "").trim().split("\n")
      assert.match(first, /^exit 0 \d+$/, read(cwd, "ran"))
      assert.deepStrictEqual(others, [first, first])
      const port = first.slice("exit 0 ".length)
      assert.deepStrictEqual(yield* calls, [`compose up -d --wait agentd-${port} ${port}`])
      box.configure({ agents: { other: { autostart: false, backend: { type: "command", shell: "cat" } } } })
      yield* box.agree
      yield* box.until("the tree is removed", box.runes("worktree.removed"), (runes) => runes.length > 0)
      assert.strictEqual((yield* calls).at(-1), `compose down agentd-${port} ${port}`)
    })
  )
})
