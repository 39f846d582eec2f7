/** Progress: a bar with the completed, current, failed and pending tasks of a goal. */
import type { TaskCounts } from "../../domain/GoalMessages.ts"

/**
 * Maximum number of tasks for which each task is drawn separately. If there are more, each group of tasks is drawn as
 * one part.
 */
const APART = 60

export const Progress = ({ tasks, total }: { readonly tasks: TaskCounts; readonly total: number }) => {
  const runs = tasks.running + tasks.assigned
  const wrong = tasks.failed + tasks.blocked
  const parts = [
    [tasks.completed, "p-done"],
    [runs, "p-run"],
    [wrong, "p-wrong"],
    [Math.max(0, total - tasks.completed - runs - wrong), "p-wait"]
  ] as const
  const words = [
    `${tasks.completed} of ${total} tasks done`,
    ...(runs > 0 ? [`${runs} in progress`] : []),
    ...(wrong > 0 ? [`${wrong} failed or blocked`] : [])
  ]
  let at = 0
  const bars = parts.flatMap(([count, name]) => {
    const wide = total > APART ? [count] : Array.from({ length: count }, () => 1)
    return wide.flatMap((width) => {
      if (width === 0) return []
      const bar = (
        <rect key={at} class={name} x={at * 10} width={width * 10 - (total > APART ? 0 : 1)} height="6" rx="1" />
      )
      at += width
      return [bar]
    })
  })
  return (
    <svg
      class="progress"
      viewBox={`0 0 ${Math.max(1, total) * 10} 6`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words.join(", ")}
    >
      {bars}
    </svg>
  )
}
