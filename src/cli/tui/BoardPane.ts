/** BoardPane: the panes of a row that there are beside the list, and what is shown in one. */

export const PANES = ["why", "conversation", "diff", "output", "tree", "cost", "timeline"] as const
export type Pane = (typeof PANES)[number]

/** Panes that tell a story: the newest stands at their end, and that is what is seen first. */
export const STORIES: ReadonlySet<Pane> = new Set(["why", "conversation", "output", "timeline"])

export interface Shown {
  readonly id: string
  readonly pane: Pane
  readonly lines: ReadonlyArray<PaneLine>
}

export interface PaneLine {
  readonly text: string
  readonly look?: "strong" | "bad" | "good" | "you"
  /** Shown as it stands, and cut where there is no room. */
  readonly isCode?: boolean
}
