/**
 * SideFileCheck: checks the side file next to a store for `verify`. The file is derived from the store's runes.
 *
 * Guarantees: problems of the file are reported, but they lose no data, because the next start rebuilds the file. At
 * run time this module uses no npm packages, because the verifying thread loads it.
 */
import { FiledCheck } from "./ActorIndex.ts"
import { type Database, nodeSqlite } from "./Sqlite.ts"
import type { StoredRune } from "./StoredRune.ts"
import { sideFileOf } from "./SideFile.ts"
import { problemsOf } from "./StreamIndex.ts"

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const structureOf = (database: Database): ReadonlyArray<string> =>
  database
    .prepare("PRAGMA integrity_check(3)")
    .all()
    .map((row) => String(Object.values(row)[0]).replaceAll("\n", " "))
    .filter((said) => said !== "ok")

/** SQLITE_ERROR (no such table: an empty file), SQLITE_BUSY, SQLITE_CANTOPEN: the file is missing or being created. */
const NONE = new Set([1, 5, 14])

/** Checks the side file next to a store while the store's runes are read. */
export class SideFileCheck {
  private readonly file: string
  readonly problems: Array<string> = []
  /** True if the side file must be rebuilt. */
  isRefilled = false
  private opened: { readonly database: Database; readonly check: FiledCheck } | undefined

  /** `file`: path of the store, not of its side file. */
  constructor(file: string) {
    this.file = sideFileOf(file)
    this.attempt(() => {
      const database = nodeSqlite.open(this.file, { readOnly: true })
      try {
        this.refill(structureOf(database))
        this.tell(problemsOf(database))
        this.opened = { database, check: new FiledCheck(database) }
      } catch (error) {
        database.close()
        throw error
      }
    })
  }

  next(runes: ReadonlyArray<StoredRune>): void {
    const { opened } = this
    if (opened !== undefined) this.attempt(() => runes.forEach((rune) => opened.check.next(rune)))
  }

  end(): ReadonlyArray<string> {
    this.refill(this.opened?.check.problems ?? [])
    this.opened?.database.close()
    return this.problems
  }

  private refill(problems: ReadonlyArray<string>): void {
    this.isRefilled ||= problems.length > 0
    this.tell(problems)
  }

  private tell(problems: ReadonlyArray<string>): void {
    for (const problem of problems) {
      this.problems.push(`${this.file} is damaged: ${problem} (nothing is lost: remove the file while no daemon runs)`)
    }
  }

  private attempt(look: () => void): void {
    try {
      look()
    } catch (error) {
      if (!NONE.has((error as { readonly errcode?: number }).errcode ?? 0)) this.refill([textOf(error)])
      this.opened?.database.close()
      this.opened = undefined
    }
  }
}
