/**
 * `agentd hook EVENT`: sends one event of a session from standard input to the daemon, for programs whose hooks are
 * commands.
 *
 * Guarantees: the command exits with code 0 and without output within about a second, even if the input, the event or
 * the daemon is faulty. The event is sent as soon as its JSON is complete. Input that is too long is truncated, and the
 * event says so. Without a daemon, the start of a session is written to the spool. Other events are discarded, because
 * later events replace them.
 */
import { Clock, Effect, FileSystem, Random, Stdio, Stream } from "effect"
import * as NodePath from "node:path"
import * as StateFolder from "../../core/event-log/StateFolder.ts"
import { post } from "../../api/http/Client.ts"
import * as Spool from "../../api/http/Spool.ts"
import * as HookBody from "../../plates/HookBody.ts"
import { Invocation } from "../parse/Invocation.ts"

interface Hook {
  readonly [field: string]: unknown
}

/** For each hook, a function that translates the hook's input into an event for `POST /events`. */
const events: { readonly [hook: string]: (hook: Hook, branch: string | undefined) => object } = {
  "session-start": ({ transcript_path }, branch) => ({
    event_type: "session_start",
    transcript_path,
    git_branch: branch
  }),
  "prompt-submit": () => ({ event_type: "prompt_submit" }),
  "pre-tool-use": ({ tool_input, tool_name }) => ({ event_type: "tool_start", tool_name, tool_input }),
  "post-tool-use": ({ tool_name }) => ({ event_type: "tool_call", tool_name }),
  "permission-request": ({ tool_name }) => ({ event_type: "permission_request", tool_name }),
  "permission-answered": ({ decision, tool_name }) => ({ event_type: "permission_answered", tool_name, decision }),
  stop: ({ error }) => ({ event_type: "stop", error })
}

const WITHIN = "1 second"
/** Maximum number of parent folders in which a repository is searched for. */
const MAX_DEPTH = 64

const input = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) return undefined
  let head = Buffer.alloc(0)
  const isEnough = (part: Uint8Array) => {
    head = Buffer.concat([head, part])
    return head.length > HookBody.MAX_BYTES || HookBody.isWhole(String(head))
  }
  yield* Stream.runDrain(Stream.takeUntil(stdio.stdin, isEnough))
  const hook = HookBody.parse(head.toString("utf8", 0, HookBody.MAX_BYTES))
  return typeof hook === "object" && hook !== null ? (hook as Hook) : undefined
})

/**
 * The name of the branch that is checked out, read from the repository's files, because starting git would take longer
 * than everything else. Undefined if the folder is in no repository, or if no branch is checked out.
 */
const branchOf = Effect.fnUntraced(function* (cwd: string) {
  const fs = yield* FileSystem.FileSystem
  const read = (path: string) =>
    fs.stat(path).pipe(
      Effect.filterOrFail(({ type }) => type === "File"),
      Effect.andThen(fs.readFileString(path)),
      Effect.orElseSucceed(() => "")
    )
  let folder = cwd
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const git = NodePath.join(folder, ".git")
    // in a work tree of git, .git is a file with the path of the actual git folder
    const elsewhere = /^gitdir: (.+)$/m.exec(yield* read(git))?.[1]
    const head = yield* read(NodePath.join(elsewhere === undefined ? git : NodePath.resolve(folder, elsewhere), "HEAD"))
    const branch = /^ref: refs\/heads\/(.+)$/m.exec(head)?.[1]
    if (head !== "" || folder === NodePath.dirname(folder)) return branch
    folder = NodePath.dirname(folder)
  }
  return undefined
})

const spool = Effect.fnUntraced(function* (event: object) {
  const { paths } = yield* Invocation
  const fs = yield* FileSystem.FileSystem
  const folder = Spool.foldersOf(paths.state).spool
  yield* StateFolder.check(paths.state)
  const name = `${process.pid}-${yield* Random.nextIntBetween(0, 1_000_000)}`
  const part = NodePath.join(folder, `${name}.part`)
  yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
  yield* fs.writeFileString(part, Spool.entryOf(event), { mode: 0o600 })
  yield* fs.rename(part, NodePath.join(folder, `${name}.hook`))
})

const tell = Effect.fnUntraced(function* (name: string) {
  const { paths } = yield* Invocation
  const hook = yield* input
  const translate = Object.hasOwn(events, name) ? events[name] : undefined
  if (hook === undefined || translate === undefined) return
  const cwd = typeof hook["cwd"] === "string" ? hook["cwd"] : undefined
  const branch = name === "session-start" && cwd !== undefined ? yield* branchOf(cwd) : undefined
  const event = {
    session_id: hook["session_id"],
    cwd,
    project_path: hook["project_path"],
    timestamp: yield* Clock.currentTimeMillis,
    [HookBody.CUT]: hook[HookBody.CUT],
    ...translate(hook, branch)
  }
  yield* post(paths.http, "/events", event, "500 millis").pipe(
    Effect.catch(() => (name === "session-start" ? spool(event) : Effect.void))
  )
})

/** Closes standard input, because an input that does not end would keep this process running. */
const letGo = Effect.sync(() => process.stdin.destroy())

export const run = ({ event }: { readonly event: string | undefined }) =>
  tell(event ?? "").pipe(Effect.timeoutOption(WITHIN), Effect.ignoreCause, Effect.ensuring(letGo))
