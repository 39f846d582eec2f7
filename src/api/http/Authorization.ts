/**
 * Authorization: decides which requests each listener accepts. Pure.
 *
 * Every program on this machine, and every web page in the user's browser, can connect to the TCP port. Guarantees on
 * TCP: without a token, or the proof of a page (`Pairing`), only the health check and the page's files are answered. A
 * browser cannot use a token. The hooks' token is accepted only for routes that report events. A request from a page of
 * another origin is refused, whatever it contains, and so is a request for a foreign host name (DNS rebinding). On the
 * unix socket, the permissions of the socket and its folder have already decided.
 */
import type { Right } from "../../access/AccessKinds.ts"
import { type Refusal, refusal } from "./Refusal.ts"
import { same, type Tokens } from "./Tokens.ts"

/**
 * The access right that a route requires from its caller. `view` and `act` are the rights that can be granted (Access).
 */
export type Needs = "nothing" | "hooks" | "view" | "act" | "full"

export type Authorization =
  | { readonly _tag: "Unix" }
  | {
      readonly _tag: "Tcp"
      readonly port: number
      readonly tokens: Tokens
      /** Additional host names of this server, for a proxy that provides https for them. */
      readonly names: ReadonlyArray<string>
    }

export interface Headers {
  readonly [name: string]: string | undefined
}

/**
 * Matches the host names of this server. The third form is a page's own name (`Access.nameOf`), because browsers
 * resolve all names below `localhost` to this machine.
 */
const NAMES = /^(127\.0\.0\.1|localhost|agentd-[a-f\d]{20}\.localhost|\[::1\])(?::(\d+))?$/

const isOurs = (host: string | undefined, port: number, names: ReadonlyArray<string>): boolean =>
  Number(NAMES.exec(host ?? "")?.[2] ?? (NAMES.test(host ?? "") ? 80 : Number.NaN)) === port ||
  names.some((name) => host?.toLowerCase() === name)

/** True if the origin is the page's own. Each page has its own origin, so it cannot read the data of another page. */
const isOwnOrigin = (origin: string, host: string | undefined, names: ReadonlyArray<string>): boolean =>
  origin === `${names.some((name) => host?.toLowerCase() === name) ? "https" : "http"}://${host?.toLowerCase()}`

export const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1]

const opens = (right: Right | undefined, needs: Needs): boolean =>
  needs === "view" ? right !== undefined : needs === "act" && right === "act"

/**
 * The refusal if the caller lacks the required right. Status 401: the token is missing or unknown. Status 403: the
 * token does not have the right.
 */
const noRight = (error: string, remedy: string, status: 401 | 403 = 403) =>
  refusal("not_allowed", error, remedy, "authorization", status)

/**
 * The refusal of a request; undefined if the request is accepted. `right`: the right of the token, or of the page if
 * its proof is valid.
 */
export const turnAway = (
  door: Authorization,
  headers: Headers,
  needs: Needs,
  right?: Right | undefined,
  isPaired = false
): Refusal | undefined => {
  if (door._tag === "Unix") return undefined
  const { names, port, tokens } = door
  if (!isOurs(headers["host"], port, names)) {
    return refusal("not_allowed", "This is not the name of this server.", `Use http://127.0.0.1:${port}.`, "host")
  }
  const origin = headers["origin"]
  if (origin !== undefined && !isOwnOrigin(origin, headers["host"], names)) {
    return refusal(
      "not_allowed",
      "Pages of other origins are not served.",
      "Call it from a program, not from a page.",
      "origin"
    )
  }
  if (needs === "nothing") return undefined
  if (isPaired)
    return opens(right, needs)
      ? undefined
      : noRight(
          `A page with the right to ${right} is not enough for this.`,
          "Open one with the right to act: agentd open"
        )
  const given = bearer(headers["authorization"])
  if (given === undefined) {
    return noRight("A bearer token is missing.", "Send the token in the state directory.", 401)
  }
  // do not accept tokens from browsers: if another program listened on the daemon's port, it would receive the token
  if (origin !== undefined || headers["sec-fetch-site"] !== undefined)
    return noRight("A token is for programs, not for pages.", "Open the page again: agentd open", 401)
  // always compare both tokens, so that the response time does not reveal which of them was nearly right
  const [full, hooks] = [same(given, tokens.full), same(given, tokens.hooks)]
  if (full || (hooks && needs === "hooks") || opens(right, needs)) return undefined
  if (right !== undefined)
    return noRight(
      `A token with the right to ${right} is not enough for this.`,
      "Get one with the right to act: agentd open"
    )
  return hooks
    ? noRight("The hooks' token is not enough for this.", "Send the full token in the state directory.")
    : noRight("The token is unknown.", "For hooks: agentd hooks install writes the right one.", 401)
}
