/** A user id that no account has, as in many containers: agentd works, with HOME and without it. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { PROGRAM, QUICK } from "../../support/Program.ts"

const UID = ["--user", "--map-user=4242"]
const isPossible =
  spawnSync("unshare", [...UID, "id", "-u"])
    .stdout?.toString()
    .trim() === "4242"

// skipped where the kernel gives an ordinary user no namespace of its own
it.skipIf(!isPossible).each([
  ["quick", QUICK, { HOME: "/nonexistent" }],
  ["whole", PROGRAM, { HOME: "/nonexistent" }],
  ["quick without HOME", QUICK, {}],
  ["whole without HOME", PROGRAM, {}]
] as const)("%s: says that no daemon runs", (_, program, env) => {
  const { status, stderr, stdout } = spawnSync("unshare", [...UID, process.execPath, program, "ps"], {
    env: { PATH: process.env["PATH"], ...env },
    encoding: "utf8"
  })
  assert.deepStrictEqual([status, stdout], [3, ""], stderr)
  assert.match(stderr, /^agentd: No daemon is running/)
})
