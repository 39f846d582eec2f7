/**
 * Beginning: what stands in the place of segments that a person's setting has deleted: where each stream went on from
 * there, and the states that its runes had made.
 *
 *     a zstd frame for each state: its JSON
 *     a skippable frame: the newest deleted rune of each stream, and where each state lies
 *
 * Guarantees: a file is there whole, and on the disk, or not at all; nothing of a file that is not as it was made is
 * read. Free of imports at run time but Node's: the log's threads load this file.
 */
import { type Made, PartFile, type SegmentFile, type SegmentHead } from "./SegmentFile.ts"

export const isBeginning = (file: string): boolean => /^begins-\d+\.zst$/.test(file)

export interface KeptState {
  readonly stream: string
  /** Of the fold. */
  readonly name: string
  readonly version: number
}

/** The facts beside the states. */
export interface Summary {
  /** The newest rune that was deleted, and its time. */
  readonly last: number
  readonly at: number
  readonly heads: ReadonlyArray<SegmentHead>
  /** The folds that have read the deleted runes, with their versions: a state that is not here is as it began. */
  readonly folds: { readonly [name: string]: number }
}

/** Where states lie. */
interface Contents extends Summary {
  readonly states: ReadonlyArray<
    readonly [stream: string, name: string, version: number, offset: number, bytes: number]
  >
}

export class BeginningWriter {
  private readonly file: PartFile
  private readonly states: Array<Contents["states"][number]> = []

  constructor(folder: string) {
    this.file = new PartFile(folder)
  }

  add({ name, stream, version }: KeptState, json: string): void {
    this.states.push([stream, name, version, ...this.file.frame(json)])
  }

  /** The file is on the disk when it returns. */
  finish(summary: Summary): Made {
    const { last } = summary
    const contents = { ...summary, states: this.states } satisfies Contents
    return this.file.finish(`begins-${last}.zst`, { first: 1, last, blocks: [], heads: summary.heads, contents }, last)
  }

  abandon(): void {
    this.file.abandon()
  }
}

/** A file that is there. A throw means that it is damaged, or gone. */
export class Beginning {
  private readonly file: SegmentFile
  private readonly contents: Contents
  private readonly heads: ReadonlyMap<string, SegmentHead>
  private readonly places: ReadonlyMap<string, Contents["states"][number]>

  constructor(file: SegmentFile, sha256: string) {
    if (file.sha256 !== sha256) throw new Error(`${file.path} is not as it was made`)
    this.file = file
    this.contents = file.footer.contents as Contents
    this.heads = new Map(this.contents.heads.map((head) => [head.stream, head]))
    this.places = new Map(this.contents.states.map((place) => [keyOf(place[0], place[1]), place]))
  }

  get summary(): Summary {
    const { at, folds, heads, last } = this.contents
    return { last, at, heads, folds }
  }

  get states(): ReadonlyArray<KeptState> {
    return this.contents.states.map(([stream, name, version]) => ({ stream, name, version }))
  }

  /** The newest deleted rune of a stream; undefined: none of it was deleted. */
  head(stream: string): SegmentHead | undefined {
    return this.heads.get(stream)
  }

  /** The JSON of a state; undefined: it is as it began. */
  json(stream: string, name: string): string | undefined {
    const place = this.places.get(keyOf(stream, name))
    return place === undefined ? undefined : this.file.text(place[3], place[4])
  }

  /** The version of the fold that has read what is deleted; undefined: the fold is newer than that. */
  version(name: string): number | undefined {
    return this.contents.folds[name]
  }
}

const keyOf = (stream: string, name: string): string => `${stream}\n${name}`
