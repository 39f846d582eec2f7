/**
 * WasmSqlite: the real SQLite, compiled to wasm, on a `TornDisk`, with the methods that the
 * log uses of `node:sqlite`. Calls are synchronous, and chance and time are the disk's, so a
 * seed's story is the same each time.
 *
 * Locks and the shared memory of the write-ahead log are there as on Linux, so that several
 * connections are open at a time. A process that dies leaves neither behind.
 */
import init, { type Sqlite3Static, type WasmPointer } from "@sqlite.org/sqlite-wasm"
import type { Database, Output, Sqlite, Statement, Value } from "../../../src/core/event-log/Sqlite.ts"
import { Inode, IOERR, OK, type TornDisk } from "./TornDisk.ts"

const VFS = "torn"
const BUSY = 5
const CANTOPEN = 14
const NOTFOUND = 12
const ROW = 100
const DONE = 101
const INTEGER = 1
const TEXT = 3
const NULL = 5
const OPEN_READONLY = 1
const OPEN_READWRITE = 2
const OPEN_CREATE = 4
const OPEN_DELETE_ON_CLOSE = 8
const OPEN_JOURNAL = 0x800
const OPEN_WAL = 0x80000
const POWERSAFE_OVERWRITE = 0x1000
/** Slots of locks of the shared memory. */
const SLOTS = 8
const SHM_UNLOCK = 1
const SHM_EXCLUSIVE = 8
/** Of a `sqlite3_file`: a pointer to its methods. */
const FILE_BYTES = 4
/** Julian day of the simulation. */
const DAY = 2_461_000.5

interface Handle {
  readonly name: string
  readonly inode: Inode
  readonly withFolder: boolean
  readonly isTemporary: boolean
  level: number
  readonly shared: Set<number>
  readonly exclusive: Set<number>
  hasShm: boolean
}

class SqliteError extends Error {
  readonly code = "ERR_SQLITE_ERROR"
  readonly errcode: number

  constructor(message: string, errcode: number) {
    super(message)
    this.errcode = errcode
  }
}

/** A string as such trips over a bug of `sqlite3_bind_text` in 3.53.4. */
const utf8 = (text: string): ArrayBuffer => new Uint8Array(new TextEncoder().encode(text)).buffer

class WasmStatement implements Statement {
  private readonly api: Sqlite3Static["capi"]
  private readonly connection: WasmDatabase
  readonly pointer: WasmPointer
  private arrays = false
  private names: ReadonlyArray<string> | undefined

  constructor(connection: WasmDatabase, pointer: WasmPointer) {
    this.api = connection.api
    this.connection = connection
    this.pointer = pointer
  }

  run(...parameters: Array<Value>): unknown {
    this.steps(parameters, Number.POSITIVE_INFINITY)
    return {}
  }

  get(...parameters: Array<Value>): Output | undefined {
    return this.steps(parameters, 1)[0]
  }

  all(...parameters: Array<Value>): ReadonlyArray<Output> {
    return this.steps(parameters, Number.POSITIVE_INFINITY)
  }

  setReturnArrays(enabled: boolean): void {
    this.arrays = enabled
  }

  private steps(parameters: ReadonlyArray<Value>, most: number): Array<Output> {
    const { api, pointer } = this
    const rows: Array<Output> = []
    try {
      parameters.forEach((value, index) => this.bind(index + 1, value))
      while (rows.length < most) {
        const code = api.sqlite3_step(pointer)
        if (code === DONE) break
        if (code !== ROW) throw this.connection.error()
        rows.push(this.row())
      }
      return rows
    } finally {
      api.sqlite3_reset(pointer)
      api.sqlite3_clear_bindings(pointer)
    }
  }

  private bind(at: number, value: Value): void {
    const { api, pointer } = this
    // parameters are null until they are bound
    if (value === null) return
    const code =
      typeof value === "string"
        ? api.sqlite3_bind_text(pointer, at, utf8(value), -1, api.SQLITE_TRANSIENT)
        : typeof value === "bigint" || Number.isSafeInteger(value)
          ? api.sqlite3_bind_int64(pointer, at, BigInt(value as number))
          : typeof value === "number"
            ? api.sqlite3_bind_double(pointer, at, value)
            : value instanceof Uint8Array
              ? api.sqlite3_bind_blob(pointer, at, value, value.length, api.SQLITE_TRANSIENT)
              : undefined
    if (code === undefined) throw new TypeError(`Provided value cannot be bound to SQLite parameter ${at}.`)
    if (code !== OK) throw this.connection.error()
  }

  private row(): Output {
    const { api, connection, pointer } = this
    const { exports, heap8u } = connection.wasm
    const names = (this.names ??= Array.from({ length: api.sqlite3_column_count(pointer) }, (_, index) =>
      api.sqlite3_column_name(pointer, index)
    ))
    const values = names.map((_, index) => {
      // past the wrappers, which take ten times as long
      const type = exports["sqlite3_column_type"]!(pointer, index)
      if (type === INTEGER) return Number(exports["sqlite3_column_int64"]!(pointer, index))
      if (type === NULL) return null
      if (type !== TEXT) return api.sqlite3_column_js(pointer, index)
      const at = Number(exports["sqlite3_column_text"]!(pointer, index))
      const length = Number(exports["sqlite3_column_bytes"]!(pointer, index))
      return connection.text(heap8u().subarray(at, at + length))
    })
    if (this.arrays) return values as unknown as Output
    const row: { [column: string]: unknown } = Object.create(null)
    for (let index = 0; index < names.length; index++) row[names[index]!] = values[index]
    return row as Output
  }
}

class WasmDatabase implements Database {
  readonly api: Sqlite3Static["capi"]
  private readonly pointer: WasmPointer
  private readonly statements: Array<WasmStatement> = []
  private readonly closed: (database: WasmDatabase) => void
  readonly wasm: Sqlite3Static["wasm"]
  private readonly decoder = new TextDecoder()
  isOpen = true

  constructor({ capi, wasm }: Sqlite3Static, name: string, flags: number, closed: (one: WasmDatabase) => void) {
    this.api = capi
    this.wasm = wasm
    this.closed = closed
    const out = wasm.alloc(4)
    const code = capi.sqlite3_open_v2(name, out, flags, VFS)
    this.pointer = wasm.peekPtr(out)
    wasm.dealloc(out)
    if (code !== OK) {
      const error = this.error()
      capi.sqlite3_close_v2(this.pointer)
      throw error
    }
    capi.sqlite3_extended_result_codes(this.pointer, 1)
  }

  get isTransaction(): boolean {
    return this.api.sqlite3_get_autocommit(this.pointer) === 0
  }

  exec(sql: string): void {
    this.assertOpen()
    if (this.api.sqlite3_exec(this.pointer, sql, 0, 0, 0) !== OK) throw this.error()
  }

  prepare(sql: string): Statement {
    this.assertOpen()
    const out = this.wasm.alloc(4)
    try {
      const code = this.api.sqlite3_prepare_v3(this.pointer, sql, -1, 0, out, null)
      if (code !== OK) throw this.error()
      const statement = new WasmStatement(this, this.wasm.peekPtr(out))
      this.statements.push(statement)
      return statement
    } finally {
      this.wasm.dealloc(out)
    }
  }

  close(): void {
    this.assertOpen()
    this.isOpen = false
    for (const { pointer } of this.statements) this.api.sqlite3_finalize(pointer)
    this.api.sqlite3_close_v2(this.pointer)
    this.closed(this)
  }

  text(bytes: Uint8Array): string {
    return this.decoder.decode(bytes)
  }

  error(): SqliteError {
    return new SqliteError(this.api.sqlite3_errmsg(this.pointer), this.api.sqlite3_extended_errcode(this.pointer))
  }

  private assertOpen(): void {
    if (!this.isOpen) throw new Error("database is not open")
  }
}

export class WasmSqlite implements Sqlite {
  private readonly sqlite: Sqlite3Static
  private readonly handles = new Map<WasmPointer, Handle>()
  /** The shared memory of a file, in pieces. */
  private readonly shared = new Map<Inode, Array<WasmPointer>>()
  private readonly databases = new Set<WasmDatabase>()
  private disk!: TornDisk

  constructor(sqlite: Sqlite3Static) {
    this.sqlite = sqlite
    this.install()
  }

  static async load(): Promise<WasmSqlite> {
    return new WasmSqlite(await init())
  }

  /** All files are on this disk from now on. */
  mount(disk: TornDisk): void {
    this.disk = disk
    // chance of this process and of other seeds is forgotten
    this.sqlite.capi.sqlite3_randomness(0, 0)
  }

  readonly open = (file: string, options?: { readonly readOnly?: boolean }): Database => {
    const flags = options?.readOnly === true ? OPEN_READONLY : OPEN_READWRITE | OPEN_CREATE
    const database = new WasmDatabase(this.sqlite, file, flags, (one) => this.databases.delete(one))
    this.databases.add(database)
    return database
  }

  readonly remove = (file: string): void => {
    if (this.disk.remove(file, false) !== OK) throw Object.assign(new Error(`EIO: ${file}`), { code: "EIO" })
  }

  /** Connections that are open. */
  get connections(): number {
    return this.databases.size
  }

  /** The process dies: its connections are gone, and nothing of them reaches the disk any more. */
  die(): void {
    this.disk.isDead = true
    for (const database of this.databases) database.close()
  }

  private install(): void {
    const { capi, vfs, wasm } = this.sqlite
    const io = new capi.sqlite3_io_methods()
    const own = new capi.sqlite3_vfs()
    Object.assign(io, { $iVersion: 2 })
    own.$iVersion = 1
    own.$szOsFile = FILE_BYTES
    own.$mxPathname = 512
    io.installMethods({ ...this.fileMethods(), ...this.lockMethods(), ...this.sharedMethods() })
    own.installMethods(this.nameMethods(io.pointer, wasm))
    vfs.installVfs({ vfs: { struct: own, name: VFS, asDefault: true, methods: {} } })
  }

  private nameMethods(io: WasmPointer, wasm: Sqlite3Static["wasm"]) {
    const nameAt = (pointer: WasmPointer) => wasm.cstrToJs(pointer) ?? ""
    return {
      xOpen: (_: WasmPointer, zName: WasmPointer, file: WasmPointer, flags: number, out: WasmPointer): number => {
        wasm.poke32(file, 0)
        const name = zName === 0 ? "" : nameAt(zName)
        const isTemporary = zName === 0 || (flags & OPEN_DELETE_ON_CLOSE) !== 0
        const inode = isTemporary ? new Inode() : this.disk.open(name, (flags & OPEN_CREATE) !== 0)
        if (inode === undefined || this.disk.isDead) return CANTOPEN
        const withFolder = (flags & (OPEN_JOURNAL | OPEN_WAL)) !== 0
        this.handles.set(file, {
          name,
          inode,
          withFolder,
          isTemporary,
          level: 0,
          shared: new Set(),
          exclusive: new Set(),
          hasShm: false
        })
        wasm.poke32(file, io)
        if (out !== 0) wasm.poke32(out, flags)
        return OK
      },
      xDelete: (_: WasmPointer, zName: WasmPointer, syncDir: number): number =>
        this.disk.remove(nameAt(zName), syncDir !== 0),
      xAccess: (_: WasmPointer, zName: WasmPointer, __: number, out: WasmPointer): number => {
        wasm.poke32(out, Number(this.disk.exists(nameAt(zName))))
        return OK
      },
      xFullPathname: (_: WasmPointer, zName: WasmPointer, size: number, out: WasmPointer): number =>
        wasm.cstrncpy(out, zName, size) < size ? OK : CANTOPEN,
      xRandomness: (_: WasmPointer, length: number, out: WasmPointer): number => {
        this.disk.random(wasm.heap8u().subarray(out, out + length))
        return length
      },
      xSleep: (): number => 0,
      xCurrentTime: (_: WasmPointer, out: WasmPointer): number => {
        wasm.poke64f(out, DAY)
        return OK
      },
      xGetLastError: (): number => OK
    }
  }

  private fileMethods() {
    const { wasm } = this.sqlite
    const of = (file: WasmPointer) => this.handles.get(file)!
    return {
      xClose: (file: WasmPointer): number => {
        this.unmap(of(file))
        this.handles.delete(file)
        return OK
      },
      // an `iOfst` is 64 bits wide and comes as a bigint, whatever the types say
      xRead: (file: WasmPointer, to: WasmPointer, length: number, at: number): number =>
        this.disk.read(of(file).inode, Number(at), wasm.heap8u().subarray(to, to + length)),
      xWrite: (file: WasmPointer, from: WasmPointer, length: number, at: number): number =>
        this.disk.write(of(file).inode, Number(at), wasm.heap8u().subarray(from, from + length)),
      xTruncate: (file: WasmPointer, size: number): number => this.disk.truncate(of(file).inode, Number(size)),
      xSync: (file: WasmPointer): number => this.disk.sync(of(file).inode, of(file).withFolder),
      xFileSize: (file: WasmPointer, out: WasmPointer): number => {
        wasm.poke64(out, BigInt(of(file).inode.live.size))
        return OK
      },
      xFileControl: (): number => NOTFOUND,
      xSectorSize: (): number => 4096,
      xDeviceCharacteristics: (): number => POWERSAFE_OVERWRITE
    }
  }

  private lockMethods() {
    const { wasm } = this.sqlite
    return {
      xLock: (file: WasmPointer, level: number): number => {
        const own = this.handles.get(file)!
        if (own.level >= level) return OK
        const highest = Math.max(0, ...this.others(own).map((one) => one.level))
        if (highest >= 3 || (level >= 2 && highest >= 2)) return BUSY
        if (level === 4 && highest >= 1) {
          own.level = 3
          return BUSY
        }
        own.level = level
        return OK
      },
      xUnlock: (file: WasmPointer, level: number): number => {
        const own = this.handles.get(file)!
        own.level = Math.min(own.level, level)
        return OK
      },
      xCheckReservedLock: (file: WasmPointer, out: WasmPointer): number => {
        const own = this.handles.get(file)!
        wasm.poke32(out, Number([own, ...this.others(own)].some(({ level }) => level >= 2)))
        return OK
      }
    }
  }

  private sharedMethods() {
    const { wasm } = this.sqlite
    return {
      xShmMap: (file: WasmPointer, page: number, size: number, extend: number, out: WasmPointer): number => {
        if (this.disk.isDead) return IOERR
        const own = this.handles.get(file)!
        own.hasShm = true
        const regions = this.shared.get(own.inode) ?? []
        this.shared.set(own.inode, regions)
        for (let missing = extend === 0 ? 0 : page + 1 - regions.length; missing > 0; missing--) {
          const region = wasm.alloc(size)
          wasm.heap8u().fill(0, region, region + size)
          regions.push(region)
        }
        wasm.poke32(out, regions[page] ?? 0)
        return OK
      },
      xShmLock: (file: WasmPointer, offset: number, count: number, flags: number): number => {
        const own = this.handles.get(file)!
        const slots = Array.from({ length: Math.min(count, SLOTS - offset) }, (_, index) => offset + index)
        if ((flags & SHM_UNLOCK) !== 0) {
          for (const slot of slots) {
            own.shared.delete(slot)
            own.exclusive.delete(slot)
          }
          return OK
        }
        const isExclusive = (flags & SHM_EXCLUSIVE) !== 0
        const others = this.others(own)
        if (
          slots.some((slot) => others.some((one) => one.exclusive.has(slot) || (isExclusive && one.shared.has(slot))))
        )
          return BUSY
        for (const slot of slots) (isExclusive ? own.exclusive : own.shared).add(slot)
        return OK
      },
      xShmBarrier: (): void => {},
      xShmUnmap: (file: WasmPointer): number => {
        this.unmap(this.handles.get(file)!)
        return OK
      }
    }
  }

  /** Other connections' handles of the same file. */
  private others(own: Handle): ReadonlyArray<Handle> {
    return [...this.handles.values()].filter((one) => one !== own && one.inode === own.inode)
  }

  private unmap(own: Handle): void {
    own.shared.clear()
    own.exclusive.clear()
    if (!own.hasShm) return
    own.hasShm = false
    if (this.others(own).some(({ hasShm }) => hasShm)) return
    for (const region of this.shared.get(own.inode) ?? []) this.sqlite.wasm.dealloc(region)
    this.shared.delete(own.inode)
  }
}
