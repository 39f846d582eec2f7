/** The host in a command line, and how each verb runs there. */
import { assert, describe, it } from "@effect/vitest"
import { fileOf, parse, parseFile } from "../../../src/config/Host.ts"
import { addressOf, mayBeFar, split, wayOf } from "../../../src/cli/hosts/HostLine.ts"
import { canMerge, type Heard, merged, untold } from "../../../src/cli/hosts/HostReplies.ts"
import { introduction } from "../../../src/api/rpc/Version.ts"
import { commandOf, troubleOf } from "../../../src/runs/HostConnection.ts"

const hosts = new Map([["cellar", { url: "ssh://ada@cellar" }]])
const line = (text: string) => split(text.split(" "), hosts)
const of = (text: string) => {
  const found = line(text)
  return "args" in found ? `${found.all ? "all" : found.host}: ${found.args.join(" ")}` : found.message
}

describe("the host in a command line", () => {
  it("is a flag anywhere, or stands before a name", () => {
    assert.strictEqual(of("ps"), "undefined: ps")
    assert.strictEqual(of("--host cellar ps -a"), "cellar: ps -a")
    assert.strictEqual(of("ps --host=ssh://box --json"), "ssh://box: ps --json")
    assert.strictEqual(of("send cellar:shop/builder hi"), "cellar: send shop/builder hi")
    assert.strictEqual(of("stop cellar:shop/* --yes"), "cellar: stop shop/* --yes")
    assert.strictEqual(of("approve cellar:01k9abcdef"), "cellar: approve 01k9abcdef")
    assert.strictEqual(of("ps --all-hosts"), "all: ps")
  })

  it("is not taken from a text, from the program of run, or from behind --", () => {
    assert.strictEqual(of("send shop/builder cellar:do"), "undefined: send shop/builder cellar:do")
    assert.strictEqual(of("why attic:shop/builder"), "undefined: why attic:shop/builder")
    assert.strictEqual(of("run claude --host cellar"), "undefined: run claude --host cellar")
    assert.strictEqual(of("--host cellar run claude --host x"), "cellar: run claude --host x")
    assert.strictEqual(of("run -- ssh --host x"), "undefined: run -- ssh --host x")
    assert.isFalse(mayBeFar(["send", "a/b", "see http://x/y:z"]))
  })

  it("is one, and not beside --state", () => {
    assert.match(of("send cellar:a/b --host attic x"), /several hosts: cellar, attic/)
    assert.match(of("--state /s --host cellar ps"), /--host and --state/)
    assert.match(of("--host cellar ps --all-hosts"), /--host and --all-hosts/)
    assert.match(of("ps --host"), /--host needs a host/)
  })

  it("is a saved name or an address", () => {
    assert.strictEqual(addressOf("cellar", hosts), "ssh://ada@cellar")
    assert.strictEqual(addressOf("ssh://box:22", hosts), "ssh://box:22")
    for (const wrong of ["attic", "-oProxyCommand=x", "a b", "ssh://-x", "ssh://a b", "", "ssh://"])
      assert.isObject(addressOf(wrong, hosts), wrong)
    const secret = addressOf("ssh://ada:secret@box", hosts)
    assert.isObject(secret)
    assert.notInclude(JSON.stringify(secret), "secret@")
  })
})

describe("an address", () => {
  it("has a user, a machine, a port and a state directory", () => {
    assert.deepStrictEqual(parse("ssh://ada@box:2222/var/lib/agentd/"), {
      target: "ada@box",
      port: 2222,
      state: "/var/lib/agentd"
    })
    assert.deepStrictEqual(parse("ssh://[fe80::1]"), { target: "fe80::1", port: undefined, state: undefined })
    for (const wrong of ["box", "ssh://a@b@c", "ssh://a:0", "ssh://a:70000", "ssh://a/b c", "ssh://a\n", "ssh://$(x)"])
      assert.isString(parse(wrong), wrong)
  })

  it("is the last word of ssh, behind --, and nothing in it is an option", () => {
    const command = commandOf({ target: "ada@box", port: 2222, state: "/s p" }, ["ps", "it's"], false)
    assert.deepStrictEqual(command.slice(-5, -1), ["-p", "2222", "--", "ada@box"])
    assert.include(command.join(" "), "BatchMode=yes")
    assert.include(command.join(" "), "StrictHostKeyChecking=yes")
  })

  it("tells the daemon there no process id", () => {
    assert.hasAllKeys(introduction("ssh://box"), ["protocol", "version"])
    assert.strictEqual(introduction("/run/agentd/control.sock").pid, process.pid)
  })

  it("is kept in a file whose faults are named", () => {
    assert.strictEqual(fileOf(undefined, "/home/ada"), "/home/ada/.config/agentd/hosts.json")
    assert.deepStrictEqual(parseFile('{"cellar": {"url": "ssh://box"}}'), new Map([["cellar", { url: "ssh://box" }]]))
    for (const wrong of ["", "[]", "null", '{"a b": {"url": "ssh://x"}}', '{"a": {}}', '{"a": {"url": "http://x"}}'])
      assert.isString(parseFile(wrong), wrong)
  })
})

describe("a verb on a host", () => {
  it("runs by calls, as a program there, or not at all", () => {
    const way = (text: string) => {
      const found = wayOf(text.split(" "), "cellar")
      return typeof found === "string" ? found : "refused"
    }
    assert.deepStrictEqual(
      ["ps", "send a/b x", "goal ls", "stop a/b", "start -l web", "log -f", "project ls"].map(way),
      Array.from({ length: 7 }, () => "calls")
    )
    assert.deepStrictEqual(
      ["start", "stop --yes", "restart", "doctor", "verify", "goal merge g1", "project rename a b", "--json gc"].map(
        way
      ),
      Array.from({ length: 8 }, () => "there")
    )
    assert.deepStrictEqual(
      ["open", "up", "init", "mcp", "project new", "goal plan g1 plan.json", "goal new x --plan p.json"].map(way),
      Array.from({ length: 7 }, () => "refused")
    )
    assert.strictEqual(way("goal plan g1 /there/plan.json"), "calls")
  })

  it("fails with a reason and a remedy that name the host", () => {
    for (const [code, stderr] of [
      [255, "ssh: connect to host box port 22: Connection refused"],
      [255, "ada@box: Permission denied (publickey)."],
      [255, "Host key verification failed."],
      [127, "sh: 1: agentd: not found"],
      [2, 'agentd: Unknown subcommand "dial-stdio" for "agentd"'],
      [1, "boom"],
      [null, ""]
    ] as const) {
      const { message, remedy } = troubleOf("ssh://ada@box:2222", code, stderr)
      assert.include(message, "ssh://ada@box:2222")
      assert.match(remedy, /ssh -p 2222 ada@box|somebody/)
    }
  })
})

describe("the replies of several hosts", () => {
  const row = { id: "a", project: "shop", name: "builder", called: "shop/builder", kind: "agent", conversation: "c" }
  const board = {
    head: { rune: 1, startedAt: 1, today: { tokens: 2, usd: 1 } },
    rows: [
      {
        ...row,
        says: "waits: agentd approve x",
        asks: ["x"],
        commands: [{ does: "approve", command: "agentd approve x" }]
      }
    ]
  }

  it("are one list in which each name and command contains its host, and a silent host has a row", () => {
    const heard: ReadonlyArray<Heard> = [
      { host: null, replies: [board] },
      { host: "cellar", replies: [board] },
      { host: "attic", silent: { message: "off.", remedy: "Turn it on." }, seen: 7 }
    ]
    const replies = merged(["Board"], heard)
    const [one] = replies as ReadonlyArray<{
      readonly head: object
      readonly rows: ReadonlyArray<
        typeof row & {
          says: string
          since: number
          asks: ReadonlyArray<string>
          commands: ReadonlyArray<{ command: string }>
        }
      >
    }>
    assert.deepStrictEqual(untold(one, heard), [])
    assert.strictEqual(untold({ rows: [] }, heard)[0], heard[2])
    assert.deepInclude(one!.head, { today: { tokens: 4, usd: 2 } })
    assert.deepStrictEqual(
      one!.rows.map(({ called, name, says }) => [called, name, says]),
      [
        ["shop/builder", "builder", "waits: agentd approve x"],
        ["cellar:shop/builder", "builder", "waits: agentd --host cellar approve x"],
        ["", "attic", "does not answer: off. Turn it on."]
      ]
    )
    assert.deepStrictEqual(one!.rows[1]!.asks, ["cellar:x"])
    assert.strictEqual(one!.rows[1]!.commands[0]!.command, "agentd --host cellar approve x")
    assert.strictEqual(one!.rows[2]!.since, 7)
  })

  it("are merged by time, and only where that is known", () => {
    const rune = (at: number, stream: string) => ({ at, stream })
    const heard: ReadonlyArray<Heard> = [
      { host: null, replies: [[rune(1, "a"), rune(5, "a")]] },
      { host: "cellar", replies: [[rune(3, "b")]] },
      { host: "attic", silent: { message: "off.", remedy: "" }, seen: 0 }
    ]
    const replies = merged(["Log"], heard)
    assert.deepStrictEqual(replies, [[rune(1, "a"), rune(3, "cellar:b"), rune(5, "a")]])
    assert.strictEqual(untold(replies[0], heard)[0], heard[2])
    assert.isFalse(canMerge(["Board", "Send"]))
  })
})
