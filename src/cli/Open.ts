/** `agentd open`: a link that opens the page, once; in the browser of this desktop where there is one. */
import { Effect } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { call } from "../rpc/ControlClient.ts"
import { Entry, Invocation, print } from "./Invocation.ts"

interface Input {
  readonly view: boolean
  readonly print: boolean
  readonly label: string
}

/** Hands it to the desktop; where that fails, the link is on the terminal. */
const shown = (url: string) =>
  Effect.flatMap(ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
    spawner.exitCode(ChildProcess.make("xdg-open", [url], { stdin: "ignore", stdout: "ignore", stderr: "ignore" }))
  ).pipe(
    Effect.timeout("10 seconds"),
    Effect.map((code) => Number(code) === 0),
    Effect.orElseSucceed(() => false)
  )

export const run = Effect.fnUntraced(function* ({ label, print: isPrinted, view }: Input) {
  const { caller, interactive, json, paths } = yield* Invocation
  const { env } = yield* Entry
  const right = view ? "view" : "act"
  const { url } = yield* call(paths.socket, (client) => client.Invite({ right, label, caller }))
  const isDesktop = (env["DISPLAY"] ?? env["WAYLAND_DISPLAY"] ?? "") !== ""
  const isShown = interactive && !json && !isPrinted && isDesktop && (yield* shown(url))
  yield* print({ url, right, opened: isShown }, () => [
    url,
    isShown
      ? "Opened in your browser. The link is good for one page."
      : "Open it within two minutes: it is good for one page, which keeps its right until: agentd access ls"
  ])
})
