/**
 * AgentPrograms: finds the coding agents that are installed on this machine, and checks whether each has a login or a
 * key.
 *
 * Guarantees: no program is run, and no file's content is read. A program is an executable file in the PATH. A login is
 * an existing login file of the program, or a variable that contains its key. The result names the file or variable.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import { located } from "../../board/Readiness.ts"
import type { AgentId } from "./InitChoices.ts"

type Environment = { readonly [name: string]: string | undefined }

interface Known {
  readonly id: AgentId
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
const KNOWN: ReadonlyArray<Known> = [
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

export interface Found {
  readonly id: AgentId
  /** Path of the program; null for a model behind an API. */
  readonly program: string | null
  /** The file or variable with the login; null if the user is probably not logged in. */
  readonly login: string | null
  /** The variable with the key; null if the login is a file, or if there is no login. */
  readonly key: string | null
  readonly logIn: string | null
}

const isSet = (env: Environment, name: string): boolean => (env[name] ?? "").trim() !== ""

const look = Effect.fnUntraced(function* (known: Known, env: Environment) {
  const fs = yield* FileSystem.FileSystem
  let program: string | undefined
  for (const name of known.programs) program ??= yield* located(name, "/", env["PATH"] ?? "")
  if (program === undefined) return []
  const [inHome, variable] = known.folder
  const own = env[variable] ?? ""
  const folder = NodePath.isAbsolute(own) ? own : NodePath.join(env["HOME"] ?? "/", inHome)
  const file = NodePath.join(folder, known.login)
  const isThere = yield* Effect.orElseSucceed(fs.exists(file), () => false)
  const key = isThere ? undefined : known.keys.find((name) => isSet(env, name))
  const { id, logIn } = known
  return [{ id, program, login: isThere ? file : (key ?? null), key: key ?? null, logIn } satisfies Found]
})

/** Models behind an API, which need only a key in the environment. */
const models = (env: Environment): ReadonlyArray<Found> =>
  ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
    .filter((name) => isSet(env, name))
    .slice(0, 1)
    .map((key) => ({ id: "model", program: null, login: key, key, logIn: null }))

/** The agents that were found. Those with a login come first. */
export const find = Effect.fnUntraced(function* (env: Environment) {
  const found = [...(yield* Effect.forEach(KNOWN, (known) => look(known, env))).flat(), ...models(env)]
  return [...found.filter(({ login }) => login !== null), ...found.filter(({ login }) => login === null)]
})
