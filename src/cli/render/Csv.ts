/**
 * Csv: rows as comma-separated values (RFC 4180), with a header. Pure.
 *
 * Guarantees: a field is read back as it is, line breaks and quotes too; a text that a spreadsheet would take for a
 * formula (it begins with =, +, -, @, a tab or a carriage return) has an apostrophe before it and is text; a number
 * is a number, and what is not known is empty.
 */

export type Value = string | number | boolean | null

export interface Field<R> {
  readonly name: string
  readonly of: (row: R) => Value
}

const FORMULA = /^[=+\-@\t\r]/u

const fieldOf = (value: Value): string => {
  if (value === null) return ""
  // a sum of parts of a cent has more digits than it has sense
  if (typeof value !== "string") return typeof value === "number" ? String(Number(value.toFixed(6))) : String(value)
  const safe = FORMULA.test(value) ? `'${value}` : value
  return /[",\n\r]/u.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A moment, as spreadsheets and scripts read it. */
export const moment = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())

/** The lines, without their ends. */
export const csv = <R>(fields: ReadonlyArray<Field<R>>, rows: ReadonlyArray<R>): ReadonlyArray<string> => [
  fields.map(({ name }) => fieldOf(name)).join(","),
  ...rows.map((row) => fields.map(({ of }) => fieldOf(of(row))).join(","))
]
