/**
 * OwnZone: determines the machine's time zone from the variable TZ, which can contain a name, a file, or POSIX rules,
 * as in the C library. JavaScript knows only names, so the program's entry points set TZ to the name before the first
 * use.
 *
 * Guarantees: the result is always a usable zone. If the zone cannot be determined, the result is UTC with a reason.
 */
import { readFileSync, realpathSync } from "node:fs"
import { attempt } from "../../config/Attempt.ts"

const ROOT = "/usr/share/zoneinfo"

/** The canonical name of a time zone; undefined if there is no such zone. */
const listed = (name: string | undefined): string | undefined =>
  name && attempt(() => new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone)

/** The last of the system's time zones whose zone file passes the check `holds`. */
const zoneWhose = (holds: (file: Buffer) => boolean): string | undefined =>
  [...Intl.supportedValuesOf("timeZone"), "UTC"].findLast(
    (name) => attempt(() => holds(readFileSync(`${ROOT}/${name}`))) === true
  )

/**
 * The time zone for a zone file, found by the file's path, or by comparing its content with the system's zone files.
 */
const ofFile = (path: string): string | undefined => {
  const real = attempt(() => realpathSync(path)) ?? path
  const named = listed(real.split("/zoneinfo/")[1]?.replace(/^(?:posix|right)\//, ""))
  const copied = named === undefined ? attempt(() => readFileSync(real)) : undefined
  return copied === undefined ? named : zoneWhose((file) => file.equals(copied))
}

/** The time zone with POSIX rules such as `CET-1CEST,M3.5.0,M10.5.0/3`. Zone files end with such rules. */
const ofRules = (rules: string): string | undefined => {
  const [, sign, hours] = /^(?:[A-Za-z]{3,}|<[-+\w]+>)([-+]?)0?(\d{1,2})(?::?00)*$/.exec(rules) ?? []
  if (hours !== undefined) return listed(hours === "0" ? "UTC" : `Etc/GMT${sign || "+"}${hours}`)
  return zoneWhose((file) => file.subarray(-100).toString("latin1").endsWith(`\n${rules}\n`))
}

const found = (tz: string | undefined): string | undefined => {
  if (tz === undefined) return listed(Intl.DateTimeFormat().resolvedOptions().timeZone) ?? ofFile("/etc/localtime")
  if (tz === "") return "UTC"
  if (tz.startsWith("/")) return ofFile(tz)
  // skip names such as UTC+3, because JavaScript reads their sign with the opposite meaning
  return (/^(?:UTC|GMT)[-+]\d/.test(tz) ? undefined : listed(tz)) ?? ofRules(tz) ?? ofFile(`${ROOT}/${tz}`)
}

/**
 * Determines the time zone. `tz`: value of the variable TZ. `doubt` in the result: why the zone is only a guess; null
 * if it is certain.
 */
export const zoneOf = (tz: string | undefined): { readonly name: string; readonly doubt: string | null } => {
  const name = found(tz?.replace(/^:/, ""))
  if (name !== undefined) return { name, doubt: null }
  const what =
    tz === undefined
      ? "/etc/localtime is not the file of a known time zone"
      : `TZ is "${tz}", which is not a known time zone`
  return { name: "UTC", doubt: `${what}, so times without a zone are in UTC` }
}

/** Sets TZ to the name of the time zone, which JavaScript can read. */
export const settle = (env: { TZ?: string | undefined }): void => {
  const { doubt, name } = zoneOf(env.TZ)
  if (env.TZ !== undefined || doubt !== null) env.TZ = name
}
