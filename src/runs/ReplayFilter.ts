/**
 * ReplayFilter: decides what to report when an answer broke off and is generated again. Pure.
 *
 * Guarantees: Text that the new answer repeats is not reported twice. If the new answer differs, or is shorter, it is
 * reported from its beginning, after a note that the answer starts over.
 */

export type Told = { readonly _tag: "StartsOver" } | { readonly _tag: "Text"; readonly text: string }

export class ReplayFilter {
  /** The text that was already reported: from the answers that broke off, and from the current answer. */
  private told = ""
  private said = ""

  get text(): string {
    return this.said
  }

  /** Call this when an answer broke off and a new one begins. */
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
