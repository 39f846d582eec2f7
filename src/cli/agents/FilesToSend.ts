/**
 * FilesToSend: reads the files that the user sends with a message, and uploads them to the daemon.
 *
 * Guarantees: only regular files are read, and no more bytes than a message may contain. Reading never waits for a pipe
 * or a device. A link is not followed, because an agent could have made it. A file that changes while it is read is
 * rejected. Each error names the file. If one file is rejected, no file is uploaded.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { constants, type Stats } from "node:fs"
import { type FileHandle, open, readlink } from "node:fs/promises"
import { basename, resolve } from "node:path"
import { sizeInWords } from "../../runs/FileDescription.ts"
import * as AttachedFile from "../../runs/AttachedFile.ts"
import { troubleOf } from "../../config/FileTrouble.ts"
import type { Caller } from "../../domain/Messages.ts"
import type { Client } from "../../api/rpc/ControlClient.ts"
import { Limits } from "../../board/Limits.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"

interface Read {
  readonly filename: string
  readonly sha256: string
  readonly content: Uint8Array
}

const failed = (message: string, remedy: string, exitCode: number = ExitCode.failed) =>
  new VerbFailed({ message, remedy, exitCode })

const PLACE = "Put the file into the agent's workspace, and name its path in the message."

const kindOf = (stat: Stats): string =>
  stat.isDirectory()
    ? "a folder"
    : stat.isFIFO()
      ? "a pipe"
      : stat.isSocket()
        ? "a socket"
        : stat.isCharacterDevice() || stat.isBlockDevice()
          ? "a device"
          : "no file"

const tooLarge = (path: string) =>
  failed(`${path} is larger than ${sizeInWords(AttachedFile.MAX_FILE)}, the maximum size of a file.`, PLACE)

const changed = (path: string) =>
  failed(`${path} changed while it was read.`, "Wait until the file no longer changes, then send it again.")

/** Reads a file's content. Fails if the file changes while it is being read. */
const contentOf = async (path: string, file: FileHandle): Promise<Uint8Array> => {
  const before = await file.stat()
  if (!before.isFile()) throw failed(`${path} is ${kindOf(before)}.`, "Pass the path of a regular file.")
  if (before.size > AttachedFile.MAX_FILE) throw tooLarge(path)
  const content = Buffer.alloc(before.size + 1)
  let has = 0
  for (;;) {
    const { bytesRead } = await file.read(content, has, content.length - has, has)
    has += bytesRead
    if (bytesRead === 0 || has > before.size) break
  }
  const after = await file.stat()
  // some system files, for example in /proc, report the size 0 but have content: these are rejected as changed files
  if (before.size === 0 && has === 0) throw failed(`${path} is empty.`, "Pass a file that is not empty.")
  if (has !== before.size || after.size !== before.size || after.mtimeMs !== before.mtimeMs) throw changed(path)
  return content.subarray(0, has)
}

/** Flags for opening a file without waiting for a pipe, and without following a link at the end of the path. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

const readOne = async (path: string): Promise<Read> => {
  const whole = resolve(path)
  const file = await open(whole, FLAGS).catch(async (error: unknown) => {
    const target = await readlink(whole).catch(() => undefined)
    throw target === undefined
      ? failed(`${path} cannot be read: ${troubleOf(error)}.`, "Check that the file exists and that you can read it.")
      : failed(`${path} is a link to ${target}.`, "To send the target, pass its own path.")
  })
  try {
    const content = await contentOf(path, file)
    if (AttachedFile.mediaTypeOf(content) === undefined)
      throw failed(`${path} has a file type that cannot be sent. These can be sent: ${AttachedFile.KINDS}.`, PLACE)
    const filename = basename(whole)
    if (filename.length > AttachedFile.MAX_NAME)
      throw failed(
        `${path} has a name of more than ${AttachedFile.MAX_NAME} characters.`,
        "Copy the file to a shorter name, and send the copy."
      )
    return { filename, sha256: createHash("sha256").update(content).digest("hex"), content }
  } finally {
    await file.close()
  }
}

export const read = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  if (paths.length > AttachedFile.MAX_FILES)
    return yield* failed(
      `A message can have at most ${AttachedFile.MAX_FILES} files, but you passed ${paths.length}.`,
      "Send some of the files with a second message, or put them into the agent's workspace.",
      ExitCode.usage
    )
  const files: Array<Read> = []
  let size = 0
  for (const path of paths) {
    const file = yield* Effect.tryPromise({
      try: () => readOne(path),
      catch: (error) =>
        error instanceof VerbFailed ? error : failed(`${path} cannot be read: ${troubleOf(error)}.`, "Try again.")
    })
    size += file.content.length
    if (size > AttachedFile.MAX_MESSAGE)
      return yield* failed(
        `With ${path} the files are larger than ${sizeInWords(AttachedFile.MAX_MESSAGE)}, the maximum size of one message.`,
        "Send some of the files with a second message."
      )
    files.push(file)
  }
  return files
})

/** Uploads the part of a file's content that the daemon does not have yet. */
const handOver = Effect.fnUntraced(function* (client: Client, { content, filename, sha256 }: Read, caller: Caller) {
  const of = { sha256, size: content.length, caller }
  let { has } = yield* client.AddFile({ ...of, at: 0, data: "" })
  // another client can upload the same content at the same time, so `has` can grow by more than this piece
  for (let tries = 0; has < content.length && tries < 1_000; tries++) {
    const piece = content.subarray(has, has + Limits.pieceBytes)
    ;({ has } = yield* client.AddFile({ ...of, at: has, data: Buffer.from(piece).toString("base64") }))
  }
  if (has < content.length)
    return yield* failed(
      `The daemon has only ${has} of the ${content.length} bytes of ${filename}: nothing was sent.`,
      "Send the message again."
    )
})

/** Uploads all files, and returns references to them for the message. */
export const give = Effect.fnUntraced(function* (client: Client, files: ReadonlyArray<Read>, caller: Caller) {
  yield* Effect.forEach(files, (file) => handOver(client, file, caller), { discard: true })
  return files.map(({ filename, sha256 }) => ({ filename, sha256 }))
})
