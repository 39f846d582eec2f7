/**
 * Confinement: what a confined command sees of the file system, as a list of mounts.
 *
 * All of it read-only, and of that nothing where people and daemons keep what is theirs:
 * home folders, /tmp, /run (sockets), /mnt and /media are empty, private and forgotten
 * with the command. Put back into the emptiness, read-only: the folders of tool chains and
 * git's settings. The workspace is writable, and git's folder with its guards (GitFolders).
 *
 * Guarantees: what is hidden is hidden wherever it lies; later mounts cover earlier
 * ones, and both mechanisms (bubblewrap, namespaces) apply the same list in this order.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { within } from "./PathContainment.ts"
import * as GitFolders from "../GitFolders.ts"
import type { Environment } from "../process/ChildProcess.ts"
import { PROTECTED } from "../model/Workspace.ts"

export interface Rules {
  /** A real path. */
  readonly workspace: string
  readonly network: boolean
  /** Real paths of files and folders that it must not see: agentd's state, keys. */
  readonly hidden: ReadonlyArray<string>
  /** The daemon's: where its home and its programs are. */
  readonly environment: Environment
}

/** `empty`: a private folder; `blank`: a file without content. */
export type Mount =
  | { readonly kind: "empty" | "blank"; readonly target: string }
  | { readonly kind: "readOnly" | "writable"; readonly source: string; readonly target: string }

/** Where what is not the system's is kept. */
const PRIVATE = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt", "/media"]

/** Programs and libraries that people install in their home, and what a commit needs to know. Nothing that holds keys. */
const TOOLS = `
  .local/bin .local/lib .local/share/mise .local/share/uv .local/share/pnpm .local/share/fnm .local/share/pipx
  .cargo/bin .cargo/registry .cargo/git .rustup go/bin go/pkg .nvm .fnm .volta .bun/bin .deno/bin .pyenv .rbenv
  .asdf .sdkman .dotnet .ghcup .juliaup .npm-global .yarn/bin .nix-profile miniconda3 anaconda3
  .gitconfig .config/git/config .config/git/ignore .config/git/attributes
`
  .trim()
  .split(/\s+/)

/** Of the system, though it lies where sockets do. */
const SYSTEM = ["/run/current-system", "/run/opengl-driver"]

const real = (file: string): string | undefined => {
  try {
    return fs.realpathSync(file)
  } catch {
    return undefined
  }
}

const isFolder = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true

const put = (kind: "readOnly" | "writable", source: string, target = source): Mount => ({ kind, source, target })

/** The user's home, where there is one that is not the whole system. */
export const homeOf = (environment: Environment): string | undefined => {
  const home = environment["HOME"]
  const found = home === undefined || !path.isAbsolute(home) ? undefined : real(home)
  return found === "/" ? undefined : found
}

const toolsOf = (home: string): ReadonlyArray<Mount> =>
  TOOLS.flatMap((name) => {
    const target = path.join(home, name)
    const source = real(target)
    return source === undefined ? [] : [put("readOnly", source, target)]
  })

/** Folders of programs that lie where all else is hidden. */
const programsOf = (environment: Environment, hidden: ReadonlyArray<string>): ReadonlyArray<Mount> =>
  (environment["PATH"] ?? "").split(":").flatMap((entry) => {
    const source = path.isAbsolute(entry) ? real(entry) : undefined
    if (source === undefined || !isFolder(source) || hidden.some((folder) => within(source, folder))) return []
    return hidden.some((folder) => within(folder, source)) ? [put("readOnly", source)] : []
  })

/** Names lead to addresses by a file that may lie among the sockets. */
const resolverOf = (network: boolean, hidden: ReadonlyArray<string>): ReadonlyArray<Mount> => {
  const file = network ? real("/etc/resolv.conf") : undefined
  return file !== undefined && hidden.some((folder) => within(folder, file)) ? [put("readOnly", file)] : []
}

const gitOf = (git: GitFolders.GitFolders | undefined): ReadonlyArray<Mount> => [
  ...(git?.writable ?? []).map((folder) => put("writable", folder)),
  ...(git?.readOnly ?? []).map((file) => put("readOnly", file)),
  ...(git?.own === undefined ? [] : [put("writable", git.own.folder)]),
  ...(git?.own?.readOnly ?? []).map((file) => put("readOnly", file))
]

/** Why this folder cannot be a workspace: what must be hidden would lie open in it. */
export const objection = (workspace: string, environment: Environment): string | undefined => {
  const home = homeOf(environment)
  if (workspace === "/") return "it is the whole file system"
  if (home !== undefined && within(workspace, home)) return "the user's home lies in it, with its keys"
  const folder = [...PRIVATE, "/etc", "/usr", "/var", "/proc", "/sys", "/dev", "/boot"].find((one) =>
    within(workspace, one)
  )
  return folder === undefined ? undefined : `${folder} lies in it`
}

export const mountsOf = ({ workspace, network, hidden, environment }: Rules): ReadonlyArray<Mount> => {
  const home = homeOf(environment)
  const folders = [...new Set([...PRIVATE, ...(home === undefined ? [] : [home])])].filter(
    // a folder under another name is covered by its own
    (folder) => real(folder) === folder && isFolder(folder)
  )
  const covers = hidden.filter((secret) => within(secret, workspace))
  const others = hidden.filter((secret) => !covers.includes(secret) && real(secret) !== undefined)
  const git = GitFolders.find(workspace, [...folders, ...covers])
  const guarded = [...PROTECTED].filter((name) => name !== ".git").map((name) => path.join(workspace, name))
  return [
    ...[...folders, ...covers]
      .toSorted((one, other) => one.length - other.length)
      .map((target): Mount => ({ kind: "empty", target })),
    ...SYSTEM.filter(isFolder).map((folder) => put("readOnly", real(folder) ?? folder, folder)),
    ...(home === undefined ? [] : toolsOf(home)),
    ...programsOf(environment, folders),
    ...resolverOf(network, folders),
    ...(git?.around === undefined ? [] : [put("readOnly", git.around)]),
    put("writable", workspace),
    ...gitOf(git),
    ...guarded.filter((file) => real(file) === file).map((file) => put("readOnly", file)),
    ...others.map((target): Mount => ({ kind: isFolder(target) ? "empty" : "blank", target }))
  ]
}
