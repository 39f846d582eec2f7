/**
 * Secret: the value that a config names by where it is: a file, a variable of the daemon, a credential of systemd.
 *
 * Guarantees: read when it is needed, its first line alone; one that is not there or empty is an error that a person
 * can mend, which never holds any of it. Whoever uses it makes it known to the redactor first.
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

/** How a config says the three places, for remedies. */
interface Words {
  /** The password, the url. */
  readonly what: string
  readonly fileField: string
}

export const readText = (path: string, what: string) =>
  Effect.mapError(readSecret(path), ({ message, remedy }) =>
    setup(
      `${what} ${path} cannot be used: ${message}`,
      remedy === "" ? "See that the file is there and that this user may read it." : remedy
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

/** Undefined where no place is named. */
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
        `the credential ${credential} is not there: systemd gave this daemon none`,
        `Add LoadCredential=${credential}:/path/to/file to its unit, or use ${fileField}.`
      )
    }
    secret = firstLine(yield* readText(join(folder, credential), "the credential"))
  }
  if (secret === "") return yield* setup(`the ${what} is empty`, "Put it on the first line of its file.")
  return secret
})
