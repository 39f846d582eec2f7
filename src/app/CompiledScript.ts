/**
 * CompiledScript: a script of one file, run from the code that an earlier process compiled of it. The bundle's daemon
 * is one: Node's own cache would hold what it has read as long as the daemon lives, which are 3 MB, and modules that
 * are linked with each other begin later than one script.
 *
 * Guarantees: the script runs in any case, and code that is torn, or of another Node or other flags, is not used; it is
 * kept anew once the program has begun, or when it ends before. Only the script's newest code is kept.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { Script } from "node:vm"
import { crc32 } from "node:zlib"

/** ms; by then a start has compiled what it needs, and nothing is let go yet. */
const BEGUN = 2_500
const SUM_BYTES = 4

const sumOf = (code: Buffer): Buffer => {
  const sum = Buffer.alloc(SUM_BYTES)
  sum.writeUInt32LE(crc32(code))
  return sum
}

/** Code that was kept whole: V8 itself does not look for damage. */
const read = (path: string): Buffer | undefined => {
  try {
    const kept = readFileSync(path)
    const code = kept.subarray(SUM_BYTES)
    return code.length > 0 && kept.subarray(0, SUM_BYTES).equals(sumOf(code)) ? code : undefined
  } catch {
    return undefined
  }
}

/** Without it the next start compiles again: a folder that cannot be written stops nothing. */
const keep = (script: Script, path: string): void => {
  const folder = dirname(path)
  const code = script.createCachedData()
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const part = `${path}.${process.pid}`
    writeFileSync(part, Buffer.concat([sumOf(code), code]), { mode: 0o600 })
    renameSync(part, path)
    const [kind] = basename(path).split("-")
    for (const name of readdirSync(folder))
      if (name.startsWith(`${kind}-`) && name !== basename(path)) rmSync(join(folder, name), { force: true })
  } catch {}
}

const keepSoon = (script: Script, path: string): void => {
  const now = () => {
    clearTimeout(timer)
    process.off("exit", now)
    keep(script, path)
  }
  const timer = setTimeout(now, BEGUN).unref()
  process.once("exit", now)
}

/** Runs a CommonJS file `KIND-HASH.cjs`, which is named by its content. `folder`: where compiled code is kept. */
export const run = (file: string, folder: string | undefined): void => {
  const kept = folder === undefined ? undefined : join(folder, `${basename(file)}.compiled`)
  const cachedData = kept === undefined ? undefined : read(kept)
  const text = readFileSync(file, "latin1")
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: file,
    cachedData
  })
  if (kept !== undefined && (cachedData === undefined || script.cachedDataRejected === true)) keepSoon(script, kept)
  const module = { exports: {} }
  script.runInThisContext()(module.exports, createRequire(file), module, file, dirname(file))
}
