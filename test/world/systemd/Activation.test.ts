/**
 * Activation: a socket on which somebody else listens and which the daemon is handed: whose it is, and that nobody is
 * refused over a kill and a restart. systemd is played by a small program that does what systemd does: it listens, and
 * starts the daemon when somebody has come; Machine.test.ts has the real one.
 */
import { assert, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, readlinkSync, readdirSync, unlinkSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { Effect, Exit, Fiber } from "effect"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import { boundTo, handed, portIn } from "../../../src/systemd/Activation.ts"
import { PROGRAM, QUICK } from "../../support/Program.ts"
import * as Sandbox from "../../support/Sandbox.ts"

describe("handed", () => {
  const given = { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "control:other" }

  it("names the descriptors, from 3 on", () =>
    assert.deepStrictEqual(
      [...handed(given, 7)],
      [
        ["control", [3]],
        ["other", [4]]
      ]
    ))

  it("several may have one name", () =>
    assert.deepStrictEqual(
      [...handed({ ...given, LISTEN_FDS: "3", LISTEN_FDNAMES: "page:control:page" }, 7)],
      [
        ["page", [3, 5]],
        ["control", [4]]
      ]
    ))

  it.each([
    ["meant for another process", { ...given, LISTEN_PID: "8" }],
    ["for nobody", { ...given, LISTEN_PID: undefined }],
    ["no number", { ...given, LISTEN_FDS: "x" }],
    ["none", {}]
  ])("is nothing where they are %s", (_, environment) => assert.strictEqual(handed(environment, 7).size, 0))

  it("those without a name are called by their place", () =>
    assert.deepStrictEqual([...handed({ ...given, LISTEN_FDNAMES: undefined }, 7).keys()], ["unknown-0", "unknown-1"]))
})

it("a socket's path is read off the kernel's table", () => {
  const table = [
    "Num       RefCount Protocol Flags    Type St Inode Path",
    "0000000000000000: 00000002 00000000 00010000 0001 01 41 /run/a b/control.sock",
    "0000000000000000: 00000002 00000000 00000000 0001 01 42"
  ].join("\n")
  assert.strictEqual(boundTo("41", table), "/run/a b/control.sock")
  assert.strictEqual(boundTo("42", table), "")
  assert.isUndefined(boundTo("43", table))
})

it("a socket's port is read off the kernel's table", () => {
  const table = [
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
    "   0: 0100007F:1BA8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41 1 0000 100 0 0 10 0",
    "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 42 1"
  ].join("\n")
  assert.strictEqual(portIn("41", table), 7080)
  assert.strictEqual(portIn("42", table), 80)
  assert.isUndefined(portIn("1000", table))
})

/** Listens at a path; each time somebody waits there and nobody answers, starts a program with the socket. */
const LISTENER = `
  use Socket;
  my ($path, $port) = splice(@ARGV, 0, 2);
  $^F = 4;
  socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or die $!;
  bind($socket, sockaddr_un($path)) or die $!;
  listen($socket, 4096) or die $!;
  die "descriptor " . fileno($socket) if fileno($socket) != 3;
  my ($page, $fds, $names) = (undef, 1, "control");
  if ($port) {
    socket($page, PF_INET, SOCK_STREAM, 0) or die $!;
    setsockopt($page, SOL_SOCKET, SO_REUSEADDR, 1) or die $!;
    bind($page, sockaddr_in($port, INADDR_LOOPBACK)) or die $!;
    listen($page, 4096) or die $!;
    ($fds, $names) = (2, "control:page");
  }
  $SIG{TERM} = sub { kill "KILL", $child if $child; exit };
  $| = 1;
  print "listening\\n";
  while (1) {
    my $ready = "";
    vec($ready, $_, 1) = 1 for 3 .. 2 + $fds;
    select($ready, undef, undef, undef);
    $child = fork() // die $!;
    if ($child == 0) {
      @ENV{qw(LISTEN_PID LISTEN_FDS LISTEN_FDNAMES)} = ($$, $fds, $names);
      # nor does systemd pass on what it was started with
      require POSIX;
      POSIX::close($_) for 3 + $fds .. 1023;
      exec @ARGV or die $!;
    }
    print "started $child\\n";
    waitpid($child, 0);
    print "ended $?\\n";
  }
`
const missing = spawnSync("perl", ["--version"]).error !== undefined
if (missing) console.warn("SKIPPED: a daemon that is handed its socket (no perl here)")

/** The daemons' pids, in the order of their starts. */
const listener = (box: Sandbox.Sandbox, port = 0) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      mkdirSync(box.state, { recursive: true, mode: 0o700 })
      const socket = join(box.state, "control.sock")
      const program = [process.execPath, PROGRAM, "--state", box.state, "up"]
      const child: ChildProcess = spawn("perl", ["-e", LISTENER, socket, `${port}`, ...program], {
        cwd: box.project,
        env: { ...process.env, XDG_CONFIG_HOME: join(box.folder, "config") },
        stdio: ["ignore", "pipe", "inherit"]
      })
      const pids: Array<number> = []
      await new Promise<void>((resolve, reject) => {
        child.once("error", reject)
        child.stdout!.on("data", (chunk) => {
          const text = String(chunk)
          if (text.includes("listening")) resolve()
          for (const [, pid] of text.matchAll(/started (\d+)/g)) pids.push(Number(pid))
        })
      })
      return { child, pids, socket }
    }),
    ({ child }) =>
      Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            child.once("close", () => resolve())
            child.kill("SIGTERM")
          })
      )
  )

/** How an attempt to listen on the port ends. */
const bound = (port: number) =>
  Effect.callback<string>((resume) => {
    const server = createServer()
    server.once("error", (error) => resume(Effect.succeed("code" in error ? String(error.code) : String(error))))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed("it is ours"))))
  })

/** A port on which nobody listens. */
const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Says whether a word of `socket` gets its answer. */
const asked = (socket: string) => Effect.exit(call(socket, (client) => client.Agents()))

describe.skipIf(missing)("a daemon that is handed its socket", () => {
  it.live("is started by a client's first word; nobody who connects is refused over a restart or a kill -9", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: { idle: { backend: { type: "command", shell: "cat" }, may: [] } }
      })
      const { pids, socket } = yield* listener(box)
      assert.deepStrictEqual(pids, [])
      assert.isTrue(Exit.isSuccess(yield* asked(socket)))
      assert.lengthOf(pids, 1)
      // a hundred connections that have said nothing yet, while no daemon is there to take them
      process.kill(pids[0]!, "SIGKILL")
      const waiting = yield* Effect.forEach(Array.from({ length: 100 }), () => Effect.forkChild(asked(socket)))
      const answers = yield* Effect.forEach(waiting, Fiber.join)
      const late = answers.filter(Exit.isFailure)
      assert.deepStrictEqual(late, [])
      assert.lengthOf(pids, 2)
      // connections come all along the restart
      const over = { is: false }
      const failures: Array<string> = []
      let count = 0
      const knocking = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 8 }),
          () =>
            Effect.gen(function* () {
              while (!over.is) {
                const answer = yield* asked(socket)
                count++
                if (Exit.isFailure(answer)) failures.push(String(answer.cause))
                yield* Effect.sleep(20)
              }
            }),
          { concurrency: "unbounded" }
        )
      )
      for (const restarts of [1, 2, 3]) {
        process.kill(pids.at(-1)!, "SIGTERM")
        yield* box.until(
          "the next one is there",
          Effect.sync(() => pids.length),
          (length) => length === 2 + restarts
        )
        assert.isTrue(Exit.isSuccess(yield* asked(socket)))
      }
      over.is = true
      yield* Fiber.join(knocking)
      assert.deepStrictEqual(failures, [])
      assert.isAtLeast(count, 8)
    }).pipe(Effect.scoped)
  )

  it.live("a config that is wrong is told to who waits: one command costs one start", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.setUser({ mail: 7 })
      const { pids, socket } = yield* listener(box)
      const answer = yield* asked(socket)
      assert.isTrue(Exit.isFailure(answer))
      assert.match(String(answer), /The daemon cannot be started\. .*config\.jsonc.*mail/s)
      assert.lengthOf(pids, 1)
      // one that tells is there for others, too
      const over = Effect.suspend(() =>
        box.until(
          "it has ended",
          Effect.sync(() => existsSync(`/proc/${pids.at(-1)}`)),
          (isThere) => !isThere
        )
      )
      yield* over
      for (const [at, program] of [QUICK, PROGRAM].entries()) {
        box.program = program
        const { code, stderr } = yield* box.cli("ps")
        assert.strictEqual(code, 3, stderr)
        assert.match(stderr, /^agentd: The daemon cannot be started\. .*config\.jsonc.*mail/s)
        yield* over
        assert.lengthOf(pids, 2 + at, `${program} ps`)
      }
      const { code, stderr } = yield* box.cli("start")
      assert.strictEqual(code, 3, stderr)
      assert.match(stderr, /The daemon cannot be started/)
      assert.lengthOf(pids, 4, "start")
      // who speaks otherwise hears nothing
      const strange = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            let said = ""
            const conn = connect(socket, () => conn.write("GET / HTTP/1.1\n"))
            conn.on("data", (bytes) => (said += String(bytes)))
            conn.on("error", () => {})
            conn.on("close", () => resolve(said))
          })
      )
      assert.strictEqual(strange, "")
    }).pipe(Effect.scoped)
  )

  it.live("is reached again where the socket's name is taken away, though systemd listens at none any more", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: {} })
      const { pids, socket } = yield* listener(box)
      assert.isTrue(Exit.isSuccess(yield* asked(socket)))
      unlinkSync(socket)
      const told = yield* box.cli("start")
      assert.strictEqual(told.code, 0, told.stderr)
      assert.include(told.stdout, `The daemon is already running (pid ${pids[0]}).`)
      assert.isTrue(Exit.isSuccess(yield* asked(socket)))
      assert.lengthOf(pids, 1)
    }).pipe(Effect.scoped)
  )

  it.live(
    "has the page's port of whoever hands it over: no other program can take that over a kill -9 or a restart",
    () =>
      Effect.gen(function* () {
        const box = yield* Sandbox.make()
        const port = yield* freePort
        box.setUser({ http: { enabled: true, port } })
        box.configure({ agents: {} })
        const { pids } = yield* listener(box, port)
        const page = Effect.promise(() => fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } }))
        const answers = Effect.map(page, ({ status }) => status)
        // a page's word starts it, too
        assert.strictEqual(yield* answers, 200)
        assert.lengthOf(pids, 1)
        for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
          const before = pids.length
          process.kill(pids.at(-1)!, signal)
          const over = { is: false }
          const taken: Array<string> = []
          const thief = yield* Effect.forkChild(
            Effect.gen(function* () {
              while (!over.is) {
                taken.push(yield* bound(port))
                yield* Effect.sleep(5)
              }
            })
          )
          const waiting = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.forkChild(answers))
          assert.deepStrictEqual([...new Set(yield* Effect.forEach(waiting, Fiber.join))], [200])
          over.is = true
          yield* Fiber.join(thief)
          assert.deepStrictEqual([...new Set(taken)], ["EADDRINUSE"])
          assert.isAbove(pids.length, before)
        }
        const { stdout } = yield* box.cli("doctor", "--json")
        assert.match(stdout, new RegExp(`"detail": ?"http://127.0.0.1:${port} `))
      }).pipe(Effect.scoped)
  )

  it.live("one that is asked to end ends", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: {} })
      const { pids, socket } = yield* listener(box)
      assert.isTrue(Exit.isSuccess(yield* asked(socket)))
      yield* call(socket, (client) => client.Shutdown({ reason: "agentd stop", by: "ada" }))
      yield* box.until(
        "it is gone",
        Effect.sync(() => existsSync(`/proc/${pids[0]}`)),
        (isThere) => !isThere
      )
    }).pipe(Effect.scoped)
  )

  it.live("hands the socket to no agent, nor tells one of it", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: {
          nosy: {
            backend: {
              type: "command",
              shell: "(exec ls /proc/self/fd) > seen; env > env; cat > /dev/null",
              promptBy: "stdin"
            },
            may: []
          }
        }
      })
      const { pids, socket } = yield* listener(box)
      const started = yield* box.cli("start")
      assert.strictEqual(started.code, 0, started.stderr)
      assert.strictEqual((yield* box.cli("send", "nosy", "look")).code, 0)
      yield* box.until(
        "it has looked",
        Effect.sync(() => existsSync(box.file("env")) && readFileSync(box.file("env"), "utf8")),
        Boolean
      )
      assert.deepStrictEqual(readFileSync(box.file("seen"), "utf8").trim().split("\n"), ["0", "1", "2", "3"])
      assert.notInclude(readFileSync(box.file("env"), "utf8"), "LISTEN_")
      const held = readdirSync(`/proc/${pids[0]}/fd`).map((name) => {
        try {
          return `${name} ${readlinkSync(`/proc/${pids[0]}/fd/${name}`)}`
        } catch {
          return name
        }
      })
      assert.match(held.join("\n"), /^3 socket:/m, socket)
    }).pipe(Effect.scoped)
  )
})
