/**
 * Config: shows a changed config file. The change is not in force until a user has seen its effects and approves it.
 *
 * Guarantees: a user approves exactly the text that was shown, by its hash. If the file has changed since then, the
 * approval is refused.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import type { ConfigChangeInfo, ProjectInfo } from "../../domain/Messages.ts"
import { span } from "../../domain/StatusWords.ts"
import * as PageActions from "../PageActions.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { mayAct } from "../BoardStore.ts"
import { now } from "../Time.ts"
import { Approve, type Read, useWhole } from "../Whole.tsx"
import { Command, Failed, Glyph, Kbd, Loading } from "../Ui.tsx"

/** Time in ms for which the change must be visible before its key is accepted. */
const SEEN = 350

const trust = async ({ config, hash, project }: ConfigChangeInfo): Promise<void> => {
  if (hash !== null && (await PageActions.ask<ProjectInfo>("Register", { config, trust: hash })) !== undefined)
    PageActions.say(`${project}: the file is trusted and in force.`)
}

const keep = ({ conversation, hash }: ConfigChangeInfo) =>
  void PageActions.act("ConfigKeep", { name: conversation, ...(hash === null ? {} : { hash }) })

const signs: { readonly [sign: string]: string } = { "+": "add", "-": "del", "@": "hunk" }

export const DiffLines = ({ diff }: { readonly diff: ReadonlyArray<string> }) => (
  <pre class="diff boxed" tabIndex={0} role="region" aria-label="The change">
    {diff.map((line, n) => (
      <div key={n} class={signs[line[0] ?? ""] ?? ""}>
        {line === "" ? " " : line}
      </div>
    ))}
  </pre>
)

const Effects = ({ consequences }: Pick<ConfigChangeInfo, "consequences">) => (
  <ul class="effects">
    {consequences.length === 0 && <li class="muted">Nothing: only comments, or the order of fields.</li>}
    {consequences.map(({ dangerous, text }) => (
      <li key={text}>
        <Glyph word={dangerous ? "needs you" : "idle"} size={14} />
        <span>{text}</span>
      </li>
    ))}
  </ul>
)

interface DecideProps {
  readonly value: ConfigChangeInfo
  readonly read: Read
}
const Decide = ({ read, value }: DecideProps) =>
  mayAct.value ? (
    <div class="answers">
      <Approve read={read} approve={() => void trust(value)}>
        Trust this file
      </Approve>
      {value.kept === undefined && (
        <button type="button" class="btn large" onClick={() => keep(value)}>
          Keep the version in force<Kbd>d</Kbd>
        </button>
      )}
      <span class="grow" />
      <code class="faint">sha256 {value.hash?.slice(0, 12)}</code>
    </div>
  ) : (
    <p class="faint small">{PageActions.VIEW_ONLY}</p>
  )

interface WaitingProps extends DecideProps {
  /** Time at which the file was changed. */
  readonly since: number | undefined
}
/** A change that is pending or was put aside: its consequences, then its lines. */
const Waiting = ({ read, since, value }: WaitingProps) => {
  const { config, consequences, diff, kept, project } = value
  return (
    <section class="config">
      <div class="config-text" ref={read.box}>
        <p class="line lead">
          <Glyph word={kept === undefined ? "needs you" : "paused"} />
          <b>
            {project}: the file has changed and is {kept === undefined ? "not in force." : "put aside."}
          </b>
        </p>
        <p class="muted">
          <code>{config}</code>
          {since !== undefined && <span> changed {span(now.value - since)} ago</span>}
        </p>
        {kept !== undefined && (
          <p class="muted">
            {kept.by} kept the version in force, {span(now.value - kept.at)} ago. You are asked again when the file
            changes again.
          </p>
        )}
        <h2 class="label">What it would do</h2>
        <Effects consequences={consequences} />
        <h2 class="label">The change</h2>
        <DiffLines diff={diff} />
      </div>
      <Decide value={value} read={read} />
    </section>
  )
}

const Change = ({ project }: { readonly project: ProjectInfo }) => {
  const { conversation, name, waits } = project
  const { problem, value } = useAnswer<ConfigChangeInfo>(
    "ConfigChange",
    { name: conversation },
    `${waits?.hash} ${waits?.changes} ${project.kept?.hash} ${project.problems.join()}`
  )
  const read = useWhole(value?.waits === true ? (value.hash ?? undefined) : undefined)
  const seen = useRef(0)
  useEffect(() => {
    seen.current = performance.now()
  }, [value?.hash, read.isWhole])
  useKeys(({ is }) => {
    if ((is !== "approve" && is !== "deny") || value?.waits !== true || !mayAct.peek()) return false
    const isSeen = performance.now() - seen.current > SEEN
    if (isSeen && is === "approve" && read.isWhole) void trust(value)
    else if (is === "approve") read.goOn()
    else if (isSeen && value.kept === undefined) keep(value)
    return true
  })
  if (value === undefined) return problem === undefined ? <Loading /> : <p class="muted">{problem.error}</p>
  if (value.hash === null)
    return (
      <section class="config">
        <p class="line lead">
          <Glyph word="failed" />
          <b>{name}: the file cannot be used and is ignored.</b>
        </p>
        <p class="muted">
          The last usable version stays in force. <code>{value.config}</code>
        </p>
        <pre class="diff boxed">
          {value.problems.map((problem) => (
            <div key={problem}>{problem}</div>
          ))}
        </pre>
      </section>
    )
  return value.waits ? <Waiting value={value} since={waits?.since} read={read} /> : null
}

const Settled = ({ projects }: { readonly projects: ReadonlyArray<ProjectInfo> }) => {
  const [all, setAll] = useState(false)
  const [looked, look] = useState("")
  const aside = projects.filter(({ kept }) => kept !== undefined)
  const shownAside = aside.find(({ conversation }) => conversation === looked)
  if (shownAside !== undefined) return <Change project={shownAside} />
  const shown = all ? projects : projects.slice(0, 8)
  return (
    <div class="config">
      <p class="line lead">
        <Glyph word="done" />
        <b>
          {projects.length === 0
            ? "There is no project yet."
            : aside.length === 0
              ? "The current text of every config is in force."
              : "No config waits for you."}
        </b>
      </p>
      {projects.length === 0 && <Command>agentd init</Command>}
      <ul class="effects">
        {shown.map(({ agents, config, conversation, kept, name }) => (
          <li key={conversation}>
            <b>{name}</b>
            <span class="muted">
              <code>{config}</code> {agents.length} {agents.length === 1 ? "agent" : "agents"}
            </span>
            {kept !== undefined && (
              <button type="button" class="btn small-btn" onClick={() => look(conversation)}>
                A change is put aside
              </button>
            )}
          </li>
        ))}
      </ul>
      {shown.length < projects.length && (
        <button type="button" class="btn" onClick={() => setAll(true)}>
          All {projects.length}
        </button>
      )}
    </div>
  )
}

export const Config = () => {
  const { problem, value } = useAnswer<ReadonlyArray<ProjectInfo>>("Projects", {}, useNews())
  useKeys(({ is }) => (is === "back" ? (go(hrefTo("")), true) : false))
  const open = (value ?? []).filter(({ problems, waits }) => waits !== undefined || problems.length > 0)
  return (
    <div class="page">
      <header class="top">
        <h1>Config</h1>
        {open.length > 0 && <span class="c-you num">{open.length} to check</span>}
        <span class="grow" />
        <span class="wide-only">
          <Command>agentd config diff</Command>
        </span>
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label="Config">
        {value === undefined ? (
          problem === undefined ? (
            <Loading />
          ) : (
            <Failed problem={problem} />
          )
        ) : open.length === 0 ? (
          <Settled projects={value} />
        ) : (
          open.map((project) => <Change key={project.conversation} project={project} />)
        )}
      </div>
    </div>
  )
}
