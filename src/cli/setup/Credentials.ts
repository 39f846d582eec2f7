/**
 * Credentials: reads the secrets that systemd has passed as credential files, and returns them as environment
 * variables.
 */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"

/**
 * Reads the files whose names look like a variable (ANTHROPIC_API_KEY). `folder`: undefined if systemd has passed no
 * credentials.
 */
export const credentials = Effect.fnUntraced(function* (folder: string | undefined) {
  if (folder === undefined) return {}
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const found = yield* Effect.forEach(
    names.filter((name) => /^[A-Z][A-Z0-9_]*$/.test(name)),
    (name) =>
      fs.readFileString(NodePath.join(folder, name)).pipe(
        Effect.map((text) => [[name, text.split("\n")[0]!.trim()]] as const),
        Effect.catch((error) => Effect.as(Effect.logWarning(`credential ${name}: ${error.message}`), []))
      )
  )
  return Object.fromEntries(found.flat())
})
