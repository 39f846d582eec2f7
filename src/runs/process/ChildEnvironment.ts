/**
 * ChildEnvironment: which of the daemon's variables a program is given.
 *
 * Guarantees: an allow-list. A program gets what any program needs (paths, language, time zone,
 * proxies, certificates), what its own kind reads (a coding agent its own settings and its own
 * provider's key), and what the config names in `passEnv`. Nothing else of the daemon's
 * environment reaches it: no other key, no socket of ssh-agent, D-Bus or systemd, no variable
 * that agentd sets. What a config sets itself, by `env`, is set as it stands.
 */
import { basename } from "node:path"
import type { Environment } from "./ChildProcess.ts"

/** Variables that programs need to be found, to speak, and to find the tool chains of a person. */
const NEEDED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|LOCALE_ARCHIVE|TZ|TZDIR|TERM|COLORTERM|NO_COLOR|TMPDIR|XDG_(CONFIG|CACHE|DATA|STATE|RUNTIME)_(HOME|DIRS?)|(NIX_)?SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(JAVA|CARGO|RUSTUP|GRADLE_USER|MAVEN|M2|PNPM|NVM|BUN|DENO|PYENV|RBENV|ASDF_DATA|SDKMAN)_(HOME|DIR|ROOT|INSTALL)|GO(PATH|ROOT|CACHE|MODCACHE)|VIRTUAL_ENV|CONDA_PREFIX|NIX_PROFILES)$/
/** Variables that tell of the machine, and of nobody's files. */
const PLAIN = /^(?:PATH|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR)$/
/** The way to the network: an address may hold a password. */
const PROXIES = /^(https?|all|no)_proxy$/i

/** Variables by which Claude Code tells its own children about itself: a run is no part of that session. */
const THEIRS = /^CLAUDE_CODE_(CHILD_\w+|SESSION_ID|ENTRYPOINT|MESSAGING_SOCKET|SSE_PORT)$/

const CLAUDE =
  /^(ANTHROPIC_\w+|CLAUDE_CONFIG_DIR|CLAUDE_CODE_\w+|DISABLE_(TELEMETRY|AUTOUPDATER|ERROR_REPORTING)|API_TIMEOUT_MS)$/
const CODEX = /^(CODEX_\w+|OPENAI_(API_KEY|BASE_URL))$/
const GEMINI = /^(GEMINI_\w+|GOOGLE_(API_KEY|GEMINI_BASE_URL|CLOUD_PROJECT|CLOUD_LOCATION))$/

/** The variables of a coding agent's own, by the name of its program. */
const OWN: ReadonlyMap<string, RegExp> = new Map([
  ["claude", CLAUDE],
  ["claude-code-acp", CLAUDE],
  ["claude-agent-acp", CLAUDE],
  ["codex", CODEX],
  ["codex-acp", CODEX],
  ["gemini", GEMINI],
  ["opencode", /^OPENCODE_\w+$/],
  ["qwen", /^(QWEN_\w+|DASHSCOPE_API_KEY|OPENAI_(API_KEY|BASE_URL|MODEL))$/]
])

/** A program, as far as its environment is concerned. */
export interface Wants {
  /** The program's name or path; left out, it is none of the known coding agents. */
  readonly program?: string | undefined
  /** Names that the config hands over. */
  readonly passEnv?: ReadonlyArray<string> | undefined
  /** True where it has no network: it is not told the way there. */
  readonly offline?: boolean
}

/** The part of the daemon's environment that a program is given. */
export const given = (
  environment: Environment,
  { offline = false, passEnv = [], program }: Wants = {}
): Environment => {
  const own = program === undefined ? undefined : OWN.get(basename(program))
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) =>
        value !== undefined &&
        !name.startsWith("AGENTD_") &&
        (NEEDED.test(name) ||
          (!offline && PROXIES.test(name)) ||
          passEnv.includes(name) ||
          (own?.test(name) === true && !THEIRS.test(name)))
    )
  )
}

/** The variables of a confined program: how to find programs, and how to speak. */
export const plain = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => PLAIN.test(name)))

/** The variables that the config hands over by name: they are meant for whoever the config is about, secrets too. */
export const named = (environment: Environment, passEnv: ReadonlyArray<string> = []): Environment =>
  Object.fromEntries(
    Object.entries(environment).filter(([name]) => passEnv.includes(name) && !name.startsWith("AGENTD_"))
  )
