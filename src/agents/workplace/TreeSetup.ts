/**
 * TreeSetup: prepares an agent's work tree so that its project runs there: caches, the set-up command, and the tear-down
 * command.
 *
 * Guarantees: The commands are confined as the agent's own runs, and get no key. A script of the project is the text
 * that the user trusted, never another version in the agent's branch. A set-up runs once for each tree and each text.
 * That is noted only after its success, and outside the tree. If it fails, hangs or is interrupted, its processes are
 * ended, and the agent does not start.
 */
import { Clock, Duration, Effect, FileSystem, Option, Schema } from "effect"
import { createHash } from "node:crypto"
import * as path from "node:path"
import type { AgentConfig, WorktreeConfig } from "../../config/AgentConfig.ts"
import { quoted } from "../../config/ShellWord.ts"
import { oneLine } from "../../domain/CallSummary.ts"
import * as Ids from "../../domain/Ids.ts"
import type { TreeMount } from "../../runs/Backend.ts"
import type { ConfinedCommand, Runner } from "../../runs/ConfinedCommand.ts"
import { Confine } from "../../runs/git/GitStore.ts"
import * as ChildEnvironment from "../../runs/process/ChildEnvironment.ts"
import { homeIn } from "../../runs/sandbox/ConfinedSpawn.ts"
import * as TreePorts from "./TreePorts.ts"
import * as Worktree from "./Worktree.ts"

export interface Tree {
  readonly spec: Worktree.WorktreeSpec
  readonly config: AgentConfig
  readonly settings: WorktreeConfig
  /** The project's root in the tree. Absolute. */
  readonly cwd: string
  readonly state: string
  /** Name of the project's folder in folders of the state directory. */
  readonly project: string
  /** Text of each script and include file that the user trusted, by its path relative to the project's root. */
  readonly trusted: ReadonlyMap<string, string>
  readonly ports: TreePorts.PortBlock | undefined
  readonly commands: Runner
  /** Shows what is being done, until the effect ends. */
  readonly showing: <A, E, R>(text: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const Stamp = Schema.fromJsonString(
  Schema.Struct({
    tree: Schema.String,
    files: Schema.optionalKey(Schema.String),
    links: Schema.optionalKey(Schema.Array(Schema.String)),
    /** All files and folders that it was to get as copies, relative to the project's root. */
    wanted: Schema.optionalKey(Schema.Array(Schema.String)),
    /** All that was copied to the tree, relative to the project's root. */
    copied: Schema.optionalKey(Schema.Array(Schema.String)),
    setup: Schema.optionalKey(Schema.String)
  })
)
type Stamp = typeof Stamp.Type

const stampFile = ({ project, spec, state }: Tree) => path.join(state, "setups", project, `${spec.agent}.json`)

const hashOf = (...parts: ReadonlyArray<string>) =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)

const failed = (message: string, remedy: string) =>
  Effect.fail(new Worktree.WorktreeError({ reason: "SetupFailed", message, remedy }))

const writing = <A, R>(effect: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.catch(effect, ({ message }) =>
    failed(`agentd could not prepare the work tree: ${message}`, "free disk space, and check the state directory")
  )

/** Identifies the folder, so that a tree that was removed and made again counts as new. */
const idOf = Effect.fnUntraced(function* ({ spec }: Tree) {
  const files = yield* FileSystem.FileSystem
  const info = yield* writing(files.stat(spec.folder))
  return `${Option.getOrElse(info.ino, () => 0)}:${Option.getOrUndefined(info.birthtime)?.getTime() ?? 0}`
})

/** Reads which steps were done in this tree before. */
export const stampOf = Effect.fnUntraced(function* (
  tree: Tree
): Effect.fn.Return<Stamp, Worktree.WorktreeError, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const id = yield* idOf(tree)
  const text = yield* Effect.option(files.readFileString(stampFile(tree)))
  const known = yield* Effect.option(Schema.decodeUnknownEffect(Stamp)(Option.getOrElse(text, () => "")))
  return Option.isSome(known) && known.value.tree === id ? known.value : { tree: id }
})

export const stamp = Effect.fnUntraced(function* (tree: Tree, done: Stamp) {
  const files = yield* FileSystem.FileSystem
  const file = stampFile(tree)
  yield* writing(
    Effect.andThen(
      files.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 }),
      files.writeFileString(file, JSON.stringify(done))
    )
  )
})

/** The agent's own confinement, for its commands in the tree. */
const confinementOf = ({ config: { backend } }: Pick<Tree, "config">): Pick<ConfinedCommand, "network" | "sandbox"> => {
  if (!("sandbox" in backend) || !("network" in backend)) return { sandbox: "off", network: true }
  const { network, sandbox } = backend
  return { network, sandbox: sandbox === "off" || sandbox === "required" ? sandbox : "preferred" }
}

const needed = ({ backend }: AgentConfig) => "sandbox" in backend && backend.sandbox !== "off"

/** Whether all runs of the agent, or at least those of its own backend, are confined on this machine. */
export const confined = Effect.fnUntraced(function* ({ config, cwd }: Pick<Tree, "config" | "cwd">) {
  if ((yield* (yield* Confine)(cwd)) === undefined) return { own: false, all: false }
  // file tools of a model agent see no mounts
  const all = [config.backend, ...config.fallback].every(
    (backend) => backend.type !== "model" && "sandbox" in backend && backend.sandbox !== "off"
  )
  return { own: needed(config), all }
})

/** Finds a link in the way from the tree to a file below it. */
const linkIn = Effect.fnUntraced(function* (cwd: string, name: string) {
  const files = yield* FileSystem.FileSystem
  let at = cwd
  for (const part of path.normalize(name).split("/")) {
    at = path.join(at, part)
    if (Option.isSome(yield* Effect.option(files.readLink(at)))) return at
  }
  return undefined
})

interface Cache {
  readonly source: string
  readonly name: string
}

export const cachesOf = ({ project, settings, spec, state }: Pick<Tree, "project" | "settings" | "spec" | "state">) =>
  settings.cache.map((one): Cache => {
    const { path: name, shared } = typeof one === "string" ? { path: one, shared: false } : one
    // no agent's name begins with a dot
    return { name, source: path.join(state, "caches", project, shared ? ".shared" : spec.agent, name) }
  })

/** Removes a link to a cache that agentd has made; false if something else is there. */
const unlinked = Effect.fnUntraced(function* ({ cwd }: Pick<Tree, "cwd">, { name, source }: Cache) {
  const files = yield* FileSystem.FileSystem
  const to = yield* Effect.option(files.readLink(path.join(cwd, name)))
  if (Option.isNone(to) || to.value !== source) return false
  yield* writing(files.remove(path.join(cwd, name)))
  return true
})

/** Removes the links to caches, which are no work of the agent. */
export const unlink = (tree: Tree) =>
  Effect.forEach(cachesOf(tree), (cache) => unlinked(tree, cache), { discard: true })

/**
 * Tells git in the tree to ignore what agentd has put there: it is no work of the agent. `names`: paths relative to the
 * project's root.
 */
export const ignoring = Effect.fnUntraced(function* ({ cwd, spec }: Tree, names: ReadonlyArray<string>) {
  const files = yield* FileSystem.FileSystem
  if ((yield* linkIn(spec.folder, ".git/info/exclude")) !== undefined) return
  const exclude = path.join(spec.folder, ".git/info/exclude")
  const text = yield* Effect.orElseSucceed(files.readFileString(exclude), () => "")
  const known = new Set(text.split("\n"))
  const lines = names
    .map((name) => `/${path.join(path.relative(spec.folder, cwd), name).replaceAll(/[*?[\\]/g, "\\$&")}`)
    .filter((line) => !known.has(line))
  if (lines.length === 0) return
  yield* writing(files.makeDirectory(path.dirname(exclude), { recursive: true }))
  yield* writing(
    files.writeFileString(exclude, `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${lines.join("\n")}\n`)
  )
})

/**
 * Makes a cache visible in the tree: by a mount if the agent is confined, else by a link. A folder in the tree that has
 * contents of its own stays as it is, and the user is told.
 */
const place = Effect.fnUntraced(function* (tree: Tree, cache: Cache, isHeld: boolean) {
  const files = yield* FileSystem.FileSystem
  const { name, source } = cache
  const target = path.join(tree.cwd, name)
  // an earlier config may have given the agent the folder above
  const all = path.join(tree.state, "caches", tree.project)
  const led = yield* linkIn(all, path.relative(all, source))
  if (led !== undefined)
    return yield* failed(`the cache ${name} leads through the link ${led}`, "check where it leads, and remove it")
  yield* writing(files.makeDirectory(source, { recursive: true, mode: 0o700 }))
  yield* unlinked(tree, cache)
  const link = yield* linkIn(tree.cwd, name)
  if (link !== undefined)
    return yield* failed(
      `the cache ${name} would lie behind the link ${link}`,
      "check where it leads, and remove it, or name another folder in worktree.cache"
    )
  const there = yield* Effect.option(files.readDirectory(target))
  if (Option.getOrElse(there, () => []).length > 0) {
    yield* Worktree.told(tree.spec, `${name} is not cached: the folder in its work tree has contents of its own`, false)
    return []
  }
  if (isHeld) return [{ source, target, writable: true }]
  if (Option.isSome(there)) yield* writing(files.remove(target, { recursive: true }))
  yield* writing(files.makeDirectory(path.dirname(target), { recursive: true }))
  yield* writing(files.symlink(source, target))
  yield* ignoring(tree, [name])
  return []
})

export const caches = Effect.fnUntraced(function* (
  tree: Tree
): Effect.fn.Return<ReadonlyArray<TreeMount>, Worktree.WorktreeError, FileSystem.FileSystem> {
  if (tree.settings.cache.length === 0) return []
  const { own } = yield* confined(tree)
  return (yield* Effect.forEach(cachesOf(tree), (cache) => place(tree, cache, own))).flat()
})

/** Mounts of the caches as they were made for a live run. Changes nothing. */
export const cacheMounts = Effect.fnUntraced(function* (tree: Tree) {
  if (tree.settings.cache.length === 0 || !(yield* confined(tree)).own) return []
  return cachesOf(tree).map(({ name, source }): TreeMount => ({
    source,
    target: path.join(tree.cwd, name),
    writable: true
  }))
})

/** Folders with programs that were installed, which are no scripts of the project. */
const INSTALLED = /(^|\/)(\.[^./][^/]*|node_modules|venv|vendor|target)\//

/**
 * First word of a command line if it is a relative path to a script of the project, without `./`. An assignment before
 * the command is no path. Pure.
 */
export const scriptIn = (line: string): string | undefined => {
  const [word = ""] = /^[\w@%+=:,./-]+/.exec(line.trimStart()) ?? []
  if (!word.includes("/") || word.includes("=") || path.isAbsolute(word)) return undefined
  const script = path.normalize(word)
  return INSTALLED.test(script) ? undefined : script
}

/**
 * The command line to run. A script runs from a copy of its trusted text, unless the file in the tree has the same
 * text: many scripts look for the project beside themselves.
 */
const commandOf = Effect.fnUntraced(function* (tree: Tree, line: string) {
  const files = yield* FileSystem.FileSystem
  const script = scriptIn(line)
  if (script === undefined) return { line, shared: [] }
  const text = tree.trusted.get(script)
  if (text === undefined)
    return yield* failed(
      `${script} is not a script of the project that you trusted`,
      `create it in ${tree.spec.repository} and trust it, or correct worktree.setup and worktree.teardown in agentd.jsonc`
    )
  const own = path.join(tree.cwd, script)
  const isPlain = (yield* linkIn(tree.cwd, script)) === undefined
  if (isPlain && (yield* Effect.orElseSucceed(files.readFileString(own), () => "")) === text)
    return { line, shared: [] }
  const copy = path.join(path.dirname(stampFile(tree)), `${tree.spec.agent}.script`)
  yield* writing(files.makeDirectory(path.dirname(copy), { recursive: true, mode: 0o700 }))
  yield* writing(Effect.andThen(files.writeFileString(copy, text), files.chmod(copy, 0o700)))
  return { line: line.trimStart().replace(/^[\w@%+=:,./-]+/, () => quoted(copy)), shared: [copy] }
})

/** Creates the home that the agent's confined runs keep, if they keep one. */
const homeOf = Effect.fnUntraced(function* ({ config, cwd, spec, state }: Tree, isHeld: boolean) {
  if (!isHeld || config.backend.type === "model") return undefined
  const files = yield* FileSystem.FileSystem
  const home = homeIn(path.join(state, "homes"), spec.agent, cwd)
  yield* writing(files.makeDirectory(home, { recursive: true, mode: 0o700 }))
  return yield* writing(files.realPath(home))
})

/** How many of the last lines of the output are told. */
const TOLD = 12

const lastLine = (printed: string) => oneLine(printed.trim().split("\n").at(-1) ?? "", 200)

const secondsOf = (millis: number) => `${Math.max(1, Math.round(millis / 1000))} s`

/** Runs a command in the tree. Succeeds with why it failed; undefined if it succeeded. */
const perform = Effect.fnUntraced(function* (
  tree: Tree,
  what: "set-up" | "tear-down",
  of: { readonly line: string; readonly shared: ReadonlyArray<string> },
  mounts: ReadonlyArray<TreeMount>
) {
  const { commands, config, cwd, ports, settings, spec } = tree
  const manner = confinementOf(tree)
  const { own } = yield* confined(tree)
  const home = yield* homeOf(tree, own)
  const timeout = Duration.toMillis(settings.timeout)
  const begun = yield* Clock.currentTimeMillis
  const ended = yield* commands
    .run({
      ...manner,
      ...of,
      listsLeft: true,
      cwd,
      runId: yield* Ids.runId,
      env: {
        ...ChildEnvironment.given(commands.environment, { offline: own && !manner.network }),
        GIT_TERMINAL_PROMPT: "0",
        ...(home === undefined ? {} : { HOME: home }),
        AGENTD_AGENT: spec.agent,
        ...TreePorts.environmentOf(ports)
      },
      timeout,
      limits: config.limits,
      whose: "of the agent",
      requires: { who: "its backend requires a sandbox", remedy: 'set "sandbox" of its backend to "on"' },
      mounts,
      ...(home === undefined ? {} : { home })
    })
    .pipe(Effect.catch(({ message, remedy }) => failed(`its ${what} could not run: ${message}`, remedy)))
  if (ended === undefined) return `its ${what} took longer than ${secondsOf(timeout)} and was ended`
  const { left, printed, status } = ended
  const took = secondsOf((yield* Clock.currentTimeMillis) - begun)
  const said = printed === "" ? "" : `:\n${printed.split("\n").slice(-TOLD).join("\n")}`
  if (status.code === 0) yield* Worktree.told(spec, `its ${what} succeeded in ${took}${said}`, false)
  else yield* Worktree.told(spec, `its ${what} failed after ${took}${said}`, false)
  if (left.length > 0)
    yield* Worktree.told(
      spec,
      `its ${what} left processes running, which were ended: ${left.map((one) => oneLine(one, 80)).join(", ")}; start services outside the ${what}`,
      true
    )
  if (status.code === 0) return undefined
  const how = status.signal === null ? `exit code ${status.code}` : `signal ${status.signal}`
  return `its ${what} failed with ${how}${printed === "" ? "" : `: ${lastLine(printed)}`}`
})

/** Runs the set-up if this tree has not had it. Fails if it fails. `mounts`: what the agent's runs see, too. */
export const setUp = Effect.fnUntraced(function* (
  tree: Tree,
  mounts: ReadonlyArray<TreeMount>
): Effect.fn.Return<void, Worktree.WorktreeError, FileSystem.FileSystem> {
  const { settings, spec } = tree
  if (settings.setup === undefined) return
  const line = settings.setup
  const hash = hashOf(line, tree.trusted.get(scriptIn(line) ?? "") ?? "")
  const known = yield* stampOf(tree)
  if (known.setup === hash) return
  const command = yield* commandOf(tree, line)
  const before = new Set(yield* Worktree.changed(spec))
  const why = yield* tree.showing(`setting up: ${oneLine(line, 80)}`, perform(tree, "set-up", command, mounts))
  if (why !== undefined)
    return yield* failed(
      why,
      `Correct worktree.setup in agentd.jsonc, or what it runs, then start the agent again. Its output: agentd log --agent ${spec.agent}`
    )
  const changed = (yield* Worktree.changed(spec)).filter((name) => !before.has(name))
  if (changed.length > 0)
    yield* Worktree.told(
      spec,
      `its set-up changed files that git tracks: ${changed.slice(0, 5).join(", ")}${changed.length > 5 ? ` and ${changed.length - 5} more` : ""}`,
      true
    )
  yield* stamp(tree, { ...known, setup: hash })
})

/** Runs the tear-down of a tree. Returns why it failed; undefined if it succeeded, or did not run. */
export const tearDown = Effect.fnUntraced(function* (tree: Tree, mounts: ReadonlyArray<TreeMount>) {
  const { settings } = tree
  if (settings.teardown === undefined) return undefined
  const command = yield* Effect.result(commandOf(tree, settings.teardown))
  if (command._tag === "Failure") return command.failure.message
  const why = yield* Effect.result(perform(tree, "tear-down", command.success, mounts))
  return why._tag === "Failure" ? why.failure.message : why.success
})

/** Forgets what was done in a tree that no longer exists. */
export const forget = Effect.fnUntraced(function* (tree: Tree) {
  const files = yield* FileSystem.FileSystem
  const file = stampFile(tree)
  yield* Effect.ignore(files.remove(file, { force: true }))
  yield* Effect.ignore(files.remove(file.replace(/\.json$/, ".script"), { force: true }))
})

/** Identifies what the settings ask for from the user's checkout. */
export const filesKey = (
  { settings: { copy, link }, trusted }: Tree,
  include: string,
  secrets: ReadonlyArray<string>,
  held: boolean
) => hashOf(JSON.stringify([copy, link, trusted.get(include) ?? null, secrets, held]))
