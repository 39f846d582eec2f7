/** Tests of scripts/advisories.ts, with a server that answers as OSV's documented API does. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"

const script = join(import.meta.dirname, "../../../scripts/advisories.ts")
const folder = mkdtempSync(join(tmpdir(), "agentd-advisories-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const sbom = join(folder, "agentd.cdx.json")
const purls = ["pkg:npm/good@1.0.0", "pkg:npm/%40some/bad@2.0.0"]
writeFileSync(sbom, JSON.stringify({ components: purls.map((purl) => ({ purl })) }))

/** Runs the script against a server with these answers: its text and its exit code. */
const asked = async (answer: (purl: string, token: string | undefined) => object | number) => {
  const server = createServer((request, response) => {
    let body = ""
    request
      .on("data", (part) => (body += part))
      .on("end", () => {
        const query = JSON.parse(body)
        const said = request.url === "/v1/query" ? answer(query.package.purl, query.page_token) : 404
        if (typeof said === "number") response.writeHead(said).end()
        else response.end(JSON.stringify(said))
      })
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const program = spawn(process.execPath, [script, sbom, `http://127.0.0.1:${(server.address() as AddressInfo).port}`])
  let text = ""
  program.stdout.on("data", (part) => (text += part))
  program.stderr.on("data", (part) => (text += part))
  const code = await new Promise<number | null>((done) => program.on("close", done))
  server.close()
  return { code, text }
}

describe("the list of advisories", () => {
  it("has each advisory for each package of the SBOM, of all pages", async () => {
    const { code, text } = await asked((purl, token) => {
      if (purl !== purls[1]) return {}
      if (token === undefined) return { vulns: [{ id: "GHSA-1", summary: "It burns." }], next_page_token: "more" }
      return { vulns: [{ id: "GHSA-2" }] }
    })
    assert.deepStrictEqual(text.split("\n"), [
      "pkg:npm/%40some/bad@2.0.0 GHSA-1 It burns.",
      "pkg:npm/%40some/bad@2.0.0 GHSA-2 ",
      "2 of 2 packages asked about, 2 advisories.",
      ""
    ])
    assert.strictEqual(code, 1)
  })

  it("is empty where there is none, and is not taken for empty where nobody answers", async () => {
    assert.deepInclude(await asked(() => ({})), { code: 0, text: "2 of 2 packages asked about, 0 advisories.\n" })
    const { code, text } = await asked((purl) => (purl === purls[0] ? {} : 503))
    assert.match(text, /^pkg:npm\/%40some\/bad@2\.0\.0: http:\S+ could not be asked: HTTP status 503$/m)
    assert.match(text, /^1 of 2 packages asked about, 0 advisories\.$/m)
    assert.strictEqual(code, 2)
  })
})
