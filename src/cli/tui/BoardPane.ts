/** BoardPane: names of the panes that show details of a row, and the types of their contents. */

export const PANES = ["why", "conversation", "diff", "output", "tree", "cost", "timeline"] as const
export type Pane = (typeof PANES)[number]

/** Panes whose newest lines are at the end. Such a pane first shows its end. */
export const STORIES: ReadonlySet<Pane> = new Set(["why", "conversation", "output", "timeline"])

export interface Shown {
  readonly id: string
  readonly pane: Pane
  readonly lines: ReadonlyArray<PaneLine>
}

export interface PaneLine {
  readonly text: string
  readonly look?: "strong" | "bad" | "good" | "you"
  /** Whether the line is cut instead of wrapped if it is too long. */
  readonly isCode?: boolean
}
