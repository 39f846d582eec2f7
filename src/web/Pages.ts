/** Pages: the list of all pages, each with its route, title, key after `g`, icon, and position in the navigation. */
import type { FunctionComponent } from "preact"
import { Agent } from "./pages/Agent.tsx"
import { Board } from "./pages/Board.tsx"
import { NeedsYou } from "./pages/NeedsYou.tsx"
import { Session } from "./pages/Session.tsx"
import { Alerts } from "./pages/Alerts.tsx"
import { Channel } from "./pages/Channel.tsx"
import { Channels } from "./pages/Channels.tsx"
import { Config } from "./pages/Config.tsx"
import { Cost } from "./pages/Cost.tsx"
import { Goal } from "./pages/Goal.tsx"
import { Goals } from "./pages/Goals.tsx"
import { Timeline } from "./pages/Timeline.tsx"
import { Tree } from "./pages/Tree.tsx"

export interface PageProps {
  /** The path after the page's route, such as `shop/builder`. */
  readonly rest: string
  readonly query: URLSearchParams
}
export interface Page {
  readonly route: string
  readonly title: string
  /** The key after `g` that opens the page; empty if there is none. */
  readonly key: string
  /** The icon: an SVG path in a box of 16 by 16. */
  readonly icon: string
  /** True if the navigation lists the page. False if the page is opened from a row. */
  readonly isListed: boolean
  /** Route of the navigation entry to highlight; undefined: the page's own entry. */
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
  { route: "session", title: "Session", key: "", icon: "", isListed: false, under: "", component: Session },
  { route: "goals", title: "Goals", key: "l", icon: "M4 14.5v-12h8l-2 3 2 3H4", isListed: true, component: Goals },
  {
    route: "channels",
    title: "Channels",
    key: "c",
    icon: "M2 3h12v8.5H7L4 14v-2.5H2Z",
    isListed: true,
    component: Channels
  },
  {
    route: "timeline",
    title: "Timeline",
    key: "t",
    icon: "M8 2a6 6 0 1 1-5.6 3.8M8 4.8V8l2.2 1.5",
    isListed: true,
    component: Timeline
  },
  {
    route: "tree",
    title: "Supervision",
    key: "s",
    icon: "M3 2.5h4v3H3zM9 7h4v3H9zM9 12h4v2.5H9zM5 5.5v8h4M5 8.5h4",
    isListed: true,
    component: Tree
  },
  {
    route: "cost",
    title: "Cost",
    key: "m",
    icon: "M3 13.5V8M6.5 13.5v-6M10 13.5V5M13.5 13.5V2.5",
    isListed: true,
    component: Cost
  },
  {
    route: "alerts",
    title: "Alerts",
    key: "e",
    icon: "M4 11V7a4 4 0 0 1 8 0v4l1.2 1.5H2.8ZM6.8 14.3h2.4",
    isListed: true,
    component: Alerts
  },
  {
    route: "config",
    title: "Config",
    key: "o",
    icon: "M2 4.5h8M13 4.5h1M10 3v3M2 11.5h1M6 11.5h8M3 10v3",
    isListed: true,
    component: Config
  },
  { route: "goal", title: "Goal", key: "", icon: "", isListed: false, under: "goals", component: Goal },
  { route: "channel", title: "Channel", key: "", icon: "", isListed: false, under: "channels", component: Channel }
]

export const pageOf = (route: string): Page =>
  pages.find((page) => page.route === route) ?? pages.find(({ route }) => route === "")!
