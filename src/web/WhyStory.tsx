/** WhyStory: sentences that explain how an agent got into its state, oldest first, and how the user can react. */
import type { WhyReply } from "../board/DaemonMessages.ts"
import type { BoardRow } from "../domain/BoardMessages.ts"
import { useAnswer } from "./VerbQuery.ts"
import { Clock, Command } from "./Ui.tsx"

/** The commands of a row that can be run without changes. */
export const Remedies = ({ commands }: Pick<BoardRow, "commands">) =>
  commands.length === 0 ? null : (
    <ul class="remedies">
      {commands.map(({ command, does }) => (
        <li key={command}>
          <span class="muted small">{does}</span>
          <Command>{command}</Command>
        </li>
      ))}
    </ul>
  )

export const WhyStory = ({ row }: { readonly row: BoardRow }) => {
  const { problem, value } = useAnswer<WhyReply>("Why", { name: row.called }, row.restsOn)
  if (value === undefined) return problem === undefined ? null : <p class="muted">{problem.error}</p>
  return (
    <>
      <ol class="why">
        {value.lines.map(({ at, eventId, text }, n) => (
          <li key={`${eventId} ${n}`}>
            <Clock at={at} />
            <span>
              {text}
              {eventId > 0 && (
                <span class="rune" title="The rune that shows this">
                  {eventId}
                </span>
              )}
            </span>
          </li>
        ))}
      </ol>
      {value.advice !== null && <p class="small muted">{value.advice}</p>}
    </>
  )
}
