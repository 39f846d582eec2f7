/**
 * PlanSource: the bytes of a plan's file. A reference: a simulation has files of its own.
 *
 * Guarantees: opening does not wait, as it would at a pipe; what is no file is not read; no
 * more is read than may be taken, and one byte: a file that says that it is short may be endless.
 */
import { Context, Effect, Schema } from "effect"
import { constants } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"

export class PlanUnread extends Schema.TaggedError<PlanUnread>()("PlanUnread", {
  reason: Schema.Literals(["Unreadable", "NoFile", "TooLong"]),
  message: Schema.String
}) {}

export type Read = (path: string, most: number) => Effect.Effect<Uint8Array, PlanUnread>

/** Bytes of one read. */
const A_READ = 1_048_576

const readError = (path: string) => (error: unknown) => {
  const why = error instanceof Error ? error.message.split(",")[0] : String(error)
  return new PlanUnread({ reason: "Unreadable", message: `${path} cannot be read: ${why}` })
}

const readBounded = async (file: FileHandle, most: number): Promise<Buffer> => {
  const parts: Array<Buffer> = []
  for (let bytes = 0; bytes <= most;) {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(A_READ), 0, A_READ, bytes)
    if (bytesRead === 0) break
    bytes += bytesRead
    parts.push(buffer.subarray(0, bytesRead))
  }
  return Buffer.concat(parts)
}

const readFile: Read = (path, most) => {
  const reading = <A>(read: () => Promise<A>) => Effect.tryPromise({ try: read, catch: readError(path) })
  return Effect.acquireUseRelease(
    reading(() => open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)),
    (file) =>
      Effect.gen(function* () {
        const info = yield* reading(() => file.stat())
        if (!info.isFile()) return yield* new PlanUnread({ reason: "NoFile", message: `${path} is no file` })
        if (info.size > most) {
          const message = `${path} has ${info.size} bytes; at most ${most} are taken`
          return yield* new PlanUnread({ reason: "TooLong", message })
        }
        return yield* reading(() => readBounded(file, most))
      }),
    (file) => Effect.ignore(reading(() => file.close()))
  )
}

/** The service that reads a plan's file; by default from this machine. */
export const PlanSource = Context.Reference<Read>("agentd/goals/PlanSource", { defaultValue: () => readFile })
