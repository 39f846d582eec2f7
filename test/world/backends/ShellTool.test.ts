/**
 * ShellTool: real commands, under what this machine has, and under nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, type Scope } from "effect"
import * as fs from "node:fs"
import type { FileFailed } from "../../../src/runs/sandbox/PathContainment.ts"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import type { Reaper } from "../../../src/runs/process/Reaper.ts"
import * as RunProcess from "../../../src/runs/process/RunProcess.ts"
import type { Mechanism } from "../../../src/runs/sandbox/Sandbox.ts"
import * as ShellTool from "../../../src/model-agent/ShellTool.ts"
import type { Tool } from "../../../src/model-agent/Tool.ts"
import * as Workspace from "../../../src/runs/sandbox/Workspace.ts"
import type { ModelBackend } from "../../../src/config/BackendConfig.ts"
import { layer, until } from "../../support/backend-run.ts"
import { call, config, held, SECRET, yard } from "../../support/toolbox.ts"

const NONE: Mechanism = { kind: "none", note: "none is tried in this test" }

const shell = (mechanism: Mechanism, given: Partial<typeof ModelBackend.Encoded> = {}) =>
  Effect.gen(function* () {
    const all = yield* yard
    const workspace = yield* Workspace.open(all.root)
    const host = {
      ...all.host,
      environment: { ...all.environment, DATABASE_URL: `postgres://me:${SECRET}@db/x`, MY_LLM: SECRET }
    }
    const tool = yield* ShellTool.make({
      config: config({ keyEnv: "MY_LLM", ...given }),
      spec: all.spec,
      host,
      workspace,
      hidden: [],
      mechanism
    })
    return { ...all, tool }
  })
type Ready = Effect.Success<ReturnType<typeof shell>>

const live = (
  name: string,
  mechanism: Mechanism,
  body: (ready: Ready) => Effect.Effect<void, FileFailed, Scope.Scope | ProcessTree | Reaper>,
  given?: Partial<typeof ModelBackend.Encoded>
) => it.live(name, () => Effect.scoped(Effect.flatMap(shell(mechanism, given), body)).pipe(Effect.provide(layer)))

const run = (tool: Tool, command: string, more: object = {}) => call(tool, { command, ...more })

/** Processes of the test's own run, by their mark. */
const marked = Effect.fnUntraced(function* (store: string) {
  const tree = yield* ProcessTree
  return (yield* tree.orphans(store, new Set())).flatMap(({ processes }) => processes)
})

for (const mechanism of [...held, NONE]) {
  const confined = mechanism.kind !== "none"
  describe(`shell, under ${mechanism.kind}`, () => {
    live("tells output and exit code, and where it ran", mechanism, ({ tool, root }) =>
      Effect.gen(function* () {
        fs.mkdirSync(`${root}/sub`)
        assert.deepStrictEqual(yield* run(tool, "echo out; echo err >&2"), {
          status: "success",
          output: "out\nerr\n[exit code 0]"
        })
        assert.deepStrictEqual(yield* run(tool, "printf x; exit 3"), { status: "error", output: "x\n[exit code 3]" })
        assert.strictEqual((yield* run(tool, "pwd; cat", { cwd: "sub" })).output, `${root}/sub\n[exit code 0]`)
        assert.strictEqual((yield* run(tool, "true", { cwd: "../../outside" })).status, "sandbox_violation")
        assert.strictEqual((yield* run(tool, "")).status, "error")
      })
    )

    live("of much output the beginning and the end are kept, and it is read to its end", mechanism, ({ tool, root }) =>
      Effect.gen(function* () {
        const { output } = yield* run(tool, "echo first; yes | head -n 2000000; echo last; touch over")
        assert.isBelow(output.length, 70_000)
        assert.match(output, /^first\n/)
        assert.match(output, /\d+ characters left out/)
        assert.match(output, /last\n\[exit code 0\]$/)
        assert.isTrue(fs.existsSync(`${root}/over`))
      })
    )

    live("progress comes while it runs, in chunks of bounded size", mechanism, ({ tool, root }) =>
      Effect.gen(function* () {
        const told: Array<string> = []
        const fiber = yield* Effect.forkScoped(
          call(tool, { command: "echo begun; while ! test -e go; do sleep 0.02; done; yes | head -n 100000" }, told)
        )
        yield* until(() => told.join("").includes("begun"))
        fs.writeFileSync(`${root}/go`, "")
        yield* Fiber.join(fiber)
        assert.isBelow(Math.max(...told.map((chunk) => chunk.length)), 5_000)
        assert.isBelow(told.join("").length, 50_000)
      })
    )

    live(
      "secrets of the daemon's environment are not there; what the config sets is",
      mechanism,
      ({ tool }) =>
        Effect.gen(function* () {
          const { output } = yield* run(tool, "env")
          assert.notInclude(output, SECRET)
          assert.match(output, /^PATH=/m)
          assert.match(output, /^DEPLOY_TOKEN=given$/m)
        }),
      { env: { DEPLOY_TOKEN: "given" } }
    )

    live("after its own timeout all of it is gone, and its output is told", mechanism, ({ tool, host }) =>
      Effect.gen(function* () {
        // s; of the first a busy machine may need all to make the sandbox
        for (const timeout of [1, 10, 100]) {
          const { status, output } = yield* run(tool, "echo begun; setsid sleep 987 & sleep 987", { timeout })
          assert.strictEqual(status, "timeout")
          assert.deepStrictEqual(yield* marked(host.store), [])
          assert.isTrue(output.endsWith(`[ended after ${timeout} seconds]`), output)
          if (output.startsWith("begun\n")) return
        }
        assert.fail("it was ended before it began")
      })
    )

    live("an interrupt ends every process, those in sessions of their own, too", mechanism, ({ tool, root, host }) =>
      Effect.gen(function* () {
        const script =
          "(setsid sh -c 'trap \"\" TERM; echo x > one; while :; do sleep 1; done' &) ; echo x > two; sleep 987"
        const fiber = yield* Effect.forkScoped(run(tool, script))
        yield* until(() => fs.existsSync(`${root}/one`) && fs.existsSync(`${root}/two`))
        const before = yield* marked(host.store)
        assert.isAtLeast(before.length, 2)
        yield* Fiber.interrupt(fiber)
        for (const process of before) assert.isFalse(ProcessTable.isAlive(process))
        assert.deepStrictEqual(yield* marked(host.store), [])
      })
    )

    live(
      "what it leaves in the background is ended; another call beside it is not",
      mechanism,
      ({ tool, root, host }) =>
        Effect.gen(function* () {
          const beside = yield* Effect.forkScoped(
            run(tool, "echo x > one; while ! test -e go; do sleep 0.02; done; echo whole")
          )
          yield* until(() => fs.existsSync(`${root}/one`))
          assert.strictEqual((yield* run(tool, "setsid sleep 987 & echo done")).output, "done\n[exit code 0]")
          assert.isUndefined(beside.pollUnsafe())
          fs.writeFileSync(`${root}/go`, "")
          assert.strictEqual((yield* Fiber.join(beside)).output, "whole\n[exit code 0]")
          assert.deepStrictEqual(yield* marked(host.store), [])
        })
    )

    if (!confined) return

    it.live("SIGTERM ends it while the sandbox is made, without the grace", () =>
      Effect.gen(function* () {
        const { at, environment, root, spec, host } = yield* yard
        // many mounts take their time
        const hidden = Array.from({ length: 100 }, (_, n) => at("outside", `secret-${n}`))
        for (const file of hidden) fs.writeFileSync(file, SECRET)
        const rules = { workspace: root, network: false, hidden, environment }
        const program = yield* RunProcess.make({
          ...spec,
          store: host.store,
          ...(yield* mechanism.wrap(rules, root, ["/bin/sh", "-c", "sleep 987"])),
          cwd: root,
          env: environment,
          grace: Duration.minutes(10)
        })
        const made = Effect.map(ProcessTable.snapshot, (table) => {
          const inside = table.filter(({ parent }) => parent === program.pid).map(({ pid }) => pid)
          return table.some(({ parent }) => inside.includes(parent))
        })
        yield* made.pipe(Effect.repeat({ until: (begun) => begun }))
        yield* program.interrupt
        yield* program.ended
      }).pipe(Effect.scoped, Effect.provide(layer))
    )

    live("INV-TOOL-SANDBOX: what it writes outside is told as a violation, with what to do", mechanism, ({ tool }) =>
      Effect.gen(function* () {
        // a folder that this user may write, so that only the sandbox is in the way
        const folder = process.getuid?.() === 0 ? "/usr" : `${process.cwd()}/node_modules`
        const { output: there } = yield* run(tool, `test -d ${folder} && echo there`)
        if (!there.includes("there")) return yield* Effect.logWarning(`not tried: ${folder} is not even to be seen`)
        const { status, output } = yield* run(tool, `touch ${folder}/agentd-test`)
        const isWritten = fs.existsSync(`${folder}/agentd-test`)
        fs.rmSync(`${folder}/agentd-test`, { force: true })
        assert.isFalse(isWritten)
        assert.strictEqual(status, "sandbox_violation")
        assert.match(output, /use a path in there/)
      })
    )

    live("INV-TOOL-SANDBOX: keys are not read, and no key agent is reached", mechanism, ({ tool, home }) =>
      Effect.gen(function* () {
        const { output } = yield* run(tool, `cat ${home}/.ssh/id_ed25519 ~/.ssh/*; echo "[$SSH_AUTH_SOCK]"`)
        assert.notInclude(output, SECRET)
        assert.include(output, "[]")
      })
    )

    it("it asks only where the policy says so", () =>
      Effect.runPromise(
        Effect.scoped(shell(mechanism)).pipe(
          Effect.map(({ tool }) => assert.isUndefined(tool.asksAlways)),
          Effect.provide(layer)
        )
      ))
  })
}

describe("INV-TOOL-SANDBOX: where no sandbox works", () => {
  live("each call asks, and says why", NONE, ({ tool }) =>
    Effect.sync(() => assert.match(tool.asksAlways ?? "", /none is tried in this test/))
  )

  live(
    "with one required nothing runs",
    NONE,
    ({ tool, root }) =>
      Effect.gen(function* () {
        assert.isUndefined(tool.asksAlways)
        const { status, output } = yield* run(tool, "touch ran")
        assert.strictEqual(status, "sandbox_violation")
        assert.match(output, /go on with the other tools/)
        assert.isFalse(fs.existsSync(`${root}/ran`))
      }),
    { sandbox: "required" }
  )
})
