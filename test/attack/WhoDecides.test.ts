/** Each verb that decides for a person, through each door, as each kind of caller. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFile } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Speaks } from "../../src/api/rpc/Procedure.ts"
import { Control } from "../../src/api/rpc/Protocol.ts"
import * as Stage from "../support/Stage.ts"
import { freePort } from "../world/web/Browser.ts"

const SS = ["/usr/bin/ss", "/bin/ss", "/usr/sbin/ss", "/sbin/ss"].some((file) => existsSync(file))
const MISSING = "no `ss` is installed: nothing on this machine tells who calls"

/** Payloads with which a person's call does no harm: names of nothing, but for those that make something. */
const PAYLOADS = (config: string): Record<string, object> => ({
  Register: { config },
  ConfigKeep: { name: "none" },
  Answer: { name: "none", decision: "allow", reason: "", hash: "0".repeat(16) },
  AnswerPreview: { name: "none", lasting: { scope: "run", offer: 1 } },
  Erase: { eventId: 1_000_000_000 },
  GoalApprove: { name: "g77", hash: "0".repeat(16) },
  GoalReject: { name: "g77", reason: "no" },
  ScheduleAdd: {
    due: 4_000_000_000_000,
    timeZone: "UTC",
    work: { type: "send", agent: "nobody", text: "hello" },
    catchUp: "once"
  },
  ScheduleRemove: { name: "none" },
  ScheduleRun: { name: "none" },
  SchedulePause: { name: "none" },
  ScheduleResume: { name: "none" },
  Invite: { right: "view", label: "another" },
  Grant: { right: "view", label: "another" },
  Revoke: { name: "none" }
})

/** Tries every verb through every door that it has, and writes down what each answered. */
const SCRIPT = `
import { request } from "node:http"
import * as net from "node:net"
import { writeFileSync } from "node:fs"
const [out, state, port, token, config, payloads] = process.argv.slice(2)
const socketAt = (path) => (verb, payload) => new Promise((resolve) => {
  if (path === undefined) return resolve("no door")
  const socket = net.connect(path)
  const caller = { by: "ada", config }
  socket.on("error", ({ code }) => resolve(code))
  socket.on("data", (data) => { if (String(data).includes('"7"')) { resolve(String(data)); socket.destroy() } })
  socket.write(JSON.stringify({ _tag: "Request", id: "7", tag: verb, payload: { ...payload, caller }, headers: [] }) + "\\n")
})
const httpAt = (to) => (verb, payload) => new Promise((resolve) => {
  const headers = { "content-type": "application/json", authorization: "Bearer " + token }
  const asked = request({ ...to, path: "/v1/" + verb, method: "POST", headers, agent: false }, (answer) => {
    let text = ""
    answer.setEncoding("utf8").on("data", (part) => (text += part)).on("end", () => resolve(answer.statusCode + " " + text))
  })
  asked.on("error", ({ code }) => resolve(code)).end(JSON.stringify({ ...payload, caller: { config } }))
})
const doors = {
  "control.sock": socketAt(state + "/control.sock"),
  "a run's socket": socketAt(process.env.AGENTD_SOCKET),
  "http.sock": httpAt({ socketPath: state + "/http.sock" }),
  port: httpAt({ host: "127.0.0.1", port })
}
const found = {}
for (const [door, ask] of Object.entries(doors)) {
  found[door] = {}
  for (const [verb, payload] of Object.entries(JSON.parse(payloads))) found[door][verb] = await ask(verb, payload)
}
writeFileSync(out, JSON.stringify(found))
`

type Found = Record<string, Record<string, string>>

interface World {
  readonly shop: Stage.Project
  /** The words after the interpreter. */
  readonly args: (out: string) => ReadonlyArray<string>
}

class Doors extends Context.Service<Doors, World>()("test/Doors") {}

const world = Layer.effect(
  Doors,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const port = yield* freePort
    stage.box.setUser({ http: { enabled: true, port }, orphanGrace: "0 seconds" })
    const shop = stage.home({ agents: { boss: stage.agent("acp") } })
    yield* stage.up
    yield* shop.register
    const { stdout, stderr } = yield* shop.cli("--json", "access", "new", "script", "--act")
    const { token } = JSON.parse(stdout || stderr) as { readonly token: string }
    const script = join(shop.root, "ask.mjs")
    writeFileSync(script, SCRIPT)
    const payloads = JSON.stringify(PAYLOADS(shop.config))
    return { shop, args: (out) => [script, out, stage.box.state, String(port), token, shop.config, payloads] }
  })
)

const deciding = [...(Control.requests.values() as Iterable<unknown>)]
  .map((rpc) => rpc as { readonly _tag: string; readonly annotations: Context.Context<never> })
  .filter(({ annotations }) => Context.get(annotations, Speaks) === "decides")
  .map(({ _tag }) => _tag)

/** Verbs that say who may come in have no way by HTTP. */
const HIDDEN = ["Invite", "Grant", "Revoke"]
const DOORS = ["control.sock", "a run's socket", "http.sock", "port"]

const REFUSED = /may not decide what waits for a person/
const readFound = (file: string) => JSON.parse(readFileSync(file, "utf8")) as Found

const quoted = (words: ReadonlyArray<string>) => words.map((word) => `'${word}'`).join(" ")

layer(world, { excludeTestServices: true })("a verb that decides", (it) => {
  it.effect("is in the table", () =>
    Effect.sync(() => assert.sameMembers(Object.keys(PAYLOADS("")), deciding, "a verb that decides has no row here"))
  )

  for (const [who, before] of [
    ["an agent's process", ""],
    ["one that has taken its marks off", "env -u AGENTD_RUN -u AGENTD_STORE "],
    ["one that it has left in a session of its own", "setsid -w "]
  ] as const) {
    it.effect(`is refused to ${who}, through each door`, (context) =>
      Effect.gen(function* () {
        if (!SS) return context.skip(MISSING)
        const { args, shop } = yield* Doors
        const out = join(shop.root, `found-${before.length}`)
        const earlier = (yield* shop.of("boss", 0, "turn.completed")).length
        yield* shop.tell("boss", { run: `${before}${quoted([process.execPath, ...args(out)])}` })
        yield* shop.answers("boss", earlier + 1)
        const found = readFound(out)
        assert.sameMembers(Object.keys(found), DOORS)
        for (const verb of deciding) {
          assert.match(found["control.sock"]![verb]!, REFUSED, `control.sock, ${verb}`)
          assert.match(found["a run's socket"]![verb]!, /Unknown request tag|^no door$/, `a run's socket, ${verb}`)
          assert.match(found["http.sock"]![verb]!, /^404 .*no such route/, `http.sock, ${verb}`)
          assert.match(
            found["port"]![verb]!,
            HIDDEN.includes(verb) ? /^404 .*There is no verb/ : REFUSED,
            `port, ${verb}`
          )
        }
        assert.lengthOf(yield* shop.stage.rpc((client) => client.Accesses()), 1)
      })
    )
  }

  it.effect("is a person's on the control socket, and a token's at the port", () =>
    Effect.gen(function* () {
      const { args, shop } = yield* Doors
      const out = join(shop.root, "found-person")
      yield* Effect.callback<void>((resume) => {
        execFile(process.execPath, args(out), (error) => resume(error === null ? Effect.void : Effect.die(error)))
      })
      const found = readFound(out)
      for (const verb of deciding) {
        assert.notMatch(found["control.sock"]![verb]!, REFUSED, verb)
        assert.notMatch(found["control.sock"]![verb]!, /Defect|Unknown request tag/, verb)
        assert.match(found["http.sock"]![verb]!, /^404 .*no such route/, `http.sock, ${verb}`)
        assert.match(
          found["port"]![verb]!,
          HIDDEN.includes(verb) ? /^404 .*There is no verb/ : /^(200|409) (?!.*may not decide)/,
          verb
        )
      }
    })
  )
})
