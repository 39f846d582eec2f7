/**
 * Channel: shows one channel: which agent has the floor, how much longer it may be silent, the posts, and the queue. A
 * user can post at any time.
 *
 * Guarantees: if the daemon does not accept a post, its text stays in the input field. The newest post stays visible,
 * unless the user has scrolled up.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { ChannelInfo, ChannelPost, ChannelView, SeatInfo } from "../../domain/ChannelMessages.ts"
import { span } from "../../domain/StatusWords.ts"
import * as PageActions from "../PageActions.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import type { PageProps } from "../Pages.ts"
import { useAnswer } from "../VerbQuery.ts"
import { focusSend } from "../Send.tsx"
import { go, hrefTo } from "../Router.ts"
import { mayAct, right } from "../BoardStore.ts"
import { now } from "../Time.ts"
import { Bare, Clock, Failed, Glyph, Loading, rich } from "../Ui.tsx"

const MODES: { readonly [mode in ChannelView["turnConfig"]["humanInterruptMode"]]: string } = {
  inject: "is added to the current turn",
  queue: "is sent after the current turn",
  interrupt: "ends the current turn",
  parallel: "is added to the current turn, and sent to other busy agents"
}
const ORDERS: { readonly [order in ChannelView["channel"]["order"]]: string } = {
  "round-robin": "in turn",
  priority: "highest priority first",
  manual: "as you decide"
}

/** A ring that shows the time left before the agent's turn ends because of silence. */
const Ring = ({ of, until }: { readonly until: number; readonly of: number }) => {
  const left = until - now.value
  const part = Math.max(0, Math.min(1, left / of))
  return (
    <svg class="ring c-work" width="28" height="28" viewBox="0 0 28 28" role="img" aria-label={`${span(left)} left`}>
      <circle class="ring-all" cx="14" cy="14" r="11" />
      <circle
        class="ring-part"
        cx="14"
        cy="14"
        r="11"
        pathLength="1"
        stroke-dasharray={`${part} 1`}
        transform="rotate(-90 14 14)"
      />
    </svg>
  )
}

const Floor = ({ name, view: { channel, turnConfig } }: { readonly view: ChannelView; readonly name: string }) => {
  const seat = channel.seats.find(({ agent }) => agent === channel.floor)
  const next = channel.seats.find(({ position, state }) => state === "QUEUED" && position !== null)
  const until = seat?.until ?? null
  return (
    <div class="floor">
      {seat === undefined ? (
        <Glyph word={channel.word} size={20} />
      ) : until === null ? (
        <Glyph word="working" size={20} />
      ) : (
        <Ring until={until} of={turnConfig.defaultTimeoutSeconds * 1_000} />
      )}
      <p class="grow">
        {seat === undefined ? (
          <b>No agent has the floor</b>
        ) : (
          <span>
            <b>{seat.agent}</b> has the floor
          </span>
        )}
        <br />
        <span class={channel.waits === null ? "small muted num" : "small c-you"}>
          {seat === undefined
            ? (channel.waits ?? channel.detail)
            : [
                until === null ? seat.detail : `${span(until - now.value)} of silence left`,
                ...(next === undefined ? [] : [`${next.agent} is next`])
              ].join("; ")}
        </span>
      </p>
      {mayAct.value && seat !== undefined && (
        <button type="button" class="btn quiet-btn" onClick={() => void PageActions.act("SkipFloor", { name })}>
          Skip
        </button>
      )}
      {mayAct.value && !channel.closed && (
        <button
          type="button"
          class="btn quiet-btn"
          onClick={() => void PageActions.act("PauseChannel", { name, paused: !channel.paused })}
        >
          {channel.paused ? "Resume" : "Pause"}
        </button>
      )}
    </div>
  )
}

const Post = ({ post: { at, from, kind, text } }: { readonly post: ChannelPost }) =>
  kind === "notice" ? (
    <p class="notice">
      {text} <Clock at={at} />
    </p>
  ) : (
    <article class={kind === "person" ? "msg mine" : "msg"}>
      <header>
        <b>{from}</b>
        <Clock at={at} />
      </header>
      <p class="told">{rich(text)}</p>
    </article>
  )

/** The list of posts. If it is scrolled to its end, it follows new posts. */
const Talk = ({ posts }: { readonly posts: ReadonlyArray<ChannelPost> }) => {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useLayoutEffect(() => {
    if (isAtEnd.current) box.current!.scrollTop = box.current!.scrollHeight
  }, [posts.at(-1)?.seq])
  return (
    <div
      class="talk"
      ref={box}
      tabIndex={0}
      role="log"
      aria-label="Posts"
      onScroll={({ currentTarget: { clientHeight, scrollHeight, scrollTop } }) =>
        (isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40)
      }
    >
      <div class="talk-in">
        {posts.length === 0 && <p class="notice">No posts yet. Your post gives the first agent the floor.</p>}
        {posts.map((post) => (
          <Post key={post.seq} post={post} />
        ))}
      </div>
    </div>
  )
}

const Composer = ({ name, view: { channel, turnConfig } }: { readonly view: ChannelView; readonly name: string }) => {
  const [text, setText] = useState("")
  const [isBusy, setBusy] = useState(false)
  if (channel.closed) return <p class="composer muted">The channel is closed.</p>
  if (!mayAct.value) return right.value === "view" ? <p class="composer faint small">{PageActions.VIEW_ONLY}</p> : null
  const post = async () => {
    if (text.trim() === "" || isBusy) return
    setBusy(true)
    if (await PageActions.act("PostToChannel", { name, text })) setText("")
    setBusy(false)
  }
  const mode = turnConfig.humanInterruptMode
  return (
    <div class="composer">
      <form
        class="send"
        onSubmit={(event) => {
          event.preventDefault()
          void post()
        }}
      >
        <textarea
          rows={2}
          value={text}
          aria-label={`Post to ${channel.name}`}
          placeholder={`Post to #${channel.name} …`}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
            event.preventDefault()
            void post()
          }}
        />
        <div class="line">
          <span class="chip">{mode}</span>
          <span class="faint small grow">{channel.floor === null ? "is sent to all agents" : MODES[mode]}</span>
          <button class="btn primary" disabled={text.trim() === "" || isBusy}>
            Post
          </button>
        </div>
      </form>
    </div>
  )
}

const Seat = ({ seat }: { readonly seat: SeatInfo }) => (
  <li class={seat.state === "ACTIVE" ? "has" : ""}>
    <span class="num faint pos">{seat.position ?? ""}</span>
    <Glyph word={seat.word} />
    <span class="grow">
      <b>{seat.agent}</b>
      <br />
      <span class="small muted">{seat.detail}</span>
    </span>
    {seat.unread > 0 && (
      <span class="count" role="img" aria-label={`${seat.unread} unread`}>
        {seat.unread}
      </span>
    )}
  </li>
)

const Seats = ({ channel }: { readonly channel: ChannelInfo }) => (
  <aside class="rail" tabIndex={0} aria-label="Queue">
    <section class="part">
      <h2 class="label">
        Queue <span>{ORDERS[channel.order]}</span>
      </h2>
      <ol class="seats">
        {channel.seats.map((seat) => (
          <Seat key={seat.agent} seat={seat} />
        ))}
      </ol>
    </section>
  </aside>
)

export const Channel = ({ rest: name }: PageProps) => {
  const { problem, value } = useAnswer<ChannelView>("Channel", { name }, useNews(500))
  useKeys(({ is }) => {
    if (is === "back") {
      go(hrefTo("channels"))
      return true
    }
    return is === "send" && focusSend()
  })
  if (value === undefined)
    return (
      <Bare title={name} back="channels">
        {problem === undefined ? <Loading /> : <Failed problem={problem} />}
      </Bare>
    )
  const { channel, posts } = value
  return (
    <div class="page room">
      <header class="top">
        <a href={hrefTo("channels")} class="back" aria-label="Channels">
          ←
        </a>
        <h1>#{channel.name}</h1>
        <span class="muted clip grow">{channel.topic === "" ? channel.project : channel.topic}</span>
      </header>
      <div class="split">
        <section class="talk-col" aria-label="Room">
          <Floor view={value} name={name} />
          <Talk posts={posts} />
          <Composer view={value} name={name} />
        </section>
        <Seats channel={channel} />
      </div>
    </div>
  )
}
