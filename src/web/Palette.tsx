/**
 * Palette: a dialog that opens any page or row by a few letters of its name, and a dialog that lists the keys.
 *
 * Guarantees: the input field has the focus before it is painted, so that the first letter is not taken as a command.
 */
import { signal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"
import type { BoardRow } from "../domain/BoardMessages.ts"
import { HELP } from "./KeyMap.ts"
import { pages } from "./Pages.ts"
import { go, hrefOf, hrefTo } from "./Router.ts"
import { rows } from "./BoardStore.ts"
import { flip } from "./Theme.ts"
import { Glyph, Kbd } from "./Ui.tsx"

/** The open dialog; empty if none is open. */
export const dialog = signal<"" | "palette" | "help">("")
export const close = (): void => {
  dialog.value = ""
}

interface Entry {
  readonly text: string
  readonly note: string
  readonly key?: string
  readonly row?: BoardRow
  readonly run: () => void
}
const MOST = 9

const entries = (): ReadonlyArray<Entry> => [
  ...pages
    .filter(({ isListed }) => isListed)
    .map(({ key, route, title }) => ({ text: title, note: "page", key, run: () => go(hrefTo(route)) })),
  ...[...rows.values()]
    .map((row) => row.peek())
    .filter(({ kind }) => kind !== "matter")
    .map((row) => ({
      text: `${row.project}/${row.name}`,
      note: row.role || row.kind,
      row,
      run: () => go(hrefOf(row))
    })),
  { text: "Light or dark", note: "theme", run: flip }
]

/** How well a word matches a text. 0: it begins a part of the text; 1: it is inside the text; 2: no match. */
const rank = (text: string, word: string | undefined): number => {
  const lower = text.toLowerCase()
  if (word === undefined || lower.split(/[/\s#]/).some((part) => part.startsWith(word))) return 0
  return lower.includes(word) ? 1 : 2
}

const found = (query: string): ReadonlyArray<Entry> => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  return entries()
    .filter(({ note, text }) => words.every((word) => `${text} ${note}`.toLowerCase().includes(word)))
    .toSorted((a, b) => rank(a.text, words[0]) - rank(b.text, words[0]))
    .slice(0, MOST)
}

const query = signal("")
const at = signal(0)

const Option = ({ entry, isOn, n }: { readonly entry: Entry; readonly isOn: boolean; readonly n: number }) => (
  <li
    id={`found-${n}`}
    role="option"
    aria-selected={isOn}
    onMouseMove={() => (at.value = n)}
    onClick={() => {
      close()
      entry.run()
    }}
  >
    {entry.row === undefined ? <i class="no-glyph" /> : <Glyph word={entry.row.word} />}
    <span class="clip">{entry.text}</span>
    <span class="faint clip grow">{entry.note}</span>
    {entry.key !== undefined && entry.key !== "" && (
      <span class="hint">
        <Kbd>g</Kbd>
        <Kbd>{entry.key}</Kbd>
      </span>
    )}
  </li>
)

export const Palette = () => {
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement
    input.current?.focus()
    at.value = 0
    query.value = ""
    return () => (before instanceof HTMLElement ? before.focus() : undefined)
  }, [])
  const list = found(query.value)
  const key = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") at.value = Math.min(list.length - 1, at.value + 1)
    else if (event.key === "ArrowUp") at.value = Math.max(0, at.value - 1)
    else if (event.key === "Enter") {
      close()
      list[at.value]?.run()
    } else if (event.key !== "Tab") return
    event.preventDefault()
  }
  return (
    <div class="veil" onClick={close}>
      <div
        class="palette"
        role="dialog"
        aria-modal="true"
        aria-label="Go to"
        onClick={(event) => event.stopPropagation()}
        onKeyDown={key}
      >
        <input
          ref={input}
          placeholder="Go to an agent, session, goal, page …"
          aria-label="Go to"
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={list.length === 0 ? undefined : `found-${at.value}`}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            query.value = event.currentTarget.value
            at.value = 0
          }}
        />
        <ul id="found" role="listbox" aria-label="Found">
          {list.map((entry, n) => (
            <Option key={entry.text} entry={entry} isOn={n === at.value} n={n} />
          ))}
        </ul>
        {list.length === 0 && <p class="none muted">Nothing has this name.</p>}
      </div>
    </div>
  )
}

export const Help = () => {
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => box.current?.focus(), [])
  const goes = pages.filter(({ key }) => key !== "").map(({ key, title }) => [`g ${key}`, title] as const)
  return (
    <div class="veil" onClick={close}>
      <div
        class="help"
        ref={box}
        tabIndex={-1}
        role="dialog"
        aria-modal="true"
        aria-label="Keys"
        onClick={(event) => event.stopPropagation()}
      >
        <h2>Keys</h2>
        <div class="help-cols">
          {[...HELP, ["Go", goes] as const].map(([title, keys]) => (
            <section key={title}>
              <h3 class="label">{title}</h3>
              {keys.map(([typed, does]) => (
                <p key={typed}>
                  <span>
                    {typed.split(" ").map((key, n) => (
                      <kbd key={n}>{key}</kbd>
                    ))}
                  </span>
                  {does}
                </p>
              ))}
            </section>
          ))}
        </div>
      </div>
    </div>
  )
}
