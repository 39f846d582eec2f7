/**
 * Reach: what `agentd doctor --security` says of an agent is what a run of it truly can do: which
 * files it reads and writes, whether it reaches the control socket, which variables it has.
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, type Scope } from "effect"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import * as AcpBackend from "../../src/runs/acp/AcpBackend.ts"
import type { Backend } from "../../src/runs/Backend.ts"
import * as ClaudeBackend from "../../src/runs/claude/ClaudeBackend.ts"
import * as CommandBackend from "../../src/runs/command/CommandBackend.ts"
import { hostOf } from "../../src/runs/Host.ts"
import * as RunSockets from "../../src/runs/RunSockets.ts"
import * as Reach from "../../src/runs/Reach.ts"
import type { Mechanism } from "../../src/runs/sandbox/Sandbox.ts"
import type { AcpBackend as AcpConfig } from "../../src/config/BackendConfig.ts"
import { Gateway } from "../../src/runs/gateway/GatewayClient.ts"
import { config as claude } from "../world/backends/ClaudeWorld.ts"
import { command, events, layer } from "../support/backend-run.ts"
import { config as model, held, missing, sandboxOf, SECRET, yard } from "../support/toolbox.ts"

const NONE: Mechanism = { kind: "none", note: "this test has none" }

/** Stands in a file that a run could write; one that it wrote in a folder of its own is another file. */
const MARK = "was-here"

/** Variables that a shell sets itself. */
const OF_THE_SHELL = new Set(["_", "SHLVL", "OLDPWD"])

/** Looks at what it reaches, and writes that into its workspace: R path, E name, C; marks what it can write. */
const program = (paths: ReadonlyArray<string>, socket: string) => `#!/bin/sh
exec 2>/dev/null
{
${paths.map((file) => `[ -n "$(cat '${file}')" ] && echo 'R ${file}'; case '${file}' in /etc/*) ;; *) ( echo ${MARK} >> '${file}' ) ;; esac`).join("\n")}
[ -S '${socket}' ] && '${process.execPath}' -e 'require("net").connect("${socket}").on("data",()=>{console.log("C");process.exit()}).on("error",()=>process.exit())'
env | sed -n 's/^\\([A-Za-z_][A-Za-z_0-9]*\\)=.*/E \\1/p'
} > seen
`

const place = Effect.gen(function* () {
  const here = yield* yard
  const { at, environment, home, root, spec } = here
  const [state, socket] = [at("state"), at("state/control.sock")]
  fs.mkdirSync(at("state/homes"), { recursive: true })
  for (const folder of [".cargo/bin", ".local/bin", ".codex"])
    fs.mkdirSync(path.join(home, folder), { recursive: true })
  for (const file of [".cargo/credentials.toml", ".local/keyring", ".codex/auth.json"])
    fs.writeFileSync(path.join(home, file), SECRET)
  fs.writeFileSync(path.join(root, "own"), "own\n")
  yield* Effect.acquireRelease(
    Effect.callback<net.Server>((resume) => {
      const server = net.createServer((one) => one.end("here\n"))
      server.listen(socket, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )
  fs.mkdirSync(at("program"))
  fs.writeFileSync(at("program/server"), "a server that agentd gives the run\n")
  const files = [
    path.join(root, "own"),
    at("outside/secret"),
    at("program/server"),
    ...[".ssh/id_ed25519", ".cargo/credentials.toml", ".local/keyring", ".codex/auth.json"].map((one) =>
      path.join(home, one)
    ),
    "/etc/group",
    "/etc/shadow"
  ].filter((file) => fs.existsSync(file) && fs.statSync(file).isFile())
  fs.writeFileSync(path.join(root, "look"), program(files, socket), { mode: 0o755 })
  const host = hostOf({
    store: here.host.store,
    environment: {
      ...environment,
      PATH: `${home}/.cargo/bin:${home}/.local/bin:${environment.PATH}`,
      SOME_TOKEN: SECRET,
      SSH_AUTH_SOCK: "/nowhere"
    },
    state,
    socket
  })
  const mcp = { agentd: { argv: [at("program/server")], env: {}, files: [at("program")] } }
  return { files, host, root, socket, spec: { ...spec, cwd: root, mcp } }
})
type Place = Effect.Success<typeof place>

const acp = (more: Partial<AcpConfig>): AcpConfig => ({
  type: "acp",
  argv: ["./look"],
  env: {},
  killGrace: Duration.seconds(5),
  sandbox: "off",
  share: [],
  resume: true,
  trustKinds: [],
  readOnlyTools: [],
  network: false,
  silence: Duration.minutes(1),
  startTimeout: Duration.minutes(1),
  ...more
})

const more = { passEnv: ["SOME_TOKEN"], share: [".codex/auth.json", process.execPath] }

const kinds = {
  command: (sandbox: "off" | "required") => command({ shell: "./look", readyAfter: Duration.zero, sandbox, ...more }),
  acp: (sandbox: "off" | "required") => acp({ sandbox, ...more }),
  claude: (sandbox: "off" | "required") => claude({ binary: "./look", sandbox, ...more, network: true })
} as const

/** The program stands for each kind of agent: it looks, and ends. */
const saw = Effect.fnUntraced(function* (kind: keyof typeof kinds, sandbox: "off" | "required", here: Place) {
  const backend: Backend = yield* kind === "command"
    ? CommandBackend.make(kinds.command(sandbox), here.host)
    : kind === "acp"
      ? AcpBackend.make(kinds.acp(sandbox), here.host)
      : ClaudeBackend.make(kinds.claude(sandbox), here.host)
  // an agent that ends at once has failed to start: it has looked before
  const given = RunSockets.giving(yield* RunSockets.RunSockets, backend)
  yield* Effect.exit(Effect.scoped(Effect.flatMap(given.start(here.spec), events)))
  const lines = fs.readFileSync(path.join(here.root, "seen"), "utf8").trim().split("\n")
  const of = (mark: string) =>
    lines
      .filter((line) => line.startsWith(`${mark} `))
      .map((line) => line.slice(2))
      .toSorted()
  return {
    reads: of("R"),
    writes: here.files.filter((file) => fs.readFileSync(file, "utf8").includes(MARK)).toSorted(),
    environment: of("E").filter((name) => !OF_THE_SHELL.has(name)),
    control: lines.includes("C")
  }
})

const lies = (paths: ReadonlyArray<string>, file: string) =>
  paths.some((one) => one === Reach.ALL || file === one || file.startsWith(`${one}/`))

/** Whether the user could do as much by hand: a claim of all is all that the user can. */
const can = (file: string, mode: number) => {
  try {
    fs.accessSync(file, mode)
    return true
  } catch {
    return false
  }
}

const claimed = ({ control, environment, reads, writes }: Reach.Reach, files: ReadonlyArray<string>) => ({
  reads: files.filter((file) => lies([...reads, ...writes], file) && can(file, fs.constants.R_OK)).toSorted(),
  writes: files
    // files of the system are not tried
    .filter((file) => lies(writes, file) && !file.startsWith("/etc/") && can(file, fs.constants.W_OK))
    .toSorted(),
  environment,
  control
})

if (missing.length > 0) it.skip(`not tried, since this machine cannot: ${missing.join("; ")}`)

const live = (
  name: string,
  mechanism: Mechanism,
  body: (
    here: Place
  ) => Effect.Effect<void, unknown, Scope.Scope | Layer.Success<typeof layer> | Gateway | RunSockets.RunSockets>
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const here = yield* place
      const services = Layer.mergeAll(
        sandboxOf(mechanism),
        RunSockets.RunSockets.layer(here.host.sockets),
        Gateway.layer({ folder: here.host.gateway })
      )
      yield* Effect.provide(body(here), Layer.fresh(services))
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

const told = (kind: keyof typeof kinds, sandbox: "off" | "required", here: Place, mechanism: Mechanism) =>
  Reach.of(kinds[kind](sandbox), {
    agent: here.spec.agent,
    cwd: here.root,
    host: here.host,
    mechanism,
    socket: here.socket,
    mcp: here.spec.mcp
  })

for (const kind of ["command", "acp", "claude"] as const) {
  describe(`what is said of an agent of type ${kind}`, () => {
    live("that nothing holds: it can do all that its user can, and that is said", NONE, (here) =>
      Effect.gen(function* () {
        const reach = yield* told(kind, "off", here, NONE)
        assert.isFalse(reach.confined)
        assert.isTrue(reach.control)
        assert.deepStrictEqual(reach.keys.held, ["SOME_TOKEN"])
        const seen = yield* saw(kind, "off", here)
        assert.deepStrictEqual(claimed(reach, here.files), seen)
        assert.include(
          seen.reads,
          here.files.find((file) => file.includes(".ssh/")),
          "the canary is within its reach, as it is said"
        )
      })
    )

    for (const mechanism of held)
      live(`that ${mechanism.kind} holds is what it can do, and no more`, mechanism, (here) =>
        Effect.gen(function* () {
          const reach = yield* told(kind, "required", here, mechanism)
          assert.isNull(reach.refused)
          assert.isTrue(reach.confined)
          assert.strictEqual(reach.by, mechanism.kind)
          assert.isFalse(reach.control)
          assert.deepStrictEqual(reach.keys.held, ["SOME_TOKEN"], "passEnv hands it over")
          const seen = yield* saw(kind, "required", here)
          // the login is at its place in the run's own home
          assert.deepStrictEqual(
            { ...claimed(reach, here.files), reads: [] },
            { ...seen, reads: [] },
            "writes, variables and the socket"
          )
          const login = here.files.filter((file) => file.endsWith("/.codex/auth.json"))
          assert.deepStrictEqual(
            claimed(reach, here.files).reads.filter((file) => !login.includes(file)),
            seen.reads
          )
          assert.include(seen.reads, here.spec.mcp.agentd.argv[0], "the server that it is given")
          assert.notInclude(
            seen.reads.join(),
            "/home/.",
            "nothing of the person's home, tokens beside programs included"
          )
        })
      )
  })
}

describe("what is said of an agent that would not run", () => {
  live("is why: no sandbox, no program, no key", NONE, (here) =>
    Effect.gen(function* () {
      const of = (config: Parameters<typeof Reach.of>[0], mechanism: Mechanism = NONE) =>
        Reach.of(config, { agent: "a", cwd: here.root, host: here.host, mechanism, socket: here.socket, mcp: {} })
      assert.match((yield* told("command", "required", here, NONE)).refused ?? "", /no sandbox works.*install/)
      assert.match((yield* of(model({ keyEnv: "NOT_THERE" }))).refused ?? "", /no key/)
      for (const mechanism of held) {
        assert.match(
          (yield* of(acp({ argv: ["no-such-program"], sandbox: "on" }), mechanism)).refused ?? "",
          /no program/
        )
        const provider = { api: "openai", keyEnv: "NOT_THERE" } as const
        assert.match((yield* of(acp({ sandbox: "on", provider }), mechanism)).refused ?? "", /no key/)
      }
      assert.deepStrictEqual(fs.readdirSync(here.host.homes), [], "nothing was made")
      assert.isFalse(fs.existsSync(here.host.gateway))
    })
  )
})

describe("what is said of a model", () => {
  for (const mechanism of held)
    live(
      `whose shell ${mechanism.kind} holds: the daemon has its key, its servers are held by nothing`,
      mechanism,
      (here) =>
        Effect.gen(function* () {
          const of = (config: Parameters<typeof Reach.of>[0]) =>
            Reach.of(config, { agent: "a", cwd: here.root, host: here.host, mechanism, socket: here.socket, mcp: {} })
          const alone = yield* of(model({ provider: "openai" }))
          assert.isTrue(alone.confined)
          assert.deepStrictEqual([alone.keys.held, alone.keys.putInBy, alone.network], [[], "gateway", "none"])
          assert.deepStrictEqual(alone.writes, [here.root])
          assert.isFalse(alone.control)
          const server = { argv: ["db"], env: { DB_PASSWORD: "x" } }
          const served = yield* of(model({ provider: "openai", mcp: { db: server } }))
          assert.isFalse(served.confined)
          assert.isTrue(served.control)
          assert.deepStrictEqual(served.unheld, ["MCP server db (has DB_PASSWORD)"])
        })
    )
})
