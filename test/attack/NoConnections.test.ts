/**
 * An idle daemon opens no connection to anywhere: counted by the kernel, in a network of the daemon's own that leads
 * nowhere, from its first moment on; what fails counts, too.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import * as Sandbox from "../support/Sandbox.ts"

const UNSHARE = process.getuid?.() === 0 ? ["unshare", "-n"] : ["unshare", "-r", "-n"]
const apart = spawnSync(UNSHARE[0]!, [...UNSHARE.slice(1), "true"]).status === 0
if (!apart) console.warn("SKIPPED: connections are counted in a network namespace, which cannot be made here")

/** The kernel's counters of packets and connections that go out, and of those that find no way. */
const COUNTED =
  /^(Tcp: (ActiveOpens|OutSegs|AttemptFails)|Udp: (OutDatagrams|NoPorts)|Ip: (OutRequests|OutNoRoutes)|(Ip6|Udp6|Icmp6)Out\w*)$/

/** The counters of `/proc/net/snmp` and `snmp6` that are not 0, by name. */
const countedIn = (four: string, six = ""): { readonly [counter: string]: number } => {
  const rows = four.trim().split("\n")
  const pairs = rows.flatMap((row, index) => {
    const [protocol, ...names] = row.split(" ")
    const values = (rows[index + 1] ?? "").split(" ").slice(1)
    return index % 2 === 1 ? [] : names.map((name, at) => [`${protocol} ${name}`, Number(values[at])] as const)
  })
  const more = six.split("\n").map((row) => {
    const [name = "", value] = row.trim().split(/\s+/)
    return [name, Number(value)] as const
  })
  return Object.fromEntries([...pairs, ...more].filter(([name, value]) => COUNTED.test(name) && value !== 0))
}

const sentBy = (pid: number) =>
  countedIn(readFileSync(`/proc/${pid}/net/snmp`, "utf8"), readFileSync(`/proc/${pid}/net/snmp6`, "utf8"))

/** Sockets of a process that are none of unix. */
const inetOf = (pid: number): ReadonlyArray<string> => {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    })
  )
  return ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .filter((row) => own.has(row.trim().split(/\s+/)[9] ?? ""))
      .map((row) => `${table} ${row}`)
  )
}

describe("an idle daemon", () => {
  it.live.skipIf(!apart)("opens no connection to anywhere, and listens on nothing but its unix sockets", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.under = UNSHARE
      const idle = { backend: { type: "command", shell: "cat >/dev/null" } }
      box.configure({ agents: { one: idle, two: idle, three: idle }, channels: { room: { agents: ["one", "two"] } } })
      yield* box.up()
      yield* box.cli("send", "one", "hello")
      yield* box.untilAgent("one", "has had its turn", ({ inbox, sessionSeq }) => inbox === 0 && sessionSeq > 0)
      for (const verb of ["ps", "status", "doctor", "tree", "verify"]) yield* box.cli(verb)
      const pid = box.daemon!.pid!
      assert.deepStrictEqual([sentBy(pid), inetOf(pid)], [{}, []])
    })
  )

  it.live.skipIf(!apart)("is counted rightly: a connect and a look-up that fail are seen", () =>
    Effect.gen(function* () {
      for (const says of [
        `require("node:net").connect(9, "192.0.2.1").on("error", done)`,
        `require("node:net").connect(9, "127.0.0.1").on("error", done)`,
        `require("node:dgram").createSocket("udp4").send("x", 53, "192.0.2.1", done)`,
        `new (require("node:dns").Resolver)({ tries: 1 }).resolve("example.org", done)`
      ]) {
        const script = `const done = () => {
          process.stdout.write(require("node:fs").readFileSync("/proc/self/net/snmp"))
          process.exit(0)
        }; ${says}`
        const { stdout: table } = spawnSync(UNSHARE[0]!, [...UNSHARE.slice(1), process.execPath, "-e", script], {
          encoding: "utf8"
        })
        assert.notDeepEqual(countedIn(table), {}, says)
      }
    })
  )
})
