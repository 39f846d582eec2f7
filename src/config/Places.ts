/**
 * Places: the paths of a user's state directory and daemon socket, computed from environment variables. Pure.
 *
 * State directory: `$XDG_STATE_HOME/agentd`, or `~/.local/state/agentd`. Socket:
 * `$XDG_RUNTIME_DIR/agentd/control.sock`. If that variable is unset, or if another state directory was chosen, the
 * socket is in the state directory. XDG variables that are not absolute paths count as unset, as the XDG specification
 * says.
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

/**
 * `chosen`: the value of --state, relative to the working directory; undefined if the default state directory is used.
 */
export const placesOf = ({ home, runtime, stateHome }: Environment, chosen: string | undefined): Places => {
  const defaultState = NodePath.join(absolute(stateHome) ?? NodePath.join(home, ".local", "state"), "agentd")
  const state = chosen === undefined ? defaultState : NodePath.resolve(chosen)
  const own = absolute(runtime)
  const sockets = state === defaultState && own !== undefined ? NodePath.join(own, "agentd") : state
  return { state, defaultState, sockets, socket: NodePath.join(sockets, "control.sock") }
}

/** Possible paths of a project's config: in this folder and in each of its parents, the nearest first. */
export const configsFrom = (folder: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = NodePath.resolve(folder); ; at = NodePath.dirname(at)) {
    found.push(NodePath.join(at, CONFIG_NAME))
    if (NodePath.dirname(at) === at) return found
  }
}

/**
 * The daemon that each command in a hint must name: its host, or its state directory, which is an absolute path. Null
 * for the default daemon of this machine. `called`: the name of this machine where the person types the commands.
 */
export const worldOf = ({
  called,
  defaultState,
  host,
  state
}: Pick<Places, "defaultState" | "state"> & {
  readonly called?: string | undefined
  readonly host?: string | undefined
}): string | null => host ?? called ?? (state === defaultState ? null : state)
