/**
 * OwnZone: the machine's time zone from the variable TZ, read like the C library does: a name, a file, or POSIX rules.
 * JavaScript knows only names. So the program's entry points set TZ to the name before the first use.
 *
 * Guarantees: the result is always a usable zone: UTC with a reason if the zone cannot be determined.
 */
import { readFileSync, realpathSync } from "node:fs"
import { attempt } from "../../config/Attempt.ts"

const ROOT = "/usr/share/zoneinfo"

/** The canonical name of a zone; undefined if there is no such zone. */
const listed = (name: string | undefined): string | undefined =>
  name && attempt(() => new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone)

/** The last of the system's zones whose file fits. */
const zoneWhose = (holds: (file: Buffer) => boolean): string | undefined =>
  [...Intl.supportedValuesOf("timeZone"), "UTC"].findLast(
    (name) => attempt(() => holds(readFileSync(`${ROOT}/${name}`))) === true
  )

/** The zone of a file: found by its path, or as the zone of which the file is a copy. */
const ofFile = (path: string): string | undefined => {
  const real = attempt(() => realpathSync(path)) ?? path
  const named = listed(real.split("/zoneinfo/")[1]?.replace(/^(?:posix|right)\//, ""))
  const copied = named === undefined ? attempt(() => readFileSync(real)) : undefined
  return copied === undefined ? named : zoneWhose((file) => file.equals(copied))
}

/** The zone with rules such as `CET-1CEST,M3.5.0,M10.5.0/3`: a zone's file ends with its rules in this form. */
const ofRules = (rules: string): string | undefined => {
  const [, sign, hours] = /^(?:[A-Za-z]{3,}|<[-+\w]+>)([-+]?)0?(\d{1,2})(?::?00)*$/.exec(rules) ?? []
  if (hours !== undefined) return listed(hours === "0" ? "UTC" : `Etc/GMT${sign || "+"}${hours}`)
  return zoneWhose((file) => file.subarray(-100).toString("latin1").endsWith(`\n${rules}\n`))
}

const found = (tz: string | undefined): string | undefined => {
  if (tz === undefined) return listed(Intl.DateTimeFormat().resolvedOptions().timeZone) ?? ofFile("/etc/localtime")
  if (tz === "") return "UTC"
  if (tz.startsWith("/")) return ofFile(tz)
  // JavaScript reads the sign of such names the other way round
  return (/^(?:UTC|GMT)[-+]\d/.test(tz) ? undefined : listed(tz)) ?? ofRules(tz) ?? ofFile(`${ROOT}/${tz}`)
}

/** `tz`: value of the variable TZ; `doubt`: why the zone is a guess, or null. */
export const zoneOf = (tz: string | undefined): { readonly name: string; readonly doubt: string | null } => {
  const name = found(tz?.replace(/^:/, ""))
  if (name !== undefined) return { name, doubt: null }
  const what = tz === undefined ? "/etc/localtime is the file of no time zone" : `TZ is "${tz}", which is no time zone`
  return { name: "UTC", doubt: `${what} that is known here: times without a zone are UTC's` }
}

/** Sets TZ to the zone's name, which JavaScript can read. */
export const settle = (env: { TZ?: string | undefined }): void => {
  const { doubt, name } = zoneOf(env.TZ)
  if (env.TZ !== undefined || doubt !== null) env.TZ = name
}
