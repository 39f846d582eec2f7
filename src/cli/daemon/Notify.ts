/** `agentd alert channels`: the channels over which a person is notified, and whether each works. */
import type { NotifyRow } from "../../domain/AlertMessages.ts"
import { declare, read, type World } from "../parse/DeclaredVerb.ts"
import { count, paint, plain } from "../render/Output.ts"

const NONE = ["No channel is configured; mail is sent if there is a mail section. How: docs/notifications.md"]

const lines = (row: NotifyRow, { colour }: World): ReadonlyArray<string> => {
  const { detail, error, kinds, name, ok, quiet, remedy, type, waiting } = row
  const mark = ok ? paint(colour, "green", "✓") : paint(colour, "red", "✕")
  const waits =
    waiting === 0
      ? ""
      : `; ${count(waiting, "notice")} ${waiting === 1 ? "waits" : "wait"}${quiet ? ": it is a quiet time" : ""}`
  return [
    `${mark} ${paint(colour, "bold", plain(name))} (${plain(type)}): ${plain(detail)}${waits}`,
    ...(error === null ? [] : [`    the last try: ${plain(error)}`]),
    ...(remedy === null ? [] : [`    ${plain(remedy)}`]),
    `    ${paint(colour, "dim", kinds.length === 0 ? "gets no alerts" : `gets: ${kinds.map(plain).join(", ")}`)}`
  ]
}

export const ls = declare({
  path: ["alert", "channels"],
  description: "List the channels of alerts: what each one gets, and whether it works now",
  examples: [{ command: "agentd alert channels", description: "It sends nothing" }],
  args: {},
  rpc: () => read("NotifyList", null),
  view: (rows, world) => (rows.length === 0 ? NONE : rows.flatMap((row) => lines(row, world)))
})
