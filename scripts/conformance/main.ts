/**
 * conformance: runs `agentd conformance` on the newest ACP agents that npm had when this list was last changed, and
 * compares what they fail with the table in docs/own-agent.md. Run by hand, outside CI: it installs the agents from npm.
 *
 * `main.ts [AGENT…]`: default is all. The agents talk to a model on 127.0.0.1, with a home folder of their own. Ends
 * with 0 if each agent's row is in the table, and with 1 if one is not.
 */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { ASKS, start } from "./Models.ts"

interface Agent {
  readonly package: string
  readonly version: string
  readonly argv: readonly [program: string, ...Array<string>]
  /** Files of the home folder that the agent needs, by their path. */
  readonly files: (url: string) => { readonly [path: string]: unknown }
  readonly env: (url: string) => { readonly [name: string]: string }
}

const codexConfig = (url: string) => `model = "stub"
model_provider = "stub"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "Stub"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
`

const opencodeConfig = (url: string) => ({
  autoupdate: false,
  share: "disabled",
  model: "stub/stub",
  small_model: "stub/stub",
  permission: { bash: "ask", edit: "ask" },
  provider: {
    stub: {
      npm: "@ai-sdk/openai-compatible",
      name: "Stub",
      options: { baseURL: `${url}/v1`, apiKey: "dummy" },
      models: { stub: { name: "Stub", tool_call: true, limit: { context: 100_000, output: 8000 } } }
    }
  }
})

const AGENTS: ReadonlyArray<Agent> = [
  {
    package: "@agentclientprotocol/claude-agent-acp",
    version: "0.101.0",
    argv: ["claude-agent-acp"],
    files: () => ({ ".claude.json": { hasCompletedOnboarding: true } }),
    env: (url) => ({
      ANTHROPIC_API_KEY: "dummy",
      ANTHROPIC_BASE_URL: url,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1"
    })
  },
  {
    package: "@agentclientprotocol/codex-acp",
    version: "2.6.0",
    argv: ["codex-acp"],
    files: (url) => ({ ".codex/config.toml": codexConfig(url) }),
    env: () => ({ STUB_KEY: "dummy" })
  },
  {
    package: "@github/copilot",
    version: "1.0.102",
    argv: ["copilot", "--acp"],
    files: () => ({}),
    env: (url) => ({
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: "dummy",
      COPILOT_MODEL: "stub",
      COPILOT_OFFLINE: "true",
      COPILOT_AUTO_UPDATE: "false"
    })
  },
  {
    package: "@google/gemini-cli",
    version: "0.61.0",
    argv: ["gemini", "--acp"],
    files: () => ({
      ".gemini/settings.json": {
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        model: { name: "gemini-2.5-flash" }
      }
    }),
    env: (url) => ({ GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: "true" })
  },
  {
    package: "opencode-ai",
    version: "1.18.33",
    argv: ["opencode", "acp"],
    files: (url) => ({ ".config/opencode/opencode.json": opencodeConfig(url) }),
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" })
  },
  {
    package: "@qwen-code/qwen-code",
    version: "0.24.4",
    argv: ["qwen", "--acp"],
    files: () => ({
      ".qwen/settings.json": {
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false }
      }
    }),
    env: (url) => ({ OPENAI_API_KEY: "dummy", OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "stub" })
  }
]

interface Told {
  readonly checks: ReadonlyArray<{ readonly check: string; readonly result: string; readonly why: string }>
}

const root = join(import.meta.dirname, "../..")

const outputOf = (argv: ReadonlyArray<string>, cwd: string, env: NodeJS.ProcessEnv) =>
  new Promise<string>((told, failed) => {
    const child = spawn(join(root, "scripts/agentd"), argv, { cwd, env, stdio: ["ignore", "pipe", "inherit"] })
    let out = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
    child.on("error", failed).on("close", () => told(out))
  })

/** Installs the agent into the folder, runs the checks, and returns the agent's row of the table. */
const rowOf = async ({ argv: [program, ...args], env, files, package: name, version }: Agent, folder: string) => {
  const [home, project] = [join(folder, "home"), join(folder, "project")]
  mkdirSync(project)
  const model = await start()
  for (const [path, content] of Object.entries(files(model.url))) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), typeof content === "string" ? content : JSON.stringify(content))
  }
  mkdirSync(home, { recursive: true })
  execFileSync("npm", ["i", "--silent", "--no-audit", "--no-fund", "--prefix", folder, `${name}@${version}`])
  const own = {
    PATH: process.env["PATH"],
    HOME: home,
    NO_PROXY: "127.0.0.1",
    DISABLE_TELEMETRY: "1",
    ...env(model.url)
  }
  const command = ["--", join(folder, "node_modules/.bin", program), ...args]
  const out = await outputOf(["conformance", "--json", "--timeout", "3m", "--asks", ASKS, ...command], project, own)
  model.stop()
  const { checks } = JSON.parse(out) as Told
  for (const { check, result, why } of checks) if (result !== "ok") console.log(`  ${result}  ${check}: ${why}`)
  const those = (result: string) => {
    const found = checks.filter((one) => one.result === result).map(({ check }) => check)
    return found.length === 0 ? "none" : found.join("; ")
  }
  return `| ${name} | ${version} | ${those("failed")} | ${those("skipped")} |`
}

const wanted = process.argv.slice(2)
const page = readFileSync(join(root, "docs/own-agent.md"), "utf8")
for (const agent of AGENTS.filter(({ argv }) => wanted.length === 0 || wanted.includes(argv[0]))) {
  const folder = mkdtempSync(join(tmpdir(), "agentd-conformance-"))
  try {
    const row = await rowOf(agent, folder)
    const isListed = page.includes(`${row}\n`)
    console.log(`${isListed ? "as listed" : "NOT LISTED"}: ${row}`)
    if (!isListed) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
