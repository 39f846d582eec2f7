/** `agentd ps`: agents, sessions, goals, channels and whatever needs a person, one a row; with -w as they change. */
import { WORDS } from "../domain/Words.ts"
import { render } from "./Board.ts"
import { chosen } from "./Choose.ts"
import { choice, declare, map, off, option, read, words } from "./DeclaredVerb.ts"

/** Words as they are typed. */
const TYPED = WORDS.map((word) => word.replace(" ", "-"))

export const ps = declare({
  path: ["ps"],
  description: "List agents, sessions, goals and channels by who acts next: you, nobody, or they themselves",
  examples: [
    { command: "agentd ps", description: "What needs you stands first, each with the command that helps" },
    { command: "agentd ps 'shop/*' --is failed", description: "Of one project, what has failed" },
    { command: "agentd ps -w", description: "Stay, and show what changes" }
  ],
  args: {
    names: words("Names or patterns: builder, shop, 'shop/*'", "NAME"),
    project: option("NAME", "Only what is of this project"),
    is: choice(["any", ...TYPED], "any", "Only what is so"),
    sort: choice(["state", "name", "age", "cost"], "state", "The order within each group"),
    all: off("Also what ended more than a day ago", "a"),
    watch: off("Like agentd watch", "w")
  },
  rpc: ({ all, is, names, project, sort }) =>
    map(read("Board", { all }), (board) => ({
      ...board,
      rows: chosen(board.rows, { names, project, sort, word: WORDS[TYPED.indexOf(is)] })
    })),
  view: (board, world) => render(board, world.now, world),
  quick: ({ watch }) => !watch
})
