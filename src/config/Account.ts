/** Account: name and home of the user who runs this process, even if no account has its user id, as in many containers. */
import { homedir, userInfo } from "node:os"
import { attempt } from "./Attempt.ts"

export const userName = (): string => attempt(() => userInfo().username) ?? `uid${process.getuid?.() ?? ""}`

/** Used if the variable HOME is not set. */
export const home = (): string => attempt(homedir) ?? "/"
