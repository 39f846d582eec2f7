import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem } from "effect"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import * as PlanFile from "../../../src/goals/PlanFile.ts"

const door: PlanFile.Door = { workers: ["ada", "bob"] }
const refusal = (value: unknown, at = door) =>
  Effect.map(Effect.flip(PlanFile.check(value, at)), ({ problems }) =>
    problems.map((one) => `${one.field}: ${one.message}`)
  )
const tasks = (...list: ReadonlyArray<object>) => ({ tasks: list })

describe("PlanFile", () => {
  it.effect("fills in what is left out", () =>
    Effect.gen(function* () {
      const [one] = yield* PlanFile.check(tasks({ id: "a", title: " go ", timeout: "2 minutes" }), door)
      assert.deepStrictEqual(one, {
        id: "a",
        title: "go",
        description: "",
        dependsOn: [],
        priority: 0,
        owner: null,
        needs: [],
        timeout: 120_000
      })
    })
  )

  it.effect("what is no plan is refused with its field", () =>
    Effect.gen(function* () {
      for (const [value, field] of [
        [[], ": a plan is an object"],
        [{ tasks: 1 }, "tasks: must be a list"],
        [{ steps: [] }, "steps: is not a field"],
        [{ tasks: [] }, "tasks: contains no task"],
        [tasks({ title: "x" }), "tasks[0].id: "],
        [tasks({ id: "a b", title: "x" }), "tasks[0].id: must be letters"],
        [tasks({ id: "a", title: "x", priority: 0.5 }), "tasks[0].priority: must be a whole number"],
        [tasks({ id: "a", title: "x", after: [] }), "tasks[0].after: "],
        [tasks({ id: "a", title: "x" }, { id: "b", title: "x", dependsOn: [7] }), "tasks[1].dependsOn[0]: "]
      ] as const) {
        const [first] = yield* refusal(value)
        assert.isTrue(first!.startsWith(field), `${first} for ${JSON.stringify(value)}`)
      }
    })
  )

  it.effect("duplicate ids, unknown owners and unknown dependencies are named", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* refusal(
          tasks(
            { id: "a", title: "x", owner: "eve" },
            { id: "a", title: "x" },
            { id: "b", title: "x", dependsOn: ["a", "nobody", "b"] }
          )
        ),
        [
          'tasks[0].owner: there is no agent "eve" to work on tasks; the agents are: ada, bob',
          'tasks[1].id: "a" is already the id of tasks[0]',
          'tasks[2].dependsOn[1]: there is no task "nobody"',
          'tasks[2].dependsOn[2]: "b" depends on itself'
        ]
      )
    })
  )

  it.effect("a cycle is named as it runs, and what leads into it is not", () =>
    Effect.gen(function* () {
      const [problem] = yield* refusal(
        tasks(
          { id: "in", title: "x", dependsOn: ["a"] },
          { id: "a", title: "x", dependsOn: ["b", "root"] },
          { id: "b", title: "x", dependsOn: ["c"] },
          { id: "c", title: "x", dependsOn: ["a"] },
          { id: "root", title: "x" }
        )
      )
      assert.strictEqual(problem, "tasks[1].dependsOn: a cycle: a → b → c → a")
    })
  )

  it.effect("a revision builds on what is completed, not on what failed, and takes no id twice", () =>
    Effect.gen(function* () {
      const known = new Map([
        ["done", true],
        ["broken", false]
      ])
      yield* PlanFile.check(tasks({ id: "n", title: "x", dependsOn: ["done"] }), { ...door, known })
      assert.deepStrictEqual(
        yield* refusal(tasks({ id: "done", title: "x" }, { id: "n", title: "x", dependsOn: ["broken"] }), {
          ...door,
          known
        }),
        [
          'tasks[0].id: "done" is already the id of another task',
          'tasks[1].dependsOn[0]: "broken" cannot be a dependency: it failed, was cancelled, or belongs to an earlier plan'
        ]
      )
    })
  )

  it.effect("2,000 tasks are taken; over 2,000 tasks or over 4 MiB: refused", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 2_001 }, (_, n) => ({ id: `t${n}`, title: "x" }))
      assert.lengthOf(yield* PlanFile.check({ tasks: many.slice(1) }, door), 2_000)
      const refused = yield* Effect.flip(PlanFile.check({ tasks: many }, door))
      assert.strictEqual(refused.message, "tasks: contains 2001 tasks; at most 2000 are allowed")
      assert.strictEqual(refused.remedy, "Split it into several goals.")
      // an addition may be as long as a new plan, however many tasks there are
      const known = new Map(Array.from({ length: 3_000 }, (_, n) => [`old${n}`, true]))
      assert.lengthOf(yield* PlanFile.check({ tasks: many.slice(1) }, { ...door, known }), 2_000)
      assert.lengthOf(yield* refusal({ tasks: many }, { ...door, known }), 1)
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const path = join(folder, "plan.json")
      yield* fs.writeFileString(path, "{}")
      yield* fs.truncate(path, 4 * 1024 * 1024 + 1)
      const error = yield* Effect.flip(PlanFile.load(path, door))
      assert.match(error.message, /^plan: .*4194305 bytes; at most 4194304/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("a chain of 2,000 is taken, and a cycle of 2,000 refused", () =>
    Effect.gen(function* () {
      const chain = Array.from({ length: 2_000 }, (_, n) => ({
        id: `t${n}`,
        title: "x",
        dependsOn: n === 0 ? [] : [`t${n - 1}`]
      }))
      assert.lengthOf(yield* PlanFile.check({ tasks: chain }, door), 2_000)
      const round = [{ id: "t0", title: "x", dependsOn: ["t1999"] }, ...chain.slice(1)]
      assert.match((yield* refusal({ tasks: round }))[0]!, /a cycle: .* \(2000 tasks\)/)
    })
  )

  it.effect("what is no JSON says where", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(PlanFile.parse(Buffer.from('{ "tasks": ['), door))
      assert.match(error.message, /is not JSON: .*position|end of JSON/)
    })
  )

  it.effect("a long plan is taken a little at a time: another one has its turns meanwhile, as many as it is long", () =>
    Effect.gen(function* () {
      const turnsFor = Effect.fnUntraced(function* (size: number) {
        let turns = 0
        const bystander = yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.yieldNow,
              Effect.sync(() => void turns++)
            )
          )
        )
        const list = Array.from({ length: size }, (_, n) => ({
          id: `t${n}`,
          title: "x",
          description: "y".repeat(200),
          dependsOn: n < 3 ? [] : [`t${n - 1}`, `t${n - 3}`]
        }))
        const found = yield* PlanFile.parse(Buffer.from(JSON.stringify(tasks(...list))), door)
        yield* Fiber.interrupt(bystander)
        assert.lengthOf(found, size)
        return turns
      })
      const [short, long] = [yield* turnsFor(500), yield* turnsFor(2_000)]
      assert.isAtLeast(short, 7)
      assert.isAtLeast(long, 3.5 * short)
      assert.isAtMost(long, 4.5 * short)
    })
  )

  it("the form is published as a JSON Schema", () => {
    assert.include(JSON.stringify(PlanFile.jsonSchema()), '"dependsOn"')
  })
})

describe("a hostile file", () => {
  it.live(
    "a pipe and a device are no files and nobody waits for them; what is not UTF-8 is refused, a mark is not",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const folder = yield* fs.makeTempDirectoryScoped()
        const file = (name: string) => join(folder, name)
        execFileSync("mkfifo", [file("pipe")])
        const words = (path: string) => Effect.map(Effect.flip(PlanFile.load(path, door)), ({ message }) => message)
        assert.match(yield* words(file("pipe")), /is not a regular file/)
        assert.match(yield* words("/dev/zero"), /is not a regular file/)
        assert.match(yield* words(folder), /is not a regular file/)
        assert.match(yield* words(file("none")), /cannot be read: ENOENT: no such file or directory$/)
        const plan = Buffer.from('{"tasks":[{"id":"a","title":"é"}]}')
        yield* fs.writeFile(
          file("bad"),
          plan.map((byte) => (byte === 0xa9 ? 0x28 : byte))
        )
        assert.strictEqual(yield* words(file("bad")), "plan: is not UTF-8")
        yield* fs.writeFile(file("mark"), Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), plan]))
        assert.strictEqual((yield* PlanFile.load(file("mark"), door))[0]!.title, "é")
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("hostile JSON", () => {
  it.effect("nesting a hundred thousand deep is refused like anything else", () =>
    Effect.gen(function* () {
      const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
      for (const text of [
        `{"tasks":[${deep}]}`,
        `{"tasks":[{"id":"a","title":${deep}}]}`,
        `{"tasks":[{"id":"a","title":"x","dependsOn":${deep}}]}`
      ]) {
        const error = yield* Effect.flip(PlanFile.parse(Buffer.from(text), door))
        assert.match(error.message, /^tasks\[0\]/)
        assert.isBelow(error.message.length, 1_000)
      }
    })
  )
})
