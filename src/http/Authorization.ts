/**
 * Authorization: who may come in through which listener. Pure.
 *
 * On TCP everybody on this machine can connect, and so can every page in the
 * user's browser. Guarantees there: nothing but the sign of life is answered
 * without a token; the hooks' token opens the routes that report alone; a browser that
 * was led here by another page, or by a name that was made to point here (DNS
 * rebinding), is turned away whatever it carries. On the unix socket the
 * permissions of the file and its folder have decided already.
 */
import { type Refusal, refusal } from "./Refusal.ts"
import { same, type Tokens } from "./Tokens.ts"

/** The right that a route requires of its caller. */
export type Needs = "nothing" | "hooks" | "full"

export type Authorization =
  | { readonly _tag: "Unix" }
  /** `port` is the one that is bound. */
  | { readonly _tag: "Tcp"; readonly port: number; readonly tokens: Tokens }

export interface Headers {
  readonly [name: string]: string | undefined
}

const NAMES = ["127.0.0.1", "localhost", "[::1]"]

const isOurs = (host: string | undefined, port: number): boolean =>
  NAMES.some((name) => host === `${name}:${port}` || (host === name && port === 80))

const isOwnOrigin = (origin: string, port: number): boolean => NAMES.some((name) => origin === `http://${name}:${port}`)

const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1]

/** Undefined: come in. */
export const turnAway = (door: Authorization, headers: Headers, needs: Needs): Refusal | undefined => {
  if (door._tag === "Unix") return undefined
  const { port, tokens } = door
  if (!isOurs(headers["host"], port)) {
    return refusal(403, "This is not the name of this server.", `Ask http://127.0.0.1:${port}.`, "host")
  }
  const origin = headers["origin"]
  if (origin !== undefined && !isOwnOrigin(origin, port)) {
    return refusal(403, "Pages of other origins are not served.", "Call it from a program, not from a page.", "origin")
  }
  if (needs === "nothing") return undefined
  const given = bearer(headers["authorization"])
  if (given === undefined) {
    return refusal(401, "A bearer token is missing.", "Send the one in the state folder.", "authorization")
  }
  // Both are compared always: how long it takes says nothing of which one was nearly right.
  const [full, hooks] = [same(given, tokens.full), same(given, tokens.hooks)]
  if (full || (hooks && needs === "hooks")) return undefined
  return hooks
    ? refusal(403, "The hooks' token does not open this.", "Send the full one of the state folder.", "authorization")
    : refusal(401, "That token is not ours.", "For hooks: agentd hooks install writes the right one.", "authorization")
}
