/**
 * TornDisk: a disk in memory that forgets. What is written is seen at once by the program
 * and is durable with the next sync; at a power cut each write since then is kept, lost, or
 * torn at a sector, and so are lengths and names.
 *
 * A sync that fails is one of Linux: what it was to write is on the disk or is lost, is
 * still seen, and no later sync writes it. A write without room for it writes its beginning.
 */
import type { Chance } from "../Chance.ts"

const SECTOR = 512

export const OK = 0
export const FULL = 13
export const IOERR = 10
export const IOERR_READ = 266
export const IOERR_SHORT_READ = 522
export const IOERR_WRITE = 778
export const IOERR_FSYNC = 1034
export const IOERR_TRUNCATE = 1546
export const IOERR_DELETE = 2570

/** Bytes that grow. */
class Bytes {
  private data = new Uint8Array(4096)
  size = 0

  write(bytes: Uint8Array, at: number): void {
    this.resize(Math.max(this.size, at + bytes.length))
    this.data.set(bytes, at)
  }

  resize(size: number): void {
    if (size > this.data.length) {
      const data = new Uint8Array(Math.max(size, this.data.length * 2))
      data.set(this.data.subarray(0, this.size))
      this.data = data
    } else if (size < this.size) this.data.fill(0, size, this.size)
    this.size = size
  }

  read(at: number, length: number): Uint8Array {
    return this.data.subarray(at, Math.min(this.size, at + length))
  }

  copy(): Bytes {
    const copy = new Bytes()
    copy.write(this.read(0, this.size), 0)
    return copy
  }
}

type Change = { readonly at: number; readonly bytes: Uint8Array } | { readonly size: number }

/** A file, whatever its name is. */
export class Inode {
  live = new Bytes()
  durable = new Bytes()
  pending: Array<Change> = []
}

/** How often things go wrong, by operation. */
export interface Rates {
  readonly read: number
  readonly write: number
  readonly sync: number
  /** Each fsync says that it is done and does nothing: a disk that lies. */
  readonly lies: boolean
}

const NONE: Rates = { read: 0, write: 0, sync: 0, lies: false }

const apply = (to: Bytes, change: Change): void => {
  if ("size" in change) to.resize(change.size)
  else to.write(change.bytes, change.at)
}

export class TornDisk {
  private names = new Map<string, Inode>()
  private durableNames = new Map<string, Inode>()
  private readonly chance: Chance
  rates = NONE
  isFull = false
  /** Writes, syncs, lengths and names so far. */
  operations = 0
  /** Errors that were given. */
  faults = 0
  private cutAt = Number.POSITIVE_INFINITY
  private atSync = false
  /** The program is dead, or the power is off: nothing reaches the disk. */
  isDead = false

  constructor(chance: Chance) {
    this.chance = chance
  }

  /** The program ends in the operation after so many, or in the sync that comes next. */
  cutAfter(operations: number, atSync: boolean): void {
    this.cutAt = this.operations + operations
    this.atSync = atSync
  }

  calm(): void {
    this.rates = { ...NONE, lies: this.rates.lies }
    this.isFull = false
  }

  random(into: Uint8Array): void {
    for (let index = 0; index < into.length; index++) into[index] = this.chance.below(256)
  }

  // --- as the program sees it

  open(name: string, create: boolean): Inode | undefined {
    const known = this.names.get(name)
    if (known !== undefined || !create || this.isDead) return known
    if (!this.begins()) this.isDead = true
    const inode = new Inode()
    this.names.set(name, inode)
    return inode
  }

  exists(name: string): boolean {
    return (this.names.get(name)?.live.size ?? 0) > 0
  }

  read(inode: Inode, at: number, into: Uint8Array): number {
    if (this.isDead || this.fails(this.rates.read)) return IOERR_READ
    const bytes = inode.live.read(at, into.length)
    into.set(bytes)
    if (bytes.length === into.length) return OK
    into.fill(0, bytes.length)
    return IOERR_SHORT_READ
  }

  write(inode: Inode, at: number, bytes: Uint8Array): number {
    const isLast = !this.begins()
    if (this.isDead) return IOERR_WRITE
    const isFull = this.isFull && at + bytes.length > inode.live.size
    const fails = !isFull && this.fails(this.rates.write)
    const length = isFull || fails || isLast ? this.chance.below(bytes.length + 1) : bytes.length
    if (length > 0) this.change(inode, { at, bytes: bytes.slice(0, length) })
    if (isLast) this.isDead = true
    if (isFull) this.faults += 1
    return isLast || fails ? IOERR_WRITE : isFull ? FULL : OK
  }

  truncate(inode: Inode, size: number): number {
    const isLast = !this.begins()
    if (this.isDead) return IOERR_TRUNCATE
    if (!isLast && this.fails(this.rates.write)) return IOERR_TRUNCATE
    this.change(inode, { size })
    if (isLast) this.isDead = true
    return isLast ? IOERR_TRUNCATE : OK
  }

  /** `withFolder`: its name, and all others of its folder, are synced with it. */
  sync(inode: Inode, withFolder: boolean): number {
    const isLast = !this.begins(true)
    if (this.isDead) return IOERR_FSYNC
    const fails = isLast ? this.chance.is(0.5) : this.fails(this.rates.sync)
    if (fails) {
      // where the program dies in it, the power cut decides; a disk's error forgets what was to be written
      if (!isLast) {
        for (const change of inode.pending) if (this.chance.is(0.5)) apply(inode.durable, change)
        inode.pending = []
      }
    } else if (!this.rates.lies) {
      for (const change of inode.pending) apply(inode.durable, change)
      inode.pending = []
      if (withFolder) this.durableNames = new Map(this.names)
      else for (const [name, one] of this.names) if (one === inode) this.durableNames.set(name, inode)
    }
    if (isLast) this.isDead = true
    return fails ? IOERR_FSYNC : OK
  }

  remove(name: string, withFolder: boolean): number {
    const isLast = !this.begins()
    if (this.isDead) return IOERR_DELETE
    if (!isLast && this.fails(this.rates.write)) return IOERR_DELETE
    this.names.delete(name)
    if (withFolder && !this.rates.lies) this.durableNames = new Map(this.names)
    if (isLast) this.isDead = true
    return isLast ? IOERR_DELETE : OK
  }

  // --- what happens to it

  /** The program was killed; what it wrote stays seen. */
  restart(): void {
    this.isDead = false
    this.cutAt = Number.POSITIVE_INFINITY
  }

  /** The power is off and comes back. */
  powerCut(): void {
    const names = new Map<string, Inode>()
    for (const name of new Set([...this.durableNames.keys(), ...this.names.keys()])) {
      const [now, before] = [this.names.get(name), this.durableNames.get(name)]
      const inode = now === before || this.chance.is(0.5) ? now : before
      if (inode !== undefined) names.set(name, inode)
    }
    const luck = this.chance.pick([1, 5, 200])
    for (const inode of new Set(names.values())) {
      for (const change of inode.pending) this.half(inode.durable, change, luck)
      inode.pending = []
      inode.live = inode.durable.copy()
    }
    this.names = names
    this.durableNames = new Map(names)
    this.restart()
  }

  /** A copy of a file, durable, as somebody puts it aside. */
  backup(name: string): Uint8Array | undefined {
    const bytes = this.names.get(name)?.live
    return bytes?.read(0, bytes.size).slice()
  }

  /** The file is that of a backup; the files with these names are gone. */
  putBack(name: string, bytes: Uint8Array, gone: ReadonlyArray<string>): void {
    const inode = new Inode()
    inode.live.write(bytes, 0)
    inode.durable.write(bytes, 0)
    this.names.set(name, inode)
    for (const one of gone) this.names.delete(one)
    this.durableNames = new Map(this.names)
  }

  private begins(isSync = false): boolean {
    this.operations += 1
    return this.operations < this.cutAt || (this.atSync && !isSync)
  }

  private fails(rate: number): boolean {
    if (rate === 0 || !this.chance.is(rate)) return false
    this.faults += 1
    return true
  }

  private change(inode: Inode, change: Change): void {
    apply(inode.live, change)
    inode.pending.push(change)
  }

  /** Kept, lost, or torn: some of its sectors. */
  private half(to: Bytes, change: Change, luck: number): void {
    const fate = this.chance.weighed({ kept: luck, lost: 3, torn: 2 })
    if (fate === "lost") return
    if (fate === "kept" || "size" in change) return apply(to, change)
    const { at, bytes } = change
    for (let from = 0; from < bytes.length;) {
      const end = Math.min(bytes.length, from + SECTOR - ((at + from) % SECTOR))
      if (this.chance.is(0.5)) to.write(bytes.subarray(from, end), at + from)
      from = end
    }
  }
}
