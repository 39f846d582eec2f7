/**
 * StateFolder: checks the state directory of a store before anything in it is touched.
 *
 * Guarantees: the check opens, creates and changes no file. A directory is refused if it belongs to another user, or if
 * other users can write to it. The directory is also refused if it contains a symbolic link or another user's file,
 * because a write could then change any file of this user.
 */
import { Effect, Schema } from "effect"
import { lstatSync, readdirSync, type Stats, statSync } from "node:fs"
import { join } from "node:path"

export class StateFolderRefused extends Schema.TaggedError<StateFolderRefused>()("StateFolderRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

const OTHER = "Choose a folder of your own with --state DIR."

const refused = (message: string, remedy: string) => new StateFolderRefused({ message, remedy })

const isForeign = (stat: Stats): boolean => process.getuid !== undefined && stat.uid !== process.getuid()

const objectionTo = (folder: string): StateFolderRefused | undefined => {
  const link = lstatSync(folder, { throwIfNoEntry: false })
  if (link === undefined) return undefined
  // a symbolic link that belongs to root is part of the machine's normal setup
  if (isForeign(link) && (link.uid !== 0 || !link.isSymbolicLink())) {
    return refused(`The state directory ${folder} belongs to user ${link.uid}, not to you.`, OTHER)
  }
  const stat = link.isSymbolicLink() ? statSync(folder, { throwIfNoEntry: false }) : link
  if (stat === undefined) return refused(`The state directory ${folder} is a link that leads nowhere.`, OTHER)
  if (!stat.isDirectory()) return refused(`The state directory ${folder} is no folder.`, OTHER)
  if (isForeign(stat)) return refused(`The state directory ${folder} belongs to user ${stat.uid}, not to you.`, OTHER)
  if ((stat.mode & 0o022) !== 0) {
    return refused(
      `Others may write in the state directory ${folder} (mode ${(stat.mode & 0o777).toString(8)}).`,
      `See that nothing strange lies in it, then: chmod 700 '${folder}'. Or choose another with --state DIR.`
    )
  }
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const entry = lstatSync(path, { throwIfNoEntry: false })
    if (entry?.isSymbolicLink() === true) {
      return refused(
        `${path} is a link: what is written there would be written elsewhere.`,
        "Remove it, or choose another folder with --state DIR."
      )
    }
    if (entry !== undefined && isForeign(entry)) {
      return refused(
        `${path} belongs to user ${entry.uid}, not to you.`,
        "Remove it, or choose another folder with --state DIR."
      )
    }
  }
  return undefined
}

/** Fails if it is not safe to write to the directory. A missing directory is accepted, because it will be created. */
export const check = (folder: string): Effect.Effect<void, StateFolderRefused> =>
  Effect.suspend(() => {
    try {
      const objection = objectionTo(folder)
      return objection === undefined ? Effect.void : Effect.fail(objection)
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
      // the directory does not exist; creating it later will fail, with an error that states the reason
      if (code === "ENOTDIR") return Effect.void
      return Effect.fail(refused(`The state directory ${folder} cannot be looked at: ${code}.`, OTHER))
    }
  })
