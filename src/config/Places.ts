/**
 * Places: where a user's daemon keeps its state and its socket, by environment variables. Pure.
 *
 * State: `$XDG_STATE_HOME/agentd`, or `~/.local/state/agentd`. Socket:
 * `$XDG_RUNTIME_DIR/agentd/control.sock`. If that variable is unset, or if another state directory
 * was chosen, the socket is in the state directory. XDG variables that are not absolute count as
 * unset, as their specification says.
 */
import * as NodePath from "node:path"

export const CONFIG_NAME = "agentd.jsonc"

export interface Environment {
  readonly home: string
  readonly stateHome: string | undefined
  readonly runtime: string | undefined
}

export interface Places {
  /** Absolute path of the state directory. */
  readonly state: string
  readonly defaultState: string
  readonly sockets: string
  readonly socket: string
}

const absolute = (path: string | undefined): string | undefined =>
  path !== undefined && NodePath.isAbsolute(path) ? path : undefined

/** `chosen`: the value of --state, relative to the working directory; undefined: the default state directory. */
export const placesOf = ({ home, runtime, stateHome }: Environment, chosen: string | undefined): Places => {
  const defaultState = NodePath.join(absolute(stateHome) ?? NodePath.join(home, ".local", "state"), "agentd")
  const state = chosen === undefined ? defaultState : NodePath.resolve(chosen)
  const own = absolute(runtime)
  const sockets = state === defaultState && own !== undefined ? NodePath.join(own, "agentd") : state
  return { state, defaultState, sockets, socket: NodePath.join(sockets, "control.sock") }
}

/** Paths where a project's config can be, from this folder upward, the nearest first. */
export const configsFrom = (folder: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = NodePath.resolve(folder); ; at = NodePath.dirname(at)) {
    found.push(NodePath.join(at, CONFIG_NAME))
    if (NodePath.dirname(at) === at) return found
  }
}

/** The state directory, if commands in hints must name it with --state; null for the default one. */
export const worldOf = ({ defaultState, state }: Pick<Places, "defaultState" | "state">): string | null =>
  state === defaultState ? null : state
