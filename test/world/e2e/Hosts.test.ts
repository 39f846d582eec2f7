/** Daemons of other machines, through a real sshd on loopback: verbs, streams, and every way in which it goes wrong. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"
import * as SshHosts from "../../support/SshHosts.ts"
import { long } from "../../support/Long.ts"

if (SshHosts.missing !== undefined)
  process.stderr.write(`test/world/e2e/Hosts: hosts are not tested: there is no ${SshHosts.missing}.\n`)

const MARK = "agentd-dial-stdio "

/** A daemon on another machine, with one agent, and its address. */
const far = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  box.configure({ agents: { builder: { backend: { type: "command", shell: "cat" } } } })
  yield* box.up()
  yield* box.untilAgent("builder", "is idle", ({ word }) => word === "idle")
  const hosts = yield* SshHosts.make
  const machine = yield* hosts.machine()
  return { box, hosts, machine, url: `${machine.url}${box.state}` }
})

const hostOf = Effect.fnUntraced(function* (shell: string) {
  const hosts = yield* SshHosts.make
  const machine = yield* hosts.machine(shell)
  return { hosts, url: machine.url, folder: machine.folder }
})

/** Processes of a session on the machine: those whose command line has this text. */
const sessionsOf = (text: string): ReadonlyArray<number> =>
  execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(text) && !line.includes("ps -eo"))
    .map((line) => Number(line.trim().split(" ")[0]))

describe.skipIf(SshHosts.missing !== undefined)("hosts", () => {
  it.live("each verb works there, by calls or as a program, or says why not", () =>
    Effect.gen(function* () {
      const { box, hosts, url } = yield* far
      const added = yield* hosts.cli("host", "add", "cellar", url)
      assert.deepStrictEqual([added.code, added.stderr], [0, ""])
      assert.match(added.stdout, /^cellar is saved: agentd .* answers there/)
      const local = JSON.parse((yield* box.cli("ps", "--json")).stdout)
      const there = JSON.parse((yield* hosts.cli("ps", "--json", "--host", "cellar")).stdout)
      assert.deepStrictEqual(
        there.rows.map(({ called, word }: { called: string; word: string }) => [called, word]),
        local.rows.map(({ called, word }: { called: string; word: string }) => [called, word])
      )
      const sent = yield* hosts.cli("send", "cellar:shop/builder", "hello from afar")
      assert.deepStrictEqual([sent.code, sent.stderr], [0, ""])
      const waited = yield* hosts.cli("--host", "cellar", "wait", "shop/builder", "--timeout", "60s")
      assert.strictEqual(waited.code, 0, waited.stderr)
      const talk = yield* hosts.cli("--host", "cellar", "log", "--text", "shop/builder")
      assert.include(talk.stdout, "hello from afar")
      const messages = yield* hosts.cli("--host", "cellar", "--json", "log", "--messages", "shop/builder")
      assert.include(messages.stdout, "hello from afar")
      for (const verb of [
        ["status"],
        ["why", "shop/builder"],
        ["waiting"],
        ["cost"],
        ["goal", "ls"],
        ["verify"],
        ["project", "ls"]
      ]) {
        const { code, stderr } = yield* hosts.cli("--host", "cellar", ...verb)
        assert.strictEqual(code, 0, `${verb.join(" ")}: ${stderr}`)
      }
      const doctor = yield* hosts.cli("--host", "cellar", "doctor")
      assert.include(doctor.stdout, box.state)
      for (const verb of [
        ["open"],
        ["init"],
        ["up"],
        ["mcp"],
        ["project", "new"],
        ["goal", "plan", "g1", "plan.json"]
      ]) {
        const { code, stderr } = yield* hosts.cli("--host", "cellar", ...verb)
        assert.strictEqual(code, 2, `${verb.join(" ")}: ${stderr}`)
        assert.match(stderr, /^agentd: .*cellar.*\n {2}→ ./)
      }
      const absent = yield* hosts.cli("why", "cellar:shop/nobody")
      assert.match(absent.stderr, /agentd --host cellar /)
      // of a program there, too
      const nobody = yield* hosts.cli("--host", "cellar", "goal", "merge", "g99")
      assert.match(nobody.stderr, /agentd --host cellar /)
    })
  )

  it.live("the daemon there learns no process id of this machine, and finds dial-stdio by itself", () =>
    Effect.gen(function* () {
      const { folder, hosts, url } = yield* hostOf(`printf '%s{}\\n' '${MARK}'; head -n 1 > first; sleep 1`)
      yield* hosts.cli("--host", url, "ps")
      const hello = JSON.parse(readFileSync(join(folder, "home", "first"), "utf8"))
      assert.strictEqual(hello.tag, "Hello")
      assert.deepStrictEqual(Object.keys(hello.payload).toSorted(), ["protocol", "version"])
    })
  )

  it.live("an agent's run does not act on another host", () =>
    Effect.gen(function* () {
      const { hosts, url } = yield* far
      hosts.environment["AGENTD_RUN"] = "01k9"
      for (const args of [["--host", url, "ps"], ["ps", "--all-hosts"], ["--all-hosts"]]) {
        const { code, stderr } = yield* hosts.cli(...args)
        assert.strictEqual(code, 1)
        assert.match(stderr, /runs inside an agent/)
      }
    })
  )

  it.live("each failure names the host and what to do", () =>
    Effect.gen(function* () {
      const hosts = yield* SshHosts.make
      const fails = Effect.fnUntraced(function* (url: string, says: RegExp) {
        for (const verb of [["ps"], ["log", "-f"]]) {
          const { code, stderr, stdout } = yield* hosts.cli("--host", url, ...verb)
          assert.deepStrictEqual([code, stdout], [3, ""], stderr)
          assert.match(stderr, says)
          assert.include(stderr, url)
          assert.match(stderr, /\n {2}→ ./)
          assert.notMatch(stderr, /at .*\.(m?js|ts):\d/)
        }
      })
      const down = yield* hosts.machine()
      yield* fails(down.url, /No daemon is running[^]*agentd --host ssh:\S+ start/)
      const none = yield* hosts.machine('rm -f "$HOME/../bin/agentd"; exec sh -c "$SSH_ORIGINAL_COMMAND"')
      yield* fails(none.url, /not installed there, or not on the PATH/)
      const old = yield* hosts.machine(`echo 'agentd: Unknown subcommand "dial-stdio" for "agentd"' >&2; exit 2`)
      yield* fails(old.url, /too old/)
      const noisy = yield* hosts.machine("yes welcome | head -c 100000; sleep 5")
      yield* fails(noisy.url, /prints more than 64 kB/)
      const stranger = yield* hosts.machine(undefined, { isKnown: false })
      yield* fails(stranger.url, /host key is not known/)
      const changed = yield* hosts.machine(undefined, { isKnown: false })
      hosts.know(changed.port, down.port)
      yield* fails(changed.url, /host key has changed\. The new key has the fingerprint SHA256:\w/)
      yield* fails("ssh://127.0.0.1:1", /cannot be reached[^]*refused/i)
      yield* fails("ssh://nosuch.invalid", /cannot be reached/)
    })
  )

  it.live("a key that is not accepted is a refused login, and nothing asks for a password", () =>
    Effect.gen(function* () {
      const hosts = yield* SshHosts.make
      const machine = yield* hosts.machine()
      execFileSync("rm", [join(hosts.folder, "key")])
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(hosts.folder, "key2")])
      execFileSync("mv", [join(hosts.folder, "key2"), join(hosts.folder, "key")])
      const { code, stderr } = yield* hosts.cli("--host", machine.url, "ps")
      assert.strictEqual(code, 3)
      assert.match(stderr, /refused the login[^]*ssh-add/)
    })
  )

  it.live("an address that ssh or a shell could misread is refused before it reaches them", () =>
    Effect.gen(function* () {
      const hosts = yield* SshHosts.make
      for (const host of [
        "-oProxyCommand=touch x",
        "ssh://-oProxyCommand=x",
        "ssh://a b",
        "ssh://a;touch x",
        "ssh://u:secret@a",
        "ssh://a:99999",
        "ssh://a/s$(touch x)",
        "nosuch",
        ""
      ]) {
        const { code, stderr } = yield* hosts.cli("--host", host, "ps")
        assert.strictEqual(code, 2, `${host}: ${stderr}`)
        assert.notInclude(stderr, "secret")
      }
      assert.isFalse(existsSync(join(hosts.folder, "home", "x")))
    })
  )

  it.live("a daemon of a newer protocol is refused with a remedy that names the host", () =>
    Effect.gen(function* () {
      const error = {
        _tag: "CommandRefused",
        code: "unsupported",
        message: "The daemon speaks 9.",
        remedy: "Restart it: agentd restart"
      }
      const hosts = yield* SshHosts.make
      const program = join(hosts.folder, "newer.mjs")
      writeFileSync(
        program,
        `process.stdout.write(${JSON.stringify(`${MARK}{}\n`)})
        process.stdin.once("data", (data) => {
          const { id } = JSON.parse(String(data).split("\\n")[0])
          const exit = { _tag: "Failure", cause: [{ _tag: "Fail", error: ${JSON.stringify(error)} }] }
          process.stdout.write(JSON.stringify({ _tag: "Exit", requestId: id, exit }) + "\\n")
        })
        process.stdin.on("end", () => process.exit())`
      )
      const { url } = yield* hosts.machine(`exec ${process.execPath} ${program}`)
      for (const verb of [["ps"], ["wait", "x/y"]]) {
        const { code, stderr } = yield* hosts.cli("--host", url, ...verb)
        assert.strictEqual(code, 3, stderr)
        assert.match(stderr, /The daemon speaks 9\.\n {2}→ Restart it: agentd --host ssh:\S+ restart/)
      }
    })
  )

  it.live("a profile that prints on login is skipped", () =>
    Effect.gen(function* () {
      const { box, hosts } = yield* far
      const loud = yield* hosts.machine(
        'echo "Welcome to {cellar}"; printf "no newline"; exec sh -c "$SSH_ORIGINAL_COMMAND"'
      )
      const { code, stdout } = yield* hosts.cli("--host", `${loud.url}${box.state}`, "--json", "ps")
      assert.strictEqual(code, 0)
      assert.strictEqual(JSON.parse(stdout).rows[0].called, "shop/builder")
    })
  )

  it.live("a followed log ends with a message when its connection is cut, and the daemon there goes on", () =>
    Effect.gen(function* () {
      const { box, hosts, url } = yield* far
      const child = hosts.start("--host", url, "log", "-f")
      let [stdout, stderr] = ["", ""]
      child.stdout!.on("data", (chunk) => (stdout += chunk))
      child.stderr!.on("data", (chunk) => (stderr += chunk))
      const ended = new Promise<number | null>((resolve) => child.on("exit", resolve))
      yield* box.cli("send", "builder", "one more")
      yield* box.until(
        "the log follows",
        Effect.sync(() => stdout),
        (text) => text.includes("turn.started")
      )
      for (const pid of sessionsOf(`quick.cjs --state ${box.state} dial-stdio`)) process.kill(pid, "SIGKILL")
      assert.notStrictEqual(yield* Effect.promise(() => ended), 0)
      assert.match(stderr, /^agentd: .*(went away|stopped before it answered)/)
      assert.strictEqual((yield* box.cli("status")).code, 0)
    })
  )

  it.live("all hosts are one list: a host that is down, frozen or gone has a row, and delays nobody", () =>
    Effect.gen(function* () {
      const { box, hosts, url } = yield* far
      const frozen = yield* hosts.machine("sleep 60")
      assert.strictEqual((yield* hosts.cli("host", "add", "cellar", url)).code, 0)
      const refused = yield* hosts.cli("host", "add", "gone", "ssh://127.0.0.1:1")
      assert.strictEqual(refused.code, 2)
      for (const [name, address] of [
        ["gone", "ssh://127.0.0.1:1"],
        ["attic", frozen.url]
      ] as const)
        assert.strictEqual((yield* hosts.cli("host", "add", "--yes", name, address)).code, 0)
      const { rows } = JSON.parse((yield* hosts.cli("ps", "--all-hosts", "--json")).stdout) as {
        readonly rows: ReadonlyArray<{ readonly called: string; readonly name: string; readonly says: string }>
      }
      assert.deepInclude(
        rows.map(({ called }) => called),
        "cellar:shop/builder"
      )
      const silent = rows.filter(({ says }) => says.startsWith("does not answer"))
      assert.sameMembers(
        silent.map(({ name }) => name),
        ["this machine", "gone", "attic"]
      )
      for (const verb of [["ps"], ["waiting"], ["approve"], ["cost"]]) {
        const { stderr, stdout } = yield* hosts.cli(...verb, "--all-hosts")
        assert.strictEqual(
          (stdout + stderr).match(/does not answer/g)?.length,
          3,
          `${verb.join(" ")}: ${stdout}${stderr}`
        )
      }
      yield* hosts.cli("send", "cellar:shop/builder", "hi")
      yield* box.untilAgent("builder", "has answered", ({ word }) => word === "idle")
      const log = yield* hosts.cli("log", "--all-hosts")
      assert.match(log.stdout, /cellar:shop-\w+\//)
      const listed = yield* hosts.cli("host", "ls", "--json")
      assert.deepStrictEqual(
        JSON.parse(listed.stdout).map(({ name, version }: { name: string; version: string | null }) => [
          name,
          version !== null
        ]),
        [
          ["cellar", true],
          ["gone", false],
          ["attic", false]
        ]
      )
      assert.strictEqual((yield* hosts.cli("attach", "--all-hosts", "shop/builder")).code, 2)
      assert.strictEqual((yield* hosts.cli("host", "rm", "gone")).code, 0)
      assert.strictEqual((yield* hosts.cli("--host", "gone", "ps")).code, 2)
    })
  )

  long.live("a connection that freezes ends the command", () =>
    Effect.gen(function* () {
      const { box, hosts, url } = yield* far
      const child = hosts.start("--host", url, "log", "-f")
      let [stdout, stderr] = ["", ""]
      child.stdout!.on("data", (chunk) => (stdout += chunk))
      child.stderr!.on("data", (chunk) => (stderr += chunk))
      const ended = new Promise<number | null>((resolve) => child.on("exit", resolve))
      yield* box.until(
        "the log follows",
        Effect.sync(() => stdout),
        (text) => text.includes("daemon.started")
      )
      const sessions = sessionsOf(`quick.cjs --state ${box.state} dial-stdio`)
      for (const pid of sessions) process.kill(pid, "SIGSTOP")
      const code = yield* Effect.promise(() => ended)
      for (const pid of sessions) process.kill(pid, "SIGKILL")
      assert.deepStrictEqual([code, stderr.split(":")[0]], [3, "agentd"], stderr)
    })
  )
})
