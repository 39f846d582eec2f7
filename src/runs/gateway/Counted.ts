/**
 * Counted: handles requests and answers on a route that counts tokens. If the client does not ask for the usage, the
 * gateway adds that to the request and removes the usage from the answer again. An answer is read to its end even if
 * the client has disconnected. Imports nothing from Effect.
 *
 * Guarantees: Buffered requests and unread answers are limited in time, bytes and number. If the provider rejects a
 * request because usage was added to it, the original request is sent. The client gets no chunk that it did not ask
 * for.
 */
import type * as http from "node:http"
import { Transform } from "node:stream"
import { isObject } from "./UsageReader.ts"

/**
 * Maximum number of bytes of requests that one route buffers at once. Requests above this limit are passed on
 * unchanged.
 */
const MAX_HELD = 32 * 1024 * 1024

/** For answers whose client has disconnected: maximum time to read one, ms, and maximum number at once. */
const MAX_REST = 120_000
const MAX_RESTS = 32

/** Makes a request body also ask for the stream's usage; undefined if it already asks, or if it requests no stream. */
export const asking = (body: string): string | undefined => {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return undefined
  }
  if (!isObject(value) || value["stream"] !== true) return undefined
  const given = value["stream_options"]
  if (isObject(given) && given["include_usage"] === true) return undefined
  // the rest of the body is kept as written, because it can contain numbers that are too large for JavaScript
  if (!("stream_options" in value)) return body.replace("{", '{"stream_options":{"include_usage":true},')
  return JSON.stringify({ ...value, stream_options: { ...(isObject(given) ? given : {}), include_usage: true } })
}

/** Whether a line of a stream contains only the usage. */
const tellsUsage = (line: string): boolean =>
  line.startsWith("data:") && /"usage"\s*:\s*\{/u.test(line) && /"choices"\s*:\s*\[\s*\]/u.test(line)

/** Passes a stream on without the chunk that contains the usage. */
export const withoutUsage = (): Transform => {
  let [rest, isSkipped] = ["", false]
  return new Transform({
    // latin1 has one character per byte: a UTF-8 character can be split between two chunks
    transform: (chunk: Buffer, _, done) => {
      const lines = (rest + chunk.toString("latin1")).split("\n")
      rest = lines.pop() ?? ""
      let out = ""
      for (const line of lines) {
        const isEnd = isSkipped && line.trim() === ""
        isSkipped = tellsUsage(line)
        if (!isSkipped && !isEnd) out += `${line}\n`
      }
      if (rest.length > MAX_HELD / 32) [out, rest] = [out + rest, ""]
      done(null, Buffer.from(out, "latin1"))
    },
    flush: (done) => done(null, Buffer.from(tellsUsage(rest) ? "" : rest, "latin1"))
  })
}

/**
 * Number of bytes that count for an estimate. Base64 data such as pictures is left out, because it makes few tokens.
 */
export const plainBytes = (chunk: Uint8Array): number =>
  Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    .toString("latin1")
    .replaceAll(/[A-Za-z0-9+/]{512,}/gu, "").length

/** Buffers whole request bodies, up to a number of bytes per route. */
export const holding = () => {
  let held = 0
  return (request: http.IncomingMessage, take: (body: Buffer, isWhole: boolean) => void): void => {
    const chunks: Array<Buffer> = []
    let size = 0
    const leave = (isWhole: boolean) => {
      request.off("data", hold).off("end", end)
      take(Buffer.concat(chunks.splice(0)), isWhole)
      held -= size
      size = 0
    }
    const hold = (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      held += chunk.length
      if (held > MAX_HELD) leave(false)
    }
    const end = () => leave(true)
    request.on("data", hold).on("end", end)
    request.on("close", () => {
      held -= size
      size = 0
    })
  }
}

/** Answers whose clients have disconnected. They are read only to count their tokens. */
export const remaining = () => {
  const rests = new Set<() => void>()
  return {
    /** Adds an answer. `stop` ends it at once. Returns false if there are too many answers. */
    add: (stop: () => void): boolean => {
      if (rests.size >= MAX_RESTS) return false
      const timer = setTimeout(() => over(), MAX_REST)
      const over = () => {
        clearTimeout(timer)
        rests.delete(over)
        stop()
      }
      rests.add(over)
      return true
    },
    settle: (): void => rests.forEach((over) => over())
  }
}
