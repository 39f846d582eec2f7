/**
 * Seed: a machine's transition table as its source document has it, copied as
 * data, and where ours is deliberately another.
 */

/** A row of the source's table. What it does not say is not compared. */
export interface Row {
  readonly from: string
  readonly event: string
  readonly to: string
  /** Side effects; in order. */
  readonly act?: ReadonlyArray<string>
  readonly rune?: string
}

/** An edge of ours that the source does not have, or a row of it that ours does not. */
export interface Deviation {
  readonly from: ReadonlyArray<string>
  readonly event: ReadonlyArray<string>
  readonly to: string
  readonly act?: ReadonlyArray<string>
  readonly because: string
}

export interface Seed {
  readonly states: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
  readonly added: ReadonlyArray<Deviation>
  readonly dropped?: ReadonlyArray<Deviation>
  /** By kind, the fields that the source's table of rune kinds gives its payload. */
  readonly payloads?: { readonly [kind: string]: ReadonlyArray<string> }
}
