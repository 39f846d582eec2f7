/** The line to another machine at its worst: slow, cut between network namespaces, with a daemon that restarts there. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { long } from "../../support/Long.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import * as SshHosts from "../../support/SshHosts.ts"

/** A daemon with one agent, and the machines of a person who reaches it. */
const far = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  box.configure({ agents: { builder: { backend: { type: "command", shell: "cat; sleep 2" } } } })
  yield* box.up()
  yield* box.untilAgent("builder", "is idle", ({ word }) => word === "idle")
  return { box, hosts: yield* SshHosts.make }
})

/** Time that each piece of the slow line takes, ms, and its size, bytes. */
const [LATE, PIECE] = [100, 4_096]

/** A line to a port, on which each piece arrives late, one after the other. */
const slowLine = (port: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<Socket>()
      const slowly = (from: Socket, to: Socket) => {
        let last = Promise.resolve()
        const later = (act: () => void) => {
          last = last.then(() => new Promise((resolve) => setTimeout(() => resolve(act()), LATE)))
        }
        from.on("data", (bytes) => {
          for (let at = 0; at < bytes.length; at += PIECE)
            later(() => void (to.writable && to.write(bytes.subarray(at, at + PIECE))))
        })
        from.on("end", () => later(() => to.end()))
        for (const socket of [from, to]) socket.on("error", () => to.destroy())
        sockets.add(from)
      }
      const server = createServer((near) => {
        const there = connect(port, "127.0.0.1")
        slowly(near, there)
        slowly(there, near)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { sockets, server, port: (server.address() as AddressInfo).port }
    }),
    ({ server, sockets }) =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
  )

const ip = (...args: ReadonlyArray<string>): boolean => spawnSync("ip", args, { stdio: "ignore" }).status === 0

/** A network namespace, joined to this one by a pair of interfaces; undefined where that is not permitted. */
const namespace = Effect.acquireRelease(
  Effect.sync(() => {
    const [space, near, there] = [`agentd-${process.pid}`, `agn${process.pid}`, `agf${process.pid}`]
    if (!ip("netns", "add", space)) return undefined
    const within = ["netns", "exec", space, "ip"]
    const isMade =
      ip("link", "add", near, "type", "veth", "peer", "name", there) &&
      ip("link", "set", there, "netns", space) &&
      ip("addr", "add", "192.168.213.1/30", "dev", near) &&
      ip(...within, "addr", "add", "192.168.213.2/30", "dev", there) &&
      ip("link", "set", near, "up") &&
      ip(...within, "link", "set", there, "up") &&
      ip(...within, "link", "set", "lo", "up")
    return { space, near, isMade }
  }),
  (made) =>
    Effect.sync(() => {
      if (made === undefined) return
      ip("link", "del", made.near)
      ip("netns", "del", made.space)
    })
)

const collected = (child: ReturnType<SshHosts.SshHosts["start"]>) => {
  const said = { out: "", err: "" }
  child.stdout!.on("data", (chunk) => (said.out += chunk))
  child.stderr!.on("data", (chunk) => (said.err += chunk))
  return { said, ended: new Promise<number | null>((resolve) => child.on("exit", resolve)) }
}

describe.skipIf(SshHosts.missing !== undefined)("the line to a host", () => {
  long.live("is slow: commands wait for it, and their output is complete", () =>
    Effect.gen(function* () {
      const { box, hosts } = yield* far
      const machine = yield* hosts.machine()
      const line = yield* slowLine(machine.port)
      hosts.know(line.port, machine.port)
      const url = `ssh://127.0.0.1:${line.port}${box.state}`
      const text = "x".repeat(60_000)
      assert.strictEqual((yield* hosts.cli("--host", url, "send", "shop/builder", text)).code, 0)
      const waited = yield* hosts.cli("--host", url, "wait", "shop/builder", "--timeout", "120s")
      assert.strictEqual(waited.code, 0, waited.stderr)
      const [here, there] = [
        yield* box.cli("log", "--json", "--kind", "inbox.received"),
        yield* hosts.cli("--host", url, "log", "--json", "--kind", "inbox.received")
      ]
      assert.include(here.stdout, text)
      assert.strictEqual(there.stdout, here.stdout)
    })
  )

  long.live("leads to ten hosts, of which three are dead: the rows of all others are there", () =>
    Effect.gen(function* () {
      const { box, hosts } = yield* far
      const machines = yield* Effect.forEach(Array.from({ length: 7 }), () => hosts.machine(), { concurrency: 7 })
      const frozen = yield* hosts.machine("sleep 60")
      const none = yield* hosts.machine('rm -f "$HOME/../bin/agentd"; exec sh -c "$SSH_ORIGINAL_COMMAND"')
      const names = machines.map((_, at) => `live${at}`)
      hosts.save({
        ...Object.fromEntries(machines.map(({ url }, at) => [names[at]!, `${url}${box.state}`])),
        frozen: frozen.url,
        none: none.url,
        gone: "ssh://127.0.0.1:1"
      })
      // the first command of each host logs in, which a loaded machine does not do for all within the time limit
      for (const name of names) assert.strictEqual((yield* hosts.cli("--host", name, "ps")).code, 0)
      const { rows } = JSON.parse((yield* hosts.cli("ps", "--all-hosts", "--json")).stdout) as {
        readonly rows: ReadonlyArray<{ readonly called: string; readonly name: string; readonly says: string }>
      }
      const silent = rows.filter(({ says }) => says.startsWith("does not answer")).map(({ name }) => name)
      assert.sameMembers(silent, ["this machine", "frozen", "none", "gone"])
      assert.includeMembers(
        rows.map(({ called }) => called),
        names.map((name) => `${name}:shop/builder`)
      )
    })
  )

  long.live("leads to a daemon that restarts in mid-stream: a followed log ends with a message, a wait goes on", () =>
    Effect.gen(function* () {
      const { box, hosts } = yield* far
      const { url: address } = yield* hosts.machine()
      const url = `${address}${box.state}`
      const following = collected(hosts.start("--host", url, "log", "-f"))
      const waiting = collected(hosts.start("--host", url, "wait", "shop/builder", "--for", "working"))
      yield* box.until(
        "the log follows",
        Effect.sync(() => following.said.out),
        (text) => text.includes("daemon.started")
      )
      yield* box.kill9
      yield* box.up()
      assert.notStrictEqual(yield* Effect.promise(() => following.ended), 0)
      assert.match(following.said.err, /^agentd: /)
      assert.include(following.said.err, url)
      assert.strictEqual((yield* hosts.cli("--host", url, "send", "shop/builder", "go on")).code, 0)
      assert.strictEqual(yield* Effect.promise(() => waiting.ended), 0, waiting.said.err)
    })
  )

  long.live("is cut between two network namespaces: the command ends with a message, and the next one works", () =>
    Effect.gen(function* () {
      const made = yield* namespace
      if (made?.isMade !== true) {
        process.stderr.write("test/world/e2e/HostLines: no network namespaces on this machine, so none was cut.\n")
        return
      }
      const { box, hosts } = yield* far
      const machine = yield* hosts.machine(undefined, { within: { space: made.space, address: "192.168.213.2" } })
      const url = `${machine.url}${box.state}`
      const following = collected(hosts.start("--host", url, "log", "-f"))
      yield* box.until(
        "the log follows",
        Effect.sync(() => following.said.out),
        (text) => text.includes("daemon.started")
      )
      assert.isTrue(ip("link", "set", made.near, "down"))
      assert.strictEqual(yield* Effect.promise(() => following.ended), 3, following.said.err)
      assert.match(following.said.err, /^agentd: /)
      assert.isTrue(ip("link", "set", made.near, "up"))
      const { code, stderr } = yield* hosts.cli("--host", url, "ps")
      assert.strictEqual(code, 0, stderr)
    })
  )
})
