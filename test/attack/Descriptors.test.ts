/**
 * Descriptors: nothing that whoever starts the daemon has open reaches it or an agent, and nothing of the
 * daemon's own does: no program that it starts has a descriptor but 0, 1 and 2.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as tls from "node:tls"
import { find, snapshot } from "../../src/runs/process/ProcessTable.ts"
import * as Stage from "../support/Stage.ts"
import { missing } from "../support/toolbox.ts"
import { sample } from "../support/Long.ts"

const open = (pid: number): ReadonlyArray<readonly [fd: number, target: string]> =>
  fs.readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [[Number(name), fs.readlinkSync(`/proc/${pid}/fd/${name}`)] as const]
    } catch {
      return []
    }
  })

/**
 * Opens, for whoever starts the daemon, 20 numbers in a row and some beyond: a file, a folder, a device, a pipe of which
 * it has one end. What another process of the machine gave to this one comes on top.
 */
const OPENED = [
  `for fd in {3..22}; do eval "exec $fd<\\"$0\\""; done`,
  'exec 4</etc 7> >(cat > /dev/null) 90<"$0" 200</etc 201</dev/zero 2000<"$0"',
  'exec "$@"'
].join("; ")

const STARTS = sample(300, 2)

/** A process that is never at rest. */
const load = Effect.acquireRelease(
  Effect.sync(() => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" })),
  (child) => Effect.sync(() => child.kill("SIGKILL"))
)

/** `agentd start`, with all that open; the daemon's pid. It ends with the scope. */
const startUnder = Effect.fnUntraced(function* (stage: Stage.Stage) {
  const { box } = stage
  const held = box.file("held")
  fs.writeFileSync(held, "")
  box.under = ["bash", "-c", OPENED, held]
  const started = yield* box.cliUnder("start", "--json")
  assert.strictEqual(started.code, 0, started.stderr)
  const { pid } = JSON.parse(started.stdout) as { readonly pid: number }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      if (find(pid) !== undefined) process.kill(pid, "SIGKILL")
    })
  )
  return { pid, theirs: ["/etc/hostname", "/etc", held, "/dev/zero"] }
})

describe.skipIf(process.platform !== "linux")("descriptors", () => {
  it.live("what start has open is not the daemon's, and no child of its has one but 0, 1 and 2", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shell = "cat > /dev/null; (exec ls /proc/self/fd > seen); touch looked; sleep 60"
      const agent = (backend: object) => ({
        backend: { type: "command", shell, killGrace: "100ms", ...backend },
        may: []
      })
      const shop = stage.home({
        agents: {
          plain: agent({}),
          ...(missing.length === 0 ? { confined: agent({ sandbox: "required" }) } : {}),
          "with-turns": stage.agent("acp")
        }
      })
      const { pid: daemon, theirs } = yield* startUnder(stage)
      const names = ["plain", ...(missing.length === 0 ? ["confined"] : [])]
      yield* Effect.forEach([...names, "with-turns"], (name) => shop.send(name, "look"), { discard: true })
      for (const name of names) {
        yield* shop.until(
          `${name} has looked`,
          Effect.sync(() => shop.noted(name, "seen").length > 0 && fs.existsSync(`${shop.root}/${name}/looked`)),
          (seen) => seen
        )
        assert.deepStrictEqual(shop.noted(name, "seen"), ["0", "1", "2", "3"], `${name}; 3 is what ls reads`)
      }
      yield* shop.runs("with-turns")

      const targets = open(daemon).map(([, target]) => target)
      for (const one of theirs) assert.notInclude(targets, one)
      const children = (yield* snapshot).filter(({ parent }) => parent === daemon)
      assert.isAbove(children.length, 1, "the agents' programs and the reaper")
      for (const { pid } of children) {
        // a sandbox reads what it was handed, and closes it, while it is made
        if (/bwrap|unshare/.test(fs.readlinkSync(`/proc/${pid}/exe`))) continue
        const argv = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, 4).join(" ")
        // a Node has descriptors of its own: of files, folders and sockets it has none
        const more = open(pid).filter(([fd, target]) => fd > 2 && !/^(pipe:|anon_inode:|\/dev\/null)/.test(target))
        if (find(pid) !== undefined) assert.deepStrictEqual(more, [], argv)
      }
    }).pipe(Effect.scoped)
  )

  it.live(`${STARTS} starts beside load: none loses a file of its own, none keeps one of whoever starts it`, () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      stage.home({ agents: {} })
      yield* load
      for (let at = 0; at < STARTS; at++) {
        const { pid, theirs } = yield* startUnder(stage)
        yield* stage.box.until(
          "the keeper is there, and the shells that are to become programs",
          Effect.map(snapshot, (all) => all.filter(({ parent }) => stage.keepers.includes(parent)).length),
          (count) => count > 0
        )
        const parents = [pid, ...stage.keepers]
        const below = (yield* snapshot).filter(({ parent }) => parents.includes(parent))
        for (const one of [...parents, ...below.map((child) => child.pid)]) {
          const targets = fs.existsSync(`/proc/${one}/fd`) ? open(one).map(([, target]) => target) : []
          for (const held of theirs) assert.notInclude(targets, held, `start ${at}`)
        }
        assert.isTrue(
          open(pid).some(([, target]) => target.endsWith("runes.db")),
          `start ${at}`
        )
        process.kill(pid, "SIGKILL")
        yield* stage.box.until(
          "it is gone",
          Effect.sync(() => find(pid)),
          (found) => found === undefined
        )
      }
    }).pipe(Effect.scoped)
  )

  it.live("a bundle of certificates that Node reads meanwhile, on a thread of its own, is read", () =>
    Effect.gen(function* () {
      const { box } = yield* Stage.make
      const bundle = box.file("firm.pem")
      // that takes its time
      fs.writeFileSync(bundle, `${tls.rootCertificates.join("\n")}\n`.repeat(20))
      box.environment["NODE_EXTRA_CA_CERTS"] = bundle
      box.configure({ agents: {} })
      yield* box.up()
      yield* box.terminate
      assert.notMatch(box.output, /extra certs|bad file descriptor/i)
    }).pipe(Effect.scoped)
  )
})
