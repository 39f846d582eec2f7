/**
 * CompiledScript: a script of one file, run from the code that an earlier process compiled of it. The bundle's daemon
 * is one: Node's own cache would hold what it has read as long as the daemon lives, which are 3 MB, and modules that
 * are linked with each other begin later than one script.
 *
 * Guarantees: the script runs in any case, and code that is torn, or of another text, Node or flags, is not used; it is
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

/** Of a text and the code that was compiled of it: V8 itself looks for no damage, and at no more of a text than its length. */
const sumOf = (text: Buffer, code: Buffer): Buffer => {
  const sum = Buffer.alloc(SUM_BYTES)
  sum.writeUInt32LE(crc32(code, crc32(text)))
  return sum
}

/** Code of that very text, whole. */
const read = (path: string, text: Buffer): Buffer | undefined => {
  try {
    const kept = readFileSync(path)
    const code = kept.subarray(SUM_BYTES)
    return code.length > 0 && kept.subarray(0, SUM_BYTES).equals(sumOf(text, code)) ? code : undefined
  } catch {
    return undefined
  }
}

/** Without it the next start compiles again: a folder that cannot be written stops nothing. */
const keep = (script: Script, text: Buffer, path: string): void => {
  const folder = dirname(path)
  const code = script.createCachedData()
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const part = `${path}.${process.pid}`
    writeFileSync(part, Buffer.concat([sumOf(text, code), code]), { mode: 0o600 })
    renameSync(part, path)
    const [kind] = basename(path).split("-")
    for (const name of readdirSync(folder))
      if (name.startsWith(`${kind}-`) && name !== basename(path)) rmSync(join(folder, name), { force: true })
  } catch {}
}

const keepSoon = (script: Script, text: Buffer, path: string): void => {
  const now = () => {
    clearTimeout(timer)
    process.off("exit", now)
    keep(script, text, path)
  }
  const timer = setTimeout(now, BEGUN).unref()
  process.once("exit", now)
}

/** Runs a CommonJS file `KIND-HASH.cjs`, which is named by its content, and returns what it exports. `folder`: where compiled code is kept. */
export const run = (file: string, folder: string | undefined): unknown => {
  const kept = folder === undefined ? undefined : join(folder, `${basename(file)}.compiled`)
  const text = readFileSync(file)
  const cachedData = kept === undefined ? undefined : read(kept, text)
  const script = new Script(
    `(function (exports, require, module, __filename, __dirname) {${text.toString("latin1")}\n})`,
    {
      filename: file,
      cachedData
    }
  )
  if (kept !== undefined && (cachedData === undefined || script.cachedDataRejected === true))
    keepSoon(script, text, kept)
  const module = { exports: {} }
  script.runInThisContext()(module.exports, createRequire(file), module, file, dirname(file))
  return module.exports
}
