/**
 * WayBack: checks the installed program before `agentd restart` ends the daemon. If the new daemon then does not start,
 * the error says how to go back to the previous program.
 *
 * Guarantees: if the installed program does not start, or cannot read the store, the running daemon is not stopped.
 */
import { Effect, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as fs from "node:fs"
import { join } from "node:path"
import { VERSION } from "../../api/rpc/Version.ts"
import { STORE } from "../../backup/Contents.ts"
import { SCHEMA_VERSION } from "../../core/event-log/Migrations.ts"
import * as StoreCopy from "../../core/event-log/StoreCopy.ts"
import * as DaemonNode from "../../systemd/DaemonNode.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { shellWord } from "../../config/ShellWord.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"
import { explain } from "../render/ErrorText.ts"
import { plain } from "../render/Output.ts"
import * as Installed from "../setup/Installed.ts"
import * as DaemonLife from "./DaemonLife.ts"

/** Maximum length of a program's output in an error, in characters. If the output is longer, only its end is shown. */
const WORDS = 600
const PROGRAM_WITHIN = "1 minute"

/** The state before the restart: the version of the daemon that will be stopped, and its store's schema. */
interface Before {
  readonly version: string
  readonly schema: number
  /** True if the installed program is not the one that the daemon runs. */
  readonly replaced: boolean
}

const schemaOf = Effect.fnUntraced(function* (state: string) {
  const store = join(state, STORE)
  return fs.existsSync(store) ? (yield* StoreCopy.facts(store)).schema : 0
})

/** The shell command that installs an older version of agentd again, and then runs `next`. */
const installing = (version: string, next: string) =>
  Effect.map(Installed.installation, (found) => {
    switch (found._tag) {
      case "Npm":
        return `npm install -g --prefix ${shellWord(found.prefix)} agentd-${version}.tgz && ${next}`
      case "Clone":
        return `cd ${shellWord(found.root)} && git checkout COMMIT-OF-${version} && npm ci && ${next}`
      case "Other":
        return `install agentd ${version} as you installed it before, then run: ${next}`
    }
  })

/** Runs the installed program with `--version`; returns its exit code and output. */
const answer = Effect.gen(function* () {
  const { command, env } = yield* Entry
  const [node = "", ...args] = DaemonNode.commandOf([...command, "--version"])
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const child = yield* spawner.spawn(
    ChildProcess.make(node, args, { cwd: "/", env, extendEnv: false, stdin: "ignore", forceKillAfter: "5 seconds" })
  )
  const text = (bytes: typeof child.stdout) => Stream.mkString(Stream.decodeText(bytes))
  const [code, out, err] = yield* Effect.all([child.exitCode, text(child.stdout), text(child.stderr)], {
    concurrency: "unbounded"
  })
  return { code: Number(code), said: (err.trim() || out.trim()).slice(-WORDS) }
}).pipe(
  Effect.scoped,
  Effect.catchTag("PlatformError", ({ message }) => Effect.succeed({ code: -1, said: message })),
  Effect.timeoutOrElse({
    duration: PROGRAM_WITHIN,
    orElse: () => Effect.succeed({ code: -1, said: `no answer within ${PROGRAM_WITHIN}` })
  })
)

/** Checks that the installed program can replace the running daemon; otherwise fails. */
export const checked = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const { daemon } = yield* DaemonLife.status(paths.socket)
  const schema = yield* schemaOf(paths.state)
  const refused = Effect.fnUntraced(function* (why: string) {
    return yield* new VerbFailed({
      message: `${why} The running daemon (pid ${daemon.pid}, agentd ${daemon.version}) was not stopped.`,
      remedy: `Install the running version again: ${yield* installing(daemon.version, "agentd restart")}`,
      exitCode: ExitCode.failed
    })
  })
  const { code, said } = yield* answer
  if (code !== 0) return yield* refused(`The installed agentd does not start: ${plain(said) || `exit code ${code}`}.`)
  if (schema > SCHEMA_VERSION) {
    return yield* refused(
      `The store in ${paths.state} has schema ${schema}. agentd ${VERSION} reads schema ${SCHEMA_VERSION} and older ones.`
    )
  }
  const replaced = daemon.replaced === true || daemon.version !== VERSION
  return { version: daemon.version, schema, replaced } satisfies Before
})

/**
 * The shell command that restores the older copy of the store, if the new daemon has changed the store's schema;
 * otherwise undefined.
 */
const storeBack = Effect.fnUntraced(function* (schema: number) {
  const { paths } = yield* Invocation
  const name = `${STORE}.schema-${schema}`
  const now = yield* Effect.orElseSucceed(schemaOf(paths.state), () => schema)
  if (now <= schema || !fs.existsSync(join(paths.state, name))) return undefined
  return {
    fact: ` The installed agentd has changed the store from schema ${schema} to ${now}. A copy with the old schema is ${join(paths.state, name)}.`,
    // the name replaced-newer is known to `gc` and `uninstall`
    command: `(cd ${shellWord(paths.state)} && mkdir replaced-newer && mv ${STORE}* replaced-newer && cp replaced-newer/${name} ${STORE}) && `
  }
})

/** Starts the new daemon. If that fails, the error says how to go back to the previous program. */
export const started = Effect.fnUntraced(function* (before: Before, since: number) {
  return yield* Effect.catch(
    DaemonLife.start(since),
    Effect.fnUntraced(function* (error) {
      if (!before.replaced) return yield* Effect.fail(error)
      const { exitCode, message, remedy } = explain(error)
      const { version } = before
      const back = yield* storeBack(before.schema)
      return yield* new VerbFailed({
        message: `${message}\nThe installed agentd does not start. The previous version was ${version}.${back?.fact ?? ""}`,
        remedy: `${remedy}\n  → Or go back to agentd ${version}: ${yield* installing(version, `${back?.command ?? ""}agentd start`)}`,
        exitCode
      })
    })
  )
})
