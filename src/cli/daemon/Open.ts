/**
 * `agentd open`: creates a link that gives a web page access once, and opens it in the desktop's browser if there is
 * one.
 *
 * Guarantees: the link is never passed in a program's arguments, because every user of the machine can read those.
 * Instead, the browser gets the path of a file that redirects to the link. Only this user can read the file. It is
 * deleted when the link has been used, or after a timeout.
 */
import { Effect, FileSystem } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { join } from "node:path"
import { call } from "../../api/rpc/ControlClient.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"

interface Input {
  readonly view: boolean
  readonly print: boolean
  readonly ownPort: boolean
  readonly label: string
}

/** Timeout within which the browser must use the link. */
const PATIENCE = "15 seconds"
/** Interval at which is checked whether a page has used the link. */
const LOOK = Backoff.constant("200 millis")

const leading = (url: string): string =>
  `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${url}"><title>agentd</title><a href="${url}">Open the page of agentd</a>\n`

/**
 * Creates a file that redirects to `url`. The file is deleted when the scope closes, and other users cannot read its
 * folder.
 */
const redirect = Effect.fnUntraced(function* (url: string) {
  const fs = yield* FileSystem.FileSystem
  const { paths } = yield* Invocation
  const folder = yield* fs.makeTempDirectoryScoped({ directory: paths.state, prefix: "open-" })
  const file = join(folder, "agentd.html")
  yield* fs.writeFileString(file, leading(url), { flag: "wx", mode: 0o600 })
  return file
})

/** Opens the link on the desktop. Returns true when a page has used the link, or false after the timeout. */
const shown = (url: string) =>
  Effect.gen(function* () {
    const { paths } = yield* Invocation
    const ids = call(paths.socket, (client) => client.Accesses()).pipe(
      Effect.map((all) => all.map(({ id }) => id).join(" "))
    )
    const before = yield* ids
    const file = yield* redirect(url)
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const opener = ChildProcess.make("xdg-open", [file], { stdin: "ignore", stdout: "ignore", stderr: "ignore" })
    // if the opener is the browser itself, it does not exit until the browser is closed, so `claimed` decides
    const opened = Effect.filterOrElse(
      spawner.exitCode(opener),
      (code) => Number(code) === 0,
      () => Effect.fail("no browser" as const)
    ).pipe(Effect.andThen(Effect.never))
    const claimed = Effect.repeat(ids, { until: (now) => now !== before, schedule: Backoff.waits(LOOK) })
    return yield* Effect.as(Effect.raceFirst(opened, claimed), true)
  }).pipe(
    Effect.scoped,
    Effect.timeout(PATIENCE),
    Effect.orElseSucceed(() => false)
  )

export const run = Effect.fnUntraced(function* ({ label, ownPort, print: isPrinted, view }: Input) {
  const { caller, interactive, json, paths } = yield* Invocation
  const { env } = yield* Entry
  const right = view ? "view" : "act"
  const { url } = yield* call(paths.socket, (client) =>
    client.Invite({ right, label, caller, ...(ownPort ? { ownPort } : {}) })
  )
  const isDesktop = (env["DISPLAY"] ?? env["WAYLAND_DISPLAY"] ?? "") !== ""
  const isShown = interactive && !json && !isPrinted && isDesktop && (yield* shown(url))
  yield* print({ url, right, opened: isShown }, () => [
    url,
    isShown
      ? "Opened in your browser. The link works only once."
      : "The link works once, and expires after two minutes. To end the page's access later: agentd access revoke ID"
  ])
})
