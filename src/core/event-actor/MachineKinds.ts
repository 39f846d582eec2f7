/**
 * MachineKinds: declares the rune kinds of a state machine. The payload of each kind contains the machine's whole event
 * and the kind's own fields.
 */
import { Schema } from "effect"
import { type Kind, kind, type Shape, type Table } from "../event-log/EventKinds.ts"
import type { Visibility } from "../event-log/Rune.ts"

/**
 * Options of a rune kind: its payload fields in addition to the event, its visibility, and whether its runes seal the
 * stream.
 */
export interface Says<F extends Schema.Struct.Fields = Schema.Struct.Fields> {
  readonly fields?: F
  readonly visibility?: Visibility
  readonly seals?: boolean
}

/** The declaration of a machine: its rune kinds, which of them are lazy, and the schema of its events. */
export interface Declared<K extends string, E> {
  readonly kinds: ReadonlyArray<K>
  readonly Event: Shape<E>
  readonly lazy?: ReadonlyArray<string>
}

type FieldsOf<S> = S extends { readonly fields: infer F extends Schema.Struct.Fields } ? F : {}

/** The payload type of each rune kind: the event and the kind's own fields. */
export type MachineKinds<K extends string, E, S> = {
  readonly [P in K]: Kind<{ readonly event: E } & (P extends keyof S ? Schema.Struct<FieldsOf<S[P]>>["Type"] : {})>
}

export const machineKinds = <const K extends string, E, const S extends { readonly [P in K]?: Says }>(
  { Event, kinds, lazy }: Declared<K, E>,
  says: S
): MachineKinds<K, E, S> => {
  const table: { [name: string]: Table[string] } = {}
  for (const name of kinds) {
    const { fields, seals, visibility }: Says = says[name] ?? {}
    table[name] = kind(Schema.Struct({ ...fields, event: Event }), {
      lazy: lazy?.includes(name) ?? false,
      ...(seals === undefined ? {} : { seals }),
      ...(visibility === undefined ? {} : { visibility })
    })
  }
  return table as MachineKinds<K, E, S>
}
