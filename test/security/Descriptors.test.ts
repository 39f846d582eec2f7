/**
 * Descriptors: nothing that whoever starts the daemon has open reaches it or an agent, and nothing of the
 * daemon's own does: no program that it starts has a descriptor but 0, 1 and 2.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as tls from "node:tls"
import { certificates, inherited } from "../../src/app/InheritedDescriptors.ts"
import { find, snapshot } from "../../src/backends/process/ProcessTable.ts"
import * as Stage from "../support/Stage.ts"
import { missing } from "../support/toolbox.ts"

const open = (pid: number): ReadonlyArray<readonly [fd: number, target: string]> =>
  fs.readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [[Number(name), fs.readlinkSync(`/proc/${pid}/fd/${name}`)] as const]
    } catch {
      return []
    }
  })

/** Opens, for whoever starts the daemon, low numbers and high ones: a file, a folder, a pipe of which it has one end. */
const OPENED = 'exec 3</etc/hostname 4</etc 7> >(cat > /dev/null) 90<"$0" 200</etc 201</dev/zero; exec "$@"'

describe.skipIf(process.platform !== "linux")("descriptors", () => {
  it.live("what the daemon inherits is closed, and no child of its has one but 0, 1 and 2", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const { box } = stage
      const held = box.file("held")
      fs.writeFileSync(held, "")
      box.under = ["bash", "-c", OPENED, held]
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
      yield* stage.up
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

      const daemon = (yield* stage.rpc((client) => client.Status())).daemon.pid
      const targets = open(daemon).map(([, target]) => target)
      for (const theirs of ["/etc/hostname", "/etc", held, "/dev/zero"]) assert.notInclude(targets, theirs)
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

  it("what Node opens for itself is told from what was inherited", () => {
    const one = (fd: number, target: string, marked = true) => ({ fd, target, marked })
    const nodes = [
      one(5, "anon_inode:[eventpoll]"),
      one(8, "pipe:[1]"),
      one(9, "pipe:[1]"),
      one(10, "/dev/null"),
      one(24, "/dev/pts/3")
    ]
    const theirs = [
      one(3, "/etc/hosts"),
      one(4, "pipe:[2]"),
      one(6, "socket:[3]"),
      one(200, "anon_inode:[eventfd]", false),
      one(201, "/dev/null", false),
      one(202, "pipe:[4]", false),
      one(203, "pipe:[4]", false)
    ]
    const std = [one(0, "/dev/null", false), one(1, "/log"), one(2, "pipe:[5]", false)]
    const all = [...std, ...nodes, ...theirs]
    assert.deepStrictEqual(inherited(all, { sockets: false, files: [] }), theirs)
    assert.deepStrictEqual(
      inherited(all, { sockets: true, files: [] }),
      theirs.filter(({ fd }) => fd !== 6)
    )
    const reading = [one(204, "/ca/of-the-firm.pem", false), one(205, "/certs/1f.0", false)]
    const files = ["/ca/of-the-firm.pem", "/certs"]
    assert.deepStrictEqual(inherited([...all, ...reading], { sockets: false, files }), theirs)
  })

  it.live("a bundle of certificates that Node reads meanwhile, on a thread of its own, is left to it", () =>
    Effect.gen(function* () {
      const { box } = yield* Stage.make
      const bundle = box.file("firm.pem")
      // that takes its time
      fs.writeFileSync(bundle, `${tls.rootCertificates.join("\n")}\n`.repeat(20))
      box.environment["NODE_EXTRA_CA_CERTS"] = bundle
      assert.include(certificates(box.environment), fs.realpathSync(bundle))
      box.configure({ agents: {} })
      yield* box.up()
      yield* box.terminate
      assert.notMatch(box.output, /extra certs|bad file descriptor/i)
    }).pipe(Effect.scoped)
  )
})
