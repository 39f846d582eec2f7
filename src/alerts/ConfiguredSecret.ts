/**
 * ConfiguredSecret: reads a secret from the source that a config names: a file, an environment variable of the daemon,
 * or a systemd credential.
 *
 * Guarantees: a secret is read when it is needed. Of a file or a credential, only the first line is read. If the secret
 * is missing or empty, the error says how to fix that. No error contains any part of a secret. The caller registers the
 * secret with the redactor before using it.
 */
import { Config as Environment, Effect, Option, Redacted } from "effect"
import { join } from "node:path"
import { readSecret } from "../config/OwnFile.ts"
import { setup } from "./SendError.ts"

export interface Place {
  readonly file?: string
  readonly env?: string
  readonly credential?: string
}

interface Words {
  /** Name of the secret, such as `password`. */
  readonly what: string
  readonly fileField: string
}

export const readText = (path: string, what: string) =>
  Effect.mapError(readSecret(path), ({ message, remedy }) =>
    setup(
      `${what} ${path} cannot be used: ${message}`,
      remedy === "" ? "Check that the file exists and that this user can read it." : remedy
    )
  )

export const variable = (name: string) =>
  Effect.orElseSucceed(
    Effect.map(Environment.option(Environment.Redacted(name)), (value) =>
      Option.match(value, { onNone: () => "", onSome: Redacted.value })
    ),
    () => ""
  )

const firstLine = (text: string): string => text.replace(/^\uFEFF/, "").split(/\r?\n/)[0]!

/** Reads the secret. Undefined if the config names no file, variable or credential. */
export const read = Effect.fnUntraced(function* (
  { credential, env, file }: Place,
  { fileField, what }: Words = { what: "secret", fileField: "file" }
) {
  let secret: string | undefined
  if (file !== undefined) secret = firstLine(yield* readText(file, `the ${what} file`))
  if (env !== undefined) {
    secret = yield* variable(env)
    if (secret === "") {
      return yield* setup(
        `the environment variable ${env} is not set for the daemon`,
        `Set it where agentd is started, or use ${fileField}.`
      )
    }
  }
  if (credential !== undefined) {
    const folder = yield* variable("CREDENTIALS_DIRECTORY")
    if (folder === "") {
      return yield* setup(
        `the credential ${credential} does not exist: systemd passed none to this daemon`,
        `Add LoadCredential=${credential}:/path/to/file to its unit, or use ${fileField}.`
      )
    }
    secret = firstLine(yield* readText(join(folder, credential), "the credential"))
  }
  if (secret === "") return yield* setup(`the ${what} is empty`, "Put it on the first line of its file.")
  return secret
})
