/** Layers: the order of the folders of src, for the test that checks it and the document that shows it. */

interface Layer {
  readonly folders: ReadonlyArray<string>
  readonly holds: string
  readonly because: string
}

/**
 * From the top down. A folder imports only folders of lower layers. Folders of one layer are siblings, and do not
 * import each other: they communicate through messages, addresses and ports of `domain`. `src/main.ts` is the program's
 * first module and imports every layer.
 */
export const layers: ReadonlyArray<Layer> = [
  {
    folders: ["web"],
    holds: "The page in a browser.",
    because: "The page is a separate program, and sends its requests to the daemon over HTTP."
  },
  {
    folders: ["client"],
    holds: "The typed client that other programs use.",
    because: "The client sends requests to the daemon as a command does."
  },
  {
    folders: ["app"],
    holds: "The daemon as a whole: its layers in start order, all folds, the entry points.",
    because: "Only `app` imports all other folders."
  },
  {
    folders: ["cli"],
    holds: "The command line: parser, commands by topic, views in the terminal, setup.",
    because: "A command is a client of the daemon, and no code is a client of a command."
  },
  {
    folders: ["alerts/channels"],
    holds: "The channels that notify a person: desktop, ntfy, mail, webhook, chat, a program.",
    because: "A channel imports the alerter's contract, and the alerter imports no channel."
  },
  {
    folders: ["api/rpc", "api/http", "alerts", "systemd"],
    holds:
      "The interfaces to the outside: the control socket, HTTP, the outbox of mails and notices, the systemd unit.",
    because:
      "An interface sends messages to the features and reads the log. No feature imports an interface, so that no interface can call a feature back."
  },
  {
    folders: ["board"],
    holds:
      "The lists of what runs and what waits for a person, and the conversation of one agent, computed from runes.",
    because: "The board reads the state of every feature, and no feature imports the board."
  },
  {
    folders: ["backup"],
    holds: "Backup of a store into one file, and restore from the file.",
    because: "`backup` imports the store and its files, but no code that uses them."
  },
  {
    folders: ["telemetry"],
    holds: "Metrics for Prometheus, traces for OpenTelemetry.",
    because: "`telemetry` reads the log and the supervision tree, and calls no other folder."
  },
  {
    folders: ["cluster"],
    holds: "Where a conversation lives.",
    because: "That is chosen above what a conversation consists of."
  },
  {
    folders: ["access", "projects", "plates", "channels", "goals", "providers", "budgets", "schedules"],
    holds: "The features. A plate is a session that a person runs by hand.",
    because: "Features talk to each other through ports of `domain`, so that each can fail, and can be read, alone."
  },
  {
    folders: ["agents"],
    holds: "One agent: its state machines, its actors, its run, its prompts.",
    because: "An agent does not import the project that it belongs to."
  },
  { folders: ["domain"], holds: "Types and ports that features share.", because: "`domain` imports no feature." },
  {
    folders: ["model-agent"],
    holds: "The model agent, a program of its own that speaks the Agent Client Protocol.",
    because:
      "The model agent runs its tools with the code of `runs`. The daemon starts it as a process and imports nothing of it."
  },
  {
    folders: ["runs"],
    holds: "The backends, one folder each; processes, limits, the sandbox.",
    because: "A backend runs a process by a contract, and contains no policy about the process."
  },
  {
    folders: ["runs/git"],
    holds: "Every git command of the daemon, and the repositories of agents.",
    because: "`runs/git` imports none of the folders that need git."
  },
  {
    folders: ["runs/gateway"],
    holds: "The process through which a confined run reaches its model, and a model agent its remote MCP servers.",
    because: "The gateway runs next to the daemon, and its client imports no agent."
  },
  {
    folders: ["runs/keeper"],
    holds: "The process that holds runs while daemons start and end.",
    because: "The keeper runs next to the daemon, and does not import the code of runs."
  },
  {
    folders: ["core/event-actor"],
    holds: "Actors, state machines, commit scopes, timers.",
    because: "An actor commits to a log, and the log imports no actor."
  },
  {
    folders: ["core/event-log"],
    holds: "The log: streams, hash chains, snapshots, segments, `verify`, `repair`.",
    because: "The log stores facts, and does not import the actors that write them."
  },
  {
    folders: ["core/supervision"],
    holds: "Supervisors, as in Erlang's OTP.",
    because: "`core/supervision` imports no agent, so that its tests need no agent."
  },
  {
    folders: ["config"],
    holds: "Settings: their schemas, defaults and errors.",
    because: "`config` does not import the code that uses a setting."
  },
  {
    folders: ["approvals"],
    holds: "What a call does, and whether a rule allows it, asks about it, or denies it.",
    because: "The decision is a pure function of the call and the rules. A config file is checked with it."
  }
]

const rooms = new Set(layers.flatMap(({ folders }) => folders))

/** The folder that a file of src belongs to: two levels deep if the layers name such a folder, otherwise one. */
export const roomOf = (path: string): string | undefined => {
  const [, folder, inner] = /^src\/(?:([^/]+)\/)(?:([^/]+)\/)?/.exec(path) ?? []
  const room = `${folder}/${inner}`
  return rooms.has(room) ? room : folder
}
