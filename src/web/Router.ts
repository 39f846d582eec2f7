/**
 * Router: reads and changes the current page in the address after `#`, such as `#/agent/shop/builder?rune=7`. This part
 * of the address is never sent to the server, so one document serves all pages, even without the network.
 */
import { signal } from "@preact/signals"
import { attempt } from "../config/Attempt.ts"
import type { BoardRow } from "../domain/BoardMessages.ts"

export interface Place {
  /** The page's route; empty for the board. */
  readonly page: string
  /** The decoded path after the route. */
  readonly rest: string
  readonly query: URLSearchParams
}

const decoded = (text: string): string => attempt(() => decodeURIComponent(text)) ?? text

export const parse = (hash: string): Place => {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2)
  const [page = "", ...rest] = path.split("/")
  return { page, rest: rest.map(decoded).join("/"), query: new URLSearchParams(query) }
}

export const place = signal<Place>(parse(location.hash))
addEventListener("hashchange", () => (place.value = parse(location.hash)))

export const go = (href: string): void => {
  if (location.hash !== href) location.hash = href
}

/** Replaces the query in the current address, without a new entry in the browser's history. */
export const amend = (query: URLSearchParams): void => {
  const [path = ""] = location.hash.split("?", 1)
  const text = query.toString()
  history.replaceState(null, "", text === "" ? path : `${path}?${text}`)
  place.value = parse(location.hash)
}

/** The address of a page, such as `#/agent/shop/builder` for `agent` and `shop/builder`. */
export const hrefTo = (page: string, rest = ""): string =>
  `#/${[page, ...(rest === "" ? [] : rest.split("/").map(encodeURIComponent))].join("/")}`

export const hrefOf = ({ called, id, kind, name, project }: BoardRow): string => {
  switch (kind) {
    case "agent":
      return hrefTo("agent", called === "" ? `${project}/${name}` : called)
    case "session":
      return hrefTo("session", id.replace(/^session\//, ""))
    case "goal":
      return hrefTo("goal", `${project}/${name}`)
    case "channel":
      return hrefTo("channel", `${project}/${name.replace(/^#/, "")}`)
    default:
      return hrefTo("needs")
  }
}
