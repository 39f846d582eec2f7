/**
 * PackageFile: a package of agentd in a file, as `npm pack` makes it, and what it says of itself.
 *
 * Guarantees: the whole file is read, so one that is torn is refused; nothing of it is run or written; a package of
 * another name, or without its program, is none.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { posix } from "node:path"
import { pipeline } from "node:stream/promises"
import { createGunzip } from "node:zlib"
import * as Tar from "../../backup/Tar.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { plain } from "../render/Output.ts"

/** A package's word of itself. */
export interface Manifest {
  readonly version: string
  /** Of Node's versions; undefined: it says nothing. */
  readonly node: string | undefined
  /** The newest schema of a store that it reads; undefined: it does not say. */
  readonly schema: number | undefined
  /** The program, in the package. */
  readonly bin: string
  /** Packages that npm fetches with it, each with its version. */
  readonly needs: { readonly [name: string]: string }
}

const FOLDER = "package/"
const MANIFEST = `${FOLDER}package.json`
const LARGEST = 1_000_000

type Json = { readonly [name: string]: unknown }

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const textIn = (value: unknown, name: string): string | undefined => {
  const found = isRecord(value) ? value[name] : undefined
  return typeof found === "string" ? found : undefined
}

/** Pure. The manifest in a text of package.json, or in words why that is none of agentd. */
export const manifestIn = (text: string): Manifest | string => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return "its package.json is no JSON"
  }
  const name = textIn(json, "name")
  if (!isRecord(json) || name === undefined) return "its package.json names no package"
  if (name !== "agentd") return `it is the package ${plain(name)}, not agentd`
  const version = textIn(json, "version")
  if (version === undefined || !/^\d+\.\d+\.\d+([+-][0-9A-Za-z.+-]+)?$/.test(version)) return "it names no version"
  const bin = textIn(json["bin"], "agentd")
  if (bin === undefined) return "it names no program agentd"
  const schema = isRecord(json["agentd"]) ? json["agentd"]["schema"] : undefined
  const needs = [json["dependencies"], json["optionalDependencies"]].flatMap((part) =>
    isRecord(part) ? Object.entries(part).map(([one, wanted]) => [one, String(wanted)] as const) : []
  )
  return {
    version,
    // an older package says it where npm warns of it, even though a Node comes along
    node: textIn(json["agentd"], "node") ?? textIn(json["engines"], "node"),
    schema: Number.isSafeInteger(schema) ? Number(schema) : undefined,
    bin: posix.normalize(bin),
    needs: Object.fromEntries(needs)
  }
}

const refused = (file: string, why: string) =>
  new VerbFailed({
    message: `${file} is no package of agentd: ${why}. Nothing was done.`,
    remedy: "Name a file that was made of agentd, in a clone of it: npm ci && npm pack",
    exitCode: ExitCode.failed
  })

/** The text of package.json, and the names of all files. */
const contents = async (file: string, signal: AbortSignal) => {
  let manifest: string | undefined
  const names = new Set<string>()
  await pipeline(
    fs.createReadStream(file),
    createGunzip(),
    (bytes: AsyncIterable<Uint8Array>) =>
      Tar.read(bytes, async ({ name, size }, content) => {
        names.add(name)
        const pieces: Array<Uint8Array> = []
        for await (const piece of content) if (name === MANIFEST && size <= LARGEST) pieces.push(piece)
        if (name === MANIFEST) manifest = Buffer.concat(pieces).toString("utf8")
      }),
    { signal }
  )
  return { manifest, names }
}

/** Reads a package; fails where the file is none of agentd. */
export const read = Effect.fnUntraced(function* (file: string) {
  if (!fs.existsSync(file)) {
    return yield* new VerbFailed({
      message: `There is no file ${file}. A package is taken from a file only: a name could be somebody else's.`,
      remedy: "Make one, in a clone of agentd: npm ci && npm pack. Then: agentd upgrade FILE.tgz",
      exitCode: ExitCode.failed
    })
  }
  const { manifest: text, names } = yield* Effect.tryPromise({
    try: (signal) => contents(file, signal),
    catch: (cause) => refused(file, plain(cause instanceof Error ? cause.message : String(cause)))
  })
  if (text === undefined) return yield* refused(file, "it holds no package/package.json")
  const manifest = manifestIn(text)
  if (typeof manifest === "string") return yield* refused(file, manifest)
  const lacks = [manifest.bin, "dist/agentd.mjs"].find((name) => !names.has(`${FOLDER}${name}`))
  if (lacks !== undefined) return yield* refused(file, `it lacks its program, ${plain(lacks)}`)
  return manifest
})
