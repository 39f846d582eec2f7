/**
 * `agentd alert ls`: lists the alerts that were sent to users, whether each was delivered, and a command that helps.
 */
import type { AlertRow } from "../../domain/AlertMessages.ts"
import { LOOKS } from "../../domain/StatusWords.ts"
import { count, declare, off, read, type World } from "../parse/DeclaredVerb.ts"
import { age, clock, lookColour, paint, plain } from "../render/Output.ts"

const DEFAULT = 20
const MOST = 500

const list = (addresses: ReadonlyArray<string>): string => addresses.map((one) => plain(one)).join(", ")

const mailed = (row: AlertRow, now: number): string => {
  const { attempts, error, nextAt, rejected, sentAt, state, to } = row
  const tried = error === null ? "" : `${plain(error)} (${attempts === 1 ? "1 attempt" : `${attempts} attempts`})`
  const next = nextAt === null ? "after the previous alert" : nextAt <= now ? "now" : `in ${age(nextAt - now)}`
  switch (state) {
    case "sent": {
      const who = to.length === 0 ? "sent" : `sent to ${list(to)}`
      const when = sentAt === null ? "" : ` ${age(Math.max(0, now - sentAt))} ago`
      return `${who}${when}${rejected.length === 0 ? "" : `; rejected for ${list(rejected)}`}`
    }
    case "failed":
      return `not sent to ${list(to)}: ${tried}; next try ${next}`
    case "given up":
      return `never sent: ${tried}. Fix the mail section, then: agentd alert test`
    case "nobody":
      return "not sent: no mail address is configured. See the mail settings: agentd schema"
    case "waiting":
      return `will be sent to ${list(to)} ${next}`
  }
}

const remedyOf = ({ agent, kind, remedy }: AlertRow): ReadonlyArray<string> =>
  remedy !== null ? remedy.split("\n") : kind === "agent.stopped" && agent !== null ? [`agentd why ${agent}`] : []

const lines = (row: AlertRow, { colour, now }: World): ReadonlyArray<string> => {
  const look = LOOKS[row.word]
  const times = row.count > 1 ? ` (${row.count} times)` : ""
  const project = row.project === null ? "" : `${plain(row.project)}: `
  const bad = row.state === "failed" || row.state === "given up" || row.state === "nobody"
  return [
    `${paint(colour, "dim", clock(row.at, now))} ${paint(colour, lookColour[look.colour], look.glyph)} ${project}${paint(colour, "bold", plain(row.subject))}${times}`,
    `    ${paint(colour, bad ? "red" : "dim", mailed(row, now))}`,
    ...remedyOf(row).map((line) => `    ${plain(line)}`)
  ]
}

export const alerts = declare({
  path: ["alert", "ls"],
  description: "List alerts: the recipients, whether each alert was delivered, and a command that helps",
  examples: [
    { command: "agentd alert ls", description: "List the alerts, the newest first" },
    {
      command: "agentd alert ls --failed",
      description: "List the alerts that could not be sent, with the time of the next attempt"
    }
  ],
  args: {
    count: count("Maximum number of alerts", DEFAULT, { least: 1, most: MOST, alias: "n" }),
    failed: off("List only alerts that could not be sent")
  },
  rpc: ({ count, failed }) => read("Alerts", { count, failed }),
  view: (rows, world) =>
    rows.length === 0
      ? ["There are no alerts. Test whether mail arrives: agentd alert test"]
      : rows.flatMap((row) => lines(row, world))
})
