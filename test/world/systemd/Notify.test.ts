/**
 * Notify against the real `systemd-notify` and a real Unix datagram socket where
 * the machine has both; the rest against a program of that name that writes down
 * what it was given.
 */
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer, Ref, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, describe, vi } from "vitest"
import { Notify } from "../../../src/systemd/Notify.ts"
import { PATIENCE } from "../../support/Patience.ts"

let folder: string
let log: string
const path = process.env["PATH"]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "agentd-notify-"))
  log = join(folder, "log")
})
afterEach(() => {
  process.env["PATH"] = path
  delete process.env["NOTIFY_SOCKET"]
  rmSync(folder, { recursive: true })
})

/** Puts a `systemd-notify` first on PATH. */
const standIn = (script: string) => {
  writeFileSync(join(folder, "systemd-notify"), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, "systemd-notify"), 0o755)
  process.env["PATH"] = `${folder}${delimiter}${path}`
}
const recording = () => standIn(`printf '%s|' "$NOTIFY_SOCKET" "$@" >> '${log}'; echo >> '${log}'`)

const withEnv = (env: Record<string, string>) =>
  Effect.provide(
    Notify.layer.pipe(
      Layer.provide(NodeServices.layer),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
    )
  )

const lines = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [])

/** Looks again and again, for up to 20 s. */
const until = (condition: Effect.Effect<boolean>) =>
  condition.pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("20 millis") }),
    Effect.timeout(PATIENCE)
  )

describe("outside systemd", () => {
  it.live("nothing is run, and the watchdog's loop waits for ever", () =>
    Effect.gen(function* () {
      recording()
      const notify = yield* Notify
      const watching = yield* Effect.forkChild(notify.watch(Effect.succeed(true)))
      yield* notify.ready
      yield* notify.status("busy")
      yield* notify.stopping
      assert.isUndefined(watching.pollUnsafe())
      yield* Fiber.interrupt(watching)
      assert.deepStrictEqual(lines(), [])
    }).pipe(withEnv({ WATCHDOG_USEC: "1000" }))
  )
})

describe("under systemd", () => {
  it.live("ready, status and stopping reach the socket, each in order", () =>
    Effect.gen(function* () {
      recording()
      const notify = yield* Notify
      yield* notify.ready
      yield* notify.status("2 agents work,\nREADY=0")
      yield* notify.stopping
      assert.deepStrictEqual(lines(), ["@abc|READY=1|", "@abc|STATUS=2 agents work, READY=0|", "@abc|STOPPING=1|"])
    }).pipe(withEnv({ NOTIFY_SOCKET: "@abc" }))
  )

  it.effect("a start that takes long is given more time, again and again, until it is over", () =>
    Effect.gen(function* () {
      recording()
      const notify = yield* Notify
      const starting = yield* Effect.forkChild(notify.starting)
      for (const count of [1, 2]) {
        const told = () => lines().length >= count
        const wait = Effect.promise(() => vi.waitUntil(told, { timeout: 100 }).catch(() => false))
        // it may not wait yet: the program that tells systemd ends in its own time
        yield* Effect.repeat(Effect.andThen(TestClock.adjust("30 seconds"), wait), { until: told })
      }
      yield* Fiber.interrupt(starting)
      assert.deepStrictEqual(new Set(lines()), new Set(["@abc|EXTEND_TIMEOUT_USEC=90000000|"]))
    }).pipe(withEnv({ NOTIFY_SOCKET: "@abc" }))
  )

  it.live("no process started later is given the socket", () =>
    Effect.gen(function* () {
      process.env["NOTIFY_SOCKET"] = "@abc"
      yield* Notify.pipe(withEnv({ NOTIFY_SOCKET: "@abc" }))
      assert.isUndefined(process.env["NOTIFY_SOCKET"])
    })
  )

  it.live("a message that cannot be sent fails nothing", () =>
    Effect.gen(function* () {
      standIn("exit 1")
      const notify = yield* Notify
      yield* notify.ready
      rmSync(join(folder, "systemd-notify"))
      process.env["PATH"] = folder
      yield* notify.stopping
    }).pipe(withEnv({ NOTIFY_SOCKET: "@abc" }))
  )

  it.live("the watchdog is fed again and again, and only while the daemon says it is alive", () =>
    Effect.gen(function* () {
      recording()
      const notify = yield* Notify
      const isAlive = yield* Ref.make(false)
      const asked = yield* Ref.make(0)
      const alive = Ref.update(asked, (n) => n + 1).pipe(Effect.andThen(Ref.get(isAlive)))
      const watching = yield* Effect.forkChild(notify.watch(alive))

      yield* until(Effect.map(Ref.get(asked), (n) => n >= 3))
      assert.deepStrictEqual(lines(), [])
      yield* Ref.set(isAlive, true)
      yield* until(Effect.sync(() => lines().length >= 3))
      yield* Fiber.interrupt(watching)
      assert.deepStrictEqual([...new Set(lines())], ["@abc|WATCHDOG=1|"])
    }).pipe(withEnv({ NOTIFY_SOCKET: "@abc", WATCHDOG_USEC: "20000", WATCHDOG_PID: String(process.pid) }))
  )

  it.live("a watchdog meant for another process is not fed", () =>
    Effect.gen(function* () {
      const notify = yield* Notify
      const asked = yield* Ref.make(0)
      const watching = yield* Effect.forkChild(notify.watch(Effect.as(Ref.set(asked, 1), true)), {
        startImmediately: true
      })
      assert.strictEqual(yield* Ref.get(asked), 0)
      yield* Fiber.interrupt(watching)
    }).pipe(withEnv({ NOTIFY_SOCKET: "@abc", WATCHDOG_USEC: "20000", WATCHDOG_PID: "1" }))
  )
})

const RECEIVER = `
  use Socket;
  my $address = $ARGV[0];
  $address =~ s/^@/\\0/;
  socket(my $socket, PF_UNIX, SOCK_DGRAM, 0) or die $!;
  bind($socket, sockaddr_un($address)) or die $!;
  $| = 1;
  print "bound\\n";
  while (defined recv($socket, my $message, 4096, 0)) { print "$message\\n" }
`
const missing = ["perl", "systemd-notify"].filter((program) => spawnSync(program, ["--version"]).error !== undefined)
if (missing.length > 0) console.warn(`SKIPPED: Notify on a real socket (no ${missing.join(", no ")} here)`)

describe.skipIf(missing.length > 0)("the real systemd-notify", () => {
  for (const [kind, address] of [
    ["a path", () => join(folder, "socket")],
    ["an abstract name", () => `@agentd-test-${process.pid}`]
  ] as const) {
    it.live(`delivers to a socket with ${kind}`, () =>
      Effect.gen(function* () {
        const receiver = yield* Effect.acquireRelease(
          Effect.sync(() => spawn("perl", ["-e", RECEIVER, address()], { stdio: ["ignore", "pipe", "inherit"] })),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        let received = ""
        receiver.stdout.on("data", (bytes) => (received += String(bytes)))
        yield* until(Effect.sync(() => received.includes("bound")))
        yield* Effect.gen(function* () {
          const notify = yield* Notify
          yield* notify.ready
          yield* notify.status("here")
        }).pipe(withEnv({ NOTIFY_SOCKET: address() }))
        yield* until(Effect.sync(() => received.includes("READY=1") && received.includes("STATUS=here")))
      }).pipe(Effect.scoped)
    )
  }
})
