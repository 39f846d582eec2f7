/**
 * Confinement: what a hostile agent would try from inside, under each kind of sandbox that this
 * machine has. Each trial whose success can be shown succeeds outside first; inside it must fail,
 * whether the agent has a network of its own or the machine's.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import type { Rules } from "../../src/runs/sandbox/Confinement.ts"
import * as Seccomp from "../../src/runs/sandbox/Seccomp.ts"
import * as Confined from "../support/Confined.ts"
import { PATIENCE } from "../support/Patience.ts"
import { held, missing } from "../support/toolbox.ts"

const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "confinement-")))
const at = (...names: ReadonlyArray<string>) => path.join(base, ...names)

/** A word that a trial prints when it has succeeded. */
const SECRET = "SECRET"
/** Stands before the output of each trial of a run. */
const END = "@trial "
const ABSTRACT = `confinement-${process.pid}`

const PLACES = ["person/.ssh", "person/.claude", "state/homes/x", "state/homes/y", "state/trees/x", "state/trees/y"]
/** The daemon's control socket, and those of a person's session. */
const SOCKETS = ["state/control.sock", "session/ssh-agent", "session/S.gpg-agent", "session/bus", "session/X0"]

const environment = { PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin:/usr/sbin:/sbin`, HOME: at("person") }

const servers: Array<net.Server> = []
const others: Array<ChildProcess> = []
let port = 0

const listen = (where: net.ListenOptions) =>
  new Promise<net.Server>((resolve) => {
    const server = net.createServer((socket) => socket.end(`${SECRET}-socket\n`))
    servers.push(server)
    server.listen(where, () => resolve(server))
  })

beforeAll(async () => {
  for (const folder of [...PLACES, "session"]) fs.mkdirSync(at(folder), { recursive: true })
  fs.writeFileSync(at("person/.ssh/id"), `${SECRET}-ssh\n`)
  fs.writeFileSync(at("person/.claude/settings.json"), "{}\n")
  fs.writeFileSync(at("state/homes/y/key"), `${SECRET}-other-agent\n`)
  fs.writeFileSync(at("state/trees/y/file"), `${SECRET}-other-tree\n`)
  execFileSync("git", ["init", "-q", at("person/project")])
  for (const name of SOCKETS) await listen({ path: at(name) })
  await listen({ path: `\0${ABSTRACT}` })
  const address = (await listen({ port: 0, host: "127.0.0.1" })).address()
  port = typeof address === "object" && address !== null ? address.port : 0
  const { PATH } = environment
  others.push(spawn("sleep", ["300"], { env: { PATH, OPENAI_API_KEY: `${SECRET}-env` }, stdio: "ignore" }))
  const cwd = at("state/trees/y")
  others.push(spawn("sleep", ["300"], { cwd, env: { PATH, AGENT_KEY: `${SECRET}-agent-env` }, stdio: "ignore" }))
})

afterAll(() => {
  for (const other of others) other.kill("SIGKILL")
  for (const server of servers) server.close()
  fs.rmSync(base, { recursive: true, force: true })
})

/** Of the processes that stand for the daemon, and for another agent. */
const pidOf = (index: number) => others[index]?.pid ?? 0

const connect = (where: string) =>
  `${process.execPath} -e 'require("net").connect(${where}).on("data",d=>{process.stdout.write(d)}).on("error",e=>{console.error(e.code);process.exit(1)})'`

/** A call by its number on x64; `reached`: any answer but a refusal for want of rights counts as success. */
const call = (number: number, rest: ReadonlyArray<string | number>, reached = false) => {
  const otherwise = reached ? `exit($! =~ /permitted/ ? 1 : print("${SECRET}-reached\\n"))` : "exit 1"
  return `perl -e '$b = "\\0" x 128; $r = syscall(${[number, ...rest].join(",")}); if ($r < 0) { print STDERR "$!\\n"; ${otherwise} } print "${SECRET}-$r\\n"'`
}

interface Trial {
  readonly what: string
  readonly line: () => string
  /** Whether success outside is shown first; else that is a matter of the machine. */
  readonly outside: boolean
  /** With the machine's network it succeeds, which the documents say. */
  readonly falls?: boolean
  /** A number of a call is part of it. */
  readonly x64?: boolean
}

const trial = (what: string, line: () => string, more: Partial<Trial> = {}): Trial => ({
  what,
  line,
  outside: true,
  ...more
})

const UNSHOWN = { outside: false }
const KERNEL = { x64: true, outside: false }

const files: ReadonlyArray<Trial> = [
  trial("a key in the person's home", () => `cat ${at("person/.ssh/id")}`),
  trial("the person's settings of the same CLI, to write a hook", () => {
    const file = at("person/.claude/settings.json")
    return `test -e ${file} && echo x >> ${file} && echo ${SECRET}-written`
  }),
  trial("another agent's home", () => `cat ${at("state/homes/y/key")}`),
  trial("another agent's tree", () => `cat ${at("state/trees/y/file")}`),
  trial("hooks of the person's repository", () => {
    const hook = at("person/project/.git/hooks/pre-commit")
    return `touch ${hook} && rm ${hook} && echo ${SECRET}-written`
  }),
  trial("commondir of the person's repository", () => {
    const file = at("person/project/.git/commondir")
    return `touch ${file} && rm ${file} && echo ${SECRET}-written`
  }),
  trial(
    "/etc/shadow and host keys",
    () => `cat /etc/shadow /etc/ssh/ssh_host* 2>/dev/null | grep -q . && echo ${SECRET}`,
    UNSHOWN
  ),
  trial("names of other users", () => `grep -c . /etc/passwd | grep -qv '^1$' && echo ${SECRET}-users`),
  trial("/var, /srv, /opt", () => `ls -A /var/lib /srv /opt 2>/dev/null | grep -q . && echo ${SECRET}-listed`, UNSHOWN),
  trial("a name above the tree: the tree renamed", () => {
    const [x, z] = [at("state/trees/x"), at("state/trees/z")]
    return `mv ${x} ${z} && mv ${z} ${x} && echo ${SECRET}-renamed`
  }),
  trial(
    "the root made writable",
    () => `mount -o remount,rw / 2>/dev/null && echo ${SECRET}; touch /x && echo ${SECRET}`,
    UNSHOWN
  )
]

const processes: ReadonlyArray<Trial> = [
  trial("the daemon's environment", () => `tr '\\0' '\\n' < /proc/${pidOf(0)}/environ | grep ${SECRET}`),
  trial(
    "any process's environment",
    () => `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a ${SECRET}-`
  ),
  trial("the tree of another agent by /proc/PID/cwd", () => `cat /proc/${pidOf(1)}/cwd/file`),
  trial("a root by /proc/PID/root", () => `cat /proc/[0-9]*/root${at("person/.ssh/id")} 2>/dev/null`),
  trial("a signal to the daemon", () => `kill -0 ${pidOf(0)} && echo ${SECRET}-signal`),
  trial("the memory of the daemon, by ptrace", () => call(101, [16, pidOf(0), 0, 0]), { x64: true }),
  trial("the memory of the daemon, by process_vm_readv", () => call(310, [pidOf(0), '"$b"', 0, '"$b"', 0, 0]), {
    x64: true
  }),
  trial(
    "an inherited descriptor",
    () =>
      `for n in 3 4 5 6 7 8 9 20 200; do readlink /proc/self/fd/$n; done 2>/dev/null | grep -v /proc/ | grep -q . && echo ${SECRET}-fd`,
    UNSHOWN
  )
]

const sockets: ReadonlyArray<Trial> = [
  ...[
    ["the control socket", "state/control.sock"],
    ["ssh-agent's socket", "session/ssh-agent"],
    ["gpg-agent's socket", "session/S.gpg-agent"],
    ["D-Bus by its path", "session/bus"],
    ["X11 by its path", "session/X0"]
  ].map(([what = "", name = ""]) => trial(what, () => connect(JSON.stringify(at(name))))),
  trial("D-Bus or X11 by an abstract name", () => connect(`{path:"\\0${ABSTRACT}"}`), { falls: true }),
  trial("a server on the machine's loopback", () => connect(`{port:${port},host:"127.0.0.1"}`), { falls: true }),
  trial("an address beyond, by any route", () => `tail -n +2 /proc/net/route | grep -q . && echo ${SECRET}-route`, {
    outside: false,
    falls: true
  })
]

/** Perl that makes the file `f`, calls, and says whether a bit of set-uid or set-gid is on it, or on what the call made. */
const bits = (rest: ReadonlyArray<string | number>) =>
  `cd ${at("state/trees/x")} && rm -f f g && perl -e 'open(F, ">", "f"); $f = fileno(F); ($n, $g) = ("f\\0", "g\\0"); $d = -100; $h = pack("Q3", 0101, 04755, 0); syscall(${rest.join(",")}); for ("f", "g") { print "${SECRET}-bit\\n" if ((stat($_))[2] // 0) & 06000 }'; rm -f f g`

/** Each call that can set a mode, by its number on x64: it makes a program of the person's that any user may run. */
const setUid = [
  ...(
    [
      ["chmod", 90, "$n", "04755"],
      ["fchmod", 91, "$f", "04755"],
      ["fchmodat", 268, "$d", "$n", "04755"],
      ["fchmodat2", 452, "$d", "$n", "04755", 0],
      ["open", 2, "$g", "0101", "04755"],
      ["open, with set-gid", 2, "$g", "0101", "02755"],
      ["openat", 257, "$d", "$g", "0101", "04755"],
      ["openat, with set-gid", 257, "$d", "$g", "0101", "02755"],
      ["creat", 85, "$g", "04755"],
      ["creat, with set-gid", 85, "$g", "02755"],
      ["mknod", 133, "$g", "0104755", 0],
      ["mknodat", 259, "$d", "$g", "0104755", 0],
      ["openat2", 437, "$d", "$g", "$h", 24]
    ] as const
  ).map(([what, ...rest]) => trial(`a set-uid file, by ${what}`, () => bits(rest), KERNEL)),
  trial(
    "a set-uid file, by the shell's own programs",
    () =>
      `cd ${at("state/trees/x")} && cp /bin/sh f && { chmod u+s f; install -m 4755 f g; } 2>/dev/null; [ -u f ] || [ -u g ] && echo ${SECRET}; rm -f f g`
  )
]

const kernel: ReadonlyArray<Trial> = [
  trial("a new user namespace", () => `unshare -U true && echo ${SECRET}-userns`),
  trial("a mount", () => `unshare -Urm mount -t tmpfs x /mnt && echo ${SECRET}-mount`),
  trial("a user namespace by clone", () => call(56, ["0x10000011", 0, 0, 0, 0]), { x64: true }),
  trial(
    "a user namespace by clone3",
    () =>
      `perl -e '$a = pack("Q11", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0); exit 1 if syscall(435, $a, 88) < 0; print "${SECRET}\\n"'`,
    { x64: true }
  ),
  trial("capabilities", () => `grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo ${SECRET}-caps`, UNSHOWN),
  trial("more rights by a set-uid program", () => `grep -q 'NoNewPrivs:.0' /proc/self/status && echo ${SECRET}-suid`),
  trial("the kernel's keyrings", () => call(250, [0, -3, 1]), KERNEL),
  trial("bpf", () => call(321, [0, 0, 0], true), KERNEL),
  trial("io_uring", () => call(425, [1, "$b"]), KERNEL),
  trial("perf_event_open", () => call(298, ["$b", 0, -1, -1, 0], true), KERNEL),
  trial("userfaultfd", () => call(323, [1]), KERNEL),
  trial("a socket of family AF_ALG", () => call(41, [38, 5, 0]), KERNEL),
  trial("a socket of family AF_VSOCK", () => call(41, [40, 1, 0]), KERNEL),
  trial("typing into a terminal (TIOCSTI)", () => call(16, [0, "0x5412", "$b"], true), KERNEL),
  trial("a call of the 32-bit ABI's numbers (x32)", () => call(0x40000000 + 39, []), KERNEL),
  ...setUid,
  trial("settings of the kernel", () => `echo 1 > /proc/sys/kernel/pid_max && echo ${SECRET}-sysctl`, UNSHOWN),
  trial("control groups", () => `mkdir /sys/fs/cgroup/x && echo ${SECRET}-cgroup`, UNSHOWN),
  trial(
    "devices",
    () => `test -e /dev/mem -o -e /dev/kmsg -o -e /dev/fuse -o -e /dev/kvm && echo ${SECRET}-device`,
    UNSHOWN
  )
]

const trials = [...files, ...processes, ...sockets, ...kernel]

const rulesOf = (network: boolean): Rules => ({
  workspace: at("state/trees/x"),
  home: at("state/homes/x"),
  network,
  hidden: [],
  environment,
  shared: [
    { source: at("person/project/.git"), target: at("person/project/.git") },
    { source: process.execPath, target: process.execPath }
  ]
})

const outsideOf = (line: string) =>
  Confined.command({ argv: ["sh", "-c", line], handed: [] }, at("state/trees/x"), environment)

for (const note of missing) it.skip(`not tried, since this machine cannot: ${note}`)

for (const mechanism of held) {
  /** A machine without a filter says so; what only the filter holds is not tried there. */
  const filtered = !mechanism.note.includes("no filter")
  const inside = (line: string, network: boolean) =>
    Confined.run(mechanism, rulesOf(network), ["sh", "-c", line], { ...environment, HOME: at("state/homes/x") })

  describe(`a confined agent under ${mechanism.kind} does not reach`, () => {
    const isTried = ({ x64 = false }: Trial) => !x64 || (process.arch === "x64" && filtered)
    const tried = trials.filter(isTried)
    /** The output of each trial, by whether the network is the machine's: all of them in one run. */
    const outputs = new Map<boolean, ReadonlyArray<string>>()
    beforeAll(async () => {
      for (const network of [false, true]) {
        const lines = tried.map(({ line }, n) => `echo "${END}${n}"; (\n${line()}\n) 2>&1`)
        const { output } = await Effect.runPromise(
          inside([...lines, `echo "${END}${lines.length}"`].join("\n"), network)
        )
        const parts = output.split(new RegExp(`${END}\\d+\n`)).slice(1)
        assert.lengthOf(parts, tried.length + 1, output)
        outputs.set(network, parts)
      }
    }, PATIENCE)

    for (const one of trials) {
      const { falls = false, line, outside, what } = one
      it.live.skipIf(!isTried(one))(what, () =>
        Effect.gen(function* () {
          const said = (network: boolean) => outputs.get(network)![tried.indexOf(one)]!
          if (outside) assert.include((yield* outsideOf(line())).output, SECRET, "outside it works")
          assert.notInclude(said(false), SECRET)
          if (!falls) assert.notInclude(said(true), SECRET)
          else if (outside) assert.include(said(true), SECRET, "with the machine's network it is reached")
        })
      )
    }
  })

  describe(`a confined agent under ${mechanism.kind}`, () => {
    it.live("works: it writes its tree and its home, runs programs, and knows its own name and no other", () =>
      Effect.gen(function* () {
        const line = `echo 1 > tree && echo 2 > "$HOME/kept" && git --version > /dev/null && node -p 6*7 && whoami; ls /home /mnt; ls "$HOME"`
        const { output } = yield* inside(line, false)
        assert.match(output, /^42\nagent\n/)
        assert.strictEqual(fs.readFileSync(at("state/trees/x/tree"), "utf8"), "1\n")
        assert.strictEqual(fs.readFileSync(at("state/homes/x/kept"), "utf8"), "2\n")
      })
    )

    it.live("has its workspace where it is, wherever that lies, and writes no other place of the machine", () =>
      Effect.gen(function* () {
        for (const above of ["/tmp", "/var/tmp", os.homedir()]) {
          const workspace = fs.realpathSync(fs.mkdtempSync(path.join(above, "confinement-tree-")))
          yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(workspace, { recursive: true, force: true })))
          for (const HOME of [at("person"), "/var/tmp", "/nonexistent"]) {
            const rules: Rules = { workspace, network: false, hidden: [], environment: { ...environment, HOME } }
            const { output } = yield* Confined.run(
              mechanism,
              rules,
              ["sh", "-c", "echo in > it && cat it"],
              environment
            )
            assert.strictEqual(output, "in\n", `${workspace}, ${HOME}`)
            assert.deepStrictEqual(fs.readdirSync(workspace), ["it"])
          }
        }
      }).pipe(Effect.scoped)
    )

    it.live("has left a link to a place of the machine where a login is mounted: refused, and nothing is written", () =>
      Effect.gen(function* () {
        const link = at("state/homes/x/.claude")
        for (const target of [`/oldroot${at("person")}`, at("person"), "../y"]) {
          fs.symlinkSync(target, link)
          const rules = rulesOf(false)
          const login = { source: at("person/.ssh/id"), target: `${link}/.credentials.json` }
          const shared = [...(rules.shared ?? []), login]
          const error = yield* Effect.flip(mechanism.wrap({ ...rules, shared }, rules.workspace, ["true"]))
          assert.strictEqual(error._tag, "MountRefused")
          assert.include(error.message, link)
          fs.rmSync(link)
        }
        assert.deepStrictEqual(fs.readdirSync(at("person")).toSorted(), [".claude", ".ssh", "project"])
      })
    )

    it.live("is shared a folder in which the daemon's PATH has programs, and changes none of them", () =>
      Effect.gen(function* () {
        const bin = at("toolkit/programs")
        fs.mkdirSync(bin, { recursive: true })
        fs.writeFileSync(path.join(bin, "greet"), "#!/bin/sh\necho hello\n", { mode: 0o755 })
        const rules = {
          ...rulesOf(false),
          environment: { ...environment, PATH: `${bin}:${environment.PATH}` },
          shared: [{ source: at("toolkit"), target: at("toolkit") }]
        }
        const line = `greet && ! echo changed > ${bin}/greet`
        const { output } = yield* Confined.run(mechanism, rules, ["sh", "-c", line], {
          ...rules.environment,
          HOME: at("state/homes/x")
        })
        assert.include(output, "hello")
        assert.include(fs.readFileSync(path.join(bin, "greet"), "utf8"), "hello")
      })
    )

    it.live("is shared nothing from where it writes itself", () =>
      Effect.gen(function* () {
        for (const source of [at("state/trees/x/own"), at("state/homes/x/own")]) {
          fs.writeFileSync(source, "")
          const shared = [{ source, target: "/opt/own" }]
          const refused = yield* Effect.flip(
            mechanism.wrap({ ...rulesOf(false), shared }, at("state/trees/x"), ["true"])
          )
          assert.match(refused.message, /cannot be shared/)
        }
      })
    )
  })
}

describe("the filter of system calls", () => {
  it("is there for the machines whose calls are known, and for no other", () => {
    for (const architecture of ["x64", "arm64"]) {
      const bytes = Seccomp.program(architecture)
      assert.isDefined(bytes)
      assert.strictEqual(bytes.length % 8, 0)
      assert.isBelow(bytes.length / 8, 512)
    }
    for (const architecture of ["mips", "constructor", ""]) assert.isUndefined(Seccomp.program(architecture))
  })

  it("no jump of it leads out of it, and its last instruction is an answer", () => {
    for (const architecture of ["x64", "arm64"]) {
      const bytes = Buffer.from(Seccomp.program(architecture) ?? [])
      const length = bytes.length / 8
      for (let index = 0; index < length; index++)
        for (const jump of [bytes.readUInt8(index * 8 + 2), bytes.readUInt8(index * 8 + 3)])
          assert.isBelow(index + 1 + jump, length + 1)
      assert.strictEqual(bytes.readUInt16LE((length - 1) * 8), 0x06)
    }
  })

  /** The answer of the filter to a call, as the kernel finds it. */
  const answered = (architecture: string, abi: number, number: number, ...given: ReadonlyArray<number>) => {
    const bytes = Buffer.from(Seccomp.program(architecture) ?? [])
    const data = Buffer.alloc(64)
    data.writeUInt32LE(number >>> 0, 0)
    data.writeUInt32LE(abi, 4)
    given.forEach((value, index) => data.writeUInt32LE(value >>> 0, 16 + 8 * index))
    let loaded = 0
    for (let at = 0; ; at++) {
      const [operation, holds, fails] = [bytes.readUInt16LE(at * 8), bytes[at * 8 + 2]!, bytes[at * 8 + 3]!]
      const k = bytes.readUInt32LE(at * 8 + 4)
      if (operation === 0x06) return k
      if (operation === 0x20) loaded = data.readUInt32LE(k)
      else if (operation === 0x15) at += loaded === k ? holds : fails
      else if (operation === 0x35) at += loaded >= k ? holds : fails
      else at += (loaded & k) === 0 ? fails : holds
    }
  }

  const [ALLOW, EPERM, ENOSYS, KILL] = [0x7fff0000, 0x00050001, 0x00050026, 0x80000000]
  const machines = [
    ["x64", 0xc000003e, [90, 91], [268, 452], [2], [257], [85, 133], [259]],
    ["arm64", 0xc00000b7, [52], [53, 452], [], [56], [], [33]]
  ] as const

  it.each(machines)("lets no set-uid pass: %s", (architecture, abi, modes, modesAt, opens, opensAt, makes, makesAt) => {
    const ask = (number: number, ...given: ReadonlyArray<number>) => answered(architecture, abi, number, ...given)
    const all = (calls: ReadonlyArray<number>, ...given: ReadonlyArray<number>) =>
      calls.map((call) => ask(call, ...given))
    for (const mode of [0o4755, 0o6755, 0o104000]) {
      for (const found of [...all(modes, 0, mode), ...all(modesAt, 0, 0, mode)]) assert.strictEqual(found, EPERM)
    }
    for (const mode of [0o755, 0o2755, 0o1777, 0o100644]) {
      for (const found of [...all(modes, 0, mode), ...all(modesAt, 0, 0, mode)]) assert.strictEqual(found, ALLOW)
    }
    for (const mode of [0o4755, 0o2755]) {
      for (const flags of [0o101, 0o20200001]) {
        for (const found of [...all(opens, 0, flags, mode), ...all(opensAt, 0, 0, flags, mode)])
          assert.strictEqual(found, EPERM)
      }
      // without a flag that makes a file nobody reads the mode
      for (const found of [...all(opens, 0, 0, mode), ...all(opensAt, 0, 0, 0o2000002, mode)])
        assert.strictEqual(found, ALLOW)
      for (const found of [...all(makes, 0, mode), ...all(makesAt, 0, 0, mode)]) assert.strictEqual(found, EPERM)
    }
    for (const found of [...all(opens, 0, 0o101, 0o644), ...all(opensAt, 0, 0, 0o101, 0o777)])
      assert.strictEqual(found, ALLOW)
    assert.deepStrictEqual(all([425, 426, 427, 435, 437]), Array(5).fill(ENOSYS))
  })

  it("ends a call by another ABI: 32 bits, and x32", () => {
    assert.strictEqual(answered("x64", 0x40000003, 15, 0, 0o4755), KILL)
    assert.strictEqual(answered("x64", 0xc000003e, 0x40000000 + 90, 0, 0o4755), KILL)
    assert.strictEqual(answered("arm64", 0x40000028, 15, 0, 0o4755), KILL)
  })
})
