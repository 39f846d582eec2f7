/** Stages: the homes in which the pages are run, what must be there before, and what stands for names in capitals. */
import { Effect } from "effect"
import type { Home } from "./Home.ts"

/** An image of one pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=",
  "base64"
)

export interface Stage {
  readonly name: string
  readonly before?: (home: Home) => Effect.Effect<unknown>
  /** Run by `npm run test:long`. */
  readonly isLong?: boolean
  /** Run one after the other in one home. */
  readonly pages: ReadonlyArray<string>
}

const claude = { type: "claude" }

/** A project in a folder of that name, with a first commit; the home goes on in it. */
const project = (home: Home, name: string, config: object | undefined) => {
  if (config !== undefined) home.write(`${name}/agentd.jsonc`, JSON.stringify(config, null, 2))
  return home.run(
    `mkdir -p ~/${name} && cd ~/${name} && git init -q && git add . && git commit -q --allow-empty -m first`
  )
}

/** Two projects, as the how-tos speak of them. */
const SHOP = {
  agents: {
    builder: { role: "builds and fixes", labels: ["web"], backend: claude },
    tester: { role: "tests", labels: ["web"], backend: claude },
    worker: { role: "does tasks", backend: claude, worktree: true },
    planner: { role: "makes plans", backend: claude }
  },
  channels: { review: { agents: ["builder", "tester"], topic: "pull request 42" } },
  goals: { planner: "planner", workers: ["worker"] },
  schedules: { nightly: { cron: "30 2 * * *", send: { agent: "builder", text: "Run all tests." } } }
}
const WEB = { agents: { tester: { labels: ["web"], backend: claude } } }

export const all: ReadonlyArray<Stage> = [
  { name: "the tutorial", pages: ["docs/tutorial.md"] },
  {
    name: "the tree",
    isLong: true,
    before: (home) =>
      Effect.gen(function* () {
        yield* project(home, "shop", { agents: { builder: { backend: claude } } })
        yield* home.run("agentd start && agentd send builder hello && agentd wait builder")
      }),
    pages: ["docs/architecture.md"]
  },
  { name: "the install", isLong: true, pages: ["docs/install.md"] },
  {
    name: "the first page",
    before: (home) => Effect.andThen(project(home, "your-project", undefined), home.run("cd ~")),
    pages: ["README.md"]
  },
  {
    name: "notifications",
    isLong: true,
    before: (home) =>
      Effect.gen(function* () {
        const phone = { type: "command", argv: ["/bin/sh", "-c", "cat > ~/told.json"] }
        home.write(".config/agentd/config.jsonc", JSON.stringify({ notify: { channels: { phone } } }))
        yield* project(home, "shop", { agents: { builder: { backend: claude } } })
        yield* home.run("agentd start")
      }),
    pages: ["docs/notifications.md"]
  },
  {
    name: "the how-tos",
    isLong: true,
    before: (home) =>
      Effect.gen(function* () {
        home.write("shop/a.png", PNG)
        yield* project(home, "web", WEB)
        yield* home.run("agentd start")
        yield* project(home, "shop", SHOP)
        yield* home.run("agentd start")
      }),
    pages: [
      "docs/agents.md",
      "docs/approvals.md",
      "docs/budgets.md",
      "docs/channels.md",
      "docs/goals.md",
      "docs/schedules.md",
      "docs/board.md",
      "docs/page.md",
      "docs/hosts.md",
      "docs/reading.md",
      "docs/projects.md",
      "docs/troubleshooting.md",
      "docs/damage.md",
      "docs/keeping.md"
    ]
  }
]

/** Blocks that are not run here, by page and first line, and why. */
export const NOT_RUN: { readonly [block: string]: string } = {
  "README.md: npm ci && npm run demo": "installs packages, and runs every test",
  "README.md: scripts/install":
    "installs for all of the user's shells; test/world/packaging does it in a prefix of its own",
  "docs/install.md: npm i -g --prefix ~/.local ./agentd-0.1.0.tgz": "needs a package; test/world/packaging makes one",
  "docs/install.md: npm i -g --prefix ~/.local --omit=optional ./agentd-0.1.0.tgz":
    "needs a package; test/world/packaging makes one",
  "docs/install.md: tar -xzOf agentd-0.1.0.tgz package/scripts/install | sh -s agentd-0.1.0.tgz":
    "needs a package; test/world/packaging makes one",
  "docs/install.md: scripts/install": "installs for all of the user's shells; test/world/packaging does it elsewhere",
  "docs/install.md: docker build -t agentd .": "needs a daemon of Docker; never built",
  "docs/install.md: agentd uninstall --dry-run": "removes all; the page on keeping a store is run",
  "docs/board.md: agentd ps --watch --bell": "goes on in a terminal; focus needs a pane of tmux",
  "docs/hosts.md: agentd host add cellar ssh://ada@cellar.local":
    "needs another machine; test/world/e2e/Hosts has a real sshd",
  "docs/contributing.md: npm ci && npm test": "installs packages, and runs every test",
  "docs/contributing.md: npm run test:unit": "runs for minutes",
  "docs/contributing.md: npx vitest run --maxWorkers=1 test/world/cli/Docs.test.ts":
    "is one of the tests that run here",
  "docs/service.md: agentd service install --linger": "needs systemd, and root; test/world/systemd does it",
  "docs/service.md: agentd service install --credential smtp=/home/ada/smtp-password --credential ANTHROPIC_API_KEY=/home/ada/key":
    "needs systemd; test/world/systemd does it",
  "docs/service.md: sudo -u agents agentd --state /var/lib/agentd ps":
    "needs systemd, and root; test/world/systemd does it",
  "docs/service.md: journalctl --user -f -o json AGENTD_EVENT=agent.failed":
    "needs a journal; test/world/systemd reads one",
  "docs/upgrading.md: npm ci && npm pack":
    "makes and installs packages; test/world/packaging does it in a prefix of its own"
}

/** Commands that go on until they are interrupted. */
export const STAYS = /^agentd (log --text .*-f\b|log --text -f|attach|ps --watch|channel join|up)/

/** The exit code that a command has to end with: the page may say another than 0. */
export const codeOf = (text: string): number => {
  const said = /\(exit code (\d+)\)/.exec(text)?.[1]
  return said === undefined ? (STAYS.test(text) ? 130 : 0) : Number(said)
}

interface Waiting {
  readonly rows: ReadonlyArray<{ readonly commands: ReadonlyArray<{ readonly command: string }> }>
}

/** The first call for which this verb is offered; where there is none, the builder is made to ask. */
const callFor = (home: Home, verb: string): Effect.Effect<string> =>
  Effect.gen(function* () {
    const look = Effect.map(home.run("agentd waiting --json"), ({ out }) => {
      const { rows } = JSON.parse(out) as Waiting
      const commands = rows.flatMap(({ commands }) => commands.map(({ command }) => command))
      return commands.map((command) => new RegExp(`^agentd ${verb} (\\S+)`).exec(command)?.[1]).find(Boolean)
    })
    const found = yield* look
    if (found !== undefined) return found
    yield* home.run(`agentd send builder "${verb === "answer" ? "Which database" : "Ask me before you go on."}"`)
    yield* home.run("agentd wait builder --for needs-you")
    return yield* callFor(home, verb)
  })

/** The text with what its names in capitals stand for. */
export const filled = (home: Home, text: string): Effect.Effect<string> =>
  Effect.gen(function* () {
    if (text.startsWith("agentd interrupt ")) {
      yield* home.run(`agentd send builder 'do: [{"hold":true}]' && agentd wait builder --for working`)
    }
    const verb = /^agentd (\w+) CALL\b/.exec(text)?.[1]
    const called = verb === undefined ? text : text.replace("CALL", yield* callFor(home, verb))
    if (!/ HASH\b/.test(called)) return called
    const { err, out } = yield* home.run(called.replace(/ HASH.*/, ""))
    const hash = /approve \S+ ([0-9a-f]{6,})/.exec(out + err)?.[1]
    if (hash === undefined) throw new Error(`${called}: no hash is shown\n${out}${err}`)
    return called.replace("HASH", hash)
  })
