/** Approvals that are kept in a config file: what is shown, what is written, and what is refused. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as OwnConfig from "../../../src/app/OwnConfig.ts"
import type { AnswerScope } from "../../../src/approvals/AnswerScope.ts"
import { refuse } from "../../../src/domain/Messages.ts"
import { UserApprovals } from "../../../src/domain/UserApprovals.ts"
import * as LastingAnswer from "../../../src/projects/service/LastingAnswer.ts"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import * as Puppet from "./Puppet.ts"
import { command, make, until, type World } from "./World.ts"

type Fleet = Agents["Service"]

const config = (more: string = "", name = "builder") => `{
  // the agents of the shop
  "agents": { "${name}": ${JSON.stringify(command())} }${more}
}
`
const userFile = (world: World) => join(world.folder, "config", "agentd", "config.jsonc")

/** A project whose agent asks for these calls; the user's own config is in a folder of its own. */
const asking = Effect.fnUntraced(function* (commands: ReadonlyArray<string>, own?: string) {
  const puppet = Puppet.make()
  const world = yield* make(puppet)
  world.configure(config())
  mkdirSync(dirname(userFile(world)), { recursive: true })
  if (own !== undefined) writeFileSync(userFile(world), own, { mode: 0o600 })
  const place = { state: join(world.folder, "state"), userConfig: userFile(world) }
  world.userApprovals = (yield* Effect.provide(OwnConfig.make(place), NodeFileSystem.layer)).userApprovals
  const fleet = yield* world.open
  yield* fleet.register(world.config, world.caller)
  const run = yield* started(fleet, world, puppet, 0)
  for (const [index, text] of commands.entries()) yield* asks(run, `c${index}`, text)
  return { world, fleet, puppet, run, calls: yield* waiting(fleet, commands.length) }
})

const started = (fleet: Fleet, world: World, puppet: Puppet.Puppet, count: number, name = "builder") =>
  Effect.andThen(fleet.send(name, { text: "go", how: "queue" }, world.caller), puppet.run(count))
const asks = (run: Puppet.Pulled, callId: string, text: string) =>
  run.say(
    { _tag: "ToolCall", callId, tool: "Bash", arguments: { command: text }, readOnly: false },
    { _tag: "ApprovalRequested", callId, reason: "" }
  )
const waiting = (fleet: Fleet, count: number) =>
  until(
    Effect.map(fleet.calls, (calls) => calls.filter(({ state }) => state === "awaiting_approval")),
    (calls) => calls.length === count
  )
const approve = (fleet: Fleet, world: World, callId: string, scope: AnswerScope, hash: string, offer = 1) =>
  fleet.answerCall(callId, { behavior: "allow", reason: "", hash, lasting: { scope, offer } }, world.caller)

describe("an approval that is kept", () => {
  it.live("for everyone here is a line in agentd.jsonc, in force at once, also for the calls that wait", () =>
    Effect.gen(function* () {
      const { calls, fleet, run, world } = yield* asking(["npm test", "npm test", "npm publish"])
      chmodSync(world.config, 0o640)
      const { callId } = calls[0]!
      const asked = yield* fleet.askedCall(callId)
      assert.deepStrictEqual(asked.scopes, ["run", "agent", "project", "everyone"])
      const seen = yield* fleet.answerPreview(callId, { scope: "everyone", offer: 1 })
      assert.strictEqual(seen.file, world.config)
      expect(seen.diff.join("\n")).toContain('"allow": "npm test"')
      assert.notInclude(readFileSync(world.config, "utf8"), "allow")
      const done = yield* approve(fleet, world, callId, "everyone", seen.hash)
      expect(done.message).toContain("for everyone here: npm test")
      const text = readFileSync(world.config, "utf8")
      expect(text).toContain("// the agents of the shop")
      expect(text).toContain('"allow": "npm test"')
      assert.strictEqual(statSync(world.config).mode & 0o777, 0o640)
      const [left] = yield* waiting(fleet, 1)
      assert.include(left!.arguments, "publish")
      const [project] = yield* fleet.projects
      assert.isUndefined(project!.waits)
      yield* asks(run, "later", "npm test")
      yield* until(fleet.calls, (all) => all.filter(({ state }) => state === "executing").length === 3)
      const runes = yield* world.log.tail({ kinds: ["config.trusted", "tool.approved"] }, 20)
      expect(runes.map(({ kind, payload }) => [kind, payload["by"] ?? payload["approver"]])).toEqual([
        ["config.trusted", "ada"],
        ["tool.approved", "ada"],
        ["config.trusted", "ada"],
        ["tool.approved", "rules"]
      ])
      expect((runes[3]!.payload["event"] as { policyReason: string }).policyReason).toContain("agentd.jsonc:")
    }).pipe(Effect.scoped)
  )

  it.live("for this agent and always in this project is a line in the user's own config, through a link", () =>
    Effect.gen(function* () {
      const { calls, fleet, world } = yield* asking(["npm test", "npm run lint", "npm run lint"])
      const dotfiles = join(world.folder, "dotfiles.jsonc")
      writeFileSync(dotfiles, '{\n  // mine\n  "http": {}\n}\n', { mode: 0o600 })
      symlinkSync(dotfiles, userFile(world))
      const own = yield* fleet.answerPreview(calls[0]!.callId, { scope: "agent", offer: 1 })
      assert.strictEqual(own.file, userFile(world))
      yield* approve(fleet, world, calls[0]!.callId, "agent", own.hash)
      const wide = yield* fleet.answerPreview(calls[1]!.callId, { scope: "project", offer: 1 })
      yield* approve(fleet, world, calls[1]!.callId, "project", wide.hash)
      yield* waiting(fleet, 0)
      const root = dirname(world.config)
      const text = readFileSync(dotfiles, "utf8")
      expect(text).toContain("// mine")
      expect(JSON.parse(text.replace("// mine", ""))).toEqual({
        http: {},
        approvals: {
          projects: {
            [root]: { agents: { builder: { rules: [{ allow: "npm test" }] } }, rules: [{ allow: "npm run lint" }] }
          }
        }
      })
    }).pipe(Effect.scoped)
  )

  it.live("creates the user's own config, for its owner alone", () =>
    Effect.gen(function* () {
      const { calls, fleet, world } = yield* asking(["npm test"])
      const { hash } = yield* fleet.answerPreview(calls[0]!.callId, { scope: "project", offer: 1 })
      assert.isFalse(existsSync(userFile(world)))
      yield* approve(fleet, world, calls[0]!.callId, "project", hash)
      assert.strictEqual(statSync(userFile(world)).mode & 0o777, 0o600)
    }).pipe(Effect.scoped)
  )

  it.live("holds for no agent of another name: one that is renamed asks again", () =>
    Effect.gen(function* () {
      const { calls, fleet, puppet, world } = yield* asking(["npm test"])
      const { hash } = yield* fleet.answerPreview(calls[0]!.callId, { scope: "agent", offer: 1 })
      yield* approve(fleet, world, calls[0]!.callId, "agent", hash)
      world.configure(config("", "maker"))
      yield* fleet.register(world.config, world.caller)
      const next = yield* started(fleet, world, puppet, 1, "maker")
      yield* asks(next, "again", "npm test")
      const [asked] = yield* waiting(fleet, 1)
      assert.strictEqual(asked!.agent, "maker")
    }).pipe(Effect.scoped)
  )
})

describe("nothing is written and nothing is approved", () => {
  it.live("if the file, the call or the offer is not what was shown", () =>
    Effect.gen(function* () {
      const own = '{ "approvals": { "timeout": "5 minutes" } }\n'
      const { calls, fleet, run, world } = yield* asking(["npm test"], own)
      const { callId } = calls[0]!
      const { hash } = yield* fleet.answerPreview(callId, { scope: "project", offer: 1 })
      const refused = (scope: AnswerScope, offer = 1) =>
        Effect.map(Effect.flip(approve(fleet, world, callId, scope, hash, offer)), ({ message }) => message)
      expect(yield* refused("agent")).toContain("have changed since they were shown")
      expect(yield* refused("project", 2)).toContain("have changed since they were shown")
      expect(yield* refused("project", 7)).toContain("There is no offer 7")
      const { hash: seen } = yield* fleet.askedCall(callId)
      expect((yield* Effect.flip(approve(fleet, world, callId, "run", seen))).message).toContain("have changed")
      writeFileSync(userFile(world), `${own}// more\n`)
      expect(yield* refused("project")).toContain("have changed since they were shown")
      assert.strictEqual(readFileSync(userFile(world), "utf8"), `${own}// more\n`)
      yield* run.say({ _tag: "ApprovalWithdrawn", callId: "c0" })
      yield* waiting(fleet, 0)
      expect(yield* refused("project")).toContain("withdrawn")
      assert.strictEqual(readFileSync(userFile(world), "utf8"), `${own}// more\n`)
      assert.lengthOf(yield* world.log.tail({ kinds: ["tool.approved"] }, 9), 0)
    }).pipe(Effect.scoped)
  )

  it.live("while a change of agentd.jsonc waits, except once and for the run", () =>
    Effect.gen(function* () {
      const { calls, fleet, world } = yield* asking(["npm test", "npm publish"])
      const { callId } = calls[0]!
      const { hash } = yield* fleet.answerPreview(callId, { scope: "project", offer: 1 })
      world.configure(config(',\n  "approvals": { "rules": [{ "allow": "npm publish" }] }'))
      const asked = yield* fleet.askedCall(callId)
      assert.deepStrictEqual(asked.scopes, ["run"])
      expect(asked.onlyHere).toContain("agentd trust")
      for (const scope of ["agent", "project", "everyone"] as const) {
        const refused = yield* Effect.flip(fleet.answerPreview(callId, { scope, offer: 1 }))
        expect(refused.message).toContain("nobody has agreed to")
      }
      expect((yield* Effect.flip(approve(fleet, world, callId, "project", hash))).message).toContain("agreed to")
      assert.isFalse(existsSync(userFile(world)))
      const run = yield* fleet.answerPreview(callId, { scope: "run", offer: 1 })
      assert.isNull(run.file)
      yield* approve(fleet, world, callId, "run", run.hash)
      yield* waiting(fleet, 1)
    }).pipe(Effect.scoped)
  )

  it.live("if the call ends while the file is read", () =>
    Effect.gen(function* () {
      const { calls, fleet, run, world } = yield* asking(["npm test"])
      const { callId } = calls[0]!
      const { hash } = yield* fleet.answerPreview(callId, { scope: "everyone", offer: 1 })
      const before = readFileSync(world.config, "utf8")
      const read = world.ownFile
      const withdrawn = Effect.andThen(run.say({ _tag: "ApprovalWithdrawn", callId: "c0" }), waiting(fleet, 0))
      world.ownFile = (path, most) => Effect.andThen(Effect.orDie(withdrawn), read(path, most))
      expect((yield* Effect.flip(approve(fleet, world, callId, "everyone", hash))).message).toContain("withdrawn")
      assert.strictEqual(readFileSync(world.config, "utf8"), before)
    }).pipe(Effect.scoped)
  )

  it.live("if the user's own config has problems, or could be written by others", () =>
    Effect.gen(function* () {
      const { calls, fleet, world } = yield* asking(["npm test"])
      const preview = Effect.flip(fleet.answerPreview(calls[0]!.callId, { scope: "project", offer: 1 }))
      writeFileSync(userFile(world), "{ nothing")
      expect((yield* preview).message).toContain("has problems")
      writeFileSync(userFile(world), '{ "approvals": { "projects": [] } }')
      expect((yield* preview).message).toContain("is not a list")
      writeFileSync(userFile(world), "{}")
      chmodSync(userFile(world), 0o666)
      expect((yield* preview).message).toContain("others can write")
    }).pipe(Effect.scoped)
  )
})

it.live("a call that was decided while its rule was written: the error says that the rule is there", () =>
  Effect.gen(function* () {
    const { calls, fleet, world } = yield* asking(["npm test"])
    const asked = yield* fleet.askedCall(calls[0]!.callId)
    const gone = refuse("conflict", "Call c1 no longer waits for an answer.", "See what waits: agentd approve")
    const of = {
      callId: asked.id,
      project: { unsettled: Effect.succeed(undefined), config: { root: dirname(world.config) } },
      agentScope: {
        name: "builder",
        asked: () => asked,
        offered: () => [[{ command: "npm test" }]],
        answer: () => Effect.fail(gone)
      }
    } as unknown as LastingAnswer.Asked
    const lasting = { scope: "project", offer: 1 } as const
    const own = Effect.provideService(UserApprovals, world.userApprovals)
    const { hash } = yield* own(LastingAnswer.preview(of, lasting))
    const said = { behavior: "allow", reason: "", hash } as const
    const { message } = yield* Effect.flip(own(LastingAnswer.answer(of, lasting, said, world.caller)))
    expect(message).toContain(`The rule was written to ${userFile(world)} and holds from now on`)
    expect(message).toContain("no longer waits")
    yield* waiting(fleet, 0)
    const [ruled] = yield* world.log.tail({ kinds: ["tool.approved"] }, 9)
    assert.strictEqual(ruled!.payload["approver"], "rules")
  }).pipe(Effect.scoped)
)
