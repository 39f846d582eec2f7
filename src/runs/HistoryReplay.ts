/**
 * HistoryReplay: what to tell of an answer that is given anew after it broke off. Pure.
 *
 * Guarantees: what was told and is said again is not told twice; once the new answer differs,
 * or is over sooner, it is told from its beginning, after one note that it starts over.
 */

export type Told = { readonly _tag: "StartsOver" } | { readonly _tag: "Text"; readonly text: string }

export class HistoryReplay {
  /** Told text of the answers that broke off, and of this one. */
  private told = ""
  private said = ""

  get text(): string {
    return this.said
  }

  /** The answer broke off; the next one begins. */
  again(): void {
    this.said = ""
  }

  take(text: string): ReadonlyArray<Told> {
    const before = this.said
    this.said += text
    if (this.told === before) {
      this.told = this.said
      return [{ _tag: "Text", text }]
    }
    if (this.told.startsWith(this.said)) return []
    const from = this.said.startsWith(this.told) ? this.told.length : undefined
    this.told = this.said
    return from === undefined
      ? [{ _tag: "StartsOver" }, { _tag: "Text", text: this.said }]
      : [{ _tag: "Text", text: this.said.slice(from) }]
  }

  end(): ReadonlyArray<Told> {
    if (this.told === this.said) return []
    this.told = this.said
    return [{ _tag: "StartsOver" }, ...(this.said === "" ? [] : [{ _tag: "Text" as const, text: this.said }])]
  }
}
