/**
 * Logins: finds the login or the key of a known coding agent.
 *
 * Guarantees: no program is run, and no file's content is read. A login is an existing login file of the program, or a
 * variable that contains its key. `init`, `doctor` and `start` decide by this module alone.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"

export type Environment = { readonly [name: string]: string | undefined }

export interface Known {
  readonly id: "claude" | "codex" | "opencode" | "gemini"
  /** Possible file names of the program. The first one that exists is used. */
  readonly programs: ReadonlyArray<string>
  /** The program's settings folder: a path in the home directory, or the value of the variable if that is set. */
  readonly folder: readonly [inHome: string, variable: string]
  /** Path of the login file in the settings folder. */
  readonly login: string
  readonly keys: ReadonlyArray<string>
  readonly logIn: string
}

/** The known coding agents, in the order in which they are offered to the user. */
export const KNOWN: ReadonlyArray<Known> = [
  {
    id: "claude",
    programs: ["claude"],
    folder: [".claude", "CLAUDE_CONFIG_DIR"],
    login: ".credentials.json",
    keys: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    logIn: "claude, then /login in it"
  },
  {
    id: "codex",
    programs: ["codex", "codex-acp"],
    folder: [".codex", "CODEX_HOME"],
    login: "auth.json",
    keys: ["OPENAI_API_KEY", "CODEX_API_KEY"],
    logIn: "codex login"
  },
  {
    id: "opencode",
    programs: ["opencode"],
    folder: [".local/share", "XDG_DATA_HOME"],
    login: "opencode/auth.json",
    keys: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    logIn: "opencode auth login"
  },
  {
    id: "gemini",
    programs: ["gemini"],
    folder: [".gemini", "GEMINI_CONFIG_DIR"],
    login: "oauth_creds.json",
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    logIn: "gemini, then /auth in it"
  }
]

export interface Login {
  /** The file or variable with the login; null if the user is probably not logged in. */
  readonly login: string | null
  /** The variable with the key; null if the login is a file, or if there is no login. */
  readonly key: string | null
}

/** `valueOf`: the value of a variable of the program's environment. */
export const loginOf = Effect.fnUntraced(function* (
  { folder, keys, login }: Known,
  valueOf: (name: string) => string | undefined
) {
  const fs = yield* FileSystem.FileSystem
  const [inHome, variable] = folder
  const own = valueOf(variable) ?? ""
  const file = NodePath.join(NodePath.isAbsolute(own) ? own : NodePath.join(valueOf("HOME") ?? "/", inHome), login)
  if (yield* Effect.orElseSucceed(fs.exists(file), () => false)) return { login: file, key: null } satisfies Login
  const key = keys.find((name) => (valueOf(name) ?? "").trim() !== "") ?? null
  return { login: key, key } satisfies Login
})
