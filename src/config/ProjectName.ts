/**
 * ProjectName: how a project and its conversation get their names. Pure.
 *
 * Guarantees: the same config path always names the same conversation.
 */
import { basename, dirname } from "node:path"

const SLUG_CHARS = 40

/** Letters that are no other letter with a mark, or are written so without theirs. */
const LETTERS: { readonly [letter: string]: string } = {
  ä: "ae",
  ö: "oe",
  ü: "ue",
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  å: "a",
  ł: "l",
  đ: "d",
  ð: "d",
  þ: "th",
  ı: "i"
}

/** In letters without marks: `büro` is `buero`, `café` is `cafe`. */
const unmarked = (text: string): string =>
  [...text.toLowerCase().normalize("NFC")]
    .map((letter) => (Object.hasOwn(LETTERS, letter) ? LETTERS[letter]! : letter))
    .join("")
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")

/** A name that config, paths and addresses take, out of any text. */
export const slug = (text: string): string => form(unmarked(text))

/** The same of what other letters are in: conversations were named so from the first. */
const form = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, SLUG_CHARS)
    .replace(/(?<![^a-z0-9])[^a-z0-9]+$/, "") || "project"

/** The default name of a project: the folder of its config. */
export const projectName = (configPath: string): string => slug(basename(dirname(configPath)))

/** A name that is free, for a project whose own is not: with the folder above its own, else with a number. */
export const distinguished = (configPath: string, name: string, isTaken: (name: string) => boolean): string => {
  const above = slug(`${basename(dirname(dirname(configPath)))}-${name}`)
  if (basename(dirname(dirname(configPath))) !== "" && !isTaken(above)) return above
  for (let count = 2; ; count++) {
    const numbered = `${name.slice(0, SLUG_CHARS - 5)}-${count}`
    if (!isTaken(numbered)) return numbered
  }
}

/** A project's conversation, by the absolute path of its config: `myproj-1a2b3c4d`. */
export const conversationId = (configPath: string): string => {
  // loaded when it is needed: most verbs of the quick entry name nothing
  const { createHash } = process.getBuiltinModule("node:crypto")
  return `${form(basename(dirname(configPath)))}-${createHash("sha256").update(configPath).digest("hex").slice(0, 8)}`
}

/** Whether the file is of the conversation's project: its own, or the copy in an agent's worktree. */
export const isOf = (configPath: string, conversation: string): boolean => {
  const first = conversation.replace(/\.\d+$/, "")
  return conversationId(configPath) === first || configPath.includes(`/worktrees/${first}/`)
}

/** Why a bare name means nothing in a folder whose project is not started. */
export const unstarted = (configPath: string, name: string) => ({
  message: `"${name}" is an agent of this folder's project here, and the daemon does not keep ${configPath}.`,
  remedy: "Start this folder's project: agentd start. An agent of another project: PROJECT/AGENT"
})
