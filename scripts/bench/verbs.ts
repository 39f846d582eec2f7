/**
 * Bench of the verbs that read or send, as they are installed: the launcher, the quick entry and
 * a real daemon with 10 agents and one with 200, each command in turn with a bare `node -e 0`.
 *
 * Laid out as npm installs a package: a link to the launcher, dist/, and no src. CPU is user and
 * system time of the command and all that it started.
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { type Bench, folder, interleave, type Subject } from "./Bench.ts"
import { crewOf, dismissed, installed } from "./Installed.ts"

const ROUNDS = 30
/** Runs of a command in one sample: the kernel counts CPU time in steps of 10 ms. */
const RUNS = 3
const BARE = "node -e 0"
const WHOLE = "ps by the whole program"

/** ms of CPU that the children of this process have taken. */
const childrenTime = (): number => {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[13]) + Number(fields[14])) * 10
}

const subject = (name: string, words: ReadonlyArray<string>, cwd: string): Subject => ({
  subject: name,
  round: () => {
    const [before, at] = [childrenTime(), performance.now()]
    for (let run = 0; run < RUNS; run++) {
      const { status } = spawnSync(words[0]!, words.slice(1), { cwd, stdio: "ignore" })
      if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}`)
    }
    return Promise.resolve({ wall: (performance.now() - at) / RUNS, CPU: (childrenTime() - before) / RUNS })
  }
})

const run = async () => {
  const at = folder()
  const command = installed(at)
  const crews = [await crewOf(at, command, 10), await crewOf(at, command, 200)] as const
  const [few, many] = crews
  const verb = (name: string, ...words: ReadonlyArray<string>) =>
    subject(name, [command, "--state", few.state, ...words], few.project)
  try {
    return await interleave(
      [
        { what: "wall", unit: "ms", better: "less" },
        { what: "CPU", unit: "ms", better: "less" }
      ],
      [
        subject(BARE, [process.execPath, "-e", "0"], at),
        verb("ps", "ps"),
        verb("send", "send", "agent1", "hello"),
        verb("status", "status"),
        verb("why", "why", "agent2"),
        verb("log", "log"),
        subject("ps of 200", [command, "--state", many.state, "ps"], many.project),
        // the quick entry does not read this spelling
        subject(WHOLE, [command, `--state=${few.state}`, "ps"], few.project)
      ],
      ROUNDS
    )
  } finally {
    for (const crew of crews) await dismissed(crew)
  }
}

const aims = (["wall", "CPU"] as const).flatMap((what) => [
  ...["ps", "send", "status", "why"].map((of) => ({ what, of, to: { subject: BARE }, atMost: 1.7 })),
  { what, of: "ps of 200", to: { subject: BARE }, atMost: 1.9 }
])

export const bench: Bench = { name: "verbs", run, aims }
