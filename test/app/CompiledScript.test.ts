import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"

const MODULE = join(import.meta.dirname, "../../src/app/CompiledScript.ts")

let at: string
beforeEach(() => {
  at = mkdtempSync(join(tmpdir(), "compiled-"))
  writeFileSync(
    join(at, "probe-1.cjs"),
    `const later = () => "ran in " + require("node:path").basename(__dirname)
process.stdout.write(later())`
  )
})
afterEach(() => rmSync(at, { recursive: true, force: true }))

const kept = () => join(at, "kept", "probe-1.cjs.compiled")

/** Runs the script in a process of its own; what it printed. */
const run = (...flags: ReadonlyArray<string>): string => {
  const program = `import { run } from ${JSON.stringify(MODULE)}
run(${JSON.stringify(join(at, "probe-1.cjs"))}, ${JSON.stringify(join(at, "kept"))})`
  const { stderr, stdout } = spawnSync(process.execPath, [...flags, "--input-type=module", "-e", program], {
    encoding: "utf8"
  })
  expect(stderr).toBe("")
  return stdout.trim()
}

const ran = () => `ran in ${at.slice(at.lastIndexOf("/") + 1)}`

describe("CompiledScript", () => {
  it("runs what was compiled before, which it leaves as it is, for its user alone", () => {
    expect(run()).toBe(ran())
    const first = statSync(kept())
    expect(first.mode & 0o777).toBe(0o600)
    expect(run()).toBe(ran())
    expect(statSync(kept()).ino).toBe(first.ino)
  })

  it("uses no code that is torn, empty, of another text of the same length, or of other flags, and keeps its own in that place", () => {
    run()
    const whole = readFileSync(kept())
    const bent = Buffer.from(whole)
    bent[whole.length - 9]! ^= 1
    for (const damaged of [Buffer.alloc(0), whole.subarray(0, 3), whole.subarray(0, whole.length >> 1), bent]) {
      writeFileSync(kept(), damaged)
      expect(run()).toBe(ran())
      expect(readFileSync(kept()).equals(damaged)).toBe(false)
    }
    const text = readFileSync(join(at, "probe-1.cjs"), "utf8")
    writeFileSync(join(at, "probe-1.cjs"), text.replace("ran in ", "RAN IN "))
    expect(run()).toBe(ran().replace("ran in ", "RAN IN "))
    writeFileSync(join(at, "probe-1.cjs"), text)
    expect(run()).toBe(ran())
    const { ino } = statSync(kept())
    expect(run("--stack-size=900")).toBe(ran())
    expect(statSync(kept()).ino).not.toBe(ino)
  })

  it("keeps the newest alone, beside what is not its own", () => {
    mkdirSync(join(at, "kept"))
    for (const name of ["probe-0.cjs.compiled", "other"]) writeFileSync(join(at, "kept", name), "")
    run()
    expect(readdirSync(join(at, "kept")).toSorted()).toEqual(["other", "probe-1.cjs.compiled"])
  })

  it("runs where nothing can be kept", () => {
    writeFileSync(join(at, "kept"), "a file")
    expect(run()).toBe(ran())
  })
})
