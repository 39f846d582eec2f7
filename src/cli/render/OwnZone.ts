/**
 * OwnZone: the machine's own time zone by the variable TZ, as the C library reads it: a name, a file, or POSIX rules.
 * JavaScript knows only names, so that the entries of the program set TZ to the name before anything asks.
 *
 * Guarantees: it always answers with a zone that can be used: UTC, and why, if nobody can know the zone.
 */
import { readFileSync, realpathSync } from "node:fs"
import { attempt } from "../../config/Attempt.ts"

const ROOT = "/usr/share/zoneinfo"

/** The zone's own name; undefined: it is none. */
const listed = (name: string | undefined): string | undefined =>
  name && attempt(() => new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone)

/** The last of the system's zones whose file is so. */
const zoneWhose = (holds: (file: Buffer) => boolean): string | undefined =>
  [...Intl.supportedValuesOf("timeZone"), "UTC"].findLast(
    (name) => attempt(() => holds(readFileSync(`${ROOT}/${name}`))) === true
  )

/** A file is a zone's own, by its path, or a copy of one. */
const ofFile = (path: string): string | undefined => {
  const real = attempt(() => realpathSync(path)) ?? path
  const named = listed(real.split("/zoneinfo/")[1]?.replace(/^(?:posix|right)\//, ""))
  const copied = named === undefined ? attempt(() => readFileSync(real)) : undefined
  return copied === undefined ? named : zoneWhose((file) => file.equals(copied))
}

/** Rules such as `CET-1CEST,M3.5.0,M10.5.0/3`: the end of a zone's file has its rules as such a text. */
const ofRules = (rules: string): string | undefined => {
  const [, sign, hours] = /^(?:[A-Za-z]{3,}|<[-+\w]+>)([-+]?)0?(\d{1,2})(?::?00)*$/.exec(rules) ?? []
  if (hours !== undefined) return listed(hours === "0" ? "UTC" : `Etc/GMT${sign || "+"}${hours}`)
  return zoneWhose((file) => file.subarray(-100).toString("latin1").endsWith(`\n${rules}\n`))
}

const found = (tz: string | undefined): string | undefined => {
  if (tz === undefined) return listed(Intl.DateTimeFormat().resolvedOptions().timeZone) ?? ofFile("/etc/localtime")
  if (tz === "") return "UTC"
  if (tz.startsWith("/")) return ofFile(tz)
  // JavaScript takes the sign of these for the other one
  return (/^(?:UTC|GMT)[-+]\d/.test(tz) ? undefined : listed(tz)) ?? ofRules(tz) ?? ofFile(`${ROOT}/${tz}`)
}

/** `tz`: the variable's value; `doubt`: why the zone is a guess. */
export const zoneOf = (tz: string | undefined): { readonly name: string; readonly doubt: string | null } => {
  const name = found(tz?.replace(/^:/, ""))
  if (name !== undefined) return { name, doubt: null }
  const what = tz === undefined ? "/etc/localtime is the file of no time zone" : `TZ is "${tz}", which is no time zone`
  return { name: "UTC", doubt: `${what} that is known here: times without a zone are UTC's` }
}

/** Writes the zone's name where JavaScript reads it. */
export const settle = (env: { TZ?: string | undefined }): void => {
  const { doubt, name } = zoneOf(env.TZ)
  if (env.TZ !== undefined || doubt !== null) env.TZ = name
}
