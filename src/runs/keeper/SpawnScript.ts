/**
 * SpawnScript: builds the script with which a waiting shell turns into a program, or returns the reason why that is not
 * possible.
 *
 * Guarantees: The program gets its environment, arguments and folder unchanged, whatever they contain. Values that the
 * system would reject are rejected earlier, with the system's error code.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { quoted } from "../../config/ShellWord.ts"

export interface Program {
  readonly argv: ReadonlyArray<string>
  readonly cwd: string
  /** All environment variables of the program. */
  readonly env: { readonly [name: string]: string }
  /** True if the program reads no input. */
  readonly isDeaf: boolean
  /** Number of file descriptors that the program gets, from 3 on. */
  readonly handed: number
  readonly limits?: Limits | undefined
}

/** Resource limits of the program and all processes that it starts. */
export interface Limits {
  /** Maximum size of memory, bytes. */
  readonly memory: number
  readonly tasks: number
  /** CPU weight. 100 is an equal share. */
  readonly cpuWeight: number
}

/**
 * Maximum size of one argument or variable in bytes (a limit of the system), and a safe maximum for all of them
 * together.
 */
const MAX_WORD = 128 * 1024 - 1
const MAX_WORDS = 1_900_000
/** Maximum number of file descriptors: a shell can name only descriptors of one digit. */
const MAX_HANDED = 7

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "EINVAL"

const isPlain = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)

/** Returns the error code with which the system would reject the program; undefined if the system would accept it. */
const objection = ({ argv, cwd, env, handed }: Program): string | undefined => {
  const words = [...argv, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  if (handed > MAX_HANDED || [...words, cwd].some((word) => word.includes("\0"))) return "EINVAL"
  const sizes = words.map((word) => Buffer.byteLength(word))
  const isLong = sizes.some((size) => size > MAX_WORD) || sizes.reduce((sum, size) => sum + size + 9, 0) > MAX_WORDS
  if (isLong) return "E2BIG"
  try {
    if (!fs.statSync(cwd).isDirectory()) return "ENOTDIR"
    fs.accessSync(cwd, fs.constants.X_OK)
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

const fileOf = ({ argv: [name = ""], cwd, env }: Program): { readonly file: string } | { readonly code: string } => {
  const folders = name.includes("/") ? [""] : (env["PATH"] ?? "/usr/bin:/bin").split(":")
  let code = "ENOENT"
  for (const file of folders.map((folder) => path.resolve(cwd, folder, name))) {
    try {
      fs.accessSync(file, fs.constants.X_OK)
      if (fs.statSync(file).isFile()) return { file }
      code = "EACCES"
    } catch (error) {
      const found = codeOf(error)
      if (found === "EACCES" || found === "ENOTDIR") code = found
    }
  }
  return { code }
}

/**
 * The kernel's limits are higher than the daemon's, so that the daemon can report what was exceeded. The kernel ends a
 * program that grows faster than the daemon checks.
 */
const SLACK = 1.25

/** Builds the line that sets the limits. In the script, $2 is the shell's cgroup, or empty. */
const held = ({ cpuWeight, memory, tasks }: Limits): string => {
  const values = {
    "memory.max": Math.ceil(memory * SLACK),
    "memory.oom.group": 1,
    "pids.max": Math.ceil(tasks * SLACK),
    "cpu.weight": cpuWeight
  }
  const writes = Object.entries(values).map(([file, value]) => `echo ${value} >"$2/${file}"`)
  return `[ -z "$2" ] || { ${writes.join("; ")}; } 2>/dev/null`
}

const linesOf = ({ argv, cwd, env, handed, isDeaf, limits }: Program, file: string): ReadonlyArray<string> => {
  const names = Object.keys(env)
  // a shell cannot export variables with other names
  const odd = names.filter((name) => !isPlain(name) && name !== "").map((name) => `${name}=${env[name]}`)
  const command = [...(odd.length > 0 ? ["/usr/bin/env", ...odd] : []), file, ...argv.slice(1)]
  return [
    ...(limits === undefined ? [] : [held(limits)]),
    "unset PATH OLDPWD",
    ...names.filter(isPlain).map((name) => `export ${name}=${quoted(env[name]!)}`),
    `exec ${isDeaf ? "0</dev/null " : ""}1>out 2>err`,
    ...Array.from({ length: handed }, (_, index) => `exec ${index + 3}<handed.${index}`),
    // the anchor then removes the files `handed.N`
    ...(handed > 0 ? ["echo taken >bye"] : []),
    "{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null",
    // the keeper's umask is stricter, and meant only for the keeper's own files
    `umask ${process.umask().toString(8)}`,
    `cd ${quoted(cwd)} || exit 126`,
    "unset OLDPWD",
    `exec ${command.map(quoted).join(" ")}`,
    ""
  ]
}

export const of = (program: Program): { readonly script: string } | { readonly code: string } => {
  const code = objection(program)
  if (code !== undefined) return { code }
  const found = fileOf(program)
  return "code" in found ? found : { script: linesOf(program, found.file).join("\n") }
}
