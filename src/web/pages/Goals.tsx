/** Goals: lists all goals with their progress. Goals that need a user come first. */
import type { GoalInfo } from "../../domain/GoalMessages.ts"
import { rankOf, span } from "../../domain/StatusWords.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import type { PageProps } from "../Pages.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { useList } from "../List.ts"
import { mayAct } from "../BoardStore.ts"
import { Command, Empty, Failed, Glyph, Kbd, Loading, Since } from "../Ui.tsx"
import { NewGoal } from "./NewGoal.tsx"
import { Progress } from "./Progress.tsx"

const hrefOf = ({ goalId, project }: GoalInfo) => hrefTo("goal", `${project}/${goalId}`)

export const left = (estimate: number | null): string => (estimate === null ? "" : `about ${span(estimate)} left`)

const Card = ({ goal, isOn }: { readonly goal: GoalInfo; readonly isOn: boolean }) => (
  <a href={hrefOf(goal)} class={isOn ? "card on" : "card"} aria-current={isOn ? "true" : undefined}>
    <p class="line">
      <Glyph word={goal.word} />
      <span class="faint">
        {goal.project}/{goal.goalId}
      </span>
      <span class="grow" />
      <Since at={goal.since} />
    </p>
    <h2>{goal.goal}</h2>
    <Progress tasks={goal.tasks} total={goal.total} />
    <p class={goal.word === "needs you" ? "c-you" : goal.word === "failed" ? "c-failed" : "muted"}>{goal.detail}</p>
    <p class="small faint num">
      {goal.tasks.completed} of {goal.total} tasks done {left(goal.estimate) === "" ? "" : `· ${left(goal.estimate)}`}
    </p>
  </a>
)

const ordered = (goals: ReadonlyArray<GoalInfo>) =>
  goals.toSorted((a, b) => rankOf(a.word) - rankOf(b.word) || b.submittedAt - a.submittedAt)

/** Path of the page for creating a goal. */
const NEW = "new"

const List = () => {
  const { problem, value } = useAnswer<ReadonlyArray<GoalInfo>>("Goals", { all: true }, useNews())
  const list = value === undefined ? [] : ordered(value)
  const at = useList(list.length, (n) => go(hrefOf(list[n]!)))
  useKeys(({ is }) => {
    if (is !== "new" || !mayAct.peek()) return false
    go(hrefTo("goals", NEW))
    return true
  })
  return (
    <div class="page">
      <header class="top">
        <h1>Goals</h1>
        {list.length > 0 && <span class="muted num">{list.length}</span>}
        <span class="grow" />
        {mayAct.value && (
          <a class="btn" href={hrefTo("goals", NEW)}>
            New goal<Kbd>n</Kbd>
          </a>
        )}
      </header>
      {value === undefined ? (
        problem === undefined ? (
          <Loading />
        ) : (
          <Failed problem={problem} />
        )
      ) : list.length === 0 ? (
        <Empty title="No goals yet">
          <p>A goal is one sentence. A planner divides it into tasks, and agents work on them.</p>
          {mayAct.value && (
            <a class="btn primary large" href={hrefTo("goals", NEW)}>
              New goal
            </a>
          )}
          <Command>agentd goal "Port the shop to the new API" --check "npm test"</Command>
        </Empty>
      ) : (
        <div class="cards scroll" tabIndex={0} role="region" aria-label="Goals">
          {list.map((goal, n) => (
            <Card key={`${goal.conversation}/${goal.goalId}`} goal={goal} isOn={n === at} />
          ))}
        </div>
      )}
    </div>
  )
}

export const Goals = ({ rest }: PageProps) => (rest === NEW ? <NewGoal /> : <List />)
