/** `agentd init`: a commented sample agentd.jsonc, where there is none. */
import { Effect, FileSystem } from "effect"
import * as NodePath from "node:path"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { print } from "./Invocation.ts"
import { CONFIG_NAME } from "../config/Places.ts"
import { remedyOf, troubleOf } from "../config/FileTrouble.ts"

export const SAMPLE = `// What agentd keeps running in this project.
// Every field, its default and its meaning: agentd schema
{
  "agents": {
    // An agent's name; messages go to it with: agentd send builder "…"
    "builder": {
      "role": "builds and fixes",
      // Goes into each of its prompts.
      "instructions": "Run the tests before you say that you are done.",
      // Claude Code, turn by turn: agentd attach builder. Others are below.
      // With "sandbox": "on" it is held in the project, and reaches its model alone: no other network, none of your
      // settings. Its key, or your login, goes through agentd (docs/security.md).
      "backend": { "type": "claude" },
      // What has side effects asks you: agentd approve. Also: read_only, full_access.
      "approvals": { "mode": "auto" },
      // "inbox": it runs when there is a message. "loop" (with a "prompt"): again and again.
      "mode": "inbox",
      // A repository and branch of its own (agentd/NAME), so that agents do not step on each other.
      "worktree": false,
      // After an error it waits 2 s, 4 s … up to 60 s; after so many it stops for good and mails.
      "maxConsecutiveErrors": 5,
      "maxTotalErrors": 20
    }

    // Any program: the prompt comes on its standard input, its exit code is the outcome.
    // ,"reporter": { "backend": { "type": "command", "argv": ["./report.sh"], "sandbox": "on" } }

    // A model behind an API: agentd runs its turns and its tools, the shell in a sandbox.
    // The key is in ANTHROPIC_API_KEY where the daemon is started, or in "keyFile".
    // ,"critic": {
    //   "backend": { "type": "model", "provider": "anthropic", "model": "claude-sonnet-5-5" },
    //   "approvals": { "mode": "read_only" },
    //   "budget": { "tokens": 2000000 }
    // }

    // Any agent that speaks the Agent Client Protocol. In its sandbox it sees its login and nothing else of your home.
    // ,"opencode": {
    //   "backend": {
    //     "type": "acp",
    //     "argv": ["opencode", "acp"],
    //     "sandbox": "on",
    //     "network": true,
    //     "share": [".local/share/opencode/auth.json"]
    //   }
    // }
  }

  // A room in which agents and you take turns: agentd channel join review
  // ,"channels": { "review": { "agents": ["builder", "critic"], "topic": "what is built" } }

  // Who makes the plan of a goal, and who looks at the result: agentd goal "…"
  // ,"goals": { "planner": "builder", "critic": "critic", "checks": ["npm test"] }

  // Who is told when an agent has stopped for good. Try it: agentd alert test
  // ,"mail": {
  //   "to": "ada@example.org",
  //   "smtp": {
  //     "host": "smtp.example.org",
  //     "security": "starttls",
  //     "user": "ada",
  //     "passwordFile": "/home/ada/.config/agentd/smtp-password"
  //   }
  // }
}
`

export const run = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = NodePath.resolve(CONFIG_NAME)
  // "wx": two at once cannot both write.
  yield* fs.writeFileString(path, SAMPLE, { flag: "wx" }).pipe(
    Effect.mapError((error) => {
      const exists = error.reason._tag === "AlreadyExists"
      return new VerbFailed({
        message: exists
          ? `${path} is there already and was left as it is.`
          : `${path} cannot be written: ${troubleOf(error)}`,
        remedy: exists
          ? "Edit it, or move it away first."
          : remedyOf(error, "Run it in a folder that you may write in."),
        exitCode: ExitCode.failed
      })
    })
  )
  yield* print({ path }, () => [
    `Wrote ${path}. Edit it, then: agentd start. What is missing for it: agentd doctor`,
    "Your own Claude Code sees your agents, and speaks to them, after: claude mcp add agentd -- agentd mcp"
  ])
})
