/**
 * Alerts: lists the alerts, to whom each was sent, and the command that helps. If an alert could not be sent, the time
 * of the next attempt is shown.
 */
import type { AlertRow } from "../../domain/AlertMessages.ts"
import { span } from "../../domain/StatusWords.ts"
import * as PageActions from "../PageActions.ts"
import { useList } from "../List.ts"
import { useNews } from "../RefreshTimer.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { mayAct } from "../BoardStore.ts"
import { now } from "../Time.ts"
import { Command, Empty, Failed, Glyph, Loading, Since } from "../Ui.tsx"

const SHOWN = 100

const hrefOf = ({ agent, goal }: AlertRow): string | undefined =>
  agent !== null ? hrefTo("agent", agent) : goal !== null ? hrefTo("goal", goal) : undefined

const commandsIn = ({ agent, kind, remedy }: AlertRow): ReadonlyArray<string> => {
  const found = [...(remedy ?? "").matchAll(/agentd [a-z][^\n]*?(?=\s{2,}|\.?$|\n|, )/gm)].map(([command]) => command)
  return found.length === 0 && kind === "agent.stopped" && agent !== null ? [`agentd why ${agent}`] : found.slice(0, 3)
}

/** The reason of an alert, without its first line if the subject says that already. */
const moreOf = ({ reason, subject }: AlertRow): string => {
  const [first = "", ...rest] = reason.split("\n")
  return subject.endsWith(first) ? rest.join("\n").replace(/^\n+/u, "") : reason
}

/** The delivery state of an alert. */
const Way = ({ row: { attempts, error, nextAt, rejected, sentAt, state, to } }: { readonly row: AlertRow }) => {
  const when =
    nextAt === null ? "after the previous one" : nextAt <= now.value ? "now" : `in ${span(nextAt - now.value)}`
  switch (state) {
    case "sent":
      return (
        <span class="small">
          <span class="faint">{to.join(", ")}</span> <span class="c-good">✓ sent</span>{" "}
          {sentAt !== null && <Since at={sentAt} />}
          {rejected.length > 0 && <span class="c-failed"> refused for {rejected.join(", ")}</span>}
        </span>
      )
    case "failed":
      return (
        <span class="small">
          <span class="faint">{to.join(", ")}</span>{" "}
          <span class="c-failed">
            not sent: {error} ({attempts}×), next attempt {when}
          </span>
        </span>
      )
    case "given up":
      return <span class="small c-failed">never sent: {error}</span>
    case "nobody":
      return <span class="small c-failed">not sent: no address is configured</span>
    case "waiting":
      return (
        <span class="small muted">
          {to.join(", ")}: will be sent {when}
        </span>
      )
  }
}

const Entry = ({ isOn, row }: { readonly row: AlertRow; readonly isOn: boolean }) => {
  const href = hrefOf(row)
  const reason = moreOf(row)
  return (
    <li class={isOn ? "on" : ""} aria-current={isOn ? "true" : undefined}>
      <Glyph word={row.word} />
      <div class="grow">
        <p class="strong">
          {row.project !== null && !row.subject.startsWith(`${row.project}/`) && (
            <span class="faint">{row.project}: </span>
          )}
          {href === undefined ? row.subject : <a href={href}>{row.subject}</a>}
          {row.count > 1 && <span class="muted"> ({row.count} times)</span>}
        </p>
        {reason !== "" && <p class="muted told">{reason}</p>}
        <p class="line wrap">
          {commandsIn(row).map((command) => (
            <Command key={command}>{command}</Command>
          ))}
          <Way row={row} />
        </p>
      </div>
      <Since at={row.at} />
    </li>
  )
}

export const Alerts = () => {
  const { problem, value } = useAnswer<ReadonlyArray<AlertRow>>("Alerts", { count: SHOWN, failed: false }, useNews())
  const rows = value ?? []
  const at = useList(rows.length, (n) => {
    const href = hrefOf(rows[n]!)
    if (href !== undefined) go(href)
  })
  const failed = rows.filter(({ state }) => state === "failed" || state === "given up" || state === "nobody").length
  return (
    <div class="page">
      <header class="top">
        <h1>Alerts</h1>
        {failed > 0 && <span class="c-failed num clip">{failed} not sent</span>}
        <span class="grow" />
        {mayAct.value && (
          <button type="button" class="btn quiet-btn" onClick={() => void PageActions.act("AlertTest", {})}>
            Send a test
          </button>
        )}
      </header>
      {value === undefined ? (
        problem === undefined ? (
          <Loading />
        ) : (
          <Failed problem={problem} />
        )
      ) : rows.length === 0 ? (
        <Empty title="No alerts were sent">
          <p>You get a mail when something stops permanently or blocks work. To test whether mails arrive:</p>
          <Command>agentd alert test</Command>
        </Empty>
      ) : (
        <ul class="alerts scroll" tabIndex={0} role="list" aria-label="Alerts">
          {rows.map((row, n) => (
            <Entry key={`${row.restsOn} ${row.subject}`} row={row} isOn={n === at} />
          ))}
        </ul>
      )}
    </div>
  )
}
