/** App: the page begins. */
import { render } from "preact"
import { signal } from "@preact/signals"
import type { BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import * as Api from "./Api.ts"

const rows = signal<ReadonlyMap<string, BoardRow>>(new Map())
const down = signal<Api.Problem | undefined>(undefined)

const App = () => (
  <main>
    {down.value !== undefined && (
      <p role="alert">
        {down.value.error} {down.value.remedy}
      </p>
    )}
    <ul>
      {[...rows.value.values()].map((row) => (
        <li key={row.id}>
          {row.project}/{row.name}: {row.word} {row.says}
        </li>
      ))}
    </ul>
  </main>
)

render(<App />, document.getElementById("app")!)
await Api.claim().catch((error: unknown) => {
  if (error instanceof Api.Refused) down.value = error.problem
})
void Api.listen<BoardNews>(
  "/board",
  {
    heard: (news) => {
      const next = new Map(rows.value)
      for (const id of news.gone) next.delete(id)
      for (const row of news.rows) next.set(row.id, row)
      rows.value = next
    },
    up: () => {
      down.value = undefined
      rows.value = new Map()
    },
    down: (problem) => {
      down.value = problem
    }
  },
  new AbortController().signal,
  false
)
