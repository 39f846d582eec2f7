/**
 * Paths: where this user's daemon keeps its state, where it answers, and which
 * project the caller stands in.
 *
 * State: `$XDG_STATE_HOME/agentd`, else `~/.local/state/agentd`. Socket:
 * `$XDG_RUNTIME_DIR/agentd/control.sock`; without that variable, and with a state
 * folder of one's own choice, in the state folder. XDG variables that are not
 * absolute count as unset, as their specification says.
 */
import { Config, Effect, FileSystem, Option } from "effect"
import { homedir } from "node:os"
import * as NodePath from "node:path"

export interface Paths {
  /** Absolute. */
  readonly state: string
  readonly defaultState: string
  readonly socket: string
  /** Where it answers over HTTP: beside the other. */
  readonly http: string
  /** Where a daemon without journal writes. */
  readonly log: string
  /** The store of the rune log. */
  readonly store: string
  readonly lock: string
  /** What holds for all of the user's projects. */
  readonly userConfig: string
}

/** The name of a project's config. */
export const CONFIG_NAME = "agentd.jsonc"
export const STORE_NAME = "runes.db"
export const LOCK_NAME = "lock.db"

const absolute = (name: string) =>
  Config.String(name).pipe(Config.option, Config.map(Option.filter(NodePath.isAbsolute)))

const environment = Config.all({
  stateHome: absolute("XDG_STATE_HOME"),
  configHome: absolute("XDG_CONFIG_HOME"),
  runtime: absolute("XDG_RUNTIME_DIR"),
  home: Config.String("HOME").pipe(Config.withDefault(homedir()))
})

/** `chosen`: the value of --state, relative to the working directory. */
export const resolve = (chosen: Option.Option<string>): Effect.Effect<Paths> =>
  Effect.map(Effect.orDie(environment), ({ configHome, home, runtime, stateHome }) => {
    const base = Option.getOrElse(stateHome, () => NodePath.join(home, ".local", "state"))
    const defaultState = NodePath.join(base, "agentd")
    const state = Option.match(chosen, { onNone: () => defaultState, onSome: (path) => NodePath.resolve(path) })
    const folder = state === defaultState && Option.isSome(runtime) ? NodePath.join(runtime.value, "agentd") : state
    return {
      state,
      defaultState,
      socket: NodePath.join(folder, "control.sock"),
      http: NodePath.join(folder, "http.sock"),
      log: NodePath.join(state, "daemon.log"),
      store: NodePath.join(state, STORE_NAME),
      lock: NodePath.join(state, LOCK_NAME),
      userConfig: NodePath.join(
        Option.getOrElse(configHome, () => NodePath.join(home, ".config")),
        "agentd",
        "config.jsonc"
      )
    }
  })

/** The nearest `agentd.jsonc`, from the working directory upward. */
export const findProject = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  let folder = NodePath.resolve(".")
  while (true) {
    const config = NodePath.join(folder, CONFIG_NAME)
    if (yield* Effect.orElseSucceed(fs.exists(config), () => false)) return config
    const above = NodePath.dirname(folder)
    if (above === folder) return null
    folder = above
  }
})
