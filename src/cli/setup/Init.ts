/**
 * `agentd init`: finds the installed coding agents, asks the necessary questions, and writes a working agentd.jsonc.
 *
 * Guarantees: an existing file is not changed. Without a terminal, or with --yes, no questions are asked, and the
 * builder is the first agent with a login, whose calls wait for approval. The command runs no agent and reads no key.
 */
import { Effect, FileSystem } from "effect"
import { Prompt } from "effect/cli"
import * as NodePath from "node:path"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"
import { CONFIG_NAME } from "../../config/Places.ts"
import * as UserGit from "../../runs/git/UserGit.ts"
import { Sandbox } from "../../runs/sandbox/Sandbox.ts"
import { find, type Found } from "./AgentPrograms.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { type AgentId, type Role, ROLES } from "./InitChoices.ts"
import { isConfinable, textOf, TITLES } from "./InitText.ts"
import { proposalOf, wordsOf } from "./InitTree.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"

interface Input {
  readonly agent: AgentId | undefined
  readonly roles: ReadonlyArray<Role>
  readonly yes: boolean
}

/** The agent for which the file is written if no agent was found: the most common one. */
const NONE: Found = { id: "claude", program: null, login: null, key: null, logIn: "claude, then /login in it" }

const nameOf = ({ id, program }: Found): string => (id === "model" ? "a model behind its API" : (program ?? id))

const loginOf = ({ id, login }: Found): string =>
  login === null ? "probably not logged in" : id === "model" ? `with ${login}` : `logged in by ${login}`

/** The agent to use: the one in --agent, the only one that was found, or the one that the user selects. */
const chosen = Effect.fnUntraced(function* (found: ReadonlyArray<Found>, named: AgentId | undefined, asks: boolean) {
  if (named !== undefined) {
    const one = found.find(({ id }) => id === named)
    if (one !== undefined) return one
    const others = found.map(({ id }) => id)
    return yield* new VerbFailed({
      message: `There is no ${named} here: ${named === "model" ? "neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set" : "its program is not in the PATH"}. Nothing was written.`,
      remedy:
        others.length === 0
          ? "Install it first."
          : `Install it first, or use an agent that is installed: agentd init --agent ${others[0]}`,
      exitCode: ExitCode.failed
    })
  }
  if (!asks || found.length < 2) return found[0]
  return yield* Prompt.run(
    Prompt.Select<Found>({
      message: "Which agent do you want to use in this project?",
      choices: found.map((one) => ({ value: one, title: `${one.id}: ${nameOf(one)}, ${loginOf(one)}` }))
    })
  )
})

const rolesOf = Effect.fnUntraced(function* (given: ReadonlyArray<Role>, asks: boolean) {
  if (given.length > 0) return ROLES.filter((role) => given.includes(role))
  if (!asks) return ["builder"] as const
  const picked = yield* Prompt.run(
    Prompt.MultiSelect<Role>({
      message: "Which roles do you want? (space selects)",
      min: 1,
      choices: ROLES.map((role) => ({ value: role, title: `${role}: ${TITLES[role]}`, selected: role === "builder" }))
    })
  )
  return ROLES.filter((role) => picked.includes(role))
})

/** Asks whether the builder's calls that stay in its sandbox run unasked, if this machine has a sandbox for it. */
const insideOf = Effect.fnUntraced(function* (one: Found, roles: ReadonlyArray<Role>, asks: boolean) {
  if (!asks || !isConfinable(one) || !roles.includes("builder")) return false
  const { kind } = yield* Effect.flatMap(Sandbox, ({ mechanism }) => mechanism)
  if (kind === "none") return false
  return yield* Prompt.run(
    Prompt.Confirm({
      message:
        "Run the builder in a sandbox, in which it can change the project's files and reaches only its model, and let it do what stays there without asking you?",
      initial: false
    })
  )
})

/** True if the folder is in a git repository with a commit. Only then can agents get their own repositories. */
const isRepository = UserGit.run(".", "rev-parse", "--verify", "--quiet", "HEAD").pipe(
  Effect.timeout("10 seconds"),
  Effect.map(({ code }) => code === 0),
  Effect.orElseSucceed(() => false)
)

const exists = (path: string) =>
  new VerbFailed({
    message: `${path} already exists, and was not changed.`,
    remedy: "Edit the file, or move it away first.",
    exitCode: ExitCode.failed
  })

/** Text of the file that is written if no agent was found and no choices were made. */
export const SAMPLE = textOf({ found: NONE, roles: ["builder"], isRepository: false })

const written = Effect.fnUntraced(function* (path: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  // "wx": if two commands run at the same time, only one of them can create the file
  yield* fs.writeFileString(path, text, { flag: "wx" }).pipe(
    Effect.mapError((error) =>
      error.reason._tag === "AlreadyExists"
        ? exists(path)
        : new VerbFailed({
            message: `${path} cannot be written: ${troubleOf(error)}`,
            remedy: remedyOf(error, "Run the command in a folder in which you can write."),
            exitCode: ExitCode.failed
          })
    )
  )
})

const next = (agent: Found | undefined, roles: ReadonlyArray<Role>): ReadonlyArray<string> => {
  const [first = "builder"] = roles
  const send = `agentd start, then: agentd send ${first} "What is this project? Two sentences." and: agentd attach ${first}`
  if (agent === undefined)
    return [
      "Install an agent (npm i -g @anthropic-ai/claude-code), then: agentd start. To try agentd without one: agentd demo"
    ]
  return [
    agent.login === null && agent.logIn !== null ? `Log in first: ${agent.logIn}. Then: ${send}` : `Next: ${send}`
  ]
}

export const run = Effect.fnUntraced(function* ({ agent, roles: given, yes }: Input) {
  const { interactive, json } = yield* Invocation
  const { env } = yield* Entry
  const fs = yield* FileSystem.FileSystem
  const path = NodePath.resolve(CONFIG_NAME)
  // check this first, so that no question is asked in vain if the file exists
  if (yield* Effect.orElseSucceed(fs.exists(path), () => false)) return yield* exists(path)
  const asks = interactive && !yes && !json
  const found = yield* find(env)
  const one = yield* chosen(found, agent, asks)
  const roles = yield* rolesOf(given, asks)
  const inside = yield* Effect.provide(insideOf(one ?? NONE, roles, asks), Sandbox.layer(env))
  const hasTree = roles.includes("builder") && (yield* isRepository)
  const names = hasTree ? yield* Effect.orElseSucceed(fs.readDirectory("."), () => []) : []
  // the shell of a model agent has no network, either
  const tree = proposalOf(names, inside || one?.id === "model")
  yield* written(path, textOf({ found: one ?? NONE, roles, inside, isRepository: hasTree, tree }))
  const prepared = wordsOf(tree)
  yield* print({ path, agent: one?.id ?? null, roles, found, worktree: tree }, () => [
    ...found.map((each) => `Found ${each.id}: ${nameOf(each)}, ${loginOf(each)}.`),
    ...(found.length === 0
      ? ["No agent was found: neither claude, codex, opencode or gemini in the PATH, nor the key of a model."]
      : []),
    `Wrote ${path}: ${roles.join(", ")}, by ${(one ?? NONE).id}. You can edit the file. To check what is missing: agentd doctor`,
    ...(prepared === undefined ? [] : [prepared]),
    ...(inside
      ? ["What stays in the builder's sandbox runs without your approval. All else waits: agentd approve"]
      : []),
    ...next(one, roles),
    "To let your own Claude Code see your agents and send them messages: claude mcp add agentd -- agentd mcp"
  ])
})
