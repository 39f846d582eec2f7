/**
 * Sandbox: INV-TOOL-SANDBOX for commands, broken on purpose from within, under each kind of
 * sandbox that this machine has.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { objection } from "../../../src/runs/sandbox/Confinement.ts"
import { type Mechanism, probe } from "../../../src/runs/sandbox/Sandbox.ts"
import { layer } from "../../support/backend-run.ts"
import * as Confined from "../../support/Confined.ts"
import { git, held, mechanisms, missing, SECRET, yard } from "../../support/toolbox.ts"

type Yard = Effect.Success<typeof yard>

interface Options {
  readonly workspace?: string
  readonly network?: boolean
  readonly hidden?: ReadonlyArray<string>
}

/** Runs a script confined; `$1` … are what follows. */
const confined =
  (mechanism: Mechanism, { root, environment }: Yard, options: Options = {}) =>
  (script: string, ...args: ReadonlyArray<string>): Effect.Effect<Confined.Answer> => {
    const workspace = options.workspace ?? root
    const rules = { workspace, network: options.network ?? false, hidden: options.hidden ?? [], environment }
    const env = { ...environment, OPENAI_API_KEY: undefined }
    return Confined.run(mechanism, rules, ["/bin/sh", "-c", script, "sh", ...args], env)
  }

/** Tries all in one sandbox and tells which succeeded. What the whole machine lives by is asked about, never tried. */
const successes = (run: ReturnType<typeof confined>, attacks: ReadonlyArray<string>) =>
  Effect.map(
    run(`for one do (eval "$one") > /dev/null 2>&1 && printf '%s\\n' "$one"; done; echo tried`, ...attacks),
    ({ output }) => output
  )

/** A server that counts who has come; ends with the scope. */
const server = (where: net.ListenOptions) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: net.Server; readonly visits: () => number }>((resume) => {
      let visits = 0
      const server = net.createServer((socket) => {
        visits++
        socket.end("hello\n")
      })
      server.listen(where, () => resume(Effect.succeed({ server, visits: () => visits })))
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

/** A node that is there wherever the checkout lies. */
const nodeIn = (root: string): string => {
  const node = path.join(root, "node")
  if (!fs.existsSync(node)) fs.copyFileSync(process.execPath, node, fs.constants.COPYFILE_FICLONE)
  return node
}

const CONNECT = `require("node:net").connect(JSON.parse(process.argv[1])).on("data", (data) => { console.log(String(data)); process.exit(0) }).on("error", (error) => { console.log(error.code); process.exit(7) })`

if (missing.length > 0) it.skip(`not tried, since this machine cannot: ${missing.join("; ")}`)

for (const mechanism of held) {
  const live = (name: string, body: (yard: Yard) => Effect.Effect<void, unknown, Scope.Scope>) =>
    it.live(name, () => Effect.scoped(Effect.flatMap(yard, body)).pipe(Effect.provide(layer)))

  describe(`INV-TOOL-SANDBOX under ${mechanism.kind}`, () => {
    live("the workspace is written, and nothing else: not by path, .., link, /proc/self/root or rename", (yard) =>
      Effect.gen(function* () {
        const run = confined(mechanism, yard)
        const { root, outside } = yard
        fs.symlinkSync(outside, path.join(root, "out"))
        assert.deepStrictEqual(yield* run("echo 1 > made && mkdir d && mv made d/made"), { code: 0, output: "" })
        assert.strictEqual(fs.readFileSync(`${root}/d/made`, "utf8"), "1\n")
        const places = [
          `${outside}/new`,
          "../../outside/new",
          "out/new",
          "out/secret",
          `/proc/self/root${outside}/new`,
          `/proc/1/root${outside}/new`,
          `/proc/1/cwd/../../outside/new`
        ]
        const writes = places.map((place) => `echo broken > "${place}"`)
        assert.strictEqual(yield* successes(run, writes), "tried\n")
        const system = ["/", "/etc", "/usr", "/var", "/sys", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"]
        assert.strictEqual(
          yield* successes(
            run,
            system.map((place) => `test -w ${place}`)
          ),
          "tried\n"
        )
        assert.deepStrictEqual(
          yield* run("find /proc/sys /proc/irq /sys -xdev -type f -writable 2> /dev/null | head"),
          {
            code: 0,
            output: ""
          }
        )
        yield* run(`mv d "$1"/d; ln d/made "$1"/hard; ln -s "$1" again && echo broken > again/new`, outside)
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret"])
        assert.strictEqual(fs.readFileSync(`${outside}/secret`, "utf8"), SECRET)
      })
    )

    live("keys, agentd's state and everything else in the home are not there; /tmp is private and forgotten", (yard) =>
      Effect.gen(function* () {
        const run = confined(mechanism, yard)
        const { home, outside } = yard
        const files = [
          `${home}/.ssh/id_ed25519`,
          `${home}/.local/state/agentd/runes.db`,
          `${outside}/secret`,
          `/proc/1/root${home}/.ssh/id_ed25519`
        ]
        assert.strictEqual(
          yield* successes(
            run,
            files.map((file) => `cat ${file}`)
          ),
          "tried\n"
        )
        const { output } = yield* run(
          `grep -rs "$1" ~ /tmp /run /var/tmp; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -v "^_=" | grep "$1"; echo done`,
          SECRET.slice(0, 10)
        )
        assert.strictEqual(output, "done\n")
        assert.deepStrictEqual(yield* run("echo x > /tmp/a && echo x > ~/b && ls /tmp ~"), {
          code: 0,
          output: `/tmp:\na\n${path.basename(yard.folder)}\n\n${home}:\nb\nproject\n`
        })
        assert.notMatch((yield* run("ls /tmp")).output, /^a$/m)
        assert.isFalse(fs.existsSync(`${home}/b`))
      })
    )

    live("what is hidden is hidden in the workspace too, and its sockets lead nowhere", (yard) =>
      Effect.gen(function* () {
        const { root } = yard
        fs.mkdirSync(`${root}/state`)
        fs.writeFileSync(`${root}/state/key`, SECRET)
        fs.writeFileSync(`${root}/key.txt`, SECRET)
        const { visits } = yield* server({ path: `${root}/state/control.sock` })
        const run = confined(mechanism, yard, { hidden: [`${root}/state`, `${root}/key.txt`] })
        const { output } = yield* run(`cat key.txt state/key; mv state x; mv key.txt y; ls state; grep -rs ${SECRET} .`)
        assert.notInclude(output, SECRET)
        const answer = yield* run(
          `"$1" -e "$2" "$3"`,
          nodeIn(root),
          CONNECT,
          JSON.stringify({ path: `${root}/state/control.sock` })
        )
        assert.strictEqual(answer.code, 7)
        assert.strictEqual(visits(), 0)
        assert.strictEqual(fs.readFileSync(`${root}/key.txt`, "utf8"), SECRET)
      })
    )

    live(
      "without network neither loopback nor an abstract socket of the machine is reached; with it loopback is",
      (yard) =>
        Effect.gen(function* () {
          const { server: tcp, visits } = yield* server({ port: 0, host: "127.0.0.1" })
          const address = tcp.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          const abstract = `\0agentd-${randomUUID()}`
          const other = yield* server({ path: abstract })
          const connect = (run: ReturnType<typeof confined>, where: object) =>
            run(`"$1" -e "$2" "$3"`, nodeIn(yard.root), CONNECT, JSON.stringify(where))
          const off = confined(mechanism, yard)
          assert.strictEqual((yield* connect(off, { port, host: "127.0.0.1" })).code, 7)
          assert.strictEqual((yield* connect(off, { path: abstract })).code, 7)
          assert.strictEqual(visits() + other.visits(), 0)
          const on = confined(mechanism, yard, { network: true })
          assert.strictEqual((yield* connect(on, { port, host: "127.0.0.1" })).code, 0)
          assert.strictEqual(visits(), 1)
        })
    )

    live("it has no privilege, gains none, and cannot undo what holds it", (yard) =>
      Effect.gen(function* () {
        const run = confined(mechanism, yard)
        const { output } = yield* run("grep -E 'CapEff|CapPrm|CapBnd|NoNewPrivs' /proc/self/status | tr -s '\\t ' ' '")
        assert.deepStrictEqual(output.trim().split("\n"), [
          "CapPrm: 0000000000000000",
          "CapEff: 0000000000000000",
          "CapBnd: 0000000000000000",
          "NoNewPrivs: 1"
        ])
        const tried = yield* successes(run, [
          "unshare --user --map-root-user true",
          "umount /tmp",
          `umount -l ${yard.home}`,
          "mount -t tmpfs none /tmp",
          "mount -o remount,rw /",
          "mount -o remount,rw /usr",
          "mknod dev b 8 0",
          "chroot . true",
          "nsenter --target 1 --mount true && ls /nowhere",
          `nsenter --target ${process.pid} --mount true`
        ])
        assert.strictEqual(tried, "tried\n")
      })
    )

    live("no process of the machine is seen or reached from it", (yard) =>
      Effect.gen(function* () {
        const run = confined(mechanism, yard)
        assert.notStrictEqual((yield* run(`kill -0 ${process.pid}`)).code, 0)
        const { output } = yield* run("ls /proc | grep -c '^[0-9]'")
        assert.isBelow(Number(output), 10)
      })
    )

    live("in the person's checkout git looks, and nothing in its folder is changed or made", (yard) =>
      Effect.gen(function* () {
        const { root } = yard
        git(root, "init", "-q", ".")
        fs.mkdirSync(`${root}/.git/hooks`, { recursive: true })
        fs.writeFileSync(`${root}/agentd.jsonc`, "{}")
        fs.writeFileSync(`${root}/a`, "1")
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", "one")
        const before = fs.readFileSync(`${root}/.git/config`, "utf8")
        const run = confined(mechanism, yard)
        assert.deepStrictEqual(yield* run("git status --short && git log --format=%s"), { code: 0, output: "one\n" })
        const tried = yield* successes(run, [
          "echo 'touch /pwned' > .git/hooks/post-commit",
          "mv .git/hooks .git/h",
          "rm -rf .git/hooks",
          "git config core.fsmonitor ./evil",
          "echo evil > .git/config",
          "echo e > .git/commondir",
          "echo evil > .git/config.worktree",
          "mkdir .git/e",
          "mv .git git",
          "echo evil > agentd.jsonc",
          "mv agentd.jsonc x",
          "rm -f agentd.jsonc",
          "echo evil > y && mv y agentd.jsonc"
        ])
        assert.strictEqual(tried, "tried\n")
        assert.deepStrictEqual(fs.readFileSync(`${root}/.git/config`, "utf8"), before)
        assert.isFalse(fs.existsSync(`${root}/.git/commondir`))
        assert.strictEqual(fs.readFileSync(`${root}/agentd.jsonc`, "utf8"), "{}")
      })
    )

    live("in a linked worktree of the person's git looks, and nothing of its repository is changed or made", (yard) =>
      Effect.gen(function* () {
        const { home, root } = yard
        git(root, "init", "-q", "-b", "main", ".")
        fs.mkdirSync(`${root}/.git/hooks`, { recursive: true })
        git(root, "commit", "-q", "--allow-empty", "-m", "zero")
        const tree = path.join(home, ".local/state/agentd/worktrees/builder")
        git(root, "worktree", "add", "-q", "-b", "agentd/builder", tree)
        const run = confined(mechanism, yard, { workspace: tree, hidden: [path.join(home, ".local/state/agentd")] })
        assert.deepStrictEqual(yield* run("git status --short && git log --format=%s"), { code: 0, output: "zero\n" })
        const tried = yield* successes(run, [
          `cat ${home}/.local/state/agentd/runes.db`,
          "echo 1 > a && git add a",
          `echo x > ${root}/.git/objects/x`,
          `echo x > ${root}/.git/refs/heads/x`,
          `echo x > ${root}/.git/worktrees/builder/HEAD`,
          `echo x > ${root}/.git/hooks/post-commit`,
          `echo x > ${root}/.git/config`,
          `echo ref: refs/heads/agentd/builder > ${root}/.git/HEAD`,
          `echo x > ${root}/.git/worktrees/builder/commondir`,
          `echo worktrees/builder > ${root}/.git/commondir`,
          `mkdir ${root}/.git/info && echo '* filter=x' > ${root}/.git/info/attributes`,
          `echo x > ${root}/.git/objects/info/alternates`,
          `echo x > ${root}/.git/packed-refs`,
          "echo gitdir: /etc > .git",
          "rm .git"
        ])
        assert.strictEqual(tried, "tried\n")
        // that succeeds, in the private emptiness that covers the checkout
        yield* run(`echo x > "$1"/new`, root)
        assert.deepStrictEqual(fs.readdirSync(root), [".git"])
      })
    )

    live("a .git file that an agent has forged opens nothing", (yard) =>
      Effect.gen(function* () {
        const { home, root } = yard
        fs.mkdirSync(`${home}/.ssh/worktrees/x`, { recursive: true })
        fs.writeFileSync(`${root}/.git`, `gitdir: ${home}/.ssh/worktrees/x\n`)
        const run = confined(mechanism, yard)
        assert.notStrictEqual((yield* run(`ls ${home}/.ssh`)).code, 0)
      })
    )

    live("when its first process ends, all end, in sessions of their own and without a mark, too", (yard) =>
      Effect.gen(function* () {
        const run = confined(mechanism, yard)
        yield* run(
          `setsid env -i sh -c 'while :; do echo x >> ticks; sleep 0.02; done' & while ! test -s ticks; do sleep 0.01; done`
        )
        const size = () => fs.statSync(`${yard.root}/ticks`).size
        const before = size()
        yield* Effect.sleep("100 millis")
        assert.strictEqual(size(), before)
      })
    )

    live("an exit code comes through, and so do names that a shell would mistake", (yard) =>
      Effect.gen(function* () {
        const odd = path.join(yard.home, `a "b" $c 'd' \\ é\n-x`)
        fs.mkdirSync(odd)
        const run = confined(mechanism, yard, { workspace: odd })
        assert.deepStrictEqual(yield* run('echo 1 > f; printf %s "$PWD"; exit 41'), { code: 41, output: odd })
        assert.isTrue(fs.existsSync(path.join(odd, "f")))
      })
    )
  })
}

describe("which sandbox", () => {
  it.live("where there is neither bwrap nor unshare, there is none, and it says so", () =>
    Effect.gen(function* () {
      const none = yield* probe({ PATH: "/nowhere" }, [])
      assert.strictEqual(none.kind, "none")
      assert.match(none.note, /bubblewrap/)
    })
  )

  it("what this machine has is told in words", () => {
    for (const { note } of mechanisms) assert.match(note, /\w/)
  })

  it.live("a folder in which keys would lie open is no workspace", () =>
    Effect.gen(function* () {
      const { home, root, environment } = yield* yard
      assert.isUndefined(objection(root, environment))
      for (const folder of ["/", home, path.dirname(home), "/etc", "/home", "/var", "/usr"])
        assert.isString(objection(folder, environment), folder)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
