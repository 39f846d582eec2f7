/**
 * Counted: what a route that counts does with a request and its answer: it asks for the usage where the client has not,
 * takes it out of the answer again, and reads an answer to its end whose client has gone. It holds nothing of Effect.
 *
 * Guarantees: bounded in time, bytes and number; a request that the provider does not take with the question for its
 * usage is made again as it came; the client's answer has no chunk that it did not ask for.
 */
import type * as http from "node:http"
import { Transform } from "node:stream"

/** Bytes of requests that one route holds at once; what is more passes as it comes. */
const MAX_HELD = 32 * 1024 * 1024

/** An answer whose client has gone is read for so long, ms, and so many of them at once. */
const MAX_REST = 120_000
const MAX_RESTS = 32

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The body with the question for the usage of its stream; undefined: it asks, or streams nothing. */
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
  // the rest stays as it was written: numbers may be larger than this program can read
  if (!("stream_options" in value)) return body.replace("{", '{"stream_options":{"include_usage":true},')
  return JSON.stringify({ ...value, stream_options: { ...(isObject(given) ? given : {}), include_usage: true } })
}

/** Whether a line of a stream tells the usage, and nothing else. */
const tellsUsage = (line: string): boolean =>
  line.startsWith("data:") && /"usage"\s*:\s*\{/u.test(line) && /"choices"\s*:\s*\[\s*\]/u.test(line)

/** Passes a stream on without the chunk that tells the usage. */
export const withoutUsage = (): Transform => {
  let [rest, isSkipped] = ["", false]
  return new Transform({
    // the bytes of a character may come in two pieces: each byte is one here
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

/** The bytes of a request that may be text: those of a picture are few tokens. */
export const plainBytes = (chunk: Uint8Array): number =>
  Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    .toString("latin1")
    .replaceAll(/[A-Za-z0-9+/]{512,}/gu, "").length

/** Reads whole bodies, as many bytes at once as a route may hold. */
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

/** The answers whose clients have gone, and which are read for their count. */
export const remaining = () => {
  const rests = new Set<() => void>()
  return {
    /** `stop`: ends it as it is. False: there are too many. */
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
