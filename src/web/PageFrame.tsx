/**
 * PageFrame: the frame around every page: the navigation, the number of items that need the user, and whether the
 * daemon answers.
 *
 * Guarantees: while the daemon does not answer, the page keeps its data, and a strip shows the data's age. The strip is
 * red if another program has the daemon's port. A page without access says how to get access.
 */
import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import { span } from "../domain/StatusWords.ts"
import { toast } from "./PageActions.ts"
import * as Api from "./Api.ts"
import { filter } from "./Filter.ts"
import { dialog, Help, Palette } from "./Palette.tsx"
import { type Page, pageOf, pages } from "./Pages.ts"
import { go, hrefTo, place } from "./Router.ts"
import { counts, head, link, loaded, projects, right } from "./BoardStore.ts"
import { flip } from "./Theme.ts"
import { now } from "./Time.ts"
import { Command, Glyph, Kbd, usePhone } from "./Ui.tsx"

const Icon = ({ path }: { readonly path: string }) => (
  <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
    <path d={path} />
  </svg>
)
const MORE = "M3.6 8h.1M8 8h.1M12.4 8h.1"
/** Number of pages that have a tab in the navigation on a phone. */
const TABS = 4

const litRoute = (): string => {
  const page = pageOf(place.value.page)
  return page.under ?? page.route
}
const listed = pages.filter(({ isListed }) => isListed)

const Count = () => {
  const { "Needs you": you } = counts.value
  return you === 0 ? null : (
    <b class="count you" aria-label={`${you} wait`}>
      {you}
    </b>
  )
}

const NavLink = ({ icon, page: { key, route, title } }: { readonly page: Page; readonly icon: string }) => (
  <a href={hrefTo(route)} class="nav" aria-current={litRoute() === route ? "page" : undefined}>
    <Icon path={icon} />
    <span class="grow">{title}</span>
    {route === "needs" && <Count />}
    {key !== "" && !(route === "needs" && counts.value["Needs you"] > 0) && (
      <span class="hint">
        <Kbd>g</Kbd>
        <Kbd>{key}</Kbd>
      </span>
    )}
  </a>
)

/** Shows only the rows of one project, or those of all projects. */
const show = (name: string) => {
  filter.value = name === "" ? "" : `${name}/`
  go(hrefTo(""))
}

const Projects = () => (
  <ul>
    {projects.value.map(({ failed, name, you }) => (
      <li key={name}>
        <button
          type="button"
          class="nav"
          aria-pressed={filter.value === `${name}/`}
          onClick={() => show(filter.peek() === `${name}/` ? "" : name)}
        >
          <span class="grow clip">{name}</span>
          {failed > 0 && <i class="dot bg-failed" role="img" aria-label={`${failed} failed`} />}
          {you > 0 && <i class="dot bg-you" role="img" aria-label={`${you} need you`} />}
        </button>
      </li>
    ))}
  </ul>
)

const ThemeButton = () => (
  <button type="button" class="btn quiet-btn small-btn" aria-label="Light or dark" onClick={flip}>
    <svg class="icon" width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" />
      <path class="half" d="M8 2a6 6 0 0 1 0 12Z" />
    </svg>
  </button>
)

const Foot = () => (
  <div class="foot">
    <p>
      <i class={`dot ${link.value.state === "live" ? "bg-good" : link.value.state === "opening" ? "" : "bg-failed"}`} />
      <span class="faint num">
        {head.value === undefined ? "no daemon yet" : `up ${span(now.value - head.value.startedAt)}`}
      </span>
      <span class="grow" />
      <ThemeButton />
    </p>
    {head.value !== undefined && right.value === "view" && (
      <p>
        <span class="chip">view only</span>
      </p>
    )}
  </div>
)

const Side = () => (
  <nav class="side" aria-label="Pages">
    <a href={hrefTo("")} class="brand">
      <svg width="20" height="20" viewBox="0 0 64 64" aria-hidden="true">
        <path d="M32 8 56 32 32 56 8 32Z" fill="none" stroke="currentColor" stroke-width="6" stroke-linejoin="round" />
        <circle cx="32" cy="32" r="7" fill="currentColor" />
      </svg>
      agentd
    </a>
    <ul>
      {listed.map((page) => (
        <li key={page.route}>
          <NavLink page={page} icon={page.icon} />
        </li>
      ))}
    </ul>
    {projects.value.length > 0 && <h2 class="label">Projects</h2>}
    <Projects />
    <Foot />
  </nav>
)

const Tabs = () => {
  const lit = litRoute()
  const isMore = place.value.page === "more" || listed.findIndex(({ route }) => route === lit) >= TABS
  return (
    <nav class="tabs" aria-label="Pages">
      {listed.slice(0, TABS).map(({ icon, route, title }) => (
        <a key={route} href={hrefTo(route)} aria-current={!isMore && lit === route ? "page" : undefined}>
          <span class="tab-icon">
            <Icon path={icon} />
            {route === "needs" && <Count />}
          </span>
          {title}
        </a>
      ))}
      <a href={hrefTo("more")} aria-current={isMore ? "page" : undefined}>
        <span class="tab-icon">
          <Icon path={MORE} />
        </span>
        More
      </a>
    </nav>
  )
}

/** A menu of the pages without a tab, for phones. */
const More = () => (
  <div class="page">
    <header class="top">
      <h1>More</h1>
      <span class="grow" />
      <ThemeButton />
    </header>
    <div class="scroll more" tabIndex={0} role="region" aria-label="More">
      <ul>
        {listed.slice(TABS).map((page) => (
          <li key={page.route}>
            <NavLink page={page} icon={page.icon} />
          </li>
        ))}
      </ul>
      <h2 class="label">Projects</h2>
      <Projects />
    </div>
  </div>
)

const Strip = () => {
  const { problem, since, state } = link.value
  if (state !== "gone") return null
  return (
    <div class={problem?.isForeign === true ? "strip foreign" : "strip"} role="status">
      <Glyph word="failed" size={14} />
      <span>
        <b>{problem?.error ?? "The daemon does not answer."}</b>{" "}
        {loaded.value && `The data is ${span(now.value - since)} old. `}Trying again …
      </span>
      <span class="grow" />
      <Command>{problem?.isForeign === true ? "agentd doctor" : "agentd start"}</Command>
    </div>
  )
}

/** True if the page had access before, but the daemon now refuses it. */
const isTaken = (): boolean => link.value.problem?.status === 401 && Api.isPaired()

const Locked = () => (
  <main class="locked" id="main">
    <div class="empty">
      <svg class="lock" width="28" height="28" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M3.5 7h9v6.5h-9zM5.2 7V5a2.8 2.8 0 0 1 5.6 0v2" />
      </svg>
      <h1 class="empty-title">{isTaken() ? "This page no longer has access" : "This page has no access"}</h1>
      <p>
        {isTaken()
          ? "Its access was revoked, or it belongs to another daemon."
          : (link.value.problem?.error ?? "A page of agentd is opened by a link, which is valid once.")}
      </p>
      <p>On the daemon's machine, type</p>
      <Command>agentd open</Command>
    </div>
  </main>
)

const Toast = () =>
  toast.value === undefined ? null : (
    <div
      class={toast.value.isBad ? "toast bad" : "toast"}
      role={toast.value.isBad ? "alert" : "status"}
      key={toast.value.key}
    >
      {toast.value.text}
      {toast.value.remedy !== "" && <span class="remedy">{toast.value.remedy}</span>}
    </div>
  )

/**
 * Shows the number of items that need the user in the page's title, and on the icon if the page is installed as an app.
 */
const useCount = () => {
  const { "Needs you": you } = counts.value
  const { title } = pageOf(place.value.page)
  useEffect(() => {
    document.title = `${you > 0 ? `(${you}) ` : ""}${title} · agentd`
    const badge = navigator as { readonly setAppBadge?: (count: number) => Promise<void> }
    void badge.setAppBadge?.(you).catch(() => undefined)
  }, [you, title])
}

const Shown = (): ComponentChildren => {
  const { page, query, rest } = place.value
  const isPhone = usePhone()
  if (page === "more" && isPhone) return <More />
  const { component: Component, route } = pageOf(page)
  return <Component key={`${route}/${rest}`} rest={rest} query={query} />
}

export const PageFrame = () => {
  useCount()
  if (link.value.state === "locked") return <Locked />
  return (
    <>
      <div class="app">
        <Side />
        <main class="main" id="main">
          <Strip />
          <Shown />
        </main>
        <Tabs />
      </div>
      <Toast />
      {dialog.value === "palette" && <Palette />}
      {dialog.value === "help" && <Help />}
    </>
  )
}
