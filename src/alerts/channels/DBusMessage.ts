/**
 * DBusMessage: encodes and decodes the D-Bus messages that notifications need. Pure.
 *
 * Guarantees: a message that is too long is an error, and nothing after it is read; a value of an unknown type ends the
 * reading of its message, but not the connection.
 */

export const MAX_MESSAGE = 1024 * 1024

export type Value =
  | { readonly type: "y" | "u" | "i"; readonly value: number }
  | { readonly type: "s" | "o" | "g"; readonly value: string }
  | { readonly type: "as"; readonly value: ReadonlyArray<string> }
  | { readonly type: "a{sv}"; readonly value: ReadonlyArray<readonly [string, Value]> }

export interface Call {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly body: ReadonlyArray<Value>
}

class Writer {
  private readonly parts: Array<number> = []

  get length(): number {
    return this.parts.length
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.parts)
  }

  align(to: number): void {
    while (this.parts.length % to !== 0) this.parts.push(0)
  }

  u32(value: number): void {
    this.align(4)
    this.setU32(this.parts.length, value)
  }

  setU32(at: number, value: number): void {
    for (let byte = 0; byte < 4; byte++) this.parts[at + byte] = (value >>> (8 * byte)) & 0xff
  }

  byte(value: number): void {
    this.parts.push(value & 0xff)
  }

  private text(value: string): void {
    for (const byte of Buffer.from(value)) this.parts.push(byte)
    this.parts.push(0)
  }

  /** Writes an array. `of` is the alignment of its elements. */
  array(of: number, elements: () => void): void {
    this.u32(0)
    const at = this.parts.length - 4
    this.align(of)
    const from = this.parts.length
    elements()
    this.setU32(at, this.parts.length - from)
  }

  signature(value: string): void {
    this.byte(value.length)
    this.text(value)
  }

  value(one: Value): void {
    switch (one.type) {
      case "y":
        return this.byte(one.value)
      case "u":
      case "i":
        return this.u32(one.value)
      case "g":
        return this.signature(one.value)
      case "s":
      case "o":
        this.u32(Buffer.byteLength(one.value))
        return this.text(one.value)
      case "as":
        return this.array(4, () => one.value.forEach((value) => this.value({ type: "s", value })))
      case "a{sv}":
        return this.array(8, () =>
          one.value.forEach(([key, value]) => {
            this.align(8)
            this.value({ type: "s", value: key })
            this.variant(value)
          })
        )
    }
  }

  variant(one: Value): void {
    this.signature(one.type)
    this.value(one)
  }
}

const FIELDS = { path: 1, interface: 2, member: 3, replySerial: 5, destination: 6, signature: 8 } as const

export const encode = (
  { body, destination, interface: interfaceName, member, path }: Call,
  serial: number
): Uint8Array => {
  const content = new Writer()
  for (const value of body) content.value(value)
  const head = new Writer()
  for (const byte of [0x6c, 1, 0, 1]) head.byte(byte)
  head.u32(content.length)
  head.u32(serial)
  const fields: ReadonlyArray<readonly [number, Value]> = [
    [FIELDS.path, { type: "o", value: path }],
    [FIELDS.interface, { type: "s", value: interfaceName }],
    [FIELDS.member, { type: "s", value: member }],
    [FIELDS.destination, { type: "s", value: destination }],
    ...(body.length === 0
      ? []
      : [[FIELDS.signature, { type: "g", value: body.map(({ type }) => type).join("") }] as const])
  ]
  head.array(8, () => {
    for (const [code, value] of fields) {
      head.align(8)
      head.byte(code)
      head.variant(value)
    }
  })
  head.align(8)
  return Buffer.concat([head.bytes, content.bytes])
}

export interface Received {
  readonly kind: "return" | "error" | "signal" | "other"
  readonly replyTo: number
  readonly interface: string
  readonly member: string
  /** The message's values, up to the first one whose type is unknown. */
  readonly body: ReadonlyArray<number | string | ReadonlyArray<string>>
}

class Reader {
  at = 0
  private readonly view: DataView
  private readonly isLittle: boolean

  constructor(bytes: Uint8Array, isLittle: boolean) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.isLittle = isLittle
  }

  align(to: number): void {
    this.at = Math.ceil(this.at / to) * to
  }

  byte(): number {
    return this.view.getUint8(this.at++)
  }

  u32(): number {
    this.align(4)
    this.at += 4
    return this.view.getUint32(this.at - 4, this.isLittle)
  }

  private text(length: number): string {
    const from = this.at
    this.at += length + 1
    if (this.at > this.view.byteLength) throw new RangeError("a string is longer than its message")
    return Buffer.from(this.view.buffer, this.view.byteOffset + from, length).toString()
  }

  signature(): string {
    return this.text(this.byte())
  }

  /** Reads a value; undefined if its type is not supported. */
  value(type: string): number | string | ReadonlyArray<string> | undefined {
    switch (type) {
      case "y":
        return this.byte()
      case "u":
      case "i":
        return this.u32()
      case "g":
        return this.signature()
      case "s":
      case "o":
        return this.text(this.u32())
      case "as": {
        const length = this.u32()
        const end = this.at + length
        const all: Array<string> = []
        while (this.at < end) all.push(this.text(this.u32()))
        return all
      }
      default:
        return undefined
    }
  }
}

const KINDS = ["other", "other", "return", "error", "signal"] as const

const headOf = (bytes: Uint8Array) => {
  const isLittle = bytes[0] === 0x6c
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields = view.getUint32(12, isLittle)
  const start = Math.ceil((16 + fields) / 8) * 8
  return { isLittle, fieldsEnd: 16 + fields, start, length: start + view.getUint32(4, isLittle) }
}

/** Splits a signature into its types: `a{sv}`, an array such as `as`, or a single letter. */
const typesOf = (signature: string): ReadonlyArray<string> => signature.match(/a\{sv\}|a?[a-z]/gu) ?? []

/** Decodes the first message. Undefined if the message is incomplete. Throws if it is not valid. */
export const decode = (bytes: Uint8Array): { readonly message: Received; readonly length: number } | undefined => {
  if (bytes.length < 16) return undefined
  if (bytes[0] !== 0x6c && bytes[0] !== 0x42) throw new Error("no message of D-Bus")
  const { fieldsEnd, isLittle, length, start } = headOf(bytes)
  if (length > MAX_MESSAGE) throw new Error("a message of D-Bus that is too long")
  if (bytes.length < length) return undefined
  const reader = new Reader(bytes.subarray(0, length), isLittle)
  reader.at = 16
  const fields = new Map<number, number | string | ReadonlyArray<string> | undefined>()
  while (reader.at < fieldsEnd) {
    reader.align(8)
    const code = reader.byte()
    const value = reader.value(reader.signature())
    if (value === undefined) break
    fields.set(code, value)
  }
  reader.at = start
  const body: Array<number | string | ReadonlyArray<string>> = []
  for (const type of typesOf(String(fields.get(FIELDS.signature) ?? ""))) {
    const value = reader.value(type)
    if (value === undefined) break
    body.push(value)
  }
  const message = {
    kind: KINDS[bytes[1] ?? 0] ?? "other",
    replyTo: Number(fields.get(FIELDS.replySerial) ?? 0),
    interface: String(fields.get(FIELDS.interface) ?? ""),
    member: String(fields.get(FIELDS.member) ?? ""),
    body
  }
  return { message, length }
}

/** The Unix socket of a bus address, `path` or `abstract`; undefined if the address has neither. */
export const socketOf = (address: string): string | undefined => {
  for (const one of address.split(";")) {
    const [, key, value = ""] = /^unix:(?:[^,]*,)*?(path|abstract)=([^,]*)/u.exec(one) ?? []
    const name = decodeURIComponent(value)
    if (key === "path") return name
    if (key === "abstract") return `\0${name}`
  }
  return undefined
}
