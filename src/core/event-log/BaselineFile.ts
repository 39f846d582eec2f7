/**
 * BaselineFile: the file that replaces segments that a user's setting has deleted. It stores the newest deleted rune of
 * each stream, and the states folded from the deleted runes.
 *
 *     a zstd frame for each state: its JSON
 *     a skippable frame: the newest deleted rune of each stream, and the offset of each state
 *
 * Guarantees: a file is complete and on disk, or it does not exist. A file whose SHA-256 has changed since it was
 * written is not read. At run time this module uses no npm packages, because the log's threads load it.
 */
import { type Made, PartFile, type SegmentFile, type SegmentHead } from "./SegmentFile.ts"

export const isBeginning = (file: string): boolean => /^begins-\d+\.zst$/.test(file)

export interface KeptState {
  readonly stream: string
  /** Name of the fold that computed the state. */
  readonly name: string
  readonly version: number
}

/** The content of the file without the states. */
export interface Summary {
  /** eventId and time (ms since the epoch) of the newest deleted rune. */
  readonly last: number
  readonly at: number
  readonly heads: ReadonlyArray<SegmentHead>
  /**
   * Version of each fold that has read the deleted runes, by the fold's name. If the file has no state of such a fold
   * for a stream, it is the initial state.
   */
  readonly folds: { readonly [name: string]: number }
}

/** The summary of the file, and the offset and length (in bytes) of each state. */
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

  /** Completes the file. When this method returns, the file is on disk. */
  finish(summary: Summary): Made {
    const { last } = summary
    const contents = { ...summary, states: this.states } satisfies Contents
    return this.file.finish(`begins-${last}.zst`, { first: 1, last, blocks: [], heads: summary.heads, contents }, last)
  }

  abandon(): void {
    this.file.abandon()
  }
}

/** An existing file. Its methods throw if the file is damaged or missing. */
export class BaselineFile {
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

  /** The newest deleted rune of a stream; undefined if no rune of it was deleted. */
  head(stream: string): SegmentHead | undefined {
    return this.heads.get(stream)
  }

  /** The JSON of a state; undefined if it is the fold's initial state. */
  json(stream: string, name: string): string | undefined {
    const place = this.places.get(keyOf(stream, name))
    return place === undefined ? undefined : this.file.text(place[3], place[4])
  }

  /** Version of the fold that has read the deleted runes; undefined if the fold did not exist at that time. */
  version(name: string): number | undefined {
    return this.contents.folds[name]
  }
}

const keyOf = (stream: string, name: string): string => `${stream}\n${name}`
