/**
 * `agentd run -- CMD…`: runs a program in this terminal, and shows it on the board as a session with a plate.
 *
 * Guarantees: the program runs whether or not there is a daemon, and is never delayed by the daemon. However the
 * program ends, this process exits with the program's exit status.
 */
import { Effect, Fiber } from "effect"
import * as NodePath from "node:path"
import { post } from "../../api/http/Client.ts"
import * as PlateId from "../../plates/PlateId.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"

/** Timeout for registering the session. The program already runs during this time. */
const REGISTER_WITHIN = "5 seconds"
/** Timeout for the report that the program has ended. It is short, because the shell waits for it. */
const STOPPED_WITHIN = "1 second"

/** Runs the program. Signals end the program but not this process, which still has to report the end. */
export const run = Effect.fnUntraced(function* (input: { readonly command: ReadonlyArray<string> }) {
  const { paths } = yield* Invocation
  const entry = yield* Entry
  const plate = yield* PlateId.fresh
  // use a separate fiber, so that an interruption of this command does not interrupt the report
  const tell = (path: string, body: object, within: "1 second" | "5 seconds") =>
    Effect.forkDetach(Effect.interruptible(Effect.ignore(post(paths.http, path, { plate_id: plate, ...body }, within))))
  const program = yield* entry.foreground({
    command: input.command,
    env: { ...entry.env, AGENTD_PLATE: plate }
  })
  const { pid } = program
  const registering = yield* tell("/plates/register", { cwd: NodePath.resolve("."), pid }, REGISTER_WITHIN)
  yield* program.ended
  // wait for the registration: if the end were reported first, the session would stay open on the board
  yield* Fiber.await(registering)
  yield* Fiber.await(yield* tell("/plates/stopped", { pid }, STOPPED_WITHIN))
}, Effect.uninterruptible)
