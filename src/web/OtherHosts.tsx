/**
 * OtherHosts: lists what runs on the saved hosts, below the board. The page acts only on its own daemon, so each row has
 * the command that acts on its host.
 */
import { order } from "../domain/BoardRow.ts"
import type { BoardRow } from "../domain/BoardMessages.ts"
import { others, othersAsking } from "./BoardStore.ts"
import { Command, Glyph, Since } from "./Ui.tsx"

/** Maximum number of rows. Those that need a person come first. */
const MOST = 100

const commandOf = ({ called, commands, kind }: BoardRow): string | undefined =>
  commands[0]?.command ?? (kind === "agent" ? `agentd attach ${called}` : undefined)

const Row = ({ row }: { readonly row: BoardRow }) => {
  const command = commandOf(row)
  return (
    <li>
      <Glyph word={row.word} />
      <span class="who">
        {row.project !== "" && <span class="faint">{row.project}/</span>}
        <b>{row.name}</b>
      </span>
      <span class={row.word === "failed" ? "c-failed" : row.word === "needs you" ? "strong" : "muted"}>{row.says}</span>
      <span class="line">{command !== undefined && <Command>{command}</Command>}</span>
      <span class="since">
        <Since at={row.since} />
      </span>
    </li>
  )
}

export const OtherHosts = () => {
  const all = [...others.value.values()].toSorted(order)
  if (all.length === 0) return null
  const you = othersAsking.value
  return (
    <section class="others" aria-labelledby="others">
      <h2 class="label" id="others">
        Other hosts
        {you > 0 && (
          <span class="c-you">
            {" "}
            {you} {you === 1 ? "needs" : "need"} you
          </span>
        )}
      </h2>
      <ul tabIndex={0}>
        {all.slice(0, MOST).map((row) => (
          <Row key={row.id} row={row} />
        ))}
      </ul>
      {all.length > MOST && (
        <p class="muted">
          {all.length - MOST} more: <Command>agentd --all-hosts</Command>
        </p>
      )}
    </section>
  )
}
