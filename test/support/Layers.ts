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
    because: "It is a program of its own, and asks the daemon over HTTP."
  },
  {
    folders: ["client"],
    holds: "The typed client for programs of others.",
    because: "It asks the daemon as a verb does."
  },
  {
    folders: ["app"],
    holds: "The daemon as a whole: its layers in start order, all folds, the entry points.",
    because: "Only this room knows all others."
  },
  {
    folders: ["cli"],
    holds: "The command line: parser, verbs by topic, views in the terminal, setup.",
    because: "A verb is a client of the daemon, and nothing is a client of a verb."
  },
  {
    folders: ["alerts/channels"],
    holds: "The channels that tell a person: desktop, ntfy, mail, webhook, chat, a program.",
    because: "A channel knows the alerter's contract, and the alerter knows no channel."
  },
  {
    folders: ["api/rpc", "api/http", "alerts", "systemd"],
    holds: "The edges: the control socket, HTTP, the outbox of mails and notices, the unit of systemd.",
    because: "An edge sends messages in and reads the log. What imported an edge could be called back by it."
  },
  {
    folders: ["board"],
    holds: "What runs, what waits for a person, and the conversation of one agent, made of runes.",
    because: "It reads what every feature shows, and no feature knows that it is shown."
  },
  {
    folders: ["backup"],
    holds: "A store in one file, and its way back.",
    because: "It knows the store and its files, and nobody who uses them."
  },
  {
    folders: ["telemetry"],
    holds: "Figures for Prometheus, traces for OpenTelemetry.",
    because: "It reads the log and the tree, and calls nobody back."
  },
  {
    folders: ["cluster"],
    holds: "Where a conversation lives.",
    because: "That is chosen above what a conversation consists of."
  },
  {
    folders: ["access", "projects", "plates", "channels", "goals", "providers", "budgets", "schedules"],
    holds: "The features. A plate is a session that a person runs by hand.",
    because: "Siblings speak through ports of `domain`, so that each can fail and be read alone."
  },
  {
    folders: ["agents"],
    holds: "One agent: its machines, its actors, its run, its prompts.",
    because: "An agent knows no project that it belongs to."
  },
  { folders: ["domain"], holds: "Words and ports that features share.", because: "It knows no feature." },
  {
    folders: ["runs"],
    holds: "The backends, one folder each; processes, limits, the sandbox.",
    because: "A backend runs a process by contract, and knows no policy about it."
  },
  {
    folders: ["runs/git"],
    holds: "Every git command of the daemon, and the repositories of agents.",
    because: "It knows none of those that need git."
  },
  {
    folders: ["runs/gateway"],
    holds: "The process through which a confined run reaches its model.",
    because: "It runs beside the daemon, and its client knows no agent."
  },
  {
    folders: ["runs/keeper"],
    holds: "The process that holds runs while daemons come and go.",
    because: "It runs beside the daemon, and knows no run."
  },
  {
    folders: ["core/event-actor"],
    holds: "Actors, state machines, commit scopes, timers.",
    because: "An actor commits to a log, and the log knows no actor."
  },
  {
    folders: ["core/event-log"],
    holds: "The log: streams, hash chains, snapshots, segments, `verify`, `repair`.",
    because: "It stores facts, and knows no actor that states them."
  },
  {
    folders: ["core/supervision"],
    holds: "Supervisors, as OTP has them.",
    because: "It knows no agent, so that its tests need none."
  },
  {
    folders: ["config"],
    holds: "Settings: their schemas, defaults and errors.",
    because: "It knows nothing of what is done with a setting."
  }
]

const rooms = new Set(layers.flatMap(({ folders }) => folders))

/** The folder that a file of src belongs to: two levels deep if the layers name such a folder, otherwise one. */
export const roomOf = (path: string): string | undefined => {
  const [, folder, inner] = /^src\/(?:([^/]+)\/)(?:([^/]+)\/)?/.exec(path) ?? []
  const room = `${folder}/${inner}`
  return rooms.has(room) ? room : folder
}
