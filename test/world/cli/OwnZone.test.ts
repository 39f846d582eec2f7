/** Tests of the machine's own time zone, as the variable TZ says it. */
import { assert, describe, it } from "@effect/vitest"
import { copyFileSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isZone } from "../../../src/config/Zone.ts"
import { settle, zoneOf } from "../../../src/cli/render/OwnZone.ts"

const ZONES = "/usr/share/zoneinfo"
const offset = (name: string, at: string): string =>
  new Intl.DateTimeFormat("en", { timeZone: name, timeZoneName: "longOffset" }).format(new Date(at)).split(", ")[1]!

describe("the machine's own zone", () => {
  it.each([
    ["Europe/Berlin", "Europe/Berlin"],
    [":Europe/Berlin", "Europe/Berlin"],
    ["UTC", "UTC"],
    ["", "UTC"],
    ["UTC0", "UTC"],
    ["JST-9", "Etc/GMT-9"],
    ["<+03>-3", "Etc/GMT-3"],
    ["GMT+2", "Etc/GMT+2"],
    ["MST7:00", "Etc/GMT+7"]
  ])("TZ=%j is %s", (tz, name) => assert.deepStrictEqual(zoneOf(tz), { name, doubt: null }))

  it.each(["Foo/Bar", "/no/such/file", ":", " ", "CET-99", "XYZ-1ZYX,M9.9.9,M1.1.1"])(
    "TZ=%j is not known: UTC, and that is said",
    (tz) => {
      const { doubt, name } = zoneOf(tz)
      assert.strictEqual(name, "UTC")
      assert.strictEqual(doubt === null, tz === ":")
      if (doubt !== null) assert.include(doubt, `"${tz}"`)
    }
  )

  it("without the variable it is the machine's, and the variable stays away", () => {
    assert.isTrue(isZone(zoneOf(undefined).name))
    const env: { TZ?: string } = {}
    settle(env)
    assert.isTrue(!("TZ" in env) || env.TZ === "UTC")
  })

  it.runIf(existsSync(ZONES))(
    "a file is the zone that it is a link to, or a copy of; rules are those of a zone",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "zone-"))
      try {
        symlinkSync(`${ZONES}/Europe/Berlin`, join(folder, "link"))
        copyFileSync(`${ZONES}/Asia/Tokyo`, join(folder, "copy"))
        assert.strictEqual(zoneOf(`:${folder}/link`).name, "Europe/Berlin")
        assert.strictEqual(zoneOf(`${folder}/copy`).name, "Asia/Tokyo")
        assert.isNull(zoneOf(":/etc/localtime").doubt)
        for (const [rules, like] of [
          ["CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Berlin"],
          ["EST5EDT,M3.2.0,M11.1.0", "America/New_York"],
          ["AEST-10AEDT,M10.1.0,M4.1.0/3", "Australia/Sydney"],
          ["IST-5:30", "Asia/Kolkata"]
        ] as const) {
          const { doubt, name } = zoneOf(rules)
          assert.isNull(doubt)
          for (const at of ["2027-01-15", "2027-03-20", "2027-07-15", "2027-10-20"])
            assert.strictEqual(offset(name, at), offset(like, at), `${rules} ${at}`)
          assert.isTrue(isZone(name))
          const env = { TZ: rules as string }
          settle(env)
          assert.strictEqual(env.TZ, name)
        }
      } finally {
        rmSync(folder, { recursive: true })
      }
    }
  )
})
