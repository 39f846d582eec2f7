/**
 * ChannelRegistry: finds open channels by conversation and name, and by the agents that have seats in them. It also
 * resolves names of channels.
 *
 * Guarantees: a name is searched in the caller's project first. A name that matches no channel, or several, is
 * rejected, and the error lists the possible names.
 */
import type { ChannelInfo } from "../domain/ChannelMessages.ts"
import type { Member } from "../domain/AgentPort.ts"
import { type Caller, CommandRefused, refuse } from "../domain/Messages.ts"
import * as ProjectName from "../config/ProjectName.ts"
import { ChannelActor } from "./ChannelActor.ts"
import type { Presence } from "./Presence.ts"
import * as ChannelView from "./ChannelView.ts"

/** A project's conversation, with the project's current name. */
export interface Home {
  readonly conversation: string
  readonly project: string
  /** Absolute path of the project's `agentd.jsonc`. */
  readonly config: string
}

const MAX_NAMED = 10

export class ChannelRegistry {
  readonly presence: Presence
  private readonly channels = new Map<string, Map<string, ChannelActor>>()
  private readonly homes = new Map<string, Home>()

  constructor(presence: Presence) {
    this.presence = presence
  }

  enter(actor: ChannelActor): void {
    const { channel, conversation, name } = actor
    const own = this.channels.get(conversation) ?? new Map<string, ChannelActor>()
    this.channels.set(conversation, own.set(name, actor))
    for (const agent of Object.keys(channel.seats)) this.presence.seat(conversation, agent, actor)
    if (channel.queue.current !== null) this.presence.hold(conversation, channel.queue.current, actor)
  }

  leave(actor: ChannelActor): void {
    const { conversation, name } = actor
    const own = this.channels.get(conversation)
    if (own?.get(name) === actor) own.delete(name)
    if (own?.size === 0) this.channels.delete(conversation)
    this.presence.leave(actor)
  }

  /** Allows all channels to give floors, and makes each channel check at once whether it can. */
  settle(): void {
    this.presence.isSettled = true
    for (const actor of this.all) actor.look()
  }

  get all(): ReadonlyArray<ChannelActor> {
    return [...this.channels.values()].flatMap((own) => [...own.values()])
  }

  get conversations(): ReadonlyArray<string> {
    return [...this.channels.keys()]
  }

  of(conversation: string): ReadonlyArray<ChannelActor> {
    return [...(this.channels.get(conversation)?.values() ?? [])]
  }

  named(conversation: string, name: string): ChannelActor | undefined {
    return this.channels.get(conversation)?.get(name)
  }

  placesOf(conversation: string, agent: string): ReadonlyArray<ChannelActor> {
    return [...this.presence.places(conversation, agent)].filter((place) => place instanceof ChannelActor)
  }

  /** Lets the channel give the floor to all its agents again, even to those that recently accepted no message. */
  forgive({ channel }: ChannelActor): void {
    for (const agent of Object.keys(channel.seats)) this.presence.shut(channel.conversation, agent, false)
  }

  /** The channel as users see it. `needs`: why the agent with the floor waits for a user, and since when. */
  info(actor: ChannelActor, needs?: Member["needs"]): ChannelInfo {
    const { conversation } = actor.channel
    const project = this.homes.get(conversation)?.project ?? conversation
    return ChannelView.info(actor.channel, project, actor.view, (agent) => actor.endOf(agent), needs)
  }

  home(home: Home): void {
    // a project has one conversation at a time, so an earlier one is removed
    for (const other of this.homes.values()) if (other.config === home.config) this.homes.delete(other.conversation)
    this.homes.set(home.conversation, home)
  }

  homeOf({ config }: Caller): Home | CommandRefused {
    if (config === null)
      return refuse("not_found", "There is no project here.", "Go to a folder with an agentd.jsonc, or below one.")
    return (
      [...this.homes.values()].find((home) => home.config === config) ??
      [...this.homes.values()].find((home) => ProjectName.isOf(config, home.conversation)) ??
      refuse("not_found", "The daemon does not keep this project.", "Start it: agentd start")
    )
  }

  find(name: string, caller: Caller): ChannelActor | CommandRefused {
    const slash = name.indexOf("/")
    if (slash !== -1) return this.findIn(name.slice(0, slash), name.slice(slash + 1).replace(/^#/, ""))
    const plain = name.replace(/^#/, "")
    const home = this.homeOf(caller)
    const conversation =
      home instanceof CommandRefused
        ? caller.config === null
          ? undefined
          : ProjectName.conversationId(caller.config)
        : home.conversation
    const own = conversation === undefined ? undefined : this.named(conversation, plain)
    if (own !== undefined) return own
    const others = this.all.filter(({ channel }) => channel.name === plain)
    return conversation === undefined && others.length === 1 ? others[0]! : this.unknown(plain, others, conversation)
  }

  private findIn(project: string, name: string): ChannelActor | CommandRefused {
    const found = this.all.filter(
      ({ channel }) =>
        channel.name === name &&
        (channel.conversation === project || this.homes.get(channel.conversation)?.project === project)
    )
    return found.length === 1 ? found[0]! : this.unknown(`${project}/${name}`, found, undefined)
  }

  private unknown(name: string, others: ReadonlyArray<ChannelActor>, conversation: string | undefined): CommandRefused {
    const named = (actors: ReadonlyArray<ChannelActor>) =>
      actors
        .slice(0, MAX_NAMED)
        .map(({ channel }) =>
          channel.conversation === conversation
            ? channel.name
            : `${this.homes.get(channel.conversation)?.project ?? channel.conversation}/${channel.name}`
        )
        .join(", ")
    if (others.length > 0)
      return refuse(
        "not_found",
        `There is no channel "${name}" in this project.`,
        `Name one of these: ${named(others)}`
      )
    const own = conversation === undefined ? this.all : this.of(conversation)
    const remedy = own.length === 0 ? "Create it: agentd channel new NAME AGENT…" : `There are: ${named(own)}`
    return refuse("not_found", `There is no channel "${name}".`, remedy)
  }

  /** The named channel; without a name, the channel in which the agent has the floor. */
  floorOf(conversation: string, agent: string, name: string | undefined): ChannelActor | CommandRefused {
    const plain = name?.replace(/^#/, "")
    const own = this.of(conversation)
    if (plain !== undefined)
      return own.find(({ channel }) => channel.name === plain) ?? this.unknown(plain, [], conversation)
    return (
      own.find(({ channel }) => channel.queue.current === agent) ??
      refuse(
        "not_now",
        "You do not have the floor of any channel now.",
        "End your turn: you are called when you get the floor."
      )
    )
  }
}
