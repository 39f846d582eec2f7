/** `agentd approvals`: the real program in a folder with a project, without a daemon. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ExitCode } from "../../../src/cli/parse/ExitCode.ts"
import { PROGRAM } from "../../support/Program.ts"
import { agentd, type Options } from "./Child.ts"

const hasTerminals = spawnSync("script", ["--version"]).status === 0

const PROJECT = `{
  "name": "shop",
  // for everyone
  "approvals": { "rules": [
    { "deny": "git push --force" }, // never
    { "allow": "npm test **" }
  ] },
  "agents": {
    "builder": {
      "backend": { "type": "claude" },
      "approvals": {
        "never": ["Read"],
        "rules": [
          { "ask": "git push", "note": "it leaves" },
          { "allow": { "write": "build/**" } }
        ]
      }
    },
    "shell": { "backend": { "type": "claude" }, "approvals": { "mode": "read_only", "never": ["Bash"] } }
  }
}
`

const made = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentd-approvals-")))
    const project = join(folder, "shop")
    const user = join(folder, ".config/agentd/config.jsonc")
    for (const one of [project, join(folder, ".config/agentd"), join(folder, ".claude"), join(project, ".claude")])
      mkdirSync(one, { recursive: true })
    const config = join(project, "agentd.jsonc")
    writeFileSync(config, PROJECT)
    writeFileSync(
      user,
      `{ "approvals": {\n  "rules": [{ "allow": "git log **" }],\n  "projects": { ${JSON.stringify(project)}: { "agents": { "builder": { "rules": [\n    { "allow": "npm test" }\n  ] } } } }\n} }\n`
    )
    const cli = (args: ReadonlyArray<string>, options: Options = {}) =>
      agentd(args, { cwd: project, ...options, env: { HOME: folder, ...options.env } })
    const json = (...args: ReadonlyArray<string>) =>
      Effect.map(cli([...args, "--json"]), ({ err, out }) => JSON.parse(out || err))
    return { folder, project, config, user, cli, json }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

describe("approvals test", () => {
  it.live("names the verdict, the rule with its file and line, and each part with its reason", () =>
    Effect.gen(function* () {
      const { cli, config, folder, json, user } = yield* made
      const pushed = yield* json("approvals", "test", "git push --force origin main")
      assert.deepInclude(pushed, {
        verdict: "deny",
        rule: { effect: "deny", words: "git push --force", file: config, line: 5 },
        offers: []
      })
      const log = yield* json("approvals", "test", "git log --oneline && npm test | tail -5")
      assert.strictEqual(log.verdict, "run")
      assert.deepInclude(log.parts[1], {
        text: "npm test",
        verdict: "run",
        rule: { effect: "allow", words: "npm test **", file: config, line: 6 }
      })
      const asked = yield* json("approvals", "test", "npm test | npm run build")
      assert.deepInclude(asked, { verdict: "ask", rule: null })
      assert.deepStrictEqual(
        asked.parts.map(({ text, verdict }: { text: string; verdict: string }) => `${verdict} ${text}`),
        ["run npm test", "ask npm run build"]
      )
      assert.deepStrictEqual(asked.offers[0], {
        words: "npm run build",
        rules: [{ effect: "allow", words: "npm run build" }]
      })
      const { out } = yield* cli(["approvals", "test", "git push --force"])
      assert.strictEqual(out.split("\n")[0], 'deny: deny "git push --force" (agentd.jsonc:5)')
      // nothing was made
      assert.isFalse(existsSync(join(folder, ".local")))
      assert.isTrue(existsSync(user))
    }).pipe(Effect.scoped)
  )

  it.live("uses the rules and the mode of the agent that is named, and says when there is no such agent", () =>
    Effect.gen(function* () {
      const { cli, json } = yield* made
      const push = ["approvals", "test", "git push", "--agent"]
      assert.strictEqual((yield* json(...push.slice(0, 3))).verdict, "ask")
      assert.deepInclude(yield* json(...push, "builder"), {
        verdict: "ask",
        reason: 'ask "git push" (agentd.jsonc:14)'
      })
      assert.deepInclude(yield* json(...push, "shell"), {
        verdict: "run",
        reason: 'allow "tool Bash" (agentd.jsonc:19)'
      })
      const { code, err } = yield* cli([...push, "bulder"])
      assert.strictEqual(code, 2)
      assert.include(err, 'There is no agent "bulder"')
      assert.include(err, 'Did you mean "builder"?')
    }).pipe(Effect.scoped)
  )

  it.live("without a project there are only the user's own rules, and hidden characters are marked", () =>
    Effect.gen(function* () {
      const { cli, folder, json } = yield* made
      const away = { cwd: folder }
      const { out } = yield* cli(["approvals", "test", "npm test", "--json"], away)
      assert.strictEqual(JSON.parse(out).verdict, "ask")
      const hidden = yield* cli(["approvals", "test", "ls \u202etxt.exe"], away)
      assert.notInclude(hidden.out, "\u202e")
      assert.match(hidden.out, /^ask: /)
      assert.strictEqual((yield* json("approvals", "test", "x".repeat(40_000))).verdict, "deny")
    }).pipe(Effect.scoped)
  )
})

describe("approvals ls", () => {
  it.live("lists the rules of both files, and Claude Code's own permissions with what agentd makes of them", () =>
    Effect.gen(function* () {
      const { cli, config, folder, json, project } = yield* made
      const permissions = { allow: ["Bash(npm run test:*)", "Bash(git *)", "Bash(npm test)"], deny: ["Read(./.env)"] }
      writeFileSync(join(folder, ".claude/settings.json"), JSON.stringify({ permissions }))
      writeFileSync(join(project, ".claude/settings.local.json"), "not JSON")
      const found = yield* json("approvals", "ls")
      assert.deepStrictEqual(
        found.rules.map(
          ({ effect, line, scope, words }: { [field: string]: string }) => `${scope}: ${effect} ${words} ${line}`
        ),
        [
          "project: deny git push --force 5",
          "project: allow npm test ** 6",
          "agent: ask git push 14",
          "agent: allow write build/** 15",
          "agent: allow tool Read 12",
          "agent: allow tool Bash 19",
          "user: allow git log ** 2",
          "user agent: allow npm test 4"
        ]
      )
      assert.deepStrictEqual(
        found.claude.map(({ differs, effect, entry }: { [field: string]: string }) => [
          effect,
          entry,
          differs!.split(":")[0]
        ]),
        [
          ["allow", "Bash(npm run test:*)", `wider than agentd's "npm run test **"`],
          ["allow", "Bash(git *)", "wider than any rule of agentd"],
          ["allow", "Bash(npm test)", `as agentd's "npm test"`],
          ["deny", "Read(./.env)", "Claude Code denies it by itself"]
        ]
      )
      assert.deepStrictEqual(found.sees[0], {
        agent: "builder",
        calls: "what Claude Code asks for (default)",
        unseen: [
          "No rule sees a call that a PermissionRequest hook in the settings of Claude Code allows before agentd answers."
        ]
      })
      writeFileSync(config, PROJECT.replace('"builder"', '"maker"'))
      const { out } = yield* cli(["approvals", "ls"])
      assert.include(out, "for builder (no such agent)")
      assert.include(out, "agentd.jsonc:5   deny git push --force")
      assert.include(out, "allowed by Claude's own settings, not seen here")
    }).pipe(Effect.scoped)
  )
})

describe("approvals rm", () => {
  it.live("shows the change, removes the rule and keeps the comments; a script must say --yes", () =>
    Effect.gen(function* () {
      const { cli, config, json, user } = yield* made
      const asked = yield* cli(["approvals", "rm", "git push --force"])
      assert.strictEqual(asked.code, 2)
      assert.include(asked.out, '-    { "deny": "git push --force" }, // never')
      assert.include(asked.err, "nothing was done")
      assert.strictEqual(readFileSync(config, "utf8"), PROJECT)
      const { code, out } = yield* cli(["approvals", "rm", "git push --force", "--yes"])
      assert.strictEqual(code, 0)
      assert.include(out, 'Removed: deny "git push --force" (agentd.jsonc:5).')
      assert.strictEqual(
        readFileSync(config, "utf8"),
        PROJECT.replace('    { "deny": "git push --force" }, // never\n', "")
      )
      const own = yield* json("approvals", "rm", "config.jsonc:4", "--yes")
      assert.deepStrictEqual(own.removed, { effect: "allow", words: "npm test", file: user, line: 4 })
      assert.include(readFileSync(user, "utf8"), '"builder": { "rules": [] }')
    }).pipe(Effect.scoped)
  )

  it.live("removes the rules of an agent that was renamed or removed", () =>
    Effect.gen(function* () {
      const { cli, config, user } = yield* made
      writeFileSync(config, PROJECT.replace('"builder"', '"maker"'))
      assert.include((yield* cli(["approvals", "ls"])).out, "for builder (no such agent)")
      const { code, err, out } = yield* cli(["approvals", "rm", "npm test", "--yes"])
      assert.strictEqual(code, 0, err)
      assert.include(out, 'Removed: allow "npm test" (config.jsonc:4).')
      assert.include(readFileSync(user, "utf8"), '"builder": { "rules": [] }')
      assert.notInclude((yield* cli(["approvals", "ls"])).out, "no such agent")
    }).pipe(Effect.scoped)
  )

  it.live("names the rules that are meant where several are, and says when none is", () =>
    Effect.gen(function* () {
      const { cli, user } = yield* made
      writeFileSync(user, '{ "approvals": { "rules": [{ "allow": "npm test **" }] } }')
      const several = yield* cli(["approvals", "rm", "npm test **", "--yes"])
      assert.strictEqual(several.code, 2)
      assert.include(several.err, 'allow "npm test **" (agentd.jsonc:6), allow "npm test **" (config.jsonc:1)')
      const none = yield* cli(["approvals", "rm", "make", "--yes"])
      assert.include(none.err, 'There is no rule "make"')
      assert.include(none.err, "agentd approvals ls")
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(!hasTerminals)("asks at a terminal, and changes no file that has changed since it was shown", () =>
    Effect.gen(function* () {
      const { config, folder, project } = yield* made
      const command = [process.execPath, PROGRAM, "approvals", "rm", "'npm test **'"].join(" ")
      const typed = (answer: string, before: () => void) =>
        Effect.callback<string>((resume) => {
          const child = spawn("script", ["-qec", command, "/dev/null"], {
            cwd: project,
            env: { PATH: process.env["PATH"], HOME: folder, TERM: "xterm" }
          })
          let shown = ""
          let isAnswered = false
          child.stdout.setEncoding("utf8").on("data", (text: string) => {
            shown += text
            if (isAnswered || !shown.includes("Remove the rule?")) return
            isAnswered = true
            before()
            child.stdin.write(answer)
          })
          child.on("close", () => resume(Effect.succeed(shown)))
        })
      assert.include(yield* typed("n\r", () => {}), "Nothing was done.")
      assert.strictEqual(readFileSync(config, "utf8"), PROJECT)
      const changed = PROJECT.replace("// for everyone", "// for nobody")
      const late = yield* typed("y\r", () => writeFileSync(config, changed))
      assert.include(late, "has changed since it was shown. Nothing was removed.")
      assert.strictEqual(readFileSync(config, "utf8"), changed)
      assert.include(yield* typed("y\r", () => {}), 'Removed: allow "npm test **"')
    }).pipe(Effect.scoped)
  )

  it.live("is not for an agent's run", () =>
    Effect.gen(function* () {
      const { cli, config } = yield* made
      const refused = yield* cli(["approvals", "rm", "npm test **", "--yes"], { env: { AGENTD_RUN: "r1" } })
      assert.notStrictEqual(refused.code, 0)
      assert.include(refused.err, "runs inside an agent")
      assert.strictEqual(readFileSync(config, "utf8"), PROJECT)
    }).pipe(Effect.scoped)
  )

  it.live("a file with problems is named with its line, and nothing is done", () =>
    Effect.gen(function* () {
      const { cli, config } = yield* made
      writeFileSync(config, PROJECT.replace('"allow": "npm test **"', '"allow": "* test"'))
      for (const args of [["rm", "git push", "--yes"], ["ls"], ["test", "ls"]]) {
        const { code, err } = yield* cli(["approvals", ...args])
        assert.strictEqual(code, ExitCode.config)
        assert.include(err, `${config}:6:`)
      }
    }).pipe(Effect.scoped)
  )
})
