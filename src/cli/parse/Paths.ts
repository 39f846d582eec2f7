/**
 * Paths: the files and folders of this user's daemon, computed from the environment, and the project that contains the
 * working directory. `Places` contains the rules.
 */
import { Config, Context, Effect, FileSystem, Option } from "effect"
import * as Account from "../../config/Account.ts"
import * as NodePath from "node:path"
import * as Host from "../../config/Host.ts"
import { configsFrom, placesOf } from "../../config/Places.ts"
import { CALLED } from "../../runs/HostConnection.ts"

export interface Paths {
  /** The host as the user has typed it; undefined: this machine. Then only `socket` is that of the host. */
  readonly host?: string | undefined
  /** The name of this machine where the command was typed, if that is another machine. */
  readonly called?: string | undefined
  /** Absolute path of the state directory. */
  readonly state: string
  readonly defaultState: string
  /** Path of the daemon's socket, or the address of a host. */
  readonly socket: string
  /** Unix socket of the HTTP interface. It is in the same folder as `socket`. */
  readonly http: string
  /** Log file for a daemon that does not write to the systemd journal. */
  readonly log: string
  readonly store: string
  readonly lock: string
  /** The user's own config file, which applies to all projects. */
  readonly userConfig: string
}

export const STORE_NAME = "runes.db"
export const LOCK_NAME = "lock.db"

const absolute = (name: string) =>
  Config.String(name).pipe(Config.option, Config.map(Option.filter(NodePath.isAbsolute)))

/** Whether the text is the name or the address of a host, as the option --host takes it. */
const isCalled = (text: string): boolean => Host.isName(text) || typeof Host.parse(text) === "object"

const environment = Config.all({
  stateHome: absolute("XDG_STATE_HOME"),
  configHome: absolute("XDG_CONFIG_HOME"),
  runtime: absolute("XDG_RUNTIME_DIR"),
  called: Config.String(CALLED).pipe(Config.option, Config.map(Option.filter(isCalled))),
  home: Config.String("HOME").pipe(Config.withDefault(Account.home()))
})

/** The host whose daemon the command line names, with its address; undefined: this machine. */
export const FarHost = Context.Reference<{ readonly name: string; readonly url: string } | undefined>(
  "agentd/cli/FarHost",
  { defaultValue: () => undefined }
)

/** The saved hosts if the command line asks for all of them with `--all-hosts`; otherwise undefined. */
export const AllHosts = Context.Reference<ReadonlyMap<string, Host.SavedHost> | undefined>("agentd/cli/AllHosts", {
  defaultValue: () => undefined
})

/** Path of the file with the saved hosts. */
export const hostsFile = Effect.map(Effect.orDie(environment), ({ configHome, home }) =>
  Host.fileOf(Option.getOrUndefined(configHome), home)
)

/** Computes the paths. `chosen`: the value of --state, relative to the working directory. */
export const resolve = (chosen: Option.Option<string>): Effect.Effect<Paths> =>
  Effect.map(Effect.all([Effect.orDie(environment), FarHost]), ([given, far]) => {
    const { called, configHome, home, runtime, stateHome } = given
    const places = placesOf(
      { home, stateHome: Option.getOrUndefined(stateHome), runtime: Option.getOrUndefined(runtime) },
      Option.getOrUndefined(chosen)
    )
    const { defaultState, socket, sockets, state } = places
    return {
      host: far?.name,
      called: Option.getOrUndefined(called),
      state,
      defaultState,
      socket: far?.url ?? socket,
      http: NodePath.join(sockets, "http.sock"),
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

/** Path of the nearest `agentd.jsonc` in the working directory or one of its parents; null if there is none. */
export const findProject = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  for (const config of configsFrom(".")) {
    if (yield* Effect.orElseSucceed(fs.exists(config), () => false)) return config
  }
  return null
})
