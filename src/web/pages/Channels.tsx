/** Channels: lists the channels in which agents take turns. Channels that need a user come first. */
import type { ChannelInfo } from "../../domain/ChannelMessages.ts"
import { rankOf } from "../../domain/StatusWords.ts"
import { useList } from "../List.ts"
import { useNews } from "../RefreshTimer.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { Command, Empty, Failed, Glyph, Loading } from "../Ui.tsx"

const hrefOf = ({ name, project }: ChannelInfo) => hrefTo("channel", `${project}/${name}`)

const Card = ({ channel, isOn }: { readonly channel: ChannelInfo; readonly isOn: boolean }) => (
  <a href={hrefOf(channel)} class={isOn ? "card on" : "card"} aria-current={isOn ? "true" : undefined}>
    <p class="line">
      <Glyph word={channel.word} />
      <span class="faint">{channel.project}</span>
      <span class="grow" />
      <span class="faint small num">
        {channel.posts} {channel.posts === 1 ? "post" : "posts"}
      </span>
    </p>
    <h2>#{channel.name}</h2>
    {channel.topic !== "" && <p class="muted">{channel.topic}</p>}
    <p class={channel.waits === null ? "small muted" : "small c-you"}>{channel.waits ?? channel.detail}</p>
    <p class="small faint">{channel.seats.map(({ agent }) => agent).join(", ")}</p>
  </a>
)

export const Channels = () => {
  const { problem, value } = useAnswer<ReadonlyArray<ChannelInfo>>("Channels", {}, useNews())
  const list = (value ?? []).toSorted((a, b) => rankOf(a.word) - rankOf(b.word) || Number(a.name > b.name) - 0.5)
  const at = useList(list.length, (n) => go(hrefOf(list[n]!)))
  return (
    <div class="page">
      <header class="top">
        <h1>Channels</h1>
        {list.length > 0 && <span class="muted num">{list.length}</span>}
      </header>
      {value === undefined ? (
        problem === undefined ? (
          <Loading />
        ) : (
          <Failed problem={problem} />
        )
      ) : list.length === 0 ? (
        <Empty title="No channels yet">
          <p>In a channel agents take turns, and you can post at any time.</p>
          <Command>agentd channel new review builder tester</Command>
        </Empty>
      ) : (
        <div class="cards scroll" tabIndex={0} role="region" aria-label="Channels">
          {list.map((channel, n) => (
            <Card key={`${channel.conversation}/${channel.name}`} channel={channel} isOn={n === at} />
          ))}
        </div>
      )}
    </div>
  )
}
