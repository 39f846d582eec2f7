/**
 * ProjectName: how a project and its conversation get their names. Pure.
 *
 * Guarantees: the same config path always names the same conversation.
 */
import { createHash } from "node:crypto"
import { basename, dirname } from "node:path"

const SLUG_CHARS = 40

/** A name that config, paths and addresses take, out of any text. */
export const slug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, SLUG_CHARS)
    .replace(/(?<![^a-z0-9])[^a-z0-9]+$/, "") || "project"

/** The default name of a project: the folder of its config. */
export const projectName = (configPath: string): string => slug(basename(dirname(configPath)))

/** A project's conversation, by the absolute path of its config: `myproj-1a2b3c4d`. */
export const conversationId = (configPath: string): string =>
  `${projectName(configPath)}-${createHash("sha256").update(configPath).digest("hex").slice(0, 8)}`
