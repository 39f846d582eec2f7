/** `agentd login`: at a remote MCP server, by a code or in a browser; its tokens are in one file and nowhere else. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { until } from "../../support/backend-run.ts"
import * as McpStand from "../../support/McpStand.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { launch } from "./Child.ts"

const configOf = (server: object) => ({
  agents: { builder: { backend: { type: "model", provider: "anthropic", model: "m", mcp: { tracker: server } } } }
})

const DOCUMENT = "https://example.org/agentd.json"

const setup = Effect.fnUntraced(function* (ways: McpStand.Ways, more: { readonly clientId?: string } = {}) {
  const stand = yield* McpStand.stand({ login: true, ...ways })
  const box = yield* Sandbox.make("shop")
  box.configure(configOf({ url: stand.url, ...more }))
  const login = (...args: ReadonlyArray<string>) =>
    launch(["--state", box.state, "login", "tracker", ...args], { cwd: box.project, env: box.environment })
  const files = () => readdirSync(join(box.state, "logins"))
  const grant = () => JSON.parse(readFileSync(join(box.state, "logins", files()[0]!), "utf8"))
  const registered = () => stand.seen.filter(({ path }) => path === "/register").length
  return { stand, box, login, files, grant, registered }
})

/** Starts a login in a browser; its address is the page that the user opens. */
const opened = Effect.fnUntraced(function* (running: { readonly child: { readonly stderr: NodeJS.ReadableStream } }) {
  let shown = ""
  running.child.stderr.on("data", (text) => (shown += text))
  yield* until(() => /http\S+authorize\S+/.test(shown))
  return new URL(/http\S+authorize\S+/.exec(shown)![0])
})

describe("agentd login", () => {
  it.live("by a code: shows it, waits until it was typed in, and keeps the tokens to itself", () =>
    Effect.gen(function* () {
      const { box, files, grant, login, stand } = yield* setup({ pending: 1 })
      const { code, err, out } = yield* (yield* login("--json")).ended
      assert.strictEqual(code, 0, err)
      assert.match(err, /ABCD-EFGH/)
      assert.deepInclude(JSON.parse(out), { server: "tracker", url: stand.url, renews: true })
      assert.notMatch(out + err, /secret/)
      assert.deepInclude(grant(), { url: stand.url, accessToken: "access-1-secret", clientId: "client-1" })
      assert.strictEqual(statSync(join(box.state, "logins", files()[0]!)).mode & 0o777, 0o600)
      const gone = yield* box.cli("logout", "tracker")
      assert.match(gone.stdout, /was deleted/)
      assert.deepStrictEqual(files(), [])
    }).pipe(Effect.scoped)
  )

  it.live("in a browser: with a proof of who began it; what comes with another state is not believed", () =>
    Effect.gen(function* () {
      const { grant, login, stand } = yield* setup({ noDevice: true })
      const running = yield* login()
      const page = yield* opened(running)
      assert.strictEqual(page.searchParams.get("code_challenge_method"), "S256")
      assert.strictEqual(page.searchParams.get("resource"), stand.url)
      const forged = new URL(page.searchParams.get("redirect_uri")!)
      forged.searchParams.set("state", "another")
      forged.searchParams.set("code", "stolen")
      assert.strictEqual((yield* Effect.promise(() => fetch(forged))).status, 404)
      assert.strictEqual((yield* Effect.promise(() => fetch(page))).status, 200)
      const { code, err } = yield* running.ended
      assert.strictEqual(code, 0, err)
      assert.strictEqual(grant().accessToken, "access-1-secret")
    }).pipe(Effect.scoped)
  )

  it.live("in a browser: what another issuer brings back is not believed, and its code goes nowhere", () =>
    Effect.gen(function* () {
      const { login, stand } = yield* setup({ noDevice: true, iss: "https://evil.example.org" })
      const running = yield* login()
      yield* Effect.flatMap(opened(running), (page) => Effect.promise(() => fetch(page)))
      const { code, err } = yield* running.ended
      assert.strictEqual(code, 1)
      assert.match(err, /issuer/i)
      assert.isFalse(stand.seen.some(({ path }) => path === "/token"))
    }).pipe(Effect.scoped)
  )

  it.live("by a code at an issuer that describes itself by OpenID alone", () =>
    Effect.gen(function* () {
      const { grant, login } = yield* setup({ openId: true })
      const { code, err } = yield* (yield* login()).ended
      assert.strictEqual(code, 0, err)
      assert.strictEqual(grant().accessToken, "access-1-secret")
    }).pipe(Effect.scoped)
  )

  it.live("with a client id metadata document where the issuer wants one; elsewhere it registers", () =>
    Effect.gen(function* () {
      const wants = yield* setup({ documents: true }, { clientId: DOCUMENT })
      assert.strictEqual((yield* (yield* wants.login()).ended).code, 0)
      assert.strictEqual(wants.grant().clientId, DOCUMENT)
      assert.strictEqual(wants.registered(), 0)
      const other = yield* setup({}, { clientId: DOCUMENT })
      assert.strictEqual((yield* (yield* other.login()).ended).code, 0)
      assert.strictEqual(other.grant().clientId, "client-1")
      const none = yield* setup({ documents: "only" })
      const { code, err } = yield* (yield* none.login()).ended
      assert.strictEqual(code, 1)
      assert.match(err, /accepts no new clients.*clientId under mcp/s)
    }).pipe(Effect.scoped)
  )

  it.live("a server that no agent has is refused, with those that there are; so is a run of an agent", () =>
    Effect.gen(function* () {
      const { box } = yield* setup({})
      const { code, stderr } = yield* box.cli("login", "other")
      assert.strictEqual(code, 1)
      assert.match(stderr, /Known servers: tracker/)
      box.environment["AGENTD_RUN"] = "run-1"
      assert.match((yield* box.cli("login", "tracker")).stderr, /may not log in/)
    }).pipe(Effect.scoped)
  )
})
