/**
 * PageFiles: serves the files of the web page, which are installed next to the program.
 *
 * Guarantees: only files directly in the configured folders are read. A browser must revalidate each file every time.
 * Only files that the page requests with the tag of their content may be cached.
 */
import { Effect, FileSystem } from "effect"
import { HttpServerResponse } from "effect/http"
import { createHash } from "node:crypto"
import * as path from "node:path"
import { type Refusal, refusal } from "./Refusal.ts"

export interface PageFiles {
  readonly fs: FileSystem.FileSystem
  /** Folders in which a file is searched for, in this order. */
  readonly folders: ReadonlyArray<string>
}

const TYPES: { readonly [ending: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webmanifest": "application/manifest+json"
}

/**
 * Headers that allow only scripts, styles and connections of the page's own origin. Other pages cannot put the page
 * into a frame, and forms cannot send data elsewhere.
 */
const GUARDS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
}

const NAME = /^[\w-]+(\.[\w-]+)*$/
const notBuilt = refusal(
  "unavailable",
  "The page was not built with this agentd.",
  "Build it: npm run bundle, then agentd restart"
)

const contentOf = Effect.fnUntraced(function* ({ folders, fs }: PageFiles, name: string) {
  for (const folder of folders) {
    const found = yield* Effect.option(fs.readFile(path.join(folder, name)))
    if (found._tag === "Some") return found.value
  }
  return undefined
})

/** A tag for a file's content: a hash, so that different contents have different tags. */
export const tagOf = (content: Uint8Array | string): string =>
  createHash("sha256").update(content).digest("base64url").slice(0, 22)

/** The tag of a file's current content; "" if the file does not exist. */
export const tag = (files: PageFiles, name: string): Effect.Effect<string> =>
  Effect.map(contentOf(files, name), (content) => (content === undefined ? "" : tagOf(content)))

const ASKED_AGAIN = "no-cache"
const KEPT = "private, max-age=31536000, immutable"

const respond = (content: Uint8Array, name: string, cache: string) =>
  HttpServerResponse.uint8Array(content, {
    contentType: TYPES[path.extname(name)] ?? "application/octet-stream",
    headers: {
      ...GUARDS,
      "cache-control": cache,
      etag: `"${tagOf(content)}"`
    }
  })

/**
 * A response with a file of the page. `tag`: the tag that the page expects; if it matches, the browser may cache the
 * file permanently.
 */
export const file = (
  files: PageFiles,
  name: string,
  tag: string | null = null
): Effect.Effect<HttpServerResponse.HttpServerResponse, Refusal> =>
  Effect.gen(function* () {
    const content = NAME.test(name) ? yield* contentOf(files, name) : undefined
    if (content === undefined)
      return yield* Effect.fail(
        name === "index.html" ? notBuilt : refusal("not_found", "The page has no such file.", "Load the page again.")
      )
    return respond(content, name, tag === tagOf(content) ? KEPT : ASKED_AGAIN)
  })
