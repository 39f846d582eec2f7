/**
 * GeminiSessions: prevents Gemini CLI from overwriting or deleting the conversation file of a session that it loads.
 *
 * For `session/load`, Gemini CLI first creates a file whose name contains the current minute and the session's id. Then
 * Gemini CLI looks for the file with the conversation. If the conversation started in the same minute, both files have
 * the same name, and the conversation is overwritten. Otherwise the new file stays empty. The next start of Gemini CLI
 * considers the empty file damaged, and deletes all files of the session.
 *
 * Guarantees: before a session is loaded, its file has a name that no new file can get, and its folder contains no
 * empty file of the session. A file that contains a message is never removed. Unreadable files are not changed.
 */
import { Effect, FileSystem } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import * as path from "node:path"

/** A file larger than this, in bytes, has content. */
const MAX_EMPTY = 256 * 1024
/** Maximum number of project folders that are searched, and of files in each. */
const MAX_ENTRIES = 10_000
const MINUTE = 60_000
/** Beginning of the text that the program itself writes into each new session. */
const OWN = "<session_context>"

export const isGemini = (argv: ReadonlyArray<string>): boolean =>
  argv.some((word) => /^gemini(?:-cli)?(?:\.c?js)?$/.test(path.basename(word)) || word.includes("@google/gemini-cli"))

const isOwn = (message: unknown): boolean => {
  const content = isObject(message) && message["type"] === "user" ? message["content"] : undefined
  return (
    Array.isArray(content) &&
    content.every((part) => isObject(part) && typeof part["text"] === "string" && part["text"].startsWith(OWN))
  )
}

/** True if a line contains no message of the user or the model. */
const isBare = (line: string): boolean => {
  if (line.trim() === "") return true
  try {
    const record: unknown = JSON.parse(line)
    if (!isObject(record)) return false
    const set = record["$set"] ?? ("sessionId" in record && !("id" in record) ? record : undefined)
    const messages = isObject(set) ? (set["messages"] ?? []) : undefined
    return Array.isArray(messages) && messages.every(isOwn)
  } catch {
    return false
  }
}

/** True if a session's file contains only text that the program writes by itself. Pure. */
export const isEmpty = (text: string): boolean => text.length <= MAX_EMPTY && text.split("\n").every(isBare)

/** Formats the minute as the program does in file names. */
const minuteOf = (millis: number): string => new Date(millis).toISOString().slice(0, 16).replaceAll(":", "-")

/** Returns a name for the session's file that no file created at `now` or later can get. Pure. */
export const keptName = (name: string, now: number): string => {
  const found = /^session-(\d{4}-\d\d-\d\dT\d\d-\d\d)-(.+)$/.exec(name)
  return found === null || found[1]! < minuteOf(now) ? name : `session-${minuteOf(now - MINUTE)}-${found[2]}`
}

/** Prepares a session's files before the session is loaded. `home`: the program's home folder. Errors are ignored. */
export const keep = Effect.fnUntraced(
  function* (home: string, sessionId: string, now: number) {
    const files = yield* FileSystem.FileSystem
    const root = path.join(home, ".gemini", "tmp")
    const ending = `-${sessionId.slice(0, 8)}.jsonl`
    const projects = yield* files.readDirectory(root)
    for (const project of projects.slice(0, MAX_ENTRIES)) {
      const folder = path.join(root, project, "chats")
      const names = yield* Effect.orElseSucceed(files.readDirectory(folder), (): Array<string> => [])
      const its: Array<{ readonly name: string; readonly isEmpty: boolean }> = []
      for (const name of names.slice(0, MAX_ENTRIES)) {
        if (!name.startsWith("session-") || !name.endsWith(ending)) continue
        const file = path.join(folder, name)
        const { size, type } = yield* files.stat(file)
        const text = type !== "File" || size > MAX_EMPTY ? undefined : yield* files.readFileString(file)
        its.push({ name, isEmpty: text !== undefined && isEmpty(text) })
      }
      if (its.every(({ isEmpty }) => isEmpty)) continue
      for (const { isEmpty, name } of its) {
        const kept = keptName(name, now)
        if (isEmpty) yield* files.remove(path.join(folder, name))
        else if (kept !== name && !names.includes(kept))
          yield* files.rename(path.join(folder, name), path.join(folder, kept))
      }
    }
  },
  (work) => Effect.catch(work, () => Effect.void)
)
