/** Pages: every page, a line each: its route, its title, its key after `g`, its icon, where it is listed. */
import type { FunctionComponent } from "preact"
import { Agent } from "./pages/Agent.tsx"
import { Board } from "./pages/Board.tsx"
import { NeedsYou } from "./pages/NeedsYou.tsx"
import { Session } from "./pages/Session.tsx"

export interface PageProps {
  /** The path after the route: `shop/builder`. */
  readonly rest: string
  readonly query: URLSearchParams
}
export interface Page {
  readonly route: string
  readonly title: string
  /** After `g`; empty: none. */
  readonly key: string
  /** A path in a box of 16. */
  readonly icon: string
  /** Listed in the navigation; else one gets there from a row. */
  readonly isListed: boolean
  /** Listed under which route it lights; not there: its own. */
  readonly under?: string
  readonly component: FunctionComponent<PageProps>
}

export const pages: ReadonlyArray<Page> = [
  {
    route: "needs",
    title: "Needs you",
    key: "a",
    icon: "M8 1.6 14.4 8 8 14.4 1.6 8Z",
    isListed: true,
    component: NeedsYou
  },
  { route: "", title: "Board", key: "b", icon: "M2.5 4h11M2.5 8h11M2.5 12h7", isListed: true, component: Board },
  { route: "agent", title: "Agent", key: "", icon: "", isListed: false, under: "", component: Agent },
  { route: "session", title: "Session", key: "", icon: "", isListed: false, under: "", component: Session }
]

export const pageOf = (route: string): Page =>
  pages.find((page) => page.route === route) ?? pages.find(({ route }) => route === "")!
