/**
 * Csv: formats rows as comma-separated values (RFC 4180), with a header. Pure.
 *
 * Guarantees: a reader gets each field back unchanged, including line breaks and quotes. An apostrophe is added only in
 * front of text that a spreadsheet would run as a formula, because it begins with =, +, -, @, a tab or a carriage
 * return. A number stays a number. An unknown value is an empty field.
 */

export type Value = string | number | boolean | null

export interface Field<R> {
  readonly name: string
  readonly of: (row: R) => Value
}

const FORMULA = /^[=+\-@\t\r]/u

const fieldOf = (value: Value): string => {
  if (value === null) return ""
  // round the number, because a sum of fractions of a cent has meaningless digits
  if (typeof value !== "string") return typeof value === "number" ? String(Number(value.toFixed(6))) : String(value)
  const safe = FORMULA.test(value) ? `'${value}` : value
  return /[",\n\r]/u.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A time in ISO format, which spreadsheets and scripts can read. `at`: ms since the epoch. */
export const moment = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())

/** Formats rows, without line ends. */
export const csv = <R>(fields: ReadonlyArray<Field<R>>, rows: ReadonlyArray<R>): ReadonlyArray<string> => [
  fields.map(({ name }) => fieldOf(name)).join(","),
  ...rows.map((row) => fields.map(({ of }) => fieldOf(of(row))).join(","))
]
