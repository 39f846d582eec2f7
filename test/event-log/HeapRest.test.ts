import { spawnSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import * as V8Flags from "../../src/app/V8Flags.ts"

const [FLAGS, REST] = ["../../src/app/V8Flags.ts", "../../src/event-log/HeapRest.ts"].map((file) =>
  JSON.stringify(new URL(file, import.meta.url).href)
)

/** Of one thread: whether something is collected that nothing holds, and nothing that something does. */
const LOOK = `import { collector } from ${REST}
import { setTimeout as wait } from "node:timers/promises"
const held = { text: "held" }
const [kept, lost] = [new WeakRef(held), new WeakRef({ text: "lost" })]
await wait(1)
const collect = collector()
collect?.()
console.log(collect === undefined ? "none" : [held === kept.deref(), lost.deref() === undefined].join())`

/** Answers of the program's threads, the first one and another. */
const said = (begin: string): ReadonlyArray<string> => {
  const thread = JSON.stringify(`data:text/javascript,${encodeURIComponent(LOOK)}`)
  const program = `${begin}
await import(${thread})
new (await import("node:worker_threads")).Worker(new URL(${thread}))`
  const { stderr, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" })
  expect(stderr).toBe("")
  return stdout.trim().split("\n")
}

describe("HeapRest", () => {
  it("lets go of what nothing holds, in each thread of a program whose flags were set as it began", () => {
    expect(said(`(await import(${FLAGS})).set()`)).toEqual(["true,true", "true,true"])
  })

  it("leaves other programs to V8", () => {
    expect(said("")).toEqual(["none", "none"])
  })

  it("sets flags that V8 has", () => {
    const { stdout } = spawnSync(process.execPath, ["--v8-options"], { encoding: "utf8" })
    for (const flag of V8Flags.FLAGS) expect(stdout).toContain(`  ${flag.replace(/=.*/u, "")} (`)
  })
})
