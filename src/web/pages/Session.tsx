/**
 * Session: shows a user's own coding session, or a run of an agent, with the data that hooks and the transcript report.
 */
import { useKeys } from "../KeyMap.ts"
import { Machine } from "../Machine.tsx"
import type { PageProps } from "../Pages.ts"
import { go, hrefTo } from "../Router.ts"
import { ordered, rows } from "../BoardStore.ts"
import { Remedies } from "../WhyStory.tsx"
import { Kbd, NoRow, RowTitle, Since } from "../Ui.tsx"
import { Facts } from "./Board.tsx"

export const Session = ({ rest }: PageProps) => {
  void ordered.value
  const row = rows.get(`session/${rest}`)?.value
  useKeys(({ is }) => {
    if (is === "back") go(hrefTo(""))
    else if ((is === "approve" || is === "deny") && row !== undefined) go(hrefTo("needs", row.asks[0]))
    else return false
    return true
  })
  if (row === undefined) return <NoRow name={rest} says="This session has ended" />
  return (
    <div class="page session">
      <header class="top">
        <RowTitle row={row} />
        <Since at={row.since} />
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label="Session">
        <div class="one session-in">
          <h2>{row.says}</h2>
          {row.asks.length > 0 && (
            <a class="btn you large" href={hrefTo("needs", row.asks[0])}>
              Look at it<Kbd>a</Kbd>
            </a>
          )}
          <Remedies commands={row.commands} />
          <div>
            <h3 class="label">State: plate · {row.state}</h3>
            <Machine name="plate" lit={row.state} />
          </div>
          <Facts row={row} />
          <p class="muted small">It runs in its own terminal, which shows its output.</p>
        </div>
      </div>
    </div>
  )
}
