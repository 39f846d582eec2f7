/**
 * SideFiles: the files beside a store that are made of its runes, as `verify` looks at them.
 *
 * Guarantees: what is wrong with one of them is said, and loses nothing: a start makes it anew. Free of imports at run
 * time but Node's: the thread that verifies loads this file.
 */
import { actorFileOf, FiledCheck } from "./ActorIndex.ts"
import { type Database, nodeSqlite } from "./Sqlite.ts"
import type { StoredRune } from "./StoredRune.ts"
import { indexFileOf, problemsOf } from "./StreamIndex.ts"

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const structureOf = (database: Database): ReadonlyArray<string> =>
  database
    .prepare("PRAGMA integrity_check(3)")
    .all()
    .map((row) => String(Object.values(row)[0]).replaceAll("\n", " "))
    .filter((said) => said !== "ok")

/** SQLITE_ERROR (no such table: an empty file), SQLITE_BUSY, SQLITE_CANTOPEN: there is none, or it is in the making. */
const NONE = new Set([1, 5, 14])

export class SideFiles {
  private readonly actorFile: string
  readonly problems: Array<string> = []
  /** Whether the file of actors is to be filled anew. */
  isRefilled = false
  private actors: { readonly database: Database; readonly check: FiledCheck } | undefined

  /** `file`: the store's. */
  constructor(file: string) {
    this.actorFile = actorFileOf(file)
    const index = indexFileOf(file)
    this.attempt(index, () => {
      const database = nodeSqlite.open(index, { readOnly: true })
      try {
        this.tell(index, [...structureOf(database), ...problemsOf(database)])
      } finally {
        database.close()
      }
    })
    this.attempt(this.actorFile, () => {
      const database = nodeSqlite.open(this.actorFile, { readOnly: true })
      try {
        this.tell(this.actorFile, structureOf(database))
        this.actors = { database, check: new FiledCheck(database) }
      } catch (error) {
        database.close()
        throw error
      }
    })
  }

  next(runes: ReadonlyArray<StoredRune>): void {
    const { actors } = this
    if (actors !== undefined) this.attempt(this.actorFile, () => runes.forEach((rune) => actors.check.next(rune)))
  }

  end(): ReadonlyArray<string> {
    const { actors } = this
    if (actors !== undefined) {
      this.tell(this.actorFile, actors.check.problems)
      actors.database.close()
    }
    return this.problems
  }

  private tell(file: string, problems: ReadonlyArray<string>): void {
    for (const problem of problems) {
      this.problems.push(`${file} is damaged: ${problem} (nothing is lost: remove the file while no daemon runs)`)
      if (file === this.actorFile) this.isRefilled = true
    }
  }

  private attempt(file: string, look: () => void): void {
    try {
      look()
    } catch (error) {
      if (!NONE.has((error as { readonly errcode?: number }).errcode ?? 0)) this.tell(file, [textOf(error)])
      this.actors?.database.close()
      this.actors = undefined
    }
  }
}
