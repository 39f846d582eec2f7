/**
 * Confinement: what a confined command sees of the file system, as a list of mounts.
 *
 * An allow-list: the root is empty, and what is put into it is named. Read-only: programs and
 * libraries of the system, what they look up in /etc, folders of programs and tool chains, git's
 * settings. Private and forgotten with the command: /tmp, /run, and the home, unless it is given
 * one that is kept. Writable: the workspace, that home, and a git folder of the agent's own
 * (GitFolders). What else a command needs is shared by name.
 *
 * Guarantees: whatever is not named is not there, sockets and other users' names included;
 * what is hidden is hidden in what is named, too; no mount lies behind a link that an agent
 * could have left, and nothing is shared from where an agent writes; later mounts cover earlier
 * ones, and both mechanisms (bubblewrap, namespaces) apply the same list in this order.
 */
import { Schema } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import { within } from "./PathContainment.ts"
import * as GitFolders from "../GitFolders.ts"
import type { Environment } from "../process/ChildProcess.ts"
import { PROTECTED } from "../model/Workspace.ts"

export interface Rules {
  /** A real path. */
  readonly workspace: string
  readonly network: boolean
  /** Real paths of files and folders that it must not see, wherever they lie: agentd's state, keys. */
  readonly hidden: ReadonlyArray<string>
  /** The daemon's: where its home and its programs are. */
  readonly environment: Environment
  /** A real path: a home of its own, which is kept. Without one it has the user's, empty, and forgotten. */
  readonly home?: string | undefined
  /** Files and folders that it reads besides, each at the place where it sees them. */
  readonly shared?: ReadonlyArray<{ readonly source: string; readonly target: string }> | undefined
  /** True where it goes on when whoever started it has ended. */
  readonly outlives?: boolean
}

/** `empty`: a private folder; `blank`: a file without content; `text`: a file of this content; `link`: to that path. */
export type Mount =
  | { readonly kind: "empty" | "blank"; readonly target: string }
  | { readonly kind: "readOnly" | "writable" | "link" | "text"; readonly source: string; readonly target: string }

/** A mount cannot be made where it is to be without leading somewhere else. */
export class MountRefused extends Schema.TaggedError<MountRefused>()("MountRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Where what is not the system's is kept: git's search for a checkout ends below them. */
const PRIVATE = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt", "/media"]

/** Private folders, whoever the user is. */
const EMPTY = ["/tmp", "/var/tmp", "/run"]

/** Of the system. Some are links into /usr, and are links here, too. */
const SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /run/current-system /run/opengl-driver".split(" ")

/** The part of /etc that programs look things up in: no keys, no users. */
const ETC = `
  ld.so.cache ld.so.conf ld.so.conf.d group nsswitch.conf ssl/certs ssl/openssl.cnf ca-certificates pki/tls/certs
  pki/ca-trust crypto-policies localtime timezone alternatives os-release protocols services mime.types terminfo
  inputrc bash.bashrc profile profile.d shells locale.alias locale.conf gitattributes gitconfig static
`
  .trim()
  .split(/\s+/)

/** Programs and libraries that people install in their home. Nothing that holds keys. */
const TOOLS = `
  .local/bin .local/lib .local/share/mise .local/share/uv .local/share/pnpm .local/share/fnm .local/share/pipx
  .cargo/bin .cargo/registry .cargo/git .rustup go/bin go/pkg .nvm .fnm .volta .bun/bin .deno/bin .pyenv .rbenv
  .asdf .sdkman .dotnet .ghcup .juliaup .npm-global .yarn/bin .nix-profile miniconda3 anaconda3
`
  .trim()
  .split(/\s+/)

/** Settings that a commit needs; they are looked up in the home. */
const SETTINGS = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"]

const real = (file: string): string | undefined => attempt(() => fs.realpathSync(file))

const isFolder = (file: string) => fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true

const lstat = (file: string) => fs.lstatSync(file, { throwIfNoEntry: false })

const put = (kind: Exclude<Mount["kind"], "empty" | "blank">, source: string, target = source): Mount => ({
  kind,
  source,
  target
})

/** The user's home, where there is one that is not the whole system. */
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

/** The agent knows of one user, itself, and of one machine. */
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
 * Beside it lie libraries that its programs load, unless it is the home, where everything lies, or a dotted folder of
 * it: ~/.cargo has a registry's token beside its programs, ~/.local keyrings; what tools need of those is in TOOLS.
 */
const programFolder = (folder: string, home: string | undefined): string => {
  const above = path.dirname(folder)
  const alone = path.basename(folder) !== "bin" || above.split("/").length < 3
  const isSetting = path.dirname(above) === home && path.basename(above).startsWith(".")
  return alone || isSetting || (home !== undefined && within(above, home)) ? folder : above
}

/** Folders of programs that the system's do not hold; none in which a secret or the home would lie open. */
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

/**
 * A link on the way to a mount, left by an agent in an earlier run, would lead the mount to a place of the machine:
 * bubblewrap 0.8 followed one to `/oldroot/…` and put an empty file there.
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

/** An agent could exchange what is shared from a place that it writes for a link to something else. */
const writableSource = ({ home, shared = [], workspace }: Rules): string | undefined =>
  shared
    .map(({ source }) => source)
    .find((source) => within(workspace, source) || (home !== undefined && within(home, source)))

/** Why these mounts are not to be made, where that is so. */
export const refusalOf = (rules: Rules, mounts: ReadonlyArray<Mount>): MountRefused | undefined => {
  const source = writableSource(rules)
  if (source !== undefined)
    return new MountRefused({
      message: `${source} cannot be shared with the agent: the agent could exchange it`,
      remedy: "move it out of the agent's workspace and home"
    })
  const links = mounts.flatMap(({ target }) => linkTo(rules, target) ?? [])
  return links[0] === undefined
    ? undefined
    : new MountRefused({
        message: `${links[0]} is a link, and nothing is mounted behind a link that an agent may have made`,
        remedy: "see where it leads, then replace it by what it should be, or remove it"
      })
}

/** Outer ones first, and none twice: a mount below another one of the same folder shows nothing new. */
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

/** Without those that a later one covers: what nobody sees cannot be made read-only either. */
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
    ...shared.map(({ source, target }) => put("readOnly", source, target))
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

/** The way in which these mounts show the path of the machine; undefined: it is not there. */
export const shows = (mounts: ReadonlyArray<Mount>, file: string): "readOnly" | "writable" | undefined => {
  const top = mounts.findLast(({ target }) => within(target, file))
  if (top === undefined || !("source" in top) || top.kind === "link" || top.kind === "text") return undefined
  return path.join(top.source, path.relative(top.target, file)) === file ? top.kind : undefined
}
