/**
 * `agentd run -- CMD…`: runs a program in this terminal, with its plate (a session) on the board.
 *
 * Guarantees: the program runs whether or not there is a daemon, and is never delayed by
 * the daemon; however it ends, its exit status is ours.
 */
import { Effect, Fiber } from "effect"
import * as NodePath from "node:path"
import { post } from "../../api/http/Client.ts"
import * as PlateId from "../../plates/PlateId.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"

/** Timeout of the registration; the program already runs. */
const REGISTER_WITHIN = "5 seconds"
/** Timeout of the report that the program ended; short, because the shell waits for it. */
const STOPPED_WITHIN = "1 second"

/** A signal ends the program but not us: we still have to report its end. */
export const run = Effect.fnUntraced(function* (input: { readonly command: ReadonlyArray<string> }) {
  const { paths } = yield* Invocation
  const entry = yield* Entry
  const plate = yield* PlateId.fresh
  // in a fiber of its own: an interruption of us must not interrupt the report
  const tell = (path: string, body: object, within: "1 second" | "5 seconds") =>
    Effect.forkDetach(Effect.interruptible(Effect.ignore(post(paths.http, path, { plate_id: plate, ...body }, within))))
  const program = yield* entry.foreground({
    command: input.command,
    env: { ...entry.env, AGENTD_PLATE: plate }
  })
  const { pid } = program
  const registering = yield* tell("/plates/register", { cwd: NodePath.resolve("."), pid }, REGISTER_WITHIN)
  yield* program.ended
  // an end that is reported before the start would leave a plate open
  yield* Fiber.await(registering)
  yield* Fiber.await(yield* tell("/plates/stopped", { pid }, STOPPED_WITHIN))
}, Effect.uninterruptible)
