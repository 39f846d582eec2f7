/**
 * Goal: shows the progress of a goal, and its tasks as a live graph. A side panel shows the working agents and the
 * findings, and explains the goal's state.
 *
 * Guarantees: a plan is approved exactly as it was shown, by its hash, and not before a user had time to see it. For an
 * action that ends work, its key must be pressed twice. The selected task stays selected while the graph changes.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import type { AskedPlan, GoalInfo, GoalPage, TaskInfo } from "../../domain/GoalMessages.ts"
import type { ExplainReply } from "../../board/DaemonMessages.ts"
import type { CostRow } from "../../board/CostMessages.ts"
import type { Word } from "../../domain/StatusWords.ts"
import * as PageActions from "../PageActions.ts"
import { bend, layout } from "../Graph.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import type { PageProps } from "../Pages.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { mayAct } from "../BoardStore.ts"
import { Bare, Clock, Command, Failed, Glyph, Kbd, Loading, Since, usd } from "../Ui.tsx"
import { Approve, type Read, useWhole } from "../Whole.tsx"
import { left } from "./Goals.tsx"
import { Progress } from "./Progress.tsx"

const WORDS: { readonly [state in TaskInfo["state"]]: Word } = {
  pending: "idle",
  assigned: "working",
  running: "working",
  completed: "done",
  failed: "failed",
  blocked: "needs you",
  cancelled: "paused"
}
const SIZE = { w: 148, h: 66, dx: 32, dy: 16 }
/** Maximum number of tasks that are drawn as a graph. */
const MOST_DRAWN = 300
/** Time in ms for which a plan must be visible before its key is accepted. */
const SEEN = 350

const near = (chosen: string | null, tasks: ReadonlyArray<TaskInfo>): ReadonlySet<string> | null => {
  if (chosen === null) return null
  const own = tasks.find(({ id }) => id === chosen)?.dependsOn ?? []
  return new Set([chosen, ...own, ...tasks.filter(({ dependsOn }) => dependsOn.includes(chosen)).map(({ id }) => id)])
}

const note = ({ errors, owner, state }: TaskInfo): string =>
  [
    owner ?? (state === "pending" ? "waits" : state),
    ...(errors > 0 ? [`${errors} ${errors === 1 ? "error" : "errors"}`] : [])
  ].join(" · ")

interface GraphProps {
  readonly tasks: ReadonlyArray<TaskInfo>
  readonly chosen: string | null
  readonly choose: (id: string) => void
}

const Graph = ({ choose, chosen, tasks }: GraphProps) => {
  const key = tasks.map(({ dependsOn, id }) => `${id}<${dependsOn.join()}`).join(" ")
  const placed = useMemo(() => layout(tasks, SIZE), [key])
  const box = useRef<HTMLDivElement>(null)
  const lit = near(chosen, tasks)
  const states = new Map(tasks.map(({ id, state }) => [id, state]))
  useEffect(() => {
    const at = tasks.find(({ state }) => state === "running") ?? tasks.find(({ state }) => state === "failed")
    const element = box.current
    if (at !== undefined && element !== null && element.scrollWidth > element.clientWidth)
      element.scrollLeft = (placed.at.get(at.id)?.[0] ?? 0) - 60
  }, [key])
  return (
    <div class="graph" ref={box} tabIndex={0} role="region" aria-label="Tasks">
      <div class="graph-in" style={{ width: `${placed.width + 4}px`, height: `${placed.height + 4}px` }}>
        <svg width={placed.width + 4} height={placed.height + 4} aria-hidden="true">
          {placed.wires.map(({ from, points, to }) => {
            const flow = states.get(to) === "running" ? "flows" : states.get(from) === "completed" ? "ready" : ""
            const dim = lit !== null && from !== chosen && to !== chosen ? "dim" : ""
            return <path key={`${from} ${to}`} class={`wire ${flow} ${dim}`} d={bend(points)} />
          })}
        </svg>
        {tasks.map((task) => {
          const [x, y] = placed.at.get(task.id) ?? [0, 0]
          const dim = lit !== null && !lit.has(task.id) ? " dim" : ""
          return (
            <button
              type="button"
              key={task.id}
              class={`task t-${task.state}${chosen === task.id ? " on" : ""}${dim}`}
              aria-pressed={chosen === task.id}
              style={{ transform: `translate(${x}px, ${y}px)` }}
              onClick={() => choose(task.id)}
            >
              <Glyph word={WORDS[task.state]} size={14} />
              <span class="task-title">{task.title}</span>
              <span class={task.errors > 0 && task.state !== "completed" ? "c-failed small clip" : "faint small clip"}>
                {note(task)}
              </span>
            </button>
          )
        })}
      </div>
    </div>
  )
}

const TaskPart = ({ goal, task }: { readonly goal: GoalInfo; readonly task: TaskInfo }) => (
  <section class="part">
    <h2 class="label">
      Task <span>{task.id}</span>
    </h2>
    <p class="line">
      <Glyph word={WORDS[task.state]} />
      <b>{task.title}</b>
    </p>
    <dl class="facts">
      <dt>State</dt>
      <dd>
        {task.state} <Since at={task.since} />
      </dd>
      {task.owner !== null && (
        <>
          <dt>Agent</dt>
          <dd>
            <a class="linkish" href={hrefTo("agent", `${goal.project}/${task.owner}`)}>
              {task.owner}
            </a>
          </dd>
        </>
      )}
      {task.dependsOn.length > 0 && (
        <>
          <dt>After</dt>
          <dd>{task.dependsOn.join(", ")}</dd>
        </>
      )}
      {task.branch !== null && (
        <>
          <dt>Work</dt>
          <dd>
            <code>{task.head?.slice(0, 12)}</code> on <code>{task.branch}</code>
          </dd>
        </>
      )}
      {task.error !== null && task.state !== "completed" && (
        <>
          <dt>Error</dt>
          <dd class="c-failed">{task.error}</dd>
        </>
      )}
    </dl>
  </section>
)

const NowPart = ({
  choose,
  tasks
}: {
  readonly tasks: ReadonlyArray<TaskInfo>
  readonly choose: (id: string) => void
}) => {
  const shown = tasks
    .filter(({ state }) => state === "running" || state === "assigned" || state === "failed")
    .slice(0, 12)
  return shown.length === 0 ? null : (
    <section class="part">
      <h2 class="label">Now</h2>
      {shown.map(({ id, owner, since, state, title }) => (
        <button key={id} type="button" class="nowline" onClick={() => choose(id)}>
          <Glyph word={WORDS[state]} size={14} />
          <span class="clip grow">{title}</span>
          <span class="faint">{owner}</span>
          <Since at={since} />
        </button>
      ))}
    </section>
  )
}

const checkWord = ({ state }: GoalInfo, check: string, findings: GoalPage["findings"]): Word => {
  if (findings.some(({ message, severity }) => severity === "error" && message.includes(check))) return "failed"
  return state === "goal_met" ? "done" : state === "reviewing" ? "working" : "idle"
}

const ChecksPart = ({ findings, goal }: Pick<GoalPage, "findings" | "goal">) =>
  goal.options.checks.length === 0 ? null : (
    <section class="part">
      <h2 class="label">Checks</h2>
      {goal.options.checks.map((check) => (
        <p key={check} class="nowline">
          <Glyph word={checkWord(goal, check, findings)} size={14} />
          <code class="clip">{check}</code>
        </p>
      ))}
    </section>
  )

const FindingsPart = ({ findings, goal }: Pick<GoalPage, "findings" | "goal">) =>
  findings.length === 0 ? null : (
    <section class="part">
      <h2 class="label">
        Review{" "}
        <span>
          {goal.rounds} of {goal.maxRounds} rounds
        </span>
      </h2>
      {findings.slice(0, 30).map(({ fix, message, severity, task }, n) => (
        <p key={n} class="finding">
          <span class={severity === "error" ? "c-failed" : "muted"}>{severity}</span>{" "}
          {task !== undefined && <code>{task}</code>}
          <br />
          {message}
          {fix !== undefined && <span class="muted"> → {fix}</span>}
        </p>
      ))}
    </section>
  )

const WhyPart = ({ name, news }: { readonly name: string; readonly news: number }) => {
  const { value } = useAnswer<ExplainReply>("Explain", { name }, news)
  return value === undefined ? null : (
    <section class="part">
      <h2 class="label">Why</h2>
      <ol class="why">
        {value.lines.map(({ at, text }, n) => (
          <li key={n}>
            <Clock at={at} />
            <span>{text}</span>
          </li>
        ))}
      </ol>
      {value.advice !== null && <p class="small muted">{value.advice}</p>}
    </section>
  )
}

/** The whole plan that waits for approval, with all the text that each agent would receive. */
const PlanPart = ({ box, plan }: Pick<Read, "box"> & { readonly plan: AskedPlan }) => (
  <section class="part" ref={box}>
    <h2 class="label">
      The plan <span>sha256 {plan.hash.slice(0, 12)}</span>
    </h2>
    <ol class="plan">
      {plan.tasks.map(({ dependsOn, description, id, owner, title }) => (
        <li key={id}>
          <b>{title}</b> <code class="faint">{id}</code>
          {description !== "" && <p class="muted told">{description}</p>}
          <p class="small faint">
            {owner ?? "any suitable agent"}
            {dependsOn.length > 0 && `, after ${dependsOn.join(", ")}`}
          </p>
        </li>
      ))}
    </ol>
  </section>
)

/** Loads the plan with all its tasks while it waits for approval. */
const usePlan = (name: string, goal: GoalInfo | undefined) => {
  const isAsked = goal?.state === "planning" && goal.word === "needs you" && goal.behind === undefined
  const { problem, value } = useAnswer<AskedPlan>("GoalAsked", { name, from: 0 }, isAsked ? goal.restsOn : "")
  const seen = useRef({ hash: "", at: 0 })
  useEffect(() => {
    if (value !== undefined && seen.current.hash !== value.hash)
      seen.current = { hash: value.hash, at: performance.now() }
  }, [value?.hash])
  const plan = isAsked ? value : undefined
  const read = useWhole(plan?.next === null ? plan.hash : undefined)
  return {
    plan,
    read,
    isAsked,
    problem: isAsked ? problem : undefined,
    isSeen: () => performance.now() - seen.current.at > SEEN
  }
}

const Answers = ({
  approve,
  plan,
  read,
  reject
}: Pick<ReturnType<typeof usePlan>, "read"> & {
  readonly plan: AskedPlan
  readonly approve: () => void
  readonly reject: (reason: string) => void
}) => {
  const [reason, setReason] = useState("")
  if (plan.next !== null)
    return (
      <p class="muted">
        The plan is too long for this page: <Command>{`agentd goal approve ${plan.project}/${plan.goalId}`}</Command>
      </p>
    )
  return (
    <form
      class="answers"
      onSubmit={(event) => {
        event.preventDefault()
        if (reason.trim() !== "") reject(reason.trim())
      }}
    >
      <Approve read={read} approve={approve}>
        Approve the plan
      </Approve>
      <input
        class="field"
        value={reason}
        aria-label="What to change"
        placeholder="What to change …"
        onInput={(event) => setReason(event.currentTarget.value)}
      />
      <button class="btn large" disabled={reason.trim() === ""}>
        Send back<Kbd>d</Kbd>
      </button>
    </form>
  )
}

const isOver = ({ state }: GoalInfo): boolean => state === "goal_met" || state === "stopped"

const cancel = (name: string) =>
  PageActions.twice(
    `x ${name}`,
    "Press again to cancel the goal: its tasks stop, their branches are kept.",
    () => void PageActions.act("GoalCancel", { name, reason: "" })
  )
const retry = (name: string) =>
  PageActions.twice(
    `r ${name}`,
    "Press again to retry all failed tasks.",
    () => void PageActions.act("GoalRetry", { name, task: null })
  )

const Head = ({ goal, name }: { readonly goal: GoalInfo; readonly name: string }) => (
  <header class="top">
    <a href={hrefTo("goals")} class="back" aria-label="Goals">
      ←
    </a>
    <Glyph word={goal.word} />
    <h1 class="grow">
      <span class="faint">{name}</span> {goal.goal}
    </h1>
    {mayAct.value && goal.state === "blocked" && (
      <button type="button" class="btn" onClick={() => retry(name)}>
        Try again<Kbd>r</Kbd>
      </button>
    )}
    {mayAct.value && !isOver(goal) && (
      <button type="button" class="btn quiet-btn" onClick={() => cancel(name)}>
        Cancel<Kbd>x</Kbd>
      </button>
    )}
  </header>
)

const Line = ({ goal }: { readonly goal: GoalInfo }) => {
  const { value } = useAnswer<ReadonlyArray<CostRow>>("Costs", { by: ["project", "goal"], since: "" }, goal.restsOn)
  const spent = value?.find((row) => row.goal === goal.goalId && row.project === goal.project)?.usd ?? 0
  return (
    <div class="goal-line">
      <Progress tasks={goal.tasks} total={goal.total} />
      <span class="num">
        {goal.tasks.completed} of {goal.total}
      </span>
      <span class="muted">{left(goal.estimate)}</span>
      {spent > 0 && <span class="num muted">{usd(spent)} USD</span>}
      <span class={goal.word === "needs you" ? "c-you clip" : goal.word === "failed" ? "c-failed clip" : "muted clip"}>
        {goal.detail}
      </span>
    </div>
  )
}

interface RailProps {
  readonly name: string
  readonly value: GoalPage
  readonly asked: ReturnType<typeof usePlan>
  readonly task: TaskInfo | undefined
  readonly news: number
  readonly pick: (id: string) => void
  readonly approve: () => void
}
const Rail = ({ approve, asked: { plan, problem, read }, name, news, pick, task, value }: RailProps) => {
  const { findings, goal, named, tasks } = value
  const reject = (reason: string) => void PageActions.act("GoalReject", { name, reason })
  return (
    <aside class="rail" tabIndex={0} aria-label="Details">
      {problem !== undefined && <p class="part muted">{problem.error}</p>}
      {task !== undefined && <TaskPart goal={goal} task={task} />}
      {plan !== undefined && <PlanPart plan={plan} box={read.box} />}
      {plan !== undefined && (
        <section class="part decide">
          {mayAct.value ? (
            <Answers plan={plan} read={read} approve={approve} reject={reject} />
          ) : (
            <p class="faint small">{PageActions.VIEW_ONLY}</p>
          )}
        </section>
      )}
      <NowPart tasks={[...tasks, ...named]} choose={pick} />
      <ChecksPart goal={goal} findings={findings} />
      <FindingsPart goal={goal} findings={findings} />
      <WhyPart name={name} news={news} />
    </aside>
  )
}

const Picture = ({
  chosen,
  name,
  pick,
  value: { goal, tasks }
}: Pick<RailProps, "name" | "pick" | "value"> & { readonly chosen: string | null }) =>
  tasks.length > 0 && goal.total <= MOST_DRAWN ? (
    <Graph tasks={tasks} chosen={chosen} choose={pick} />
  ) : (
    <div class="graph none">
      {tasks.length > 0 && (
        <p class="muted">
          {goal.total} tasks are too many for a graph: <Command>{`agentd goal show ${name} --json`}</Command>
        </p>
      )}
    </div>
  )

export const Goal = ({ rest: name }: PageProps) => {
  const news = useNews()
  const { problem, value } = useAnswer<GoalPage>("Goal", { name, from: 0 }, news)
  const [chosen, choose] = useState<string | null>(null)
  const goal = value?.goal
  const asked = usePlan(name, goal)
  const tasks = value?.tasks ?? []
  /** Hash of the plan that was just approved on this page, so that a second press of the button does nothing. */
  const approved = useRef("")
  const approve = () => {
    if (asked.plan === undefined || asked.plan.next !== null) return
    if (!asked.read.isWhole) return asked.read.goOn()
    if (!asked.isSeen()) return
    const { hash } = asked.plan
    if (approved.current === hash) return
    approved.current = hash
    void PageActions.act("GoalApprove", { name, hash }).then((isDone) => {
      if (!isDone) approved.current = ""
    })
  }
  const pick = (id: string) => choose((before) => (before === id ? null : id))
  const step = (by: number) => {
    const at = tasks.findIndex(({ id }) => id === chosen)
    choose(tasks[(Math.max(at, by > 0 ? at : 0) + by + tasks.length) % tasks.length]!.id)
  }
  useKeys(({ is }) => {
    if (is === "back") {
      if (chosen === null) go(hrefTo("goals"))
      else choose(null)
      return true
    }
    if ((is === "down" || is === "up") && tasks.length > 0) {
      step(is === "down" ? 1 : -1)
      return true
    }
    if (goal === undefined || !mayAct.peek()) return false
    if (is === "approve" && asked.isAsked) approve()
    else if (is === "deny" && asked.isAsked) document.querySelector<HTMLInputElement>(".answers .field")?.focus()
    else if (is === "stop" && !isOver(goal)) cancel(name)
    else if (is === "restart" && goal.state === "blocked") retry(name)
    else return false
    return true
  })
  if (value === undefined || goal === undefined)
    return (
      <Bare title={name} back="goals">
        {problem === undefined ? <Loading /> : <Failed problem={problem} />}
      </Bare>
    )
  const task = tasks.find(({ id }) => id === chosen)
  return (
    <div class="page goal">
      <Head goal={goal} name={name} />
      <Line goal={goal} />
      <div class="split">
        <Picture name={name} value={value} chosen={chosen} pick={pick} />
        <Rail name={name} value={value} asked={asked} task={task} news={news} pick={pick} approve={approve} />
      </div>
    </div>
  )
}
