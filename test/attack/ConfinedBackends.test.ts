/**
 * ConfinedBackends: a run of any backend with `sandbox` holds no key, sees no home, tree or socket of
 * another, and reaches its model by the gateway alone; where no sandbox works, none is pretended.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, type Scope } from "effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as net from "node:net"
import * as path from "node:path"
import type { RunEvent } from "../../src/runs/Backend.ts"
import * as ClaudeBackend from "../../src/runs/claude/ClaudeBackend.ts"
import * as CommandBackend from "../../src/runs/command/CommandBackend.ts"
import * as ConfinedSpawn from "../../src/runs/sandbox/ConfinedSpawn.ts"
import type { Mechanism } from "../../src/runs/sandbox/Sandbox.ts"
import { Gateway } from "../../src/runs/gateway/GatewayClient.ts"
import { config as claude } from "../world/backends/ClaudeWorld.ts"
import { command, events, layer } from "../support/backend-run.ts"
import * as Confined from "../support/Confined.ts"
import { held, missing, sandboxOf, SECRET, yard } from "../support/toolbox.ts"

const KEY = "sk-the-real-key"
const NONE: Mechanism = { kind: "none", note: "this test has none" }

/** A provider that notes what it is sent; ends with the scope. */
const provider = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly keys: Array<string | undefined>; readonly server: http.Server }>(
    (resume) => {
      const keys: Array<string | undefined> = []
      const server = http.createServer((request, response) => {
        keys.push(request.headers.authorization ?? request.headers["x-api-key"]?.toString())
        response.end("the model says\n")
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, keys, server }))
      })
    }
  ),
  ({ server }) => Effect.sync(() => (server.closeAllConnections(), server.close()))
)

const control = (socket: string) =>
  Effect.acquireRelease(
    Effect.callback<net.Server>((resume) => {
      const server = net.createServer((one) => one.end(`${SECRET}-control\n`))
      server.listen(socket, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

/** A daemon's state with the homes of others, and a person's home with keys and a login. */
const place = Effect.gen(function* () {
  const here = yield* yard
  const { at, environment, home, host, root, spec } = here
  for (const folder of ["state/homes/other", "state/worktrees/other", "other"])
    fs.mkdirSync(at(folder), { recursive: true })
  for (const file of ["state/homes/other/key", "state/worktrees/other/file", "other/file"])
    fs.writeFileSync(at(file), SECRET)
  fs.mkdirSync(path.join(home, ".codex"))
  fs.writeFileSync(path.join(home, ".codex/auth.json"), "the login\n")
  yield* control(at("state/control.sock"))
  const gateway = at("state/gateway")
  return {
    ...here,
    spec: { ...spec, cwd: root },
    host: {
      ...host,
      environment: { ...environment, OPENAI_API_KEY: KEY },
      homes: at("state/homes"),
      gateway,
      hidden: [at("state")]
    }
  }
})

const services = (mechanism: Mechanism, folder: string) =>
  Layer.mergeAll(sandboxOf(mechanism), Gateway.layer({ folder }))

/** Ends the gateway that the test has started. */
const endGateway = Effect.gen(function* () {
  const gateway = yield* Gateway
  const pid = yield* gateway.pid
  if (pid !== undefined) process.kill(pid, "SIGKILL")
})

/** The lines that a command wrote, and how its run ended. */
const outputOf = (all: ReadonlyArray<RunEvent>) =>
  all.flatMap((event) => (event._tag === "Delta" ? [event.text] : event._tag === "Exited" ? [event.outcome._tag] : []))

type Place = Effect.Success<typeof place>

const runOf = Effect.fnUntraced(function* (
  { host, spec }: Place,
  given: Parameters<typeof command>[0],
  more: { readonly runId?: string; readonly prompt?: string } = {}
) {
  const backend = yield* CommandBackend.make(
    command({ sandbox: "required", readyAfter: Duration.zero, ...given }),
    host
  )
  const run = yield* backend.start({ ...spec, ...more })
  return outputOf(yield* events(run))
}, Effect.scoped)

if (missing.length > 0) it.skip(`not tried, since this machine cannot: ${missing.join("; ")}`)

for (const mechanism of held) {
  const live = (
    name: string,
    body: (here: Place) => Effect.Effect<void, unknown, Scope.Scope | Layer.Success<typeof layer> | Gateway>
  ) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* Effect.ensuring(body(here), endGateway).pipe(
          Effect.provide(Layer.fresh(services(mechanism, here.host.gateway)))
        )
      }).pipe(Effect.scoped, Effect.provide(layer))
    )

  describe(`a confined command under ${mechanism.kind}`, () => {
    live("sees no key, home, tree, project or socket of another, and no variable that names one", (here) =>
      Effect.gen(function* () {
        const { at, home, folder } = here
        const attack = [
          `cat ${home}/.ssh/id_ed25519 ${at("state/homes/other/key")} ${at("state/worktrees/other/file")} ${at("other/file")}`,
          `grep -rs ${SECRET} ${folder}`,
          "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -a -e OPENAI -e sk-",
          "env | grep -e SECRET -e OPENAI -e SSH_",
          `"${process.execPath}" -e 'require("net").connect("${at("state/control.sock")}").on("data",d=>console.log(String(d))).on("error",e=>console.log("no "+e.code))'`
        ]
        const shell = `echo ran; ${attack.join("; ")}; true`
        const said = yield* runOf(here, { shell, share: [process.execPath] })
        assert.include(said, "ran")
        assert.include(said, "no ENOENT")
        assert.include(said, "Success")
        assert.notInclude(said.join("\n").replaceAll(attack.join("; "), ""), `${SECRET}-`)
        assert.isFalse(said.some((line) => line === SECRET || line.includes(KEY) || line.startsWith("OPENAI")))
      })
    )

    live("keeps its home from run to run, and shares it with no other agent", (here) =>
      Effect.gen(function* () {
        assert.include(yield* runOf(here, { shell: 'echo mine > "$HOME/note"; echo done' }), "done")
        assert.include(yield* runOf(here, { shell: 'cat "$HOME/note"' }, { runId: "run-2" }), "mine")
        const other = { ...here, spec: { ...here.spec, agent: "critic" } }
        assert.notInclude(yield* runOf(other, { shell: 'cat "$HOME/note"; ls "$HOME/.."' }, { runId: "run-3" }), "mine")
        assert.deepStrictEqual(fs.readdirSync(here.home).includes("note"), false)
      })
    )

    live("reads a login that is shared by name, and cannot change it", (here) =>
      Effect.gen(function* () {
        const shell =
          'cat "$HOME/.codex/auth.json"; echo evil > "$HOME/.codex/auth.json"; mv "$HOME/.codex" x; echo own > "$HOME/.codex/own"; true'
        const said = yield* runOf(here, { shell, share: [".codex/auth.json", ".no/such"] })
        assert.include(said, "the login")
        assert.strictEqual(fs.readFileSync(path.join(here.home, ".codex/auth.json"), "utf8"), "the login\n")
        assert.deepStrictEqual(fs.readdirSync(path.join(here.home, ".codex")), ["auth.json"])
      })
    )

    live("does not run when an earlier run has left a link where its login is mounted", (here) =>
      Effect.gen(function* () {
        yield* runOf(here, { shell: `ln -s /oldroot${here.home} "$HOME/.codex"; true` })
        const given = { shell: "true", share: [".codex/auth.json"] }
        const error = yield* Effect.flip(runOf(here, given, { runId: "run-2" }))
        assert.match(JSON.stringify(error), /is a link/)
        assert.deepStrictEqual(fs.readdirSync(path.join(here.home, ".codex")), ["auth.json"])
      })
    )

    live("has no home and no socket in its workspace, where it could exchange them", (here) =>
      Effect.gen(function* () {
        const host = { ...here.host, homes: path.join(here.root, "state/homes") }
        const error = yield* Effect.flip(runOf({ ...here, host }, { shell: "true" }))
        assert.match(JSON.stringify(error), /home would lie in its workspace/)
      })
    )

    live("has its prompt by file, too, and works in a folder of the workspace only", (here) =>
      Effect.gen(function* () {
        const said = yield* runOf(here, { shell: 'cat "$1"; echo; pwd', promptBy: "file" }, { prompt: "do it" })
        assert.include(said, "do it")
        assert.include(said, here.root)
        const error = yield* Effect.flip(runOf(here, { shell: "true", cwd: "/usr" }, { runId: "run-2" }))
        assert.match(JSON.stringify(error), /not a folder in the workspace/)
        fs.symlinkSync(here.outside, path.join(here.root, "sub"))
        const behind = yield* Effect.flip(runOf(here, { shell: "true", cwd: "sub" }, { runId: "run-3" }))
        assert.match(JSON.stringify(behind), /not a folder in the workspace/)
      })
    )

    live("reaches its model through the gateway, with a key that it does not have, and nothing else", (here) =>
      Effect.gen(function* () {
        const { keys, url } = yield* provider
        const post = (target: string) =>
          `"${process.execPath}" -e 'fetch(${target},{method:"POST",headers:{authorization:"Bearer "+process.env.OPENAI_API_KEY},body:"{}"}).then(async r=>console.log(r.status,await r.text())).catch(e=>console.log("failed",e.cause?.code))'`
        const shell = [
          "echo $OPENAI_BASE_URL $OPENAI_API_KEY",
          post('process.env.OPENAI_BASE_URL+"/responses"'),
          post('process.env.OPENAI_BASE_URL+"/files"'),
          post(`"${url}/v1/responses"`)
        ].join("; ")
        const said = yield* runOf(here, { shell, provider: { api: "openai", baseUrl: `${url}/v1` } })
        assert.include(said, "http://127.0.0.1:3128/v1 held-by-agentd")
        assert.include(said, "200 the model says")
        assert.isTrue(
          said.some((line) => line.startsWith("403")),
          said.join("\n")
        )
        assert.isTrue(
          said.some((line) => line.startsWith("failed")),
          said.join("\n")
        )
        assert.deepStrictEqual(keys, [`Bearer ${KEY}`])
        assert.deepStrictEqual(fs.readdirSync(here.host.gateway), ["control.sock"], "the run's folder is gone")
      })
    )

    live(
      "is handed the variables that its config names, but no key that the gateway holds, whatever its name",
      (here) =>
        Effect.gen(function* () {
          const { url } = yield* provider
          const environment = { ...here.host.environment, HANDED: "over", COPY: `Bearer ${KEY}`, OTHER: SECRET }
          const given = {
            shell: "env",
            passEnv: ["HANDED", "COPY", "OPENAI_API_KEY", "HOME"],
            provider: { api: "openai", baseUrl: url }
          } as const
          const said = yield* runOf({ ...here, host: { ...here.host, environment } }, given)
          assert.include(said, "HANDED=over")
          assert.include(said, "OPENAI_API_KEY=held-by-agentd")
          assert.notInclude(said, `HOME=${here.home}`)
          assert.notInclude(said.join("\n"), KEY)
          assert.notInclude(said.join("\n"), SECRET)
        })
    )

    live("speaks on the socket of its own, which it sees though it is bound anew, and cannot take away", (here) =>
      Effect.gen(function* () {
        const folder = here.at("state/sockets/run-1")
        fs.mkdirSync(folder, { recursive: true })
        const socket = { folder, path: path.join(folder, "api") }
        const own = { ...here, spec: { ...here.spec, socket } }
        const speak = `"${process.execPath}" -e 'require("net").connect("${socket.path}").on("data",d=>console.log(String(d).trim())).on("error",e=>console.log("no "+e.code))'`
        const shell = `echo > ready; until test -e begin; do sleep 0.02; done; ${speak}; rm -f ${socket.path}; echo > ${folder}/x; ls ${here.at("state/sockets")}; true`
        const run = yield* Effect.forkChild(runOf(own, { shell, share: [process.execPath] }))
        while (!fs.existsSync(path.join(here.root, "ready"))) yield* Effect.sleep(20)
        yield* control(socket.path)
        fs.writeFileSync(path.join(here.root, "begin"), "")
        const said = yield* Fiber.join(run)
        assert.include(said, `${SECRET}-control`)
        assert.include(said, "run-1")
        assert.deepStrictEqual(fs.readdirSync(folder), ["api"])
      })
    )

    live("keeps exit code, signals and arguments through the forwarder", (here) =>
      Effect.gen(function* () {
        const { url } = yield* provider
        const given = {
          shell: 'echo "$1"; exit 41',
          promptBy: "argument",
          provider: { api: "openai", baseUrl: url }
        } as const
        const said = yield* runOf(here, given, { prompt: "--eval 'x' \"y\"" })
        assert.include(said, "--eval 'x' \"y\"")
        assert.include(said, "Error")
      })
    )

    live("what it leaves has no set-id bit, but its folders", (here) =>
      Effect.gen(function* () {
        const shell = "touch it && chmod g+s it && mkdir us && chmod g+s us && ls -l; chmod u+s it; true"
        yield* runOf(here, { shell })
        const modeOf = (name: string) => fs.statSync(path.join(here.spec.cwd, name)).mode & 0o6000
        assert.deepStrictEqual([modeOf("it"), modeOf("us")], [0, 0o2000])
      })
    )

    live(
      "a further program of a run, such as an ACP agent's terminal, is held as it is, and mounts nothing in its home",
      (here) =>
        Effect.gen(function* () {
          const { host, spec } = here
          const enclosure = yield* ConfinedSpawn.make({
            config: { sandbox: "required", network: false, share: [".codex/auth.json"] },
            provider: undefined,
            host,
            spec,
            inherited: host.environment,
            passEnv: undefined,
            own: {}
          })
          assert.isTrue(enclosure.confined)
          const line = `cat ${here.home}/.ssh/id_ed25519; cat "$HOME/.codex/auth.json"; env | grep OPENAI; echo end`
          const { cwd, argv, handed = [] } = yield* enclosure.start(["/bin/sh", "-c", line], spec.cwd, { part: true })
          const { output } = yield* Confined.command({ argv, handed }, cwd, enclosure.env)
          assert.match(output, /end\n$/)
          assert.notInclude(output, SECRET)
          assert.notInclude(output, KEY)
          assert.notInclude(output, "the login")
        })
    )

    live("Claude Code is started confined, with its file of servers, its login and the gateway's address", (here) =>
      Effect.gen(function* () {
        const { keys, url } = yield* provider
        const program = path.join(here.root, "claude")
        fs.writeFileSync(
          program,
          `#!/bin/sh
env | grep -e ANTHROPIC -e IS_SANDBOX -e '^HOME' >&2
cat "$HOME/.claude/.credentials.json" ${here.home}/.ssh/id_ed25519 >&2
while [ $# -gt 0 ]; do [ "$1" = --mcp-config ] && cat "$2" >&2; shift; done
`,
          { mode: 0o755 }
        )
        fs.mkdirSync(path.join(here.home, ".claude"))
        fs.writeFileSync(path.join(here.home, ".claude/.credentials.json"), "the claude login\n")
        const share = [".claude/.credentials.json"]
        const backend = yield* ClaudeBackend.make(
          claude({ sandbox: "required", share, provider: { baseUrl: url } }),
          here.host
        )
        const mcp = { voice: { argv: ["a-server"], env: {} } }
        const run = yield* backend.start({ ...here.spec, mcp })
        const said = outputOf(yield* events(run)).join("\n")
        assert.include(said, "ANTHROPIC_BASE_URL=http://127.0.0.1:3128")
        assert.notInclude(said, "ANTHROPIC_API_KEY", "there is none, so it uses its login")
        assert.include(said, "the claude login")
        assert.include(said, "a-server")
        assert.include(said, `HOME=${here.at("state/homes")}`)
        assert.notInclude(said, SECRET)
        assert.deepStrictEqual(keys, [])
      }).pipe(Effect.scoped)
    )
  })
}

describe("where no sandbox works", () => {
  const live = (
    name: string,
    body: (here: Place) => Effect.Effect<void, unknown, Scope.Scope | Layer.Success<typeof layer>>
  ) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* Effect.provide(body(here), Layer.fresh(services(NONE, here.host.gateway)))
      }).pipe(Effect.scoped, Effect.provide(layer))
    )

  live("a run that requires one is refused, with what to do", (here) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(runOf(here, { shell: "touch ran" }))
      assert.match(JSON.stringify(error), /no sandbox works.*install bubblewrap/)
      assert.isFalse(fs.existsSync(path.join(here.root, "ran")))
    })
  )

  live("a run that would like one goes on without, with what it had before", (here) =>
    Effect.gen(function* () {
      const said = yield* runOf(here, { shell: "echo $HOME", sandbox: "on" })
      assert.include(said, here.home)
    })
  )
})
