/** Attack on tokens of remote MCP servers: they are said in a model's own words, where the connection's mask does not reach. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { attempt } from "../../src/config/Attempt.ts"
import * as RemoteLogin from "../../src/runs/gateway/RemoteLogin.ts"
import * as ModelStand from "../world/backends/ModelStand.ts"
import { until } from "../support/backend-run.ts"
import * as McpStand from "../support/McpStand.ts"
import * as Stage from "../support/Stage.ts"

/** The environments and arguments of the model agents of a daemon. */
const environmentsOf = (state: string): ReadonlyArray<string> =>
  readdirSync("/proc").flatMap((pid) => {
    const texts = ["environ", "cmdline"].map((name) => attempt(() => readFileSync(`/proc/${pid}/${name}`, "latin1")))
    const text = texts.join("")
    return text.includes("AGENTD_MODEL_AGENT=") && text.includes(state) ? [text] : []
  })

/** The text of all files in a folder, except those in another one. */
const textsIn = (folder: string, except: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath !== except)
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n")

describe("the tokens of a remote MCP server", () => {
  it.live("are in no rune, whoever says them: neither those of a login, nor those that took their place", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const stand = yield* McpStand.stand({ login: true })
      // the first token is refused, and both are renewed
      RemoteLogin.write(join(stage.box.state, "logins"), {
        url: stand.url,
        tokenEndpoint: `${stand.origin}/token`,
        clientId: "client-1",
        accessToken: "old-access-secret",
        refreshToken: "refresh-0-secret"
      })
      const leaked = ["old-access-secret", "refresh-0-secret", "access-1-secret", "refresh-1-secret"]
      const { url } = yield* ModelStand.provider("anthropic", ({ body }) =>
        JSON.stringify(body.messages).includes("tool_result")
          ? { text: [`they are ${leaked.join(" and ")}`] }
          : { calls: [{ id: "c1", name: "tracker__echo", arguments: '{"text":"hi"}' }] }
      )
      const agent = stage.agent("model", {
        backend: { baseUrl: url, mcp: { tracker: { url: stand.url } } },
        approvals: { mode: "full_access" }
      })
      const project = stage.home({ agents: { ann: agent } })
      yield* stage.up
      yield* project.register
      yield* project.send("ann", "say them")
      const [answer] = yield* project.answers("ann", 1)
      assert.isTrue(stand.seen.some(({ headers }) => headers.authorization === "Bearer access-1-secret"))
      assert.strictEqual(answer, `they are ${leaked.map(() => "[redacted]").join(" and ")}`)
      const written = JSON.stringify(yield* project.log())
      for (const token of leaked) assert.notInclude(written, token)
    }).pipe(Effect.scoped)
  )

  it.live("are in the gateway alone, while daemons come and go: the model agent's program has none, nor the key", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      stage.box.environment["ANTHROPIC_API_KEY"] = "sk-the-key-of-the-provider"
      stage.box.environment["WIKI"] = "the-token-of-the-wiki"
      let release = () => {}
      const hold = new Promise<void>((resolve) => (release = resolve))
      const [stand, wiki] = [yield* McpStand.stand({ login: true, hold }), yield* McpStand.stand()]
      const logins = join(stage.box.state, "logins")
      RemoteLogin.write(logins, {
        url: stand.url,
        tokenEndpoint: `${stand.origin}/token`,
        clientId: "client-1",
        accessToken: "old-access-secret",
        refreshToken: "refresh-0-secret"
      })
      const calls = ["tracker__token", "wiki__token", "tracker__token"]
      const { url } = yield* ModelStand.provider("anthropic", ({ body }) => {
        const done = JSON.stringify(body.messages).split('"tool_result"').length - 1
        const name = calls[done]
        return name === undefined ? { text: ["done"] } : { calls: [{ id: `c${done}`, name, arguments: "{}" }] }
      })
      const mcp = { tracker: { url: stand.url }, wiki: { url: wiki.url, bearerEnv: "WIKI" } }
      const agent = stage.agent("model", { backend: { baseUrl: url, mcp }, approvals: { mode: "full_access" } })
      const project = stage.home({ agents: { ann: agent } })
      const called = ({ seen }: McpStand.Stand) => seen.filter(({ body }) => body.includes('"tools/call"')).length
      yield* stage.up
      yield* project.register
      yield* project.send("ann", "call them")
      yield* until(() => called(stand) === 1)
      const programs = environmentsOf(stage.box.state)
      assert.strictEqual(programs.length, 1)
      assert.notMatch(programs[0]!, /secret|the-key|the-token|logins/)
      yield* stage.box.kill9
      release()
      stand.revoke()
      yield* stage.up
      assert.deepStrictEqual(yield* project.answers("ann", 1), ["done"])
      // one of them was refused
      assert.deepStrictEqual([called(stand), called(wiki)], [3, 1])
      assert.strictEqual(wiki.seen.at(-1)?.headers.authorization, "Bearer the-token-of-the-wiki")
      assert.strictEqual(RemoteLogin.read(logins, stand.url)?.accessToken, "access-3-secret")
      const written = textsIn(stage.box.state, logins)
      assert.match(written, /Bearer \[redacted\]/)
      assert.notMatch(written, /\b(access|refresh)-\d-secret|old-access|the-key-of|the-token-of/)
    }).pipe(Effect.scoped)
  )
})
