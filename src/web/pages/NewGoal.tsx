/**
 * NewGoal: a form that creates a goal, with its text, its project, and the commands that must succeed.
 *
 * Guarantees: if the daemon does not accept a goal, its text stays in the form, even if the user leaves the page.
 * Unless the user chooses otherwise, the plan waits for approval.
 */
import { signal } from "@preact/signals"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { ConversationInfo, Done } from "../../domain/Messages.ts"
import * as PageActions from "../PageActions.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { mayAct, ordered, right, rows } from "../BoardStore.ts"
import { Failed, Kbd, Loading } from "../Ui.tsx"

interface Draft {
  readonly goal: string
  /** The commands that must succeed for the goal to be met, one per line. */
  readonly checks: string
  /** Config file of the goal's project; empty for the first project. */
  readonly config: string
  /** Name of the planner; empty for the planner in the project's config. */
  readonly planner: string
  readonly asks: boolean
}
const BLANK: Draft = { goal: "", checks: "", config: "", planner: "", asks: true }
const draft = signal<Draft>(BLANK)
const note = (part: Partial<Draft>) => {
  draft.value = { ...draft.peek(), ...part }
}

const OVER: ReadonlySet<string> = new Set(["closed", "archived"])

/** Conversations that accept goals, one per project. Pure. */
export const takers = (all: ReadonlyArray<ConversationInfo>): ReadonlyArray<ConversationInfo> =>
  all.filter(({ state }) => !OVER.has(state)).toSorted((a, b) => Number(a.project > b.project) - 0.5)

export const requestOf = ({ asks, checks, goal, planner }: Draft) => {
  const commands = checks
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
  return {
    goal: goal.trim(),
    plan: null,
    autoStart: !asks,
    ...(planner === "" ? {} : { planner }),
    ...(commands.length === 0 ? {} : { checks: commands })
  }
}

const agentsOf = (conversation: string): ReadonlyArray<string> =>
  [...rows.values()]
    .map((row) => row.peek())
    .filter((row) => row.kind === "agent" && row.conversation === conversation)
    .map(({ name }) => name)
    .toSorted()

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: ReadonlyArray<readonly [value: string, text: string]>
  readonly set: (value: string) => void
}
const Choice = ({ label, options, set, value }: ChoiceProps) => (
  <label class="ask">
    <span class="label">{label}</span>
    <select class="field" value={value} onChange={(event) => set(event.currentTarget.value)}>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  </label>
)

const Words = () => {
  const box = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => box.current?.focus(), [])
  return (
    <label class="ask">
      <span class="label">What should be achieved</span>
      <textarea
        ref={box}
        class="field"
        rows={4}
        value={draft.value.goal}
        placeholder="Port the shop to the new payment API. It is done when …"
        onInput={(event) => note({ goal: event.currentTarget.value })}
      />
    </label>
  )
}

const Checks = () => (
  <label class="ask">
    <span class="label">Commands that must succeed, one per line</span>
    <textarea
      class="field mono"
      rows={2}
      value={draft.value.checks}
      placeholder="npm test"
      spellcheck={false}
      autocapitalize="off"
      onInput={(event) => note({ checks: event.currentTarget.value })}
    />
    <span class="small faint">Empty: the commands of the project's config.</span>
  </label>
)

const Form = ({ projects }: { readonly projects: ReadonlyArray<ConversationInfo> }) => {
  void ordered.value
  const [isBusy, setBusy] = useState(false)
  const { asks, config, goal, planner } = draft.value
  const project = projects.find((one) => one.config === config) ?? projects[0]!
  const submit = async () => {
    if (draft.peek().goal.trim() === "" || isBusy) return
    setBusy(true)
    const payload = { request: requestOf(draft.peek()), caller: { config: project.config } }
    const done = await PageActions.ask<Done & { readonly goalId: string }>("GoalSubmit", payload)
    if (done !== undefined) {
      draft.value = BLANK
      PageActions.say(`${done.goalId} is submitted.`)
      go(hrefTo("goal", `${project.project}/${done.goalId}`))
    }
    setBusy(false)
  }
  return (
    <form
      class="one new-goal"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        void submit()
      }}
    >
      <Words />
      {projects.length > 1 && (
        <Choice
          label="Project"
          value={project.config}
          options={projects.map(({ config, project }) => [config, project])}
          set={(config) => note({ config, planner: "" })}
        />
      )}
      <Checks />
      <Choice
        label="Who writes the plan"
        value={planner}
        options={[
          ["", "as in the project's config"],
          ...agentsOf(project.conversation).map((name) => [name, name] as const)
        ]}
        set={(planner) => note({ planner })}
      />
      <label class="tick">
        <input type="checkbox" checked={asks} onChange={(event) => note({ asks: event.currentTarget.checked })} />
        Show me the plan before any agent starts
      </label>
      <div class="answers">
        <button class="btn primary large" disabled={goal.trim() === "" || isBusy}>
          Submit the goal<Kbd>Ctrl ↵</Kbd>
        </button>
        <a class="btn quiet-btn large" href={hrefTo("goals")}>
          Cancel<Kbd>Esc</Kbd>
        </a>
      </div>
    </form>
  )
}

export const NewGoal = () => {
  const { problem, value } = useAnswer<ReadonlyArray<ConversationInfo>>("Conversations", {}, useNews())
  useKeys(({ is }) => {
    if (is !== "back") return false
    go(hrefTo("goals"))
    return true
  })
  const projects = value === undefined ? [] : takers(value)
  return (
    <div class="page">
      <header class="top">
        <a href={hrefTo("goals")} class="back" aria-label="Goals">
          ←
        </a>
        <h1>New goal</h1>
      </header>
      <section class="stage scroll" aria-label="New goal" tabIndex={0}>
        {right.value === "view" ? (
          <p class="muted">{PageActions.VIEW_ONLY}</p>
        ) : value === undefined ? (
          problem === undefined ? (
            <Loading />
          ) : (
            <Failed problem={problem} />
          )
        ) : projects.length === 0 ? (
          <p class="muted">No project accepts a goal now. Start one in its folder: agentd start</p>
        ) : (
          mayAct.value && <Form projects={projects} />
        )}
      </section>
    </div>
  )
}
