/**
 * Authorization: who may come in through which listener. Pure.
 *
 * On TCP everybody on this machine can connect, and so can every page in the
 * user's browser. Guarantees there: nothing but the sign of life is answered
 * without a token, or the proof of a page (`Pairing`); a token opens nothing to a browser; the hooks' token opens the
 * routes that report alone; a browser that was led here by another page, or by a name that was made to point here (DNS
 * rebinding), is turned away whatever it carries. On the unix socket the
 * permissions of the file and its folder have decided already.
 */
import type { Right } from "../../access/AccessKinds.ts"
import { type Refusal, refusal } from "./Refusal.ts"
import { same, type Tokens } from "./Tokens.ts"

/** The right that a route requires of its caller; `view` and `act` are those of granted tokens (Access). */
export type Needs = "nothing" | "hooks" | "view" | "act" | "full"

export type Authorization =
  | { readonly _tag: "Unix" }
  | {
      readonly _tag: "Tcp"
      /** The one that is bound. */
      readonly port: number
      readonly tokens: Tokens
      /** Other names that lead here, behind what speaks https for them. */
      readonly names: ReadonlyArray<string>
    }

export interface Headers {
  readonly [name: string]: string | undefined
}

/** The third is a page's own name (`Access.nameOf`): a browser leads names below localhost to this machine itself. */
const NAMES = /^(127\.0\.0\.1|localhost|agentd-[a-f\d]{20}\.localhost|\[::1\])(?::(\d+))?$/

const isOurs = (host: string | undefined, port: number, names: ReadonlyArray<string>): boolean =>
  Number(NAMES.exec(host ?? "")?.[2] ?? (NAMES.test(host ?? "") ? 80 : Number.NaN)) === port ||
  names.some((name) => host?.toLowerCase() === name)

/** The page's own origin; what one page reads no other does: each has an origin of its own. */
const isOwnOrigin = (origin: string, host: string | undefined, names: ReadonlyArray<string>): boolean =>
  origin === `${names.some((name) => host?.toLowerCase() === name) ? "https" : "http"}://${host?.toLowerCase()}`

export const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1]

/** Whether a token of that right opens what needs this. */
const opens = (right: Right | undefined, needs: Needs): boolean =>
  needs === "view" ? right !== undefined : needs === "act" && right === "act"

/** Status 401: there is no token that is known here; 403: one that does not open this. */
const noRight = (error: string, remedy: string, status: 401 | 403 = 403) =>
  refusal("not_allowed", error, remedy, "authorization", status)

/** Undefined: come in. `right`: of the token that is shown, where it was granted, or of the page that proved itself. */
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
    return refusal("not_allowed", "This is not the name of this server.", `Ask http://127.0.0.1:${port}.`, "host")
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
      : noRight(`A page to ${right} does not open this.`, "Open one to act: agentd open")
  const given = bearer(headers["authorization"])
  if (given === undefined) {
    return noRight("A bearer token is missing.", "Send the one in the state folder.", 401)
  }
  // whoever listens in the daemon's place hears what a browser sends
  if (origin !== undefined || headers["sec-fetch-site"] !== undefined)
    return noRight("A token is for programs, and opens no page.", "Open the page anew: agentd open", 401)
  // Both are compared always: how long it takes says nothing of which one was nearly right.
  const [full, hooks] = [same(given, tokens.full), same(given, tokens.hooks)]
  if (full || (hooks && needs === "hooks") || opens(right, needs)) return undefined
  if (right !== undefined) return noRight(`A token to ${right} does not open this.`, "Get one to act: agentd open")
  return hooks
    ? noRight("The hooks' token does not open this.", "Send the full one of the state folder.")
    : noRight("That token is not ours.", "For hooks: agentd hooks install writes the right one.", 401)
}
