/**
 * advisories: lists the known advisories for the packages whose code the last build contains, by its SBOM. Run by hand,
 * outside CI: it sends the names and versions of the packages to OSV, the database of advisories at api.osv.dev.
 *
 * `advisories.ts [SBOM] [API]`. Ends with 0 if there is no advisory, with 1 if there is one, and with 2 if OSV could not
 * be asked about each package.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { SBOM } from "./Notices.ts"

const [sbom = join(import.meta.dirname, "../dist", SBOM), api = "https://api.osv.dev"] = process.argv.slice(2)

interface Advisory {
  readonly id: string
  readonly summary?: string
}

interface Page {
  readonly vulns?: ReadonlyArray<Advisory>
  readonly next_page_token?: string
}

const pageOf = async (purl: string, token: string | undefined): Promise<Page> => {
  const response = await fetch(`${api}/v1/query`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ package: { purl }, ...(token === undefined ? {} : { page_token: token }) }),
    signal: AbortSignal.timeout(30_000)
  })
  if (!response.ok) throw new Error(`HTTP status ${response.status}`)
  return (await response.json()) as Page
}

const advisoriesOf = async (purl: string): Promise<ReadonlyArray<Advisory>> => {
  const found: Array<Advisory> = []
  let token: string | undefined
  do {
    const page = await pageOf(purl, token)
    found.push(...(page.vulns ?? []))
    token = page.next_page_token
  } while (token !== undefined)
  return found
}

/** The reason of a failed request; fetch has it in the cause of its error. */
const reasonOf = (error: unknown): string =>
  error instanceof Error
    ? error.cause instanceof Error
      ? error.cause.message || String(error.cause)
      : error.message
    : String(error)

const { components }: { readonly components: ReadonlyArray<{ readonly purl: string }> } = JSON.parse(
  readFileSync(sbom, "utf8")
)
let [count, unasked] = [0, 0]
for (const { purl } of components) {
  try {
    const found = await advisoriesOf(purl)
    count += found.length
    for (const { id, summary = "" } of found) console.log(`${purl} ${id} ${summary}`)
  } catch (error) {
    unasked += 1
    console.error(`${purl}: ${api} could not be asked: ${reasonOf(error)}`)
  }
}
console.log(`${components.length - unasked} of ${components.length} packages asked about, ${count} advisories.`)
process.exitCode = unasked > 0 ? 2 : count > 0 ? 1 : 0
