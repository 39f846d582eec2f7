/**
 * SqlitePages: finds the bytes of an SQLite file that hold data, read from the file format and not by SQLite: an
 * independent check of where a flipped bit has no effect. https://sqlite.org/fileformat2.html
 */
import { readFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

/** `ignored`: a field that SQLite writes, but that does not affect the stored data. */
export type Use = "stored" | "unused" | "ignored"

const STORED = 1
const IGNORED = 2

class Pages {
  readonly bytes: Buffer
  readonly marks: Uint8Array
  readonly size: number

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.marks = new Uint8Array(bytes.length)
    const size = bytes.readUInt16BE(16)
    this.size = size === 1 ? 65_536 : size
  }

  mark(from: number, length: number, as = STORED): void {
    this.marks.fill(as, from, from + length)
  }

  at(page: number): number {
    return (page - 1) * this.size
  }

  varint(from: number): readonly [value: number, length: number] {
    let value = 0
    for (let index = 0; index < 8; index++) {
      const byte = this.bytes[from + index]!
      value = value * 128 + (byte & 127)
      if (byte < 128) return [value, index + 1]
    }
    return [value * 256 + this.bytes[from + 8]!, 9]
  }

  tree(page: number, rowid: boolean, isSchema = false): void {
    const start = this.at(page)
    const head = start + (page === 1 ? 100 : 0)
    const kind = this.bytes[head]!
    const isLeaf = kind === 13 || kind === 10
    const isTable = kind === 13 || kind === 5
    const length = isLeaf ? 8 : 12
    const cells = this.bytes.readUInt16BE(head + 3)
    this.mark(head, length + cells * 2)
    for (let block = this.bytes.readUInt16BE(head + 1); block !== 0; block = this.bytes.readUInt16BE(start + block)) {
      this.mark(start + block, 4)
    }
    for (let index = 0; index < cells; index++) {
      const cell = start + this.bytes.readUInt16BE(head + length + index * 2)
      if (!isLeaf) this.tree(this.bytes.readUInt32BE(cell), rowid, isSchema)
      this.cell(cell, isLeaf, isTable, rowid, isSchema)
    }
    if (!isLeaf) this.tree(this.bytes.readUInt32BE(head + 8), rowid, isSchema)
  }

  private cell(cell: number, isLeaf: boolean, isTable: boolean, rowid: boolean, isSchema = false): void {
    let at = cell + (isLeaf ? 0 : 4)
    if (isTable && !isLeaf) return this.mark(cell, 4 + this.varint(at)[1])
    const [payload, bytes] = this.varint(at)
    at += bytes
    const key = at
    if (isTable) at += this.varint(at)[1]
    const usable = this.size
    const most = isTable ? usable - 35 : Math.floor(((usable - 12) * 64) / 255) - 23
    const least = Math.floor(((usable - 12) * 32) / 255) - 23
    const fits = least + ((payload - least) % (usable - 4))
    const local = payload <= most ? payload : fits <= most ? fits : least
    this.mark(cell, at - cell + local)
    // the rowid of a definition in the schema table
    if (isTable && isSchema) this.mark(key, at - key, IGNORED)
    if (isTable && rowid) {
      const header = this.varint(at)[1]
      // the key's serial type in the record: the key itself is in the cell's rowid
      this.mark(at + header, 1, IGNORED)
    }
    if (local === payload) return
    this.mark(at + local, 4)
    let left = payload - local
    for (let page = this.bytes.readUInt32BE(at + local); page !== 0;) {
      const start = this.at(page)
      this.mark(start, 4 + Math.min(left, usable - 4))
      left -= usable - 4
      page = this.bytes.readUInt32BE(start)
    }
  }

  free(): void {
    for (let page = this.bytes.readUInt32BE(32); page !== 0; page = this.bytes.readUInt32BE(this.at(page))) {
      this.mark(this.at(page), 8 + this.bytes.readUInt32BE(this.at(page) + 4) * 4)
    }
  }

  /** Marks the pointer-map pages. */
  map(): void {
    if (this.bytes.readUInt32BE(52) === 0) return
    const pages = this.bytes.length / this.size
    const each = Math.floor(this.size / 5)
    for (let page = 2; page <= pages; page += each + 1) this.mark(this.at(page), Math.min(each, pages - page) * 5)
  }
}

/** The use of each byte of an undamaged file. */
export const usesOf = (file: string): ((offset: number) => Use) => {
  const database = new DatabaseSync(file, { readOnly: true })
  const roots = database.prepare("SELECT rootpage, sql FROM sqlite_master WHERE rootpage > 0").all() as Array<{
    rootpage: number
    sql: string | null
  }>
  database.close()
  const pages = new Pages(readFileSync(file))
  pages.mark(0, 100)
  // the schema cookie, and the version of SQLite that wrote the file last
  pages.mark(40, 4, IGNORED)
  pages.mark(96, 4, IGNORED)
  pages.tree(1, false, true)
  for (const { rootpage, sql } of roots) pages.tree(rootpage, sql?.includes("INTEGER PRIMARY KEY") === true)
  pages.free()
  pages.map()
  return (offset) => (["unused", "stored", "ignored"] as const)[pages.marks[offset]!]!
}
