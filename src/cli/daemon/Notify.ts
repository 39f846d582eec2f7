/** `agentd alert channels`: lists the notification channels, and whether each of them works. */
import type { NotifyRow } from "../../domain/AlertMessages.ts"
import { declare, read, type World } from "../parse/DeclaredVerb.ts"
import { count, paint, plain } from "../render/Output.ts"

const NONE = [
  "No channel is configured. Alerts are sent by mail if the config has a mail section. See docs/notifications.md"
]

const lines = (row: NotifyRow, { colour }: World): ReadonlyArray<string> => {
  const { detail, error, kinds, name, ok, quiet, remedy, type, waiting } = row
  const mark = ok ? paint(colour, "green", "✓") : paint(colour, "red", "✕")
  const waits =
    waiting === 0
      ? ""
      : `; ${count(waiting, "notice")} ${waiting === 1 ? "waits" : "wait"}${quiet ? " until the quiet hours end" : ""}`
  return [
    `${mark} ${paint(colour, "bold", plain(name))} (${plain(type)}): ${plain(detail)}${waits}`,
    ...(error === null ? [] : [`    the last attempt failed: ${plain(error)}`]),
    ...(remedy === null ? [] : [`    ${plain(remedy)}`]),
    `    ${paint(colour, "dim", kinds.length === 0 ? "receives no alerts" : `receives: ${kinds.map(plain).join(", ")}`)}`
  ]
}

export const ls = declare({
  path: ["alert", "channels"],
  description: "List the alert channels: which alerts each one receives, and whether it works now",
  examples: [{ command: "agentd alert channels", description: "List the channels and check them; nothing is sent" }],
  args: {},
  rpc: () => read("NotifyList", null),
  view: (rows, world) => (rows.length === 0 ? NONE : rows.flatMap((row) => lines(row, world)))
})
