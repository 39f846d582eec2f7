/**
 * ProjectName: computes the names of a project and the id of its conversation. Pure.
 *
 * Guarantees: the same config path always gives the same conversation id.
 */
import { basename, dirname } from "node:path"

const SLUG_CHARS = 40

/**
 * Letters that Unicode does not decompose, or that are usually written with two letters when their marks are omitted.
 */
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

/** Replaces letters with marks by plain letters: `büro` becomes `buero`, `café` becomes `cafe`. */
const unmarked = (text: string): string =>
  [...text.toLowerCase().normalize("NFC")]
    .map((letter) => (Object.hasOwn(LETTERS, letter) ? LETTERS[letter]! : letter))
    .join("")
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")

/** Turns a text into a name that is valid in configs, paths and addresses. */
export const slug = (text: string): string => form(unmarked(text))

/** Like `slug`, but replaces letters with marks by `-`. Conversation ids were always computed this way. */
const form = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, SLUG_CHARS)
    .replace(/(?<![^a-z0-9])[^a-z0-9]+$/, "") || "project"

/** The default name of a project: the name of the folder of its config. */
export const projectName = (configPath: string): string => slug(basename(dirname(configPath)))

/**
 * A name for a project whose own name is taken: the parent folder's name as a prefix; if that is also taken, a number
 * as a suffix.
 */
export const distinguished = (configPath: string, name: string, isTaken: (name: string) => boolean): string => {
  const above = slug(`${basename(dirname(dirname(configPath)))}-${name}`)
  if (basename(dirname(dirname(configPath))) !== "" && !isTaken(above)) return above
  for (let count = 2; ; count++) {
    const numbered = `${name.slice(0, SLUG_CHARS - 5)}-${count}`
    if (!isTaken(numbered)) return numbered
  }
}

/** The id of a project's conversation, computed from the absolute path of its config, such as `myproj-1a2b3c4d`. */
export const conversationId = (configPath: string): string => {
  // node:crypto is loaded only when needed, because most commands of the quick entry need no id
  const { createHash } = process.getBuiltinModule("node:crypto")
  return `${form(basename(dirname(configPath)))}-${createHash("sha256").update(configPath).digest("hex").slice(0, 8)}`
}

/**
 * True if the config file belongs to the conversation's project: it is the project's own config, or a copy in an
 * agent's worktree.
 */
export const isOf = (configPath: string, conversation: string): boolean => {
  const first = conversation.replace(/\.\d+$/, "")
  return conversationId(configPath) === first || configPath.includes(`/worktrees/${first}/`)
}

/** The error for an agent's name without a project, in a folder whose project has not been started. */
export const unstarted = (configPath: string, name: string) => ({
  message: `Here "${name}" means an agent of this folder's project, and ${configPath} has not been started.`,
  remedy: "Start this folder's project: agentd start. For an agent of another project: PROJECT/AGENT"
})
