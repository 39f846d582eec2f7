/**
 * The demo's goal: five tasks for two agents, each in its own worktree. One task fails once, and the critic rejects one
 * once; then the goal is met, and its work is merged.
 */
import { Effect } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const TASKS = [
  { id: "menu", title: "Write the menu" },
  { id: "prices", title: "Set the prices", dependsOn: ["menu"] },
  { id: "till", title: "Set up the till", dependsOn: ["menu"] },
  { id: "sign", title: "Paint the sign" },
  { id: "opening", title: "Open the shop", dependsOn: ["prices", "till", "sign"], priority: 1 }
]

/** Writes a file named after its task and commits it. The task `till` fails at the first try. */
const WORKER = `p=$(cat); id=$(printf '%s\\n' "$p" | sed -n 's/.*Task \\([a-z0-9-]*\\): .*/\\1/p' | head -n 1)
if [ "$id" = till ] && mkdir "\${DEMO_FOLDER:?}/tried" 2>/dev/null; then sleep 0.3; echo "the drawer is stuck" >&2; exit 3; fi
echo "$id" > "$id.txt"; git add "$id.txt"
git -c user.name=worker -c user.email=worker@example.org commit -qm "$id" && echo "made $id.txt"; sleep 0.3`

/** Finds an error in the task `sign`, once. */
const CRITIC = `cat > /dev/null; sleep 0.3
if mkdir "\${DEMO_FOLDER:?}/judged" 2>/dev/null
then echo '{"findings":[{"severity":"error","task":"sign","message":"the sign is crooked","fix":"hang the sign straight"}]}'
else echo '{"findings":[{"severity":"info","message":"a fine shop"}]}'; fi`

type Script = (text: string, more: object) => object

/** The agents that the demo's goal needs. */
export const agents = (script: Script) => ({
  ann: script(WORKER, { role: "does tasks", worktree: true }),
  ben: script(WORKER, { role: "does tasks", worktree: true }),
  critic: script(CRITIC, { role: "reviews" })
})

export const goals = {
  workers: ["ann", "ben"],
  critic: "critic",
  checks: ["test -f opening.txt"],
  backoff: { base: "200ms", cap: "2 seconds" },
  autoStart: true
}

export interface Tools {
  readonly project: string
  readonly title: (text: string) => void
  /** Runs the real command, and shows its output. */
  readonly agentd: (...args: ReadonlyArray<string>) => Effect.Effect<string>
  /** Records whether a claim holds; the demo fails if one does not. */
  readonly claim: (words: string, holds: boolean) => void
}

interface Shown {
  readonly goal: { readonly state: string; readonly rounds: number }
  readonly tasks: ReadonlyArray<{ readonly id: string; readonly state: string; readonly errors: number }>
}

export const part = Effect.fnUntraced(function* ({ agentd, claim, project, title }: Tools) {
  title("A goal of five tasks, worked off by two agents in worktrees of their own")
  const plan = join(project, "plan.json")
  yield* Effect.sync(() => writeFileSync(plan, JSON.stringify({ tasks: TASKS }, null, 2)))
  yield* agentd("goal", "Open a shop", "--plan", plan)
  yield* agentd("goal", "watch", "g1")
  yield* agentd("goal", "show", "g1")
  const { goal, tasks } = JSON.parse(yield* agentd("goal", "show", "g1", "--json")) as Shown
  claim("the goal is met", goal.state === "goal_met")
  claim("the till failed once and was retried", tasks.find(({ id }) => id === "till")?.errors === 1)
  claim("the critic sent one task back, and it was fixed", goal.rounds === 1 && tasks.length === TASKS.length + 1)
  yield* agentd("goal", "merge", "g1")
  const files = TASKS.map(({ id }) => join(project, `${id}.txt`))
  claim(
    "the work of both agents is in the checkout",
    files.every((file) => existsSync(file))
  )
})
