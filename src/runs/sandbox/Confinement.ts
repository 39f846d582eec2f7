/**
 * Confinement: the list of mounts that make up the file system of a confined command.
 *
 * The command sees only the listed mounts; the rest of the root is empty. Read-only: the system's programs and
 * libraries, their files in /etc, folders with programs and tool chains, git's settings. Private and deleted after the
 * command: /tmp, /run, and the home folder, unless one is kept for the run. Writable: the workspace, the home that is
 * kept, and a git folder that belongs to the agent (GitFolders). Anything else that a command needs must be shared by
 * name.
 *
 * Guarantees: A file that is not listed does not exist for the command. This includes sockets and the names of other
 * users. Hidden files are hidden within listed folders, too. The path of a mount target contains no link that an agent
 * may have left, and nothing in a folder that an agent can write is shared. Later mounts cover earlier ones, and both
 * mechanisms (bubblewrap, namespaces) apply the same list in this order.
 */
import { Schema } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import { within } from "./PathContainment.ts"
import * as GitFolders from "../GitFolders.ts"
import type { Environment } from "../process/ChildProcess.ts"
import { PROTECTED } from "../sandbox/Workspace.ts"

export interface Rules {
  /** Real path of the workspace. */
  readonly workspace: string
  readonly network: boolean
  /** Real paths of files and folders that the command must not see, wherever they are: agentd's state, keys. */
  readonly hidden: ReadonlyArray<string>
  /** The daemon's environment, which says where its home folder and its programs are. */
  readonly environment: Environment
  /**
   * Real path of the home folder that is kept for the run. If undefined, the command gets an empty home at the user's
   * path, which is deleted afterwards.
   */
  readonly home?: string | undefined
  /** Further files and folders, each with its path inside the sandbox. The command can only read them by default. */
  readonly shared?:
    | ReadonlyArray<{ readonly source: string; readonly target: string; readonly writable?: boolean }>
    | undefined
  /** True if the command continues after its parent has ended. */
  readonly outlives?: boolean
}

/**
 * A mount. `empty`: a private folder. `blank`: an empty file. `text`: a file with the content `source`. `link`: a link
 * to the path `source`.
 */
export type Mount =
  | { readonly kind: "empty" | "blank"; readonly target: string }
  | { readonly kind: "readOnly" | "writable" | "link" | "text"; readonly source: string; readonly target: string }

/** A mount cannot be made: its target would be at another place than the path says. */
export class MountRefused extends Schema.TaggedError<MountRefused>()("MountRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Folders that can contain private files. The search for a git checkout stops at them. */
const PRIVATE = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt", "/media"]

/** Folders of which every command gets its own. */
const EMPTY = ["/tmp", "/var/tmp", "/run"]

/** Folders of the system. If one is a link into /usr, it is also a link in the sandbox. */
const SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /run/current-system /run/opengl-driver".split(" ")

/** Files in /etc that programs read. None of them contains keys or names of users. */
const ETC = `
  ld.so.cache ld.so.conf ld.so.conf.d group nsswitch.conf ssl/certs ssl/openssl.cnf ca-certificates pki/tls/certs
  pki/ca-trust crypto-policies localtime timezone alternatives os-release protocols services mime.types terminfo
  inputrc bash.bashrc profile profile.d shells locale.alias locale.conf gitattributes gitconfig static
`
  .trim()
  .split(/\s+/)

/** Folders in the home where users install programs and libraries. None of them contains keys. */
const TOOLS = `
  .local/bin .local/lib .local/share/mise .local/share/uv .local/share/pnpm .local/share/fnm .local/share/pipx
  .cargo/bin .cargo/registry .cargo/git .rustup go/bin go/pkg .nvm .fnm .volta .bun/bin .deno/bin .pyenv .rbenv
  .asdf .sdkman .dotnet .ghcup .juliaup .npm-global .yarn/bin .nix-profile miniconda3 anaconda3
`
  .trim()
  .split(/\s+/)

/** Files in the home folder with git settings that a commit needs. */
const SETTINGS = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"]

const real = (file: string): string | undefined => attempt(() => fs.realpathSync(file))

const isFolder = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true

const lstat = (file: string) => fs.lstatSync(file, { throwIfNoEntry: false })

const put = (kind: Exclude<Mount["kind"], "empty" | "blank">, source: string, target = source): Mount => ({
  kind,
  source,
  target
})

/** The user's home folder; undefined if there is none, or if it is `/`. */
export const homeOf = (environment: Environment): string | undefined => {
  const home = environment["HOME"]
  const found = home === undefined || !path.isAbsolute(home) ? undefined : real(home)
  return found === "/" ? undefined : found
}

const systemOf = (): ReadonlyArray<Mount> =>
  SYSTEM.flatMap((name) => {
    const stat = lstat(name)
    if (stat === undefined) return []
    const top = path.dirname(name) === "/"
    if (top && stat.isSymbolicLink()) return [put("link", fs.readlinkSync(name), name)]
    const source = real(name)
    return source === undefined ? [] : [put("readOnly", source, name)]
  })

/** Creates an /etc in which the agent sees only one user (itself) and one machine. */
const etcOf = (home: string, network: boolean): ReadonlyArray<Mount> => {
  const identity = `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`
  const names = network ? [...ETC, "resolv.conf", "hosts"] : ETC
  return [
    ...names.flatMap((name) => {
      const source = real(`/etc/${name}`)
      return source === undefined ? [] : [put("readOnly", source, `/etc/${name}`)]
    }),
    put("text", `agent:x:${identity}:agent:${home}:/bin/sh\n`, "/etc/passwd"),
    ...(network ? [] : [put("text", "127.0.0.1 localhost\n::1 localhost\n", "/etc/hosts")])
  ]
}

const toolsOf = (home: string, target: string): ReadonlyArray<Mount> =>
  [...TOOLS.map((name) => [name, home] as const), ...SETTINGS.map((name) => [name, target] as const)].flatMap(
    ([name, folder]) => {
      const source = real(path.join(home, name))
      return source === undefined ? [] : [put("readOnly", source, path.join(folder, name))]
    }
  )

/**
 * Returns the folder to mount for an entry of PATH. For a `bin` folder this is its parent, which contains libraries for
 * its programs. If the parent contains the home, or is a dot folder in the home, only the `bin` folder is mounted:
 * ~/.cargo contains a registry token, ~/.local keyrings. TOOLS lists the files there that tools need.
 */
const programFolder = (folder: string, home: string | undefined): string => {
  const above = path.dirname(folder)
  const alone = path.basename(folder) !== "bin" || above.split("/").length < 3
  const isSetting = path.dirname(above) === home && path.basename(above).startsWith(".")
  return alone || isSetting || (home !== undefined && within(above, home)) ? folder : above
}

/** Lists the folders in PATH that are outside the system's folders, without those that contain a secret or the home. */
const programsOf = ({ environment, hidden, workspace }: Rules, home: string | undefined): ReadonlyArray<Mount> =>
  (environment["PATH"] ?? "").split(":").flatMap((entry) => {
    const source = path.isAbsolute(entry) ? real(entry) : undefined
    if (source === undefined || !isFolder(source)) return []
    const open = [...hidden, workspace, ...(home === undefined ? [] : [home])]
    const folder = [programFolder(source, home), source].find((one) => !open.some((secret) => within(one, secret)))
    if (folder === undefined || SYSTEM.some((one) => within(one, folder)) || within(workspace, folder)) return []
    return folder.split("/").length < 3 ? [] : [put("readOnly", folder)]
  })

const gitOf = (git: GitFolders.GitFolders | undefined): ReadonlyArray<Mount> =>
  (git?.parts ?? []).map(({ kind, path }) => put(kind, path))

/**
 * Returns why this folder cannot be a workspace (it contains files that must be hidden); undefined if it can be one.
 */
export const objection = (workspace: string, environment: Environment): string | undefined => {
  const home = homeOf(environment)
  if (workspace === "/") return "it is the whole file system"
  if (home !== undefined && within(workspace, home)) return "the user's home lies in it, with its keys"
  const folder = [...PRIVATE, "/etc", "/usr", "/var", "/proc", "/sys", "/dev", "/boot"].find((one) =>
    within(workspace, one)
  )
  return folder === undefined ? undefined : `${folder} lies in it`
}

/**
 * Finds a link in the path of a mount target. An agent could have left it in an earlier run to redirect the mount:
 * bubblewrap 0.8 followed one to `/oldroot/…` and created an empty file there.
 */
const linkTo = ({ home, workspace }: Rules, target: string): string | undefined => {
  for (const folder of home === undefined ? [workspace] : [workspace, home]) {
    if (target === folder || !within(folder, target)) continue
    let at = folder
    for (const name of path.relative(folder, target).split("/")) {
      at = path.join(at, name)
      if (lstat(at)?.isSymbolicLink() === true) return at
    }
  }
  return undefined
}

/** Finds a shared file in a folder that the agent can write. The agent could replace it with a link to another file. */
const writableSource = ({ home, shared = [], workspace }: Rules): string | undefined =>
  shared
    .map(({ source }) => source)
    .find((source) => within(workspace, source) || (home !== undefined && within(home, source)))

/** Why the mounts must not be made; undefined if they may be made. */
export const refusalOf = (rules: Rules, mounts: ReadonlyArray<Mount>): MountRefused | undefined => {
  const source = writableSource(rules)
  if (source !== undefined)
    return new MountRefused({
      message: `${source} cannot be shared with the agent: the agent could replace it`,
      remedy: "move it out of the agent's workspace and home"
    })
  const links = mounts.flatMap(({ target }) => linkTo(rules, target) ?? [])
  return links[0] === undefined
    ? undefined
    : new MountRefused({
        message: `${links[0]} is a link, and nothing is mounted behind a link that an agent may have made`,
        remedy: "check where it leads, then replace it with a real file or folder, or remove it"
      })
}

/** Sorts mounts so that outer ones come first, and drops mounts that an outer mount already shows. */
const apart = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Mount> => {
  const kept: Array<Mount> = []
  for (const mount of mounts.toSorted((one, other) => one.target.length - other.target.length)) {
    const shown = kept.some((one) => within(one.target, mount.target) && isPartOf(one, mount))
    if (!shown) kept.push(mount)
  }
  return kept
}

const isPartOf = (outer: Mount, inner: Mount): boolean =>
  "source" in outer &&
  "source" in inner &&
  path.join(outer.source, path.relative(outer.target, inner.target)) === inner.source

/** Drops mounts that a later mount covers, because a mount that is not visible cannot be made read-only. */
const uncovered = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Mount> =>
  mounts.filter(({ target }, index) => !mounts.slice(index + 1).some((later) => within(later.target, target)))

export const mountsOf = (rules: Rules): ReadonlyArray<Mount> => {
  const { environment, hidden, network, shared = [], workspace } = rules
  const person = homeOf(environment)
  const home = rules.home ?? person ?? "/tmp"
  const covers = hidden.filter((secret) => within(secret, workspace))
  const git = GitFolders.find(workspace, {
    states: covers,
    stop: [...PRIVATE, ...(person === undefined ? [] : [person])]
  })
  const guarded = [...PROTECTED].filter((name) => name !== ".git").map((name) => path.join(workspace, name))
  const open = [
    ...programsOf(rules, person),
    ...(person === undefined ? [] : toolsOf(person, home)),
    ...(git?.around === undefined ? [] : [put("readOnly", git.around)])
  ]
  const parts = [
    put("writable", workspace),
    ...(rules.home === undefined ? [] : [put("writable", rules.home)]),
    ...gitOf(git),
    ...guarded.filter((file) => lstat(file) !== undefined).map((file) => put("readOnly", file)),
    ...shared.map(({ source, target, writable }) => put(writable === true ? "writable" : "readOnly", source, target))
  ]
  const shown = [...open, ...parts].flatMap((mount) => ("source" in mount ? [mount.source] : []))
  const others = hidden.filter(
    (secret) => !covers.includes(secret) && real(secret) !== undefined && shown.some((folder) => within(folder, secret))
  )
  return uncovered([
    ...systemOf(),
    ...etcOf(home, network),
    ...EMPTY.map((target): Mount => ({ kind: "empty", target })),
    ...(lstat("/var/run")?.isSymbolicLink() === true ? [put("link", "/run", "/var/run")] : []),
    ...(rules.home === undefined && !EMPTY.includes(home) ? [{ kind: "empty", target: home } as const] : []),
    ...apart(open),
    ...covers
      .filter((secret) => open.some(({ target }) => within(target, secret)))
      .map((target): Mount => ({ kind: "empty", target })),
    ...parts,
    ...others.map((target): Mount => ({ kind: isFolder(target) ? "empty" : "blank", target }))
  ])
}

/** Whether the mounts show a path read-only or writable; undefined if they do not show it. */
export const shows = (mounts: ReadonlyArray<Mount>, file: string): "readOnly" | "writable" | undefined => {
  const top = mounts.findLast(({ target }) => within(target, file))
  if (top === undefined || !("source" in top) || top.kind === "link" || top.kind === "text") return undefined
  return path.join(top.source, path.relative(top.target, file)) === file ? top.kind : undefined
}
