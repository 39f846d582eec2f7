/** Layers: the order of the rooms of src, for the test that holds it and the document that draws it. */

/**
 * From the top down. A folder imports what lies below it; those of one line are
 * siblings, and import no sibling: they meet through messages, addresses and ports
 * of `domain`. `src/main.ts` is the program's first module and sees every layer.
 */
export const layers: ReadonlyArray<{ readonly folders: ReadonlyArray<string>; readonly because: string }> = [
  { folders: ["web"], because: "the page is a program of its own in a browser: it asks over HTTP" },
  { folders: ["client"], because: "a program of somebody else's has it, and asks the daemon as a verb does" },
  { folders: ["app"], because: "the composition root is the only place that knows all" },
  { folders: ["cli"], because: "a verb is a client of the daemon, and nothing is a client of a verb" },
  { folders: ["alerts/channels"], because: "a channel is made to the alerter's contract, and the alerter knows none" },
  {
    folders: ["api/rpc", "api/http", "alerts", "systemd"],
    because: "an edge sends messages in and reads the log out; whoever imported one could be called back by it"
  },
  { folders: ["board"], because: "the board reads what every feature shows, and no feature knows that it is shown" },
  { folders: ["backup"], because: "a backup is of the store and its files, and knows nobody who uses them" },
  { folders: ["telemetry"], because: "figures are read off the log and the tree, and call nobody back" },
  { folders: ["cluster"], because: "where a conversation lives is chosen above what it consists of" },
  {
    folders: ["access", "projects", "plates", "channels", "goals", "providers", "budgets", "schedules"],
    because: "machines animated as actors; siblings speak through ports, so that each can fail and be read alone"
  },
  { folders: ["agents"], because: "an agent knows no project that it belongs to" },
  { folders: ["domain"], because: "words and ports know no feature that speaks them" },
  { folders: ["runs"], because: "a backend runs a process by contract, and knows no policy about it" },
  { folders: ["runs/git"], because: "whoever needs git asks the one that runs it, and it knows none of them" },
  {
    folders: ["runs/gateway"],
    because: "the gateway is a small process of its own beside the daemon, and its client knows no agent"
  },
  { folders: ["runs/keeper"], because: "the keeper is a small process of its own beside the daemon, and knows no run" },
  { folders: ["core/event-actor"], because: "an actor commits to a log, and the log knows no actor" },
  { folders: ["core/event-log"], because: "the log stores facts and knows no actor that states them" },
  { folders: ["core/supervision"], because: "supervision knows no agent, so that its tests need none" },
  { folders: ["config"], because: "what a file says knows nothing of what is done with it" }
]

const rooms = new Set(layers.flatMap(({ folders }) => folders))

/** The room that a file of src lies in: of two folders where the layers name such a one. */
export const roomOf = (path: string): string | undefined => {
  const [, folder, inner] = /^src\/(?:([^/]+)\/)(?:([^/]+)\/)?/.exec(path) ?? []
  const room = `${folder}/${inner}`
  return rooms.has(room) ? room : folder
}
