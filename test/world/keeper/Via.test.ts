/** A keeper that is put into a unit of its own by another program, and what happens where that cannot be done. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stand from "./Stand.ts"

/** Notes its words, and becomes the rest of them; or ends with a code. */
const runner = (folder: string, then: string) => {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, "systemd-run")
  writeFileSync(file, `#!/bin/sh\necho "$UNIT_OF $*" >> '${file}.said'\n${then}\n`, { mode: 0o755 })
  return file
}

/** The keeper gets no cgroup: the tests' own is not delegated to it. */
const WITHOUT_CGROUP = 'shift 5; exec "$@"'

describe("a keeper in a unit of its own", () => {
  it.live("is begun by the words and with the variables that put it there, under a new name each time", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const file = runner(folder, WITHOUT_CGROUP)
      const via = (name: string) => ({ argv: [file, name], env: { UNIT_OF: "a" } })
      const daemon = yield* Stand.daemon(folder, { via })
      const held = yield* Stand.script(daemon, "run", 'echo "unit=$UNIT_OF"; exec sleep 300')
      assert.strictEqual(yield* Stand.readUntil(held, "unit="), "unit=\n")
      Stand.kill(Stand.pidOf(folder))
      yield* Stand.until(() => Stand.textOf(`${file}.said`).split("\n").length === 3)
      const [first = "", second = ""] = Stand.textOf(`${file}.said`).split("\n")
      assert.match(first, new RegExp(`^a 1-${process.pid}-1 /bin/sh -c .* keeper .*keeper.mjs `))
      assert.match(second, new RegExp(`^a 1-${process.pid}-2 `))
      assert.isTrue(Stand.lives(held.pid))
    })
  )

  it.live("gives each program a group of its own, with its limits a quarter above what the daemon holds", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const groups = join(folder, "groups")
      mkdirSync(groups)
      const file = runner(folder, `shift 5; exec "$@" '${groups}'`)
      const daemon = yield* Stand.daemon(folder, { via: (name) => ({ argv: [file, name], env: {} }) })
      const limits = { memory: 1_000_000, tasks: 10, cpuWeight: 50, disk: 1 }
      const held = yield* Stand.script(daemon, "run", "echo up; exec sleep 300", { limits })
      yield* Stand.readUntil(held, "up")
      const { cgroup } = JSON.parse(Stand.textOf(join(Stand.runFolder(folder, "run"), "meta"))) as { cgroup: string }
      assert.isTrue(cgroup.startsWith(`${groups}/`))
      const values = ["memory.max", "memory.oom.group", "pids.max", "cpu.weight"].map((name) =>
        Stand.textOf(join(cgroup, name))
      )
      assert.deepStrictEqual(values, ["1250000\n", "1\n", "13\n", "50\n"])
    })
  )

  it.live("divides the group that it is given, and each controller that is there", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const file = runner(folder, WITHOUT_CGROUP)
      const daemon = yield* Stand.daemon(folder, { via: (name) => ({ argv: [file, name], env: {} }) })
      yield* Stand.script(daemon, "run", "exec sleep 300")
      const said = Stand.textOf(`${file}.said`)
      assert.include(said, 'for one in memory pids cpu; do echo +$one >"$cgroup/cgroup.subtree_control"; done')
      // the words are a shell's
      assert.strictEqual(spawnSync("/bin/sh", ["-n", "-c", /-c (.*) keeper \//s.exec(said)![1]!]).status, 0)
    })
  )

  it.live("is begun without one where that is refused, and where there is no such program", () =>
    Effect.gen(function* () {
      for (const how of ["refused", "absent"]) {
        const folder = yield* Stand.stand
        const file = how === "refused" ? runner(folder, "exit 1") : join(folder, "none")
        const daemon = yield* Stand.daemon(folder, { via: (name) => ({ argv: [file, name], env: {} }) })
        const held = yield* Stand.script(daemon, "run", "echo up; exec sleep 300")
        yield* Stand.readUntil(held, "up")
      }
    })
  )
})
