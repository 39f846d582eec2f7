/**
 * ClaudeRun: one run of Claude Code: which session its process opens.
 *
 * Guarantees: those of LineRun. A session that another process has open is not written to: the run continues with a
 * copy, and a further turn is refused.
 */
import { Effect } from "effect"
import type { ClaudeBackend } from "../../config/BackendConfig.ts"
import { BackendError, type RunSpec } from "../Backend.ts"
import type * as FileContents from "../FileContents.ts"
import * as LineRun from "../line/LineRun.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as InputRecords from "../process/InputRecords.ts"
import * as RunProcess from "../process/RunProcess.ts"
import type { Session } from "./ClaudeCommand.ts"
import { ClaudeProtocol } from "./ClaudeProtocol.ts"
import type { KnownStream, Note } from "./ClaudeStream.ts"

export interface Options {
  readonly config: ClaudeBackend
  readonly spec: RunSpec
  readonly command: (session: Session) => Effect.Effect<RunProcess.RunProcessSpec, BackendError>
  readonly read: FileContents.Reader
  /** Returns the pid of another process that has the session open; undefined if there is none. */
  readonly holder: (sessionId: string, own?: number) => Effect.Effect<number | undefined>
}

/** Chooses the session of the run: its last conversation, or a copy if another process has that conversation open. */
const sessionOf = Effect.fnUntraced(function* ({ spec: { resume } }: Options, count: number, holder?: number) {
  const id = yield* LineRun.uuid
  const session: Session =
    resume === undefined || count > 1
      ? { _tag: "New", id }
      : resume.fork || holder !== undefined
        ? { _tag: "Forked", id, from: resume.sessionId }
        : { _tag: "Resumed", id: resume.sessionId }
  return session
})

const open = (options: Options) =>
  Effect.fnUntraced(function* (count: number) {
    const { command, spec } = options
    const resumed = spec.adopt === undefined && count === 1 ? spec.resume : undefined
    const holder = resumed === undefined ? undefined : yield* options.holder(resumed.sessionId)
    const session = yield* sessionOf(options, count, holder)
    const how = yield* command(session)
    const program = yield* RunProcess.make({ ...how, count, keeps: true, takesUp: spec.adopt !== undefined })
    const known = Checkpoint.of<LineRun.Rest<KnownStream>>(program)?.state.stream
    const turn = InputRecords.notesOf<Note>(program.before?.inputs ?? []).find((note) => note.say === "turn")
    const opened = known?.sessionId ?? turn?.session ?? session.id
    const protocol = new ClaudeProtocol(program.pid, opened, Object.keys(spec.mcp), known)
    const notices = holder === undefined ? [] : [`its session is open in process ${holder}: it continues with a copy`]
    const admit = Effect.flatMap(options.holder(opened, program.pid), (other) => {
      if (other === undefined) return Effect.void
      const message = `its session is open in process ${other}, too`
      return Effect.fail(new BackendError({ message, remedy: "the next run continues with a copy", fatal: false }))
    })
    return { program, protocol, notices, admit }
  })

export const make = (options: Options) => {
  const { config, read, spec } = options
  const { killGrace, silence, startTimeout } = config
  return LineRun.make({
    name: "claude",
    title: "Claude Code",
    spec,
    startTimeout,
    silence,
    killGrace,
    open: open(options),
    read
  })
}
