/** Tests of the codes of refusals: each has its line in the documents, and a peer of another version is understood. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as OpenApi from "../../../src/api/http/OpenApi.ts"
import { forms } from "../../../src/api/rpc/VerbForms.ts"
import { ourselves } from "../../../src/api/rpc/Version.ts"
import { ExitCode } from "../../../src/cli/parse/ExitCode.ts"
import { VerbFailed } from "../../../src/cli/parse/Failure.ts"
import { exitCodes, explain } from "../../../src/cli/render/ErrorText.ts"
import { Code, CommandRefused, refuse, refusedBy } from "../../../src/domain/Messages.ts"
import { codeOf, codesByTag, isRefusalCode, refusalCodes } from "../../../src/domain/RefusalCode.ts"

const page = readFileSync(join(import.meta.dirname, "../../../docs/reference/errors.md"), "utf8")
const wire = Schema.toCodecJson(CommandRefused)
const decoded = (fields: object) =>
  Schema.decodeUnknownSync(wire)({ _tag: "CommandRefused", message: "No.", remedy: "None.", ...fields })

describe("codes of refusals", () => {
  const rows = new Map(
    [...page.matchAll(/^\| `(\w+)` \| (.+) \| (\d+) \| ([\d, ]+) \|$/gm)].map(([, code, ...cells]) => [code!, cells])
  )

  for (const [code, { means, status }] of Object.entries(refusalCodes))
    it(`${code} is described with its meaning, its status, and exit codes`, () => {
      const [meaning, shown, exits] = rows.get(code) ?? []
      assert.strictEqual(meaning, means)
      assert.strictEqual(shown, String(status))
      assert.include(exits?.split(", ") ?? [], "1")
      assert.include([400, 403, 404, 409, 413, 501, 503], status)
    })

  it("are twelve, the same in OpenAPI", () => {
    assert.lengthOf(Object.keys(refusalCodes), 12)
    assert.strictEqual(rows.size, 12)
    const { components } = JSON.parse(JSON.stringify(OpenApi.describe(forms, ourselves))) as ReturnType<
      typeof OpenApi.describe
    >
    const { code } = (
      components.schemas["Refusal"] as { readonly properties: { readonly code: { enum: Array<string> } } }
    ).properties
    assert.deepStrictEqual(code.enum, Object.keys(refusalCodes))
  })

  it("are had by each error that has an exit code of its own", () => {
    for (const tag of Object.keys(exitCodes)) assert.isTrue(isRefusalCode(codesByTag[tag]), tag)
  })

  it("go over the wire and come back", () => {
    for (const code of Code.literals) {
      const refused = refuse(code, "No.", "None.")
      const sent = Schema.encodeSync(wire)(refused)
      assert.deepInclude(sent, { code })
      assert.deepStrictEqual(decoded(sent as object).code, code)
    }
  })

  it("are none of a daemon that sends none, or one that is not known", () => {
    for (const fields of [{}, { code: "of_tomorrow" }, { code: "toString" }]) {
      const refused = decoded(fields)
      assert.isTrue(refused instanceof CommandRefused)
      assert.strictEqual(refused.message, "No.")
      assert.isUndefined(refused.code)
      assert.isUndefined(codeOf(refused))
      assert.notProperty(Schema.encodeSync(wire)(refused), "code")
    }
  })

  it("are had by what the command line refuses for its words or a file, and by nothing that it only finds", () => {
    const codeFor = (exitCode: number) => explain(new VerbFailed({ message: "No.", remedy: "None.", exitCode })).code
    assert.strictEqual(codeFor(ExitCode.usage), "invalid")
    assert.strictEqual(codeFor(ExitCode.config), "invalid")
    assert.strictEqual(codeFor(ExitCode.notRunning), "unavailable")
    for (const exitCode of [ExitCode.failed, ExitCode.problems, ExitCode.undecided])
      assert.isUndefined(codeFor(exitCode))
  })

  it("are kept where an error of another layer becomes a refusal", () => {
    const git = refusedBy({ _tag: "GitUnavailable", message: "git is not there" })
    assert.deepInclude(git, { code: "unavailable", message: "git is not there" })
    assert.strictEqual(refusedBy(refuse("full", "No room.", "Make some.")).code, "full")
    const stored = { _tag: "StorageError", message: "No.", remedy: "None." }
    assert.strictEqual(codeOf({ ...stored, reason: "full" }), "full")
    assert.strictEqual(codeOf({ ...stored, reason: "io" }), "unavailable")
    assert.isUndefined(codeOf(new Error("a crash")))
  })
})
