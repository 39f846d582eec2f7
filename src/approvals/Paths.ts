/**
 * Paths: what it means that a command reads or writes a path, judged by the path's text alone. Pure.
 *
 * A path is harmless if it lies in the work tree and no name in it stands for a secret or, when written, for a file
 * that other programs trust. Links are not followed: against them, only a sandbox holds.
 */
import { matchesText } from "./Glob.ts"
import type { CallEffect, Folders, Word } from "./Reading.ts"

/** Names of files and folders with secrets, or two steps of a path. `*` is any text. */
const SECRETS = `
  .env .env.* .env-* .env_* *.env .envrc .npmrc .yarnrc.yml .netrc* *.netrc _netrc .pypirc .pgpass .my.cnf .htpasswd
  .git-credentials .dockercfg .s3cfg .vault-token *.pem *.pem.bak *.key *.p8 *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx
  id_rsa* id_dsa* id_ecdsa* id_ed25519* *.tfstate *.tfvars auth.json *service-account*.json *adminsdk*.json
  .boto .rclone.conf .terraformrc .token .dev.vars .dev.vars.* local.settings.json password*.txt
  credentials credentials.json credentials.toml credentials.yml credentials.yaml credentials.xml credentials.db
  .secrets secrets secrets.yml secrets.yaml secrets.json secrets.toml token*.txt apikey*.txt kubeconfig .*_history
  .ssh .aws .gnupg .kube .password-store .config/gh .git/config .docker/config.json .m2/settings.xml
`

/** Examples that a project shows to everybody. */
const EXAMPLES = new Set([".env.example", ".env.sample", ".env.template"])

/**
 * Names of files and folders that other programs run, or take as settings or as instructions. git takes a folder with a
 * HEAD for a repository, and runs what its settings name.
 */
const TRUSTED = `
  .git .gitmodules .gitattributes .claude .codex .gemini .qwen .opencode .cursor .agents .agentd .copilot .windsurf
  .vscode .idea .devcontainer .husky .github .gitea .forgejo .circleci .buildkite .gitlab-ci.yml .travis.yml .drone.yml
  .woodpecker* azure-pipelines.yml bitbucket-pipelines.yml jenkinsfile .pre-commit-config.yaml lefthook.yml
  .lefthook.yml .lintstagedrc* .mise* mise.toml .tool-versions .cargo .bin .envrc .npmrc .yarn .yarnrc .yarnrc.yml
  .pnpmfile.cjs .pnp.cjs bunfig.toml .mcp.json .aider* .clinerules .roo .kiro .continue .zed .cursorrules agentd.json
  agentd.jsonc opencode.json opencode.jsonc agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md head
  .worktreeinclude node_modules .venv venv .bazelrc .bazeliskrc .mvn .bundle .gdbinit .lldbinit .pdbrc .vimrc .exrc .nvimrc
  .nvim.lua .dir-locals.el
`

/** Devices that hold nothing of anybody's. */
const DEVICES = {
  reads: new Set(["/dev/null", "/dev/zero", "/dev/urandom", "/dev/stdin", "-"]),
  writes: new Set(["/dev/null", "/dev/stdout", "/dev/stderr", "-"])
}

const STAR = "any text"
const ANY = "any character"

/** The pieces of a shell pattern. What follows a set that is not simple counts as any text. */
const pieces = (pattern: string): ReadonlyArray<string> => {
  const all: Array<string> = []
  for (let at = 0; at < pattern.length; at++) {
    const letter = pattern[at]!
    const set = letter === "[" ? /^\[[\w-]{1,99}\]/.exec(pattern.slice(at, at + 101))?.[0] : undefined
    if (letter === "[" && set === undefined) return [...all, STAR]
    all.push(letter === "*" ? STAR : letter === "?" || set !== undefined ? ANY : letter)
    at += (set?.length ?? 1) - 1
  }
  return all
}

/** True for two letters that differ. */
const differ = (one = "", two = ""): boolean => one.length === 1 && two.length === 1 && one !== two

/** True if one text can fit both patterns. */
const canMeet = (one: ReadonlyArray<string>, two: ReadonlyArray<string>): boolean => {
  if (differ(one[0], two[0]) || differ(one.at(-1), two.at(-1))) return false
  let row = [true]
  for (const piece of two) row.push(row.at(-1) === true && piece === STAR)
  for (const piece of one) {
    const next = [row[0] === true && piece === STAR]
    for (const [at, other] of two.entries()) {
      const isSame = piece === other || piece === ANY || other === ANY
      next.push(piece === STAR || other === STAR ? row[at + 1]! || next[at]! : row[at]! && isSame)
    }
    row = next
  }
  return row.at(-1) === true
}

interface Name {
  readonly name: string
  /** The text before its first star: most texts differ from a name there. */
  readonly head: string
  readonly pattern: ReadonlyArray<string>
}

const listed = (text: string): ReadonlyArray<ReadonlyArray<Name>> =>
  text
    .trim()
    .split(/\s+/)
    .map((path) => path.split("/").map((name) => ({ name, head: name.split("*")[0]!, pattern: pieces(name) })))
interface Names {
  readonly paths: ReadonlyArray<ReadonlyArray<Name>>
  /** The paths by their first letter; those that begin with a star have none. */
  readonly byLetter: ReadonlyMap<string, ReadonlyArray<ReadonlyArray<Name>>>
}
const namesOf = (text: string): Names => {
  const paths = listed(text)
  return { paths, byLetter: Map.groupBy(paths, ([first]) => first!.head.slice(0, 1)) }
}
const secrets = namesOf(SECRETS)
const trusted = namesOf(TRUSTED)

/** The reader of a path: nobody reads `text` as a pattern. In a pattern of a program, a star takes the dot of `.env`, too. */
type Reader = "text" | "shell" | "program"

/** True if a pattern may stand for this name. */
const mayMean = (text: string, read: ReadonlyArray<string>, { name, pattern }: Name, reader: Reader): boolean => {
  // no file has a name as long as that
  if (text.length > 255) return true
  if (reader === "shell" && name.startsWith(".") && !text.startsWith(".")) return false
  return canMeet(read, pattern)
}

/**
 * Patterns of secrets that do not count, else `cat src/*` would be asked for the sake of a key that may lie there: those
 * that end in a star and have no dot, for secrets by their ending, or if they begin with two letters at most; `*test*`
 * and `*.ts`, for secrets that they do not name.
 */
const isSpared = (text: string, { name, pattern }: Name): boolean => {
  const middle = /^\*+([^.?[*]+)\*+$/.exec(text)?.[1]
  if (middle !== undefined) return !name.replaceAll("*", "").includes(middle)
  if (/^[^.?[*]{0,2}\*+$/.test(text)) return true
  if (/^[^.?[*]*\*+$/.test(text)) return name.startsWith("*") || text.startsWith("*")
  if (!text.startsWith("*")) return false
  const rest = text.replace(/^\*+/, "")
  if (rest.startsWith(".") && name.lastIndexOf("*") !== 0) return !canMeet(pieces(rest.slice(0, 255)), pattern)
  return name.endsWith("*") && !canMeet(pieces(text.slice(0, 255)), pattern.slice(0, -1))
}

/** True if a path has, or may have, one of these names. */
const named = (steps: ReadonlyArray<string>, reader: Reader, names: Names): boolean => {
  // file systems without case take ſ for s; editors keep a copy behind a tilde
  const texts = steps.map((step) => step.normalize("NFKC").toLowerCase().replace(/~$/, ""))
  const patterns = texts.map((text) => (reader !== "text" && /[*?[]/.test(text) ? pieces(text) : undefined))
  const fits = (at: number, name: Name, isFirst: boolean): boolean => {
    const text = texts[at]
    if (text === undefined) return false
    const read = patterns[at]
    if (read === undefined) return text.startsWith(name.head) && !EXAMPLES.has(text) && matchesText(name.name, text)
    return mayMean(text, read, name, reader) && !(isFirst && names === secrets && isSpared(text, name))
  }
  const near = (text: string, at: number) =>
    patterns[at] === undefined
      ? ["", text.slice(0, 1)].flatMap((letter) => names.byLetter.get(letter) ?? [])
      : names.paths
  return texts.some((text, at) =>
    near(text, at).some((path) => path.every((name, next) => fits(at + next, name, next === 0)))
  )
}

/** True if a text names a secret, or is a pattern of a program for one. */
export const namesSecret = (text: string): boolean => named(text.split(/[/:{},]/), "program", secrets)

/** The path of the work tree that a path in this folder means; undefined if it leaves the tree. */
export const joined = (folder: string, path: string): string | undefined => {
  if (path.startsWith("/") || path.startsWith("~")) return undefined
  const steps: Array<string> = []
  for (const step of [...folder.split("/"), ...path.split("/")]) {
    if (step === "" || step === ".") continue
    if (step !== "..") steps.push(step)
    else if (steps.pop() === undefined) return undefined
  }
  return steps.join("/")
}

/** The path from the work tree of a file that a word names by its whole path there; undefined if it does not. */
export const belowRoot = ({ root }: Word, path: string): string | undefined => {
  if (root === undefined || !(path === root || path.startsWith(`${root}/`))) return undefined
  return path.slice(root.length).replace(/^\/+/, "") || "."
}

type Place = "outside" | "secret" | "trusted" | "unknown"

const placeFrom = (path: string, globs: boolean, folder: string | undefined): ReadonlyArray<Place> => {
  const steps = path.split("/")
  const reader = globs ? "shell" : "text"
  // `.*` and `.?` stand for the folder above, too
  const climbs =
    globs &&
    steps.some((step) => /[*?[]/.test(step) && canMeet(pieces(step.slice(0, 255)), [".", "."]) && step[0] === ".")
  if (climbs || path.startsWith("/") || path.startsWith("~")) {
    return named(steps, reader, secrets) ? ["secret", "outside"] : ["outside"]
  }
  const below = joined(folder ?? "", path)
  const all = path.includes("..") || below === undefined ? [...steps, ...(below ?? "").split("/")] : below.split("/")
  const found: Array<Place> = []
  if (named(all, reader, secrets)) found.push("secret")
  if (named((below ?? path).split("/"), reader, trusted)) found.push("trusted")
  if (folder === undefined) found.push("unknown")
  else if (below === undefined) found.push("outside")
  return found
}

const placeOf = (word: Word, path: string, folders: Folders): ReadonlyArray<Place> => {
  const below = belowRoot(word, path)
  // a `cd` may have failed: the path must hold from every folder that it may be in
  const from = below === undefined ? (folders ?? [undefined]) : [""]
  const all = from.flatMap((folder) => placeFrom(below ?? path, word.globs, folder))
  return ["secret", "outside", "trusted", "unknown"].filter((place) => all.includes(place as Place)) as Array<Place>
}

/** The effect of reading or writing this path; undefined if it is harmless. */
export const pathEffect = (word: Word, folders: Folders, access: "reads" | "writes"): CallEffect | undefined => {
  const path = word.value
  if (path === undefined) return { kind: "unknown", what: `${access} a path that is not known (${word.text})` }
  if (DEVICES[access].has(path)) return undefined
  const places = placeOf(word, path, folders)
  const kind = access === "reads" ? "secrets" : "trusted"
  if (places.includes("secret")) return { kind, what: `${access} ${path}, which may hold a secret` }
  if (places.includes("outside")) return { kind, what: `${access} ${path}, outside the work tree` }
  if (access === "writes" && places.includes("trusted")) {
    return { kind, what: `writes ${path}, which other programs trust` }
  }
  if (!places.includes("unknown")) return undefined
  return { kind: "unknown", what: `${access} ${path} in a folder that is not known` }
}

/** The effect of a word with revisions and paths of a repository: its own names never leave it, paths do. */
export const repositoryEffect = (word: Word, folders: Folders): CallEffect | undefined => {
  const value = word.value!
  // git has patterns of its own, and words before a path, such as `:(top)`
  if (namesSecret(value.replace(/^:\([^)]*\)/, ""))) {
    return { kind: "secrets", what: `names ${value}, which may hold a secret` }
  }
  return /^[/~]|(^|\/)\.\.(\/|$)/.test(value) ? pathEffect(word, folders, "reads") : undefined
}

/**
 * The effect of going into this folder; undefined if it is harmless. Some CLIs keep the folder for later calls, so that these would
 * read and write there without naming it.
 */
export const folderEffect = (word: Word, folders: Folders): CallEffect | undefined => {
  const path = word.value
  if (path === undefined || path === "-")
    return { kind: "unknown", what: `goes to a folder that is not known (${word.text})` }
  const [place] = placeOf(word, path, folders)
  if (place === undefined) return undefined
  if (place === "unknown") return { kind: "unknown", what: `goes to ${path} from a folder that is not known` }
  if (place === "trusted") return { kind: "trusted", what: `goes to ${path}, which other programs trust` }
  return {
    kind: "secrets",
    what: place === "secret" ? `goes to ${path}, which may hold secrets` : `goes to ${path}, outside the work tree`
  }
}
