/**
 * ChildEnvironment: selects which of the daemon's environment variables a program gets.
 *
 * Guarantees: Only listed variables are passed. Every program gets the basic ones (paths, language, time zone, proxies,
 * certificates). A known coding agent also gets the variables for its own settings and the key of its provider.
 * Variables that the config names in `passEnv` are passed, too. No other variable of the daemon is passed: no other
 * key, no socket of ssh-agent, D-Bus or systemd, no variable that agentd sets. Variables that a config sets itself,
 * with `env`, are passed unchanged.
 */
import { basename } from "node:path"
import type { Environment } from "./ChildProcess.ts"

/** Variables that programs need to find the user's tools, and for their output and language. */
const NEEDED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|LOCALE_ARCHIVE|TZ|TZDIR|TERM|COLORTERM|NO_COLOR|TMPDIR|XDG_(CONFIG|CACHE|DATA|STATE|RUNTIME)_(HOME|DIRS?)|(NIX_)?SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(JAVA|CARGO|RUSTUP|GRADLE_USER|MAVEN|M2|PNPM|NVM|BUN|DENO|PYENV|RBENV|ASDF_DATA|SDKMAN)_(HOME|DIR|ROOT|INSTALL)|GO(PATH|ROOT|CACHE|MODCACHE)|VIRTUAL_ENV|CONDA_PREFIX|NIX_PROFILES)$/
/** Variables that describe the machine and contain no paths to the user's files. */
const PLAIN = /^(?:PATH|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR)$/
/** Proxy variables. A proxy's address can contain a password. */
const PROXIES = /^(https?|all|no)_proxy$/i

/**
 * Variables that Claude Code sets for its own child processes. They are removed, because a run is not part of that
 * session.
 */
const THEIRS = /^CLAUDE_CODE_(CHILD_\w+|SESSION_ID|ENTRYPOINT|MESSAGING_SOCKET|SSE_PORT)$/

const CLAUDE =
  /^(ANTHROPIC_\w+|CLAUDE_CONFIG_DIR|CLAUDE_CODE_\w+|DISABLE_(TELEMETRY|AUTOUPDATER|ERROR_REPORTING)|API_TIMEOUT_MS)$/
const CODEX = /^(CODEX_\w+|OPENAI_(API_KEY|BASE_URL))$/
const GEMINI = /^(GEMINI_\w+|GOOGLE_(API_KEY|GEMINI_BASE_URL|CLOUD_PROJECT|CLOUD_LOCATION))$/

/** Variables of known coding agents, by the name of their program. */
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

export interface Wants {
  /** The program's name or path. If omitted, the program is treated as unknown. */
  readonly program?: string | undefined
  /** Names of variables that the config passes on to the program. */
  readonly passEnv?: ReadonlyArray<string> | undefined
  /** True if the program has no network: it gets no proxy variables. */
  readonly offline?: boolean
}

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

/** Selects the variables for a confined program: PATH, language, time zone and terminal. */
export const plain = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => PLAIN.test(name)))

/**
 * Selects the variables that the config names. They may contain secrets, because the author of the config wants the
 * program to have them.
 */
export const named = (environment: Environment, passEnv: ReadonlyArray<string> = []): Environment =>
  Object.fromEntries(
    Object.entries(environment).filter(([name]) => passEnv.includes(name) && !name.startsWith("AGENTD_"))
  )
