/**
 * `agentd run -- CMD…`: a program in this terminal, with its plate on the board.
 *
 * Guarantees: the program runs whether or not there is a daemon, and is delayed by
 * none; whatever ends it, its exit status is ours.
 */
import { Effect, Fiber } from "effect"
import * as NodePath from "node:path"
import { post } from "../../api/http/Client.ts"
import * as PlateId from "../../plates/PlateId.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"

/** The time that the registration may take; the program runs meanwhile. */
const REGISTER_WITHIN = "5 seconds"
/** The shell waits for it. */
const STOPPED_WITHIN = "1 second"

/** A signal ends the program and not us: we still have to tell of its end. */
export const run = Effect.fnUntraced(function* (input: { readonly command: ReadonlyArray<string> }) {
  const { paths } = yield* Invocation
  const entry = yield* Entry
  const plate = yield* PlateId.fresh
  // In a fiber of its own: what interrupts us is not to interrupt this.
  const tell = (path: string, body: object, within: "1 second" | "5 seconds") =>
    Effect.forkDetach(Effect.interruptible(Effect.ignore(post(paths.http, path, { plate_id: plate, ...body }, within))))
  const program = yield* entry.foreground({
    command: input.command,
    env: { ...entry.env, AGENTD_PLATE: plate }
  })
  const { pid } = program
  const registering = yield* tell("/plates/register", { cwd: NodePath.resolve("."), pid }, REGISTER_WITHIN)
  yield* program.ended
  // An end that overtakes its beginning would leave a plate open.
  yield* Fiber.await(registering)
  yield* Fiber.await(yield* tell("/plates/stopped", { pid }, STOPPED_WITHIN))
}, Effect.uninterruptible)
