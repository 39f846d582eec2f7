/** `agentd service`: against programs that write down what they are asked; and a life of it under a real systemd. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync
} from "node:fs"
import type { AddressInfo } from "node:net"
import { homedir, tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Exit, Schedule } from "effect"
import { SMTPServer } from "smtp-server"
import { VERSION } from "../../../src/api/rpc/Version.ts"
import { unitName } from "../../../src/systemd/Unit.ts"
import { MARK } from "../../../src/systemd/UnitFile.ts"
import * as ControlClient from "../../../src/api/rpc/ControlClient.ts"
import { agentd } from "../cli/Child.ts"
import { PATIENCE } from "../../support/Patience.ts"
import * as Package from "../../support/Package.ts"
import { PROGRAM } from "../../support/Program.ts"
import { hasUserManager } from "./Manager.ts"

const scratch = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-service-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A machine whose systemd notes what it is asked. `linger`: what loginctl says. */
const stand = Effect.fnUntraced(function* (linger = "no") {
  const folder = yield* scratch
  const bin = join(folder, "bin")
  mkdirSync(bin)
  const program = (name: string, script: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> '${folder}/asked'\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  program("systemctl", 'case "$*" in *is-system-running) echo running;; *is-enabled*) echo enabled;; esac')
  program("systemd-run", "exit 0")
  program("loginctl", `case "$*" in show-user*) echo ${linger};; esac`)
  const env = { PATH: `${bin}:${process.env["PATH"]}`, XDG_CONFIG_HOME: join(folder, "config"), HOME: folder }
  const state = join(folder, "s")
  const unit = unitName(state, "")
  return {
    unit,
    state,
    userConfig: (config: object) => {
      mkdirSync(join(folder, "config", "agentd"), { recursive: true })
      writeFileSync(join(folder, "config", "agentd", "config.jsonc"), JSON.stringify(config))
    },
    file: join(folder, "config", "systemd", "user", `${unit}.service`),
    program,
    run: Object.assign((...args: ReadonlyArray<string>) => agentd(["--state", state, "service", ...args], { env }), {
      verb: (...args: ReadonlyArray<string>) => agentd(["--state", state, ...args], { env })
    }),
    asked: () => (existsSync(join(folder, "asked")) ? readFileSync(join(folder, "asked"), "utf8").split("\n") : [])
  }
})

/** A server that keeps what it is sent. */
const mailServer = Effect.acquireRelease(
  Effect.promise(async () => {
    const mails: Array<string> = []
    const logins: Array<string> = []
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS"],
      onAuth: ({ password }, _, done) => {
        logins.push(password ?? "")
        done(null, { user: "ada" })
      },
      onData: (stream, _, done) => {
        let text = ""
        stream.on("data", (chunk) => (text += String(chunk)))
        stream.on("end", () => {
          mails.push(text)
          done()
        })
      }
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
    return { mails, logins, server, port: (server.server.address() as AddressInfo).port }
  }),
  ({ server }) => Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve())))
)

describe("agentd service", () => {
  it.live("install writes the units, has them read, enables and starts; a second time is the same", () =>
    Effect.gen(function* () {
      const { asked, file, run, unit } = yield* stand()
      const first = yield* run("install", "--credential", "smtp=/secret/smtp")
      assert.strictEqual(first.code, 0, first.err)
      const text = readFileSync(file, "utf8")
      assert.isTrue(text.startsWith(MARK))
      assert.match(text, new RegExp(`^ExecStart=/.+ --state .+ up$`, "m"))
      assert.include(text, "LoadCredential=smtp:/secret/smtp\n")
      assert.isTrue(existsSync(file.replace(".service", "-failed.service")))
      assert.match(readFileSync(file.replace(".service", ".socket"), "utf8"), /^ListenStream=\/.+\/s\/control\.sock$/m)
      const orders = asked().filter((line) => /daemon-reload|enable | start /.test(line))
      assert.deepStrictEqual(orders, [
        "systemctl --user daemon-reload",
        `systemctl --user --quiet enable ${unit} ${unit}.socket`,
        `systemctl --user start ${unit}`
      ])
      assert.match(first.out, /To change this: loginctl enable-linger \S+/)
      assert.strictEqual((yield* run("install")).code, 0)
      assert.notInclude(readFileSync(file, "utf8"), "LoadCredential")
    })
  )

  it.live("install --linger asks for it, and only where it is not so", () =>
    Effect.gen(function* () {
      const lacking = yield* stand()
      assert.strictEqual((yield* lacking.run("install", "--linger")).code, 0)
      assert.isTrue(lacking.asked().some((line) => line.startsWith("loginctl enable-linger ")))
      const having = yield* stand("yes")
      assert.strictEqual((yield* having.run("install", "--linger")).code, 0)
      assert.isFalse(having.asked().some((line) => line.startsWith("loginctl enable-linger")))
    })
  )

  it.live("a unit that a person wrote is not overwritten unasked", () =>
    Effect.gen(function* () {
      const { file, run } = yield* stand()
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, "[Service]\nExecStart=/mine\n")
      const { code, err } = yield* run("install")
      assert.strictEqual(code, 2)
      assert.include(err, "agentd did not write it")
      assert.include(readFileSync(file, "utf8"), "/mine")
      assert.strictEqual((yield* run("install", "--yes")).code, 0)
    })
  )

  it.live("what systemd refuses is told, with what it said", () =>
    Effect.gen(function* () {
      const { program, run } = yield* stand()
      program(
        "systemctl",
        'case "$*" in *is-system-running) echo running;; *enable*) echo "no such thing" >&2; exit 1;; esac'
      )
      const { code, err } = yield* run("install")
      assert.strictEqual(code, 1)
      assert.include(err, "no such thing")
    })
  )

  it.live("without systemd nothing is written, and what to do instead is said", () =>
    Effect.gen(function* () {
      const { file, program, run } = yield* stand()
      program("systemctl", "exit 1")
      const { code, err } = yield* run("install")
      assert.strictEqual(code, 1)
      assert.include(err, "agentd --state")
      assert.isFalse(existsSync(file))
    })
  )

  it.live("a credential that is none is a wrong use", () =>
    Effect.gen(function* () {
      const { run } = yield* stand()
      for (const wrong of ["smtp", "smtp=relative", "../x=/a", "=/a"]) {
        assert.strictEqual((yield* run("install", "--credential", wrong)).code, 2, wrong)
      }
    })
  )

  it.live("status says what is so and changes nothing; uninstall asks, and takes both units away", () =>
    Effect.gen(function* () {
      const { asked, file, run, unit } = yield* stand()
      const absent = JSON.parse((yield* run("status", "--json")).out)
      assert.deepInclude(absent, { unit, installed: false, manager: "user", lingers: false, pid: null })
      yield* run("install")
      assert.deepInclude(JSON.parse((yield* run("status", "--json")).out), { installed: true, enabled: true, file })
      assert.strictEqual((yield* run("uninstall")).code, 2)
      assert.isTrue(existsSync(file))
      const { code, out } = yield* run("uninstall", "--yes")
      assert.strictEqual(code, 0)
      assert.include(out, "was removed")
      assert.isFalse(
        [".service", "-failed.service", ".socket"].some((end) => existsSync(file.replace(".service", end)))
      )
      assert.include(asked(), `systemctl --user --quiet disable --now ${unit}.socket ${unit}`)
      assert.include((yield* run("uninstall", "--yes")).out, "nothing was done")
    })
  )

  it.live(
    "a failure is mailed once, until it is another one or a daemon has begun; a person's try is always sent",
    () =>
      Effect.gen(function* () {
        const { program, run, state, unit, userConfig } = yield* stand()
        const { mails, port } = yield* mailServer
        const smtp = { host: "127.0.0.1", port, security: "none" }
        userConfig({ mail: { from: "agentd@example.org", to: ["ada@example.org"], smtp } })
        const fails = (code: number) =>
          program("systemctl", `printf 'LoadState=loaded\\nResult=exit-code\\nExecMainStatus=${code}\\n'`)
        const begun = (head: number) => {
          const store = new DatabaseSync(join(state, "runes.db"))
          store.exec(`CREATE TABLE IF NOT EXISTS head (event_id); DELETE FROM head; INSERT INTO head VALUES (${head})`)
          store.close()
        }
        const failed = Effect.gen(function* () {
          const { code, err } = yield* run("mail", "--once", unit)
          assert.strictEqual(code, 0, err)
          return mails.length
        })
        mkdirSync(state, { mode: 0o700 })
        begun(7)
        fails(78)
        assert.strictEqual(yield* failed, 1)
        assert.strictEqual(yield* failed, 1, "the same")
        fails(1)
        assert.strictEqual(yield* failed, 2, "another")
        begun(9)
        assert.strictEqual(yield* failed, 3, "a daemon began meanwhile")
        assert.strictEqual(yield* failed, 3)
        assert.strictEqual((yield* run("mail", unit)).code, 0)
        assert.lengthOf(mails, 4)
      })
  )

  it.live(
    "agentd uninstall names the command that turns off what is installed: agentd's own, or a person's with its socket",
    () =>
      Effect.gen(function* () {
        const { file, program, run, state, unit } = yield* stand()
        const uninstall = Effect.gen(function* () {
          mkdirSync(state, { recursive: true, mode: 0o700 })
          new DatabaseSync(join(state, "runes.db")).close()
          const { code, err, out } = yield* run.verb("uninstall", "--yes")
          assert.strictEqual(code, 0, err)
          return out
        })
        const knows = (socket: string) =>
          program(
            "systemctl",
            `case "$*" in *.socket*LoadState*) echo ${socket};; *show*LoadState*) echo LoadState=loaded;; *is-system*) echo running;; esac`
          )
        knows("loaded")
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, "[Service]\nExecStart=/mine\n")
        assert.include(
          yield* uninstall,
          `To turn it off: systemctl --user disable --now ${unit}.service ${unit}.socket\n`
        )
        knows("not-found")
        assert.include(yield* uninstall, `To turn it off: systemctl --user disable --now ${unit}.service\n`)
        assert.strictEqual((yield* run("install", "--yes")).code, 0)
        assert.include(yield* uninstall, `To turn it off: agentd --state ${state} service uninstall\n`)
      })
  )
})

/** The test writes into the user's own folders: only where the machine is thrown away after (Booted.test.ts). */
const isThrownAway = hasUserManager && process.env["THROWAWAY_MACHINE"] === "1"
if (!isThrownAway) console.warn("SKIPPED: agentd service under a real systemd (ALL=1 boots a machine for it)")

describe.skipIf(!isThrownAway)("under the user's systemd", () => {
  it.live(
    "is installed and says how things stand; what fails for good is mailed, with a credential; is uninstalled",
    () =>
      Effect.gen(function* () {
        const folder = yield* scratch
        const { logins, mails, port } = yield* mailServer
        // the manager reads the real user's units
        const config = join(homedir(), ".config")
        const env = { ...(process.env as { [name: string]: string }), HOME: homedir(), XDG_CONFIG_HOME: config }
        const state = join(folder, "s")
        const unit = unitName(state, "")
        const run = (...args: ReadonlyArray<string>) => agentd(["--state", state, ...args], { env })
        mkdirSync(join(config, "agentd"), { recursive: true })
        writeFileSync(join(folder, "password"), "sesame\n", { mode: 0o600 })
        writeFileSync(join(folder, "key"), "sk-of-the-credential\n", { mode: 0o600 })
        writeFileSync(
          join(config, "agentd", "config.jsonc"),
          JSON.stringify({
            mail: {
              from: "agentd@example.org",
              to: ["ada@example.org"],
              smtp: { host: "127.0.0.1", port, security: "none", user: "ada", passwordCredential: "smtp" }
            }
          })
        )
        const credentials = [`smtp=${join(folder, "password")}`, `ANTHROPIC_API_KEY=${join(folder, "key")}`]
        const installed = yield* run(
          "service",
          "install",
          ...credentials.flatMap((credential) => ["--credential", credential])
        )
        yield* Effect.addFinalizer(() => Effect.ignore(run("service", "uninstall", "--yes")))
        assert.strictEqual(installed.code, 0, installed.err)
        const status = Effect.map(run("service", "status", "--json"), ({ out }) => JSON.parse(out))
        const until = (what: (facts: Record<string, unknown>) => boolean) =>
          Effect.timeout(Effect.repeat(status, { until: what, schedule: Schedule.spaced("200 millis") }), PATIENCE)
        yield* until(({ status }) => status === "0 agents")
        const first = yield* status
        assert.deepInclude(first, { installed: true, enabled: true, state: "active" })
        const shown = spawnSync("systemctl", ["--user", "reload", unit], { encoding: "utf8" })
        assert.strictEqual(shown.status, 0, shown.stderr)
        // the second start within the interval is one too many
        mkdirSync(join(config, "systemd", "user", `${unit}.service.d`), { recursive: true })
        writeFileSync(
          join(config, "systemd", "user", `${unit}.service.d`, "once.conf"),
          "[Unit]\nStartLimitBurst=1\n[Service]\nRestartSec=0\n"
        )
        spawnSync("systemctl", ["--user", "daemon-reload"])
        yield* Effect.sync(() => {
          spawnSync("systemctl", ["--user", "kill", "--signal=SIGKILL", "--kill-who=main", unit])
          return mails.length
        }).pipe(
          Effect.repeat({ until: (count) => count > 0, schedule: Schedule.spaced("500 millis") }),
          Effect.timeout(PATIENCE)
        )
        assert.match(mails[0]!, new RegExp(`Subject: \\[agentd\\] ${unit} on \\S+ has failed and is`))
        assert.match(mails[0]!, new RegExp(`systemctl --user start ${unit}`))
        assert.deepStrictEqual(logins, ["sesame"])
        rmSync(join(config, "systemd", "user", `${unit}.service.d`), { recursive: true })
        assert.strictEqual((yield* run("service", "uninstall", "--yes")).code, 0)
        assert.deepInclude(yield* status, { installed: false, enabled: false })
      }).pipe(Effect.scoped),
    60_000
  )

  it.live(
    "its watchdog starts another daemon where the main loop is stopped, and where the log's thread hangs",
    () =>
      Effect.gen(function* () {
        const folder = yield* scratch
        const config = join(homedir(), ".config")
        const env = { ...(process.env as { [name: string]: string }), HOME: homedir(), XDG_CONFIG_HOME: config }
        const state = join(folder, "s")
        const stuck = join(folder, "stuck")
        const unit = unitName(state, "")
        const run = (...args: ReadonlyArray<string>) => agentd(["--state", state, ...args], { env })
        const dropIn = join(config, "systemd", "user", `${unit}.service.d`)
        mkdirSync(dropIn, { recursive: true })
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(dropIn, { recursive: true, force: true })))
        const preload = `NODE_OPTIONS=--require=${resolve(import.meta.dirname, "../../fixtures/stuck-disk.cjs")}`
        writeFileSync(
          join(dropIn, "soon.conf"),
          `[Service]\nWatchdogSec=6\nTimeoutAbortSec=1\nRestartSec=0\nEnvironment=${preload} STUCK_DISK=${stuck}\n`
        )
        const installed = yield* run("service", "install")
        yield* Effect.addFinalizer(() => Effect.ignore(run("service", "uninstall", "--yes")))
        assert.strictEqual(installed.code, 0, installed.err)
        const restarts = () =>
          Number(spawnSync("systemctl", ["--user", "show", "-P", "NRestarts", unit], { encoding: "utf8" }).stdout)
        const until = (what: () => boolean) =>
          Effect.sync(what).pipe(
            Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("200 millis") }),
            Effect.timeout(PATIENCE)
          )
        const call = <A, E>(use: (client: ControlClient.Client) => Effect.Effect<A, E>) =>
          Effect.exit(ControlClient.call(join(state, "control.sock"), use))
        const isUp = call((client) => client.Status()).pipe(
          Effect.repeat({ until: Exit.isSuccess, schedule: Schedule.spaced("200 millis") }),
          Effect.timeout(PATIENCE)
        )
        yield* isUp
        spawnSync("systemctl", ["--user", "kill", "--signal=SIGSTOP", "--kill-who=main", unit])
        yield* until(() => restarts() === 1)
        yield* isUp
        assert.strictEqual(spawnSync("mkfifo", [stuck]).status, 0)
        writeFileSync(join(folder, "agentd.jsonc"), JSON.stringify({ agents: {} }))
        const written = { config: join(folder, "agentd.jsonc") }
        yield* Effect.forkChild(call((client) => client.Register({ ...written, caller: { by: "ada", ...written } })))
        yield* until(() => restarts() > 1)
        rmSync(stuck)
        yield* isUp
        const told = spawnSync("journalctl", [`_SYSTEMD_USER_UNIT=${unit}.service`, "-o", "cat"], {
          encoding: "utf8"
        }).stdout
        assert.include(told, "The watchdog is not fed, because the daemon is not healthy.")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "of the system: is installed with its user, started by that user's first word, hardened and able; is uninstalled",
    () =>
      Effect.gen(function* () {
        const env = { ...(process.env as { [name: string]: string }), HOME: homedir() }
        const run = (...args: ReadonlyArray<string>) => agentd(["service", ...args, "--system"], { env })
        const sh = (script: string) => {
          const { status, stderr, stdout } = spawnSync("sh", ["-c", script], { encoding: "utf8", cwd: "/" })
          return { status, stdout: stdout.trim(), stderr }
        }
        const own = (verb: string) =>
          sh(`runuser -u agents -- '${process.execPath}' '${PROGRAM}' --state /var/lib/agentd ${verb}`)
        const refused = yield* run("install", "--as", "agentd")
        assert.strictEqual(refused.code, 2, refused.err)
        const installed = yield* run("install")
        yield* Effect.addFinalizer(() => Effect.ignore(run("uninstall", "--yes")))
        assert.strictEqual(installed.code, 0, installed.err)
        assert.include(installed.out, "The user agents was added.")
        const facts = JSON.parse((yield* run("status", "--json")).out)
        assert.deepInclude(facts, { installed: true, enabled: true, state: "active", manager: "system", listens: true })
        const ps = own("ps")
        assert.strictEqual(ps.status, 0, ps.stderr)
        const shown = sh("ps -o user= -p $(systemctl show -P MainPID agentd)")
        assert.strictEqual(shown.stdout, "agents")

        // stopped, the socket listens on: the next word of its user starts it
        assert.strictEqual(sh("systemctl stop agentd").status, 0)
        assert.strictEqual(sh("systemctl is-active agentd.socket").stdout, "active")
        assert.strictEqual(own("ps").status, 0)
        // answered while it still begins: this returns once it is ready
        assert.strictEqual(sh("systemctl start agentd").status, 0)
        assert.strictEqual(sh("systemctl reload agentd").status, 0)
        assert.strictEqual(own("restart --yes").status, 0)

        // an agent works in it
        const project = "/var/lib/agentd/shop"
        const config = { agents: { one: { backend: { type: "command", shell: "cat > got; echo done" } } } }
        const home = JSON.stringify(config)
        assert.strictEqual(
          sh(`runuser -u agents -- sh -c "mkdir ${project} && cat > ${project}/agentd.jsonc" <<'E'\n${home}\nE`).status,
          0
        )
        const begun = sh(
          `cd ${project} && runuser -u agents -- '${process.execPath}' '${PROGRAM}' --state /var/lib/agentd start`
        )
        assert.strictEqual(begun.status, 0, begun.stderr)
        const sent = sh(
          `cd ${project} && runuser -u agents -- '${process.execPath}' '${PROGRAM}' --state /var/lib/agentd send one hello`
        )
        assert.strictEqual(sent.status, 0, sent.stderr)
        yield* Effect.sync(() => sh(`cat ${project}/got`).stdout).pipe(
          Effect.repeat({ until: (text) => text.includes("hello"), schedule: Schedule.spaced("200 millis") }),
          Effect.timeout(PATIENCE)
        )

        const gone = yield* run("uninstall", "--yes")
        assert.strictEqual(gone.code, 0, gone.err)
        assert.deepInclude(JSON.parse((yield* run("status", "--json")).out), { installed: false, enabled: false })
        assert.strictEqual(sh("systemctl is-active agentd.socket").stdout, "inactive")
        assert.strictEqual(sh("test -e /var/lib/agentd/runes.db").status, 0, "what it knows stays")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a restart after npm install goes by the unit: the new program is its main process, and a run goes on; one that does not start says the way back",
    () =>
      Effect.gen(function* () {
        const folder = realpathSync(yield* scratch)
        const [state, shop] = [join(folder, "s"), join(folder, "shop")]
        const home = Package.layOut(join(folder, "prefix", "lib", "node_modules", "agentd"), VERSION)
        mkdirSync(join(folder, "prefix", "bin"))
        const config = join(homedir(), ".config")
        const env = {
          ...(process.env as { [name: string]: string }),
          HOME: homedir(),
          XDG_CONFIG_HOME: config,
          PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
          npm_config_cache: join(folder, "npm"),
          npm_config_offline: "true"
        }
        mkdirSync(shop)
        const shell = "cat > /dev/null; echo $$ >> pids; while [ ! -e go ]; do sleep 0.05; done; echo done > result"
        writeFileSync(
          join(shop, "agentd.jsonc"),
          JSON.stringify({ agents: { one: { backend: { type: "command", shell } } } })
        )
        const run = (...args: ReadonlyArray<string>) =>
          agentd(["--state", state, ...args], { env, cwd: shop, program: join(home, "dist", "agentd.mjs") })
        const read = (name: string) =>
          existsSync(join(shop, name)) ? readFileSync(join(shop, name), "utf8").trim() : ""
        const until = (what: () => boolean) =>
          Effect.sync(what).pipe(
            Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("100 millis") }),
            Effect.timeout(PATIENCE)
          )
        const installed = yield* run("service", "install")
        yield* Effect.addFinalizer(() => Effect.ignore(run("service", "uninstall", "--yes")))
        yield* Effect.addFinalizer(() => Effect.ignore(run("stop", "--daemon", "--yes")))
        assert.strictEqual(installed.code, 0, installed.err)
        assert.strictEqual((yield* run("start")).code, 0)
        assert.strictEqual((yield* run("send", "one", "work")).code, 0)
        yield* until(() => read("pids") !== "")
        const pid = read("pids")
        const pack = Package.packer(folder, env)
        const sh = (line: string) =>
          execFileSync("sh", ["-c", line], {
            cwd: folder,
            env: { ...env, PATH: `${join(folder, "prefix", "bin")}:${env.PATH}` }
          })
        const npm = (file: string) => sh(`npm install -g --prefix ${join(folder, "prefix")} ${file}`)
        const facts = Effect.map(run("service", "status", "--json"), ({ out }) => JSON.parse(out))
        const version = Effect.map(run("status", "--json"), ({ out }) => JSON.parse(out).daemon.version)

        npm(pack("0.2.0"))
        const good = yield* run("restart", "--yes", "--json")
        assert.strictEqual(good.code, 0, good.err)
        assert.strictEqual(yield* version, "0.2.0")
        assert.deepInclude(yield* facts, { state: "active", pid: JSON.parse(good.out).pid, listens: true })
        npm(pack("0.4.0", {}, Package.ending))
        const bad = yield* run("restart", "--yes")
        assert.notStrictEqual(bad.code, 0)
        assert.match(bad.err, /does not start\. The previous version was 0\.2\.0/)
        sh(/Or go back to agentd 0\.2\.0: (.*)/.exec(bad.err)?.[1] ?? "")
        assert.strictEqual(yield* version, "0.2.0")
        yield* until(() => spawnSync("systemctl", ["--user", "is-active", unitName(state, "")]).status === 0)
        assert.strictEqual(read("pids"), pid)
        writeFileSync(join(shop, "go"), "")
        yield* until(() => read("result") === "done")
        assert.strictEqual(read("pids"), pid)
      }).pipe(Effect.scoped),
    PATIENCE
  )
})
