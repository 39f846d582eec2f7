/** BoardPane: the names of the panes that show details of a row, and the types of their contents. */

export const PANES = ["why", "conversation", "diff", "output", "tree", "cost", "timeline"] as const
export type Pane = (typeof PANES)[number]

/** Panes with the newest lines at the end. When such a pane is opened, its end is shown. */
export const STORIES: ReadonlySet<Pane> = new Set(["why", "conversation", "output", "timeline"])

export interface Shown {
  readonly id: string
  readonly pane: Pane
  readonly lines: ReadonlyArray<PaneLine>
}

export interface PaneLine {
  readonly text: string
  readonly look?: "strong" | "bad" | "good" | "you"
  /** True: the line is cut if it is too long. Otherwise it is wrapped. */
  readonly isCode?: boolean
}
