/**
 * Proof: mutual authentication of the daemon and keeper of one store. They share a secret in the keepers' folder, which
 * only this user can read. Only digests of the secret and of nonces from both sides are sent over a connection.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"

const FORM = /^[0-9a-f]{64}$/
const OTHERS = 0o077

const known = (file: string): string | undefined => {
  try {
    const text = fs.readFileSync(file, "utf8").trim()
    return FORM.test(text) && (fs.statSync(file).mode & OTHERS) === 0 ? text : undefined
  } catch {
    return undefined
  }
}

export const nonce = (): string => randomBytes(32).toString("hex")

/**
 * Reads the shared secret; replaces it if it is damaged. Daemon and keeper read it for each connection, so both use the
 * new one.
 */
export const secretOf = (folder: string): string => {
  const file = path.join(folder, "secret")
  const found = known(file)
  if (found !== undefined) return found
  const made = nonce()
  fs.rmSync(file, { recursive: true, force: true })
  fs.writeFileSync(`${file}.tmp`, made, { mode: 0o600 })
  fs.renameSync(`${file}.tmp`, file)
  return made
}

/** Digest that proves knowledge of the secret. Must return the same result as `proof` in keeper.mjs. */
export const proofOf = (secret: string, ...words: ReadonlyArray<string | number>): string =>
  createHmac("sha256", secret).update(words.join(" ")).digest("hex")

export const isProof = (given: unknown, ...of: Parameters<typeof proofOf>): boolean =>
  typeof given === "string" && FORM.test(given) && timingSafeEqual(Buffer.from(given), Buffer.from(proofOf(...of)))
