/**
 * TreeFiles: gives a work tree the files of the user's checkout that git does not bring: copies, and read-only mounts.
 *
 * Guarantees: Only files of the project are copied that git does not track, and none that the config names as a secret,
 * unless the config names that path in full. Nothing is read or written through a symbolic link. The user's checkout is
 * not changed, and no copy shares an inode with it. A file that the tree has is never replaced. A copy becomes visible
 * whole or not at all. The copying is confined to the tree, if the machine has a sandbox.
 */
import { Duration, Effect, FileSystem, Option } from "effect"
import * as path from "node:path"
import type * as ConfigFile from "../../config/ConfigFile.ts"
import { quoted } from "../../config/ShellWord.ts"
import { oneLine } from "../../domain/CallSummary.ts"
import * as Ids from "../../domain/Ids.ts"
import type { TreeMount } from "../../runs/Backend.ts"
import { OUTPUT_LIMIT } from "../../runs/git/Git.ts"
import * as GitStore from "../../runs/git/GitStore.ts"
import * as ChildEnvironment from "../../runs/process/ChildEnvironment.ts"
import * as TreeSetup from "./TreeSetup.ts"
import * as Worktree from "./Worktree.ts"

/** The file that lists ignored files which work trees get, in the syntax of .gitignore. */
export const INCLUDE = ".worktreeinclude"

/** Absolute paths of the files that a project's config names as secrets. */
export const secretsOf = (project: ConfigFile.Project): ReadonlyArray<string> => {
  const found: Array<string> = []
  const look = (value: unknown): void => {
    // also lists: an agent has several fallbacks
    if (typeof value !== "object" || value === null) return
    for (const [name, field] of Object.entries(value)) {
      if (typeof field !== "string") look(field)
      else if (name === "keyFile" || name === "passwordFile") found.push(path.resolve(project.root, field))
    }
  }
  look(project.agents)
  look(project.mail)
  return found
}

export interface TreePlan {
  /** Paths relative to the project's root. A folder stands for all that it contains. */
  readonly copies: ReadonlyArray<string>
  readonly links: ReadonlyArray<string>
  /** Patterns of the config that match nothing, with their field. */
  readonly idle: ReadonlyArray<string>
}

const NOTHING: TreePlan = { copies: [], links: [], idle: [] }

const failed = (message: string, remedy: string) =>
  Effect.fail(new Worktree.WorktreeError({ reason: "SetupFailed", message, remedy }))

const notFound = ({
  message,
  remedy = "check the folder of the project"
}: {
  readonly message: string
  readonly remedy?: string
}) => failed(`the files for the work tree could not be found: ${message}`, remedy)

/** The path without a slash at its end. */
const bare = (entry: string) => (entry.endsWith("/") ? entry.slice(0, -1) : entry)

export const isBelow = (entry: string, folder: string) => folder.endsWith("/") && entry.startsWith(folder)

const GLOB = /[*?[\\]/

/** The part of a pattern before its first wildcard, as path segments, and whether that is all of it. */
const literalOf = (pattern: string) => {
  const segments = bare(pattern.startsWith("/") ? pattern.slice(1) : pattern).split("/")
  const glob = segments.findIndex((segment) => GLOB.test(segment))
  return { segments: glob === -1 ? segments : segments.slice(0, glob), isWhole: glob === -1 }
}

/** The first symbolic link on a path below a folder. */
export const linkOn = Effect.fnUntraced(function* (folder: string, segments: ReadonlyArray<string>) {
  const files = yield* FileSystem.FileSystem
  for (let length = 1; length <= segments.length; length++) {
    const at = path.join(folder, ...segments.slice(0, length))
    if (Option.isSome(yield* Effect.option(files.readLink(at)))) return segments.slice(0, length).join("/")
  }
  return undefined
})

const linked = (field: string, pattern: string, link: string) =>
  failed(
    `${field} "${pattern}" leads through the symbolic link ${link}`,
    "name the file or folder itself, without a link: agentd follows none"
  )

/** A pattern of the project as one of its repository, in which the project may be a subfolder. Pure. */
export const inRepository = (pattern: string, prefix: string): string => {
  if (prefix === "") return pattern
  const [, not = "", slash = "", rest = ""] = /^(!?)(\/?)(.*)$/.exec(pattern) ?? []
  const isAnchored = slash !== "" || bare(rest).includes("/")
  return isAnchored ? `${not}/${prefix.replaceAll(/[*?[\\]/g, "\\$&")}/${rest}` : pattern
}

interface Checkout {
  readonly of: GitStore.Looked
  readonly prefix: string
  /** Options with which git ignores what it ignores for the user. */
  readonly usual: ReadonlyArray<string>
}

const checkoutOf = Effect.fnUntraced(function* ({ spec: { agent, repository, stores } }: TreeSetup.Tree) {
  const files = yield* FileSystem.FileSystem
  const store = yield* GitStore.open(stores, repository)
  const commit = store === undefined ? undefined : yield* GitStore.commitOf(store, "HEAD")
  if (store === undefined || commit === undefined) return undefined
  const { commonDir, prefix, top } = store.person
  const own = path.join(commonDir, "info/exclude")
  const hasOwn = yield* Effect.orElseSucceed(files.exists(own), () => false)
  const checkout: Checkout = {
    of: yield* GitStore.look(store, top, commit, `.files.${agent}`),
    prefix,
    usual: ["--exclude-standard", ...(hasOwn ? [`--exclude-from=${own}`] : [])]
  }
  return checkout
})

/**
 * Lists files that git does not track and that match, relative to the project's root. A folder that matches itself ends
 * with a slash, and its files are not listed.
 */
const list = Effect.fnUntraced(function* ({ of, prefix }: Checkout, options: ReadonlyArray<string>, within?: string) {
  const paths = within === undefined ? (prefix === "" ? undefined : [prefix]) : [path.join(prefix, within)]
  const said = yield* GitStore.must({
    ...of,
    asPerson: true,
    command: "ls-files",
    options: ["--others", "--ignored", "-z", ...(within === undefined ? ["--directory"] : []), ...options],
    ...(paths === undefined ? {} : { paths: paths.map((one) => `:(literal)${one}`) })
  })
  if (said.length >= OUTPUT_LIMIT)
    return yield* failed(
      "the patterns for the work tree match too many single files",
      "name the folder that contains them in worktree.copy"
    )
  const start = prefix === "" ? 0 : prefix.length + 1
  const all = said.split("\0").flatMap((name) => (name === "" ? [] : [name.slice(start)]))
  // git also lists folders of which only all files match; more files may come there
  return all.filter((name, at) => !name.endsWith("/") || all[at + 1]?.startsWith(name) !== true)
})

/** Writes patterns to a file for git. */
const patternsFile = Effect.fnUntraced(function* (
  { of, prefix }: Checkout,
  name: string,
  patterns: ReadonlyArray<string>
) {
  const file = path.join(of.gitDir, `${name}.patterns`)
  yield* GitStore.put(file, patterns.map((pattern) => `${inRepository(pattern, prefix)}\n`).join(""))
  return [`--exclude-from=${file}`]
})

interface Wanted {
  readonly field: string
  readonly patterns: ReadonlyArray<string>
  readonly secrets: ReadonlyArray<string>
  /** Files and folders that git ignores. */
  readonly ignored: ReadonlyArray<string>
}

/** Leaves out secrets, git's own files and agentd's config; a folder with a secret becomes the list of its files. */
const withoutSecrets = Effect.fnUntraced(function* (
  checkout: Checkout,
  root: string,
  entries: ReadonlyArray<string>,
  { field, patterns, secrets }: Wanted,
  options: ReadonlyArray<string>
) {
  const files = yield* FileSystem.FileSystem
  const real = (file: string) => Effect.orElseSucceed(files.realPath(file), () => file)
  const [top, places] = [yield* real(root), yield* Effect.forEach(secrets, real)]
  // only the config itself can name a secret
  const all = field !== "worktree.copy" ? [] : patterns
  const named = new Set(
    all.flatMap((one) => (literalOf(one).isWhole ? [path.normalize(literalOf(one).segments.join("/"))] : []))
  )
  const hidden = [
    ...secrets.map((one) => path.relative(root, one)),
    ...places.map((one) => path.relative(top, one))
  ].filter((secret) => !named.has(secret))
  // a repository in the project is listed as one folder in any case
  const isHidden = (entry: string) =>
    hidden.some((secret) => secret === bare(entry) || isBelow(secret, entry)) ||
    /(^|\/)(\.git(\/|$)|agentd\.jsonc$)/.test(entry)
  const lists = yield* Effect.forEach(entries, (entry) =>
    hidden.some((secret) => isBelow(secret, entry))
      ? list(checkout, options, entry)
      : Effect.succeed<ReadonlyArray<string>>([entry])
  )
  return lists.flat().filter((entry) => !isHidden(entry))
})

/**
 * Lists what the patterns match. In a folder that git ignores as a whole, such as node_modules, only a pattern that
 * names that folder matches.
 */
const matching = Effect.fnUntraced(function* (checkout: Checkout, root: string, wanted: Wanted) {
  const { field, ignored, patterns } = wanted
  if (patterns.length === 0) return []
  for (const pattern of patterns) {
    if (pattern.startsWith("!")) continue
    const link = yield* linkOn(root, literalOf(pattern).segments)
    if (link !== undefined) return yield* linked(field, pattern, link)
  }
  const options = yield* patternsFile(checkout, field, patterns)
  const named = patterns.map((pattern) => `${literalOf(pattern).segments.join("/")}/`)
  const closed = ignored.filter((one) => one.endsWith("/") && !named.some((name) => name.startsWith(one)))
  const found = (yield* list(checkout, options)).filter(
    (entry) => !closed.some((folder) => entry !== folder && isBelow(entry, folder))
  )
  const entries = yield* withoutSecrets(checkout, root, found, wanted, options)
  for (const entry of entries) {
    const link = yield* linkOn(root, bare(entry).split("/"))
    if (link !== undefined) return yield* linked(field, entry, link)
    if (entry.includes("\n")) return yield* failed(`${field} matches a name with a line break`, "rename that file")
  }
  return entries
})

/** Lines of an include file that are patterns. */
const patternsIn = (text: string) => text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"))

/** A pattern must not lead out of the project. */
const OUTSIDE = /^!?(\/?\.\.(\/|$)|~|.*\/\.\.(\/|$))/

/** Of the files that an include file names, those that git ignores. */
const included = Effect.fnUntraced(function* (
  checkout: Checkout,
  root: string,
  text: string | undefined,
  { ignored, secrets }: Pick<Wanted, "ignored" | "secrets">
) {
  const patterns = patternsIn(text ?? "")
  if (patterns.length === 0) return []
  const outside = patterns.find((pattern) => OUTSIDE.test(pattern))
  if (outside !== undefined)
    return yield* failed(`${INCLUDE} "${outside}" leads out of the project`, `correct that line of ${INCLUDE}`)
  const entries = yield* matching(checkout, root, { field: INCLUDE, ignored, patterns, secrets })
  return entries.flatMap((entry) =>
    ignored.some((one) => one === entry || isBelow(entry, one)) ? [entry] : ignored.filter((one) => isBelow(one, entry))
  )
})

/** Drops entries that a folder in the list contains. */
const distinct = (entries: ReadonlyArray<string>): ReadonlyArray<string> => {
  const all = new Set(entries)
  const folders = [...all].filter((entry) => entry.endsWith("/"))
  return [...all].filter((entry) => !folders.some((folder) => folder !== entry && isBelow(entry, folder))).toSorted()
}

/**
 * Finds what a work tree gets from the user's checkout. `secrets`: absolute paths of the files that the config names as
 * secrets. `held`: whether all runs of the agent are confined; without a sandbox, links become copies. `isNew`: whether
 * to look for patterns that match nothing.
 */
export const plan = Effect.fnUntraced(
  function* (tree: TreeSetup.Tree, secrets: ReadonlyArray<string>, held: boolean, isNew: boolean) {
    const { settings, spec, trusted } = tree
    const root = spec.repository
    const include = trusted.get(INCLUDE)
    if (settings.copy.length === 0 && settings.link.length === 0 && include === undefined) return NOTHING
    const checkout = yield* checkoutOf(tree)
    if (checkout === undefined) return NOTHING
    const ignored = yield* list(checkout, checkout.usual)
    const of = (field: "copy" | "link", patterns: ReadonlyArray<string> = settings[field]) =>
      matching(checkout, root, { field: `worktree.${field}`, ignored, patterns, secrets })
    const [copies, links] = [yield* of("copy"), yield* of("link")]
    const all = (["copy", "link"] as const).flatMap((field) => settings[field].map((one) => [field, one] as const))
    const asked = isNew ? all.filter(([, pattern]) => !pattern.startsWith("!")) : []
    const idle = (yield* Effect.filter(asked, ([field, pattern]) =>
      Effect.map(of(field, [pattern]), (found) => found.length === 0)
    )).map(([field, pattern]) => `worktree.${field} "${pattern}"`)
    const more = yield* included(checkout, root, include, { ignored, secrets })
    if (!held) return { copies: distinct([...copies, ...links, ...more]), links: [], idle }
    const mounted = distinct(links)
    const isMounted = (entry: string) => mounted.some((link) => link === entry || isBelow(entry, link))
    const own = distinct([...copies, ...more]).filter((entry) => !isMounted(entry))
    return { copies: own, links: mounted.map(bare), idle }
  },
  Effect.catchTags({ GitFailed: notFound, GitUnavailable: notFound, PlatformError: notFound })
)

/** The read-only mounts of a plan. Creates their places in the tree, which the agent sees as empty if it is unconfined. */
export const mounts = Effect.fnUntraced(
  function* (tree: TreeSetup.Tree, links: ReadonlyArray<string>) {
    const files = yield* FileSystem.FileSystem
    return yield* Effect.forEach(
      links,
      Effect.fnUntraced(function* (link) {
        const [source, target] = [path.join(tree.spec.repository, link), path.join(tree.cwd, link)]
        const behind = yield* linkOn(tree.spec.repository, link.split("/"))
        if (behind !== undefined) return yield* linked("worktree.link", link, behind)
        const other = yield* linkOn(tree.cwd, link.split("/"))
        if (other !== undefined)
          return yield* failed(
            `${link} cannot be shown in the work tree: ${path.join(tree.cwd, other)} is a symbolic link`,
            "check where it leads, and remove it"
          )
        const isFolder = (yield* files.stat(source)).type === "Directory"
        yield* files.makeDirectory(isFolder ? target : path.dirname(target), { recursive: true })
        if (!isFolder && !(yield* files.exists(target))) yield* files.writeFileString(target, "")
        return { source, target, writable: false } satisfies TreeMount
      })
    )
  },
  Effect.catchTags({ PlatformError: notFound })
)

/** Maximum length of the arguments of one command in the script, characters. */
const MAX_LINE = 60_000

/** Splits words into lists that are short enough for one command. */
const chunked = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of words.map(quoted)) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length > MAX_LINE) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

const NEEDS = "agentd: needs "

/**
 * The script that copies: first all of it beside the files, in the git folder, then each entry to its place by a
 * rename. If it fails, it prints the size of the entries in KiB, and leaves nothing behind.
 */
const scriptOf = (root: string, tree: string, stage: string, entries: ReadonlyArray<string>): string => {
  const parents = Map.groupBy(entries, (entry) => path.dirname(entry))
  return [
    `stage=${quoted(stage)}`,
    "failed() {",
    `  cd ${quoted(root)}`,
    ...chunked(entries).map((list) => `  du -skc -- ${list} 2>/dev/null | sed -n '$s/^\\([0-9]*\\).*/${NEEDS}\\1/p'`),
    '  rm -rf -- "$stage"',
    "  exit 1",
    "}",
    'rm -rf -- "$stage" && mkdir -- "$stage" || exit 1',
    `cd ${quoted(root)} || exit 1`,
    ...chunked(entries).map((list) => `cp --reflink=auto -a --parents -t "$stage" -- ${list} || failed`),
    'cd -- "$stage" || exit 1',
    ...[...parents].flatMap(([parent, names]) => [
      `mkdir -p -- ${quoted(path.join(tree, parent))} || failed`,
      ...chunked(names).map((list) => `mv -n -t ${quoted(path.join(tree, parent))} -- ${list} || failed`)
    ]),
    'cd / && rm -rf -- "$stage"'
  ].join("\n")
}

/** Entries whose parents must be folders of the tree itself, and that the tree does not have. */
const missing = Effect.fnUntraced(function* ({ cwd }: TreeSetup.Tree, copies: ReadonlyArray<string>) {
  const files = yield* FileSystem.FileSystem
  const found: Array<string> = []
  for (const entry of copies) {
    const segments = bare(entry).split("/")
    const link = yield* linkOn(cwd, segments.slice(0, -1))
    if (link !== undefined)
      return yield* failed(
        `${bare(entry)} cannot be copied: ${path.join(cwd, link)} is a symbolic link`,
        "check where it leads, and remove it"
      )
    const target = path.join(cwd, bare(entry))
    const isLink = Option.isSome(yield* Effect.option(files.readLink(target)))
    if (!isLink && !(yield* Effect.orElseSucceed(files.exists(target), () => false))) found.push(bare(entry))
  }
  return found
})

const sizeOf = (printed: string) => {
  const sizes = [...printed.matchAll(/agentd: needs (\d{1,15})$/gm)].map(([, size]) => Number(size))
  return sizes.length === 0 ? "" : `; it needs ${Math.ceil(sizes.reduce((a, b) => a + b, 0) / 1024)} MB`
}

/** Copies what the tree lacks. Succeeds with the copied files and folders. */
export const copy = Effect.fnUntraced(
  function* (tree: TreeSetup.Tree, copies: ReadonlyArray<string>) {
    const entries = yield* missing(tree, copies)
    if (entries.length === 0) return []
    const files = yield* FileSystem.FileSystem
    const { commands, config, cwd, settings, spec, state } = tree
    const runId = yield* Ids.runId
    const folder = path.join(state, "setups")
    const script = path.join(folder, `${runId}.copy`)
    yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
    const stage = path.join(spec.folder, ".git", "agentd-copy")
    yield* files.writeFileString(script, scriptOf(spec.repository, cwd, stage, entries), { mode: 0o600 })
    const ended = yield* commands
      .run({
        line: `sh ${quoted(script)}`,
        cwd,
        runId,
        env: { ...ChildEnvironment.plain(commands.environment), LC_ALL: "C" },
        timeout: Duration.toMillis(settings.timeout),
        sandbox: "preferred",
        network: false,
        // the user's own files count against no agent
        limits: { ...config.limits, disk: Number.MAX_SAFE_INTEGER },
        whose: "of the agent",
        requires: { who: "the agent", remedy: "" },
        shared: [spec.repository, script],
        listsLeft: false
      })
      .pipe(
        Effect.catch(({ message, remedy }) => failed(`files could not be copied to the work tree: ${message}`, remedy)),
        Effect.ensuring(Effect.ignore(files.remove(script, { force: true })))
      )
    const what = oneLine(entries.join(", "), 80)
    if (ended === undefined)
      return yield* failed(`copying ${what} took too long and was ended`, "raise worktree.timeout, or copy less")
    if (ended.status.code === 0) return entries
    const why = ended.printed.split("\n").find((line) => line !== "" && !line.startsWith(NEEDS)) ?? "cp failed"
    return yield* failed(
      `copying ${what} to ${cwd} failed: ${oneLine(why, 160)}${sizeOf(ended.printed)}`,
      "free disk space there, or copy less (worktree.copy, worktree.link), then start the agent again"
    )
  },
  Effect.catchTags({ PlatformError: notFound })
)
