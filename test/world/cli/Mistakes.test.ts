/** Command lines as people mistype them: each is answered with what is wrong and the command that was meant. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AFTER } from "../../../src/cli/parse/VerbAliases.ts"
import { VERBS } from "../../../src/cli/parse/HintCommand.ts"
import { OLD } from "../../../src/cli/parse/Renamed.ts"
import { absent } from "../../../src/cli/parse/NamePatterns.ts"
import { writeFileSync } from "node:fs"
import * as BackupFile from "../../../src/backup/BackupFile.ts"
import { agentInfo, boardOf, folder } from "../rpc/World.ts"
import { agentd, inProcess } from "./Child.ts"

describe("a mistyped command line", () => {
  it.live.each([
    [["ps", "--failed"], "agentd ps --is failed"],
    [["ps", "-o", "wide"], "agentd ps --json"],
    [["log", "--runs", "builder", "--run", "9"], "agentd log --text builder --run 9"],
    [["cost", "builder"], "agentd cost --by agent"],
    [["deny", "x1", "not", "today"], 'agentd deny x1 --reason "not today"'],
    [["project", "rm", "web"], "agentd project remove web"],
    [["goal", "rm", "g1"], "agentd goal cancel g1"],
    [["schedule", "add", "nightly"], "agentd at TIME send"],
    [["service", "start"], "agentd service install"],
    [["notify", "add", "slack"], "notify.channels"],
    [["open", "--port", "8080"], "http.port"],
    [["stop", "--all"], "agentd stop --daemon"],
    [["send", "-m", "hi", "builder"], "agentd send builder hi"],
    [["send", "builder", "hi", "--urgently"], 'Did you mean "--urgent"?'],
    [["send", "#review", "hi"], 'agentd channel post review "TEXT"'],
    [["send", "builder,tester", "hi"], "agentd send 'PROJECT/*'"],
    [["send", "builder hello"], "agentd send builder 'hello'"],
    [["set", "builder", "model=opus"], "agentd set builder --model opus"],
    [["enable", "builder"], "agentd start builder"],
    [["gc", "--days", "x"], "Expected a number"],
    [["goal", "aprove", "g1"], 'Did you mean "approve"?'],
    [["goal", "Port", "it"], "agentd goal 'Port it'"],
    [["project", "resumee"], 'Did you mean "resume"? Use: agentd project resume'],
    [["get", "agents"], "Use: agentd ps"],
    [["get", "goals"], "Use: agentd goal ls"],
    [["describe", "agent", "builder"], "Use: agentd why builder"],
    [["delete", "goal", "g1"], "Use: agentd goal cancel g1"],
    [["agent", "stop", "builder"], "Use: agentd stop builder"],
    [["daemon", "stop"], "Use: agentd stop --daemon"],
    [["projects"], "Use: agentd project ls"],
    [["channels", "show", "review"], "Use: agentd channel show review"],
    [["apply", "-f", "x"], "Use: agentd config diff"],
    [["--all", "ps"], "Use: agentd ps --all"],
    [["--verbose", "ps"], "Use: agentd ps\n"],
    [["--state", "/srv/s", "ps", "--frob"], "Leave it out: agentd ps"],
    [["--state", "/srv/s", "--frob", "ps"], "Use: agentd ps --state /srv/s"],
    [["--project", "web", "ps"], "Use: agentd ps --project web"],
    [["-C", "/srv/web", "log", "builder"], "Use: cd /srv/web && agentd log builder"],
    [["builder", "log"], "Use: agentd log builder"],
    [["builder"], "agentd why builder"],
    [["docker", "logs", "builder"], "Use: agentd log --text builder"],
    [["systemctl", "restart", "builder"], "Use: agentd restart builder"],
    [["agent", "logs", "builder"], "Use: agentd log --text builder"],
    [["create", "agent", "foo"], "agents in agentd.jsonc"],
    [["logs", "builder", "-t"], "Leave it out: agentd log --text builder"],
    [["start", "--agent", "builder"], "Leave it out: agentd start builder"],
    [["log", "--level", "error"], "Leave it out: agentd log. "],
    [["ps", "-aux"], "Leave it out: agentd ps. "],
    [["ps", "--is", "faild"], "Use: agentd ps --is failed"],
    [["send"], "For example: agentd send builder"],
    [["set", "builder", "--mode"], "For example: agentd set builder --mode plan"],
    [["channel", "review"], "show"],
    [["gc", "--all"], "Use: agentd gc --days 0"],
    [["help", "nosuch"], 'Unknown subcommand "nosuch"'],
    [["hooks", "list"], "Use: agentd hooks status"],
    [["pull", "builder"], "Use: agentd diff builder"],
    [["channel", "list"], "Use: agentd channel ls"],
    [["schedule", "disable", "nightly"], "Use: agentd schedule pause nightly"],
    [["schedule", "show", "nightly"], "Use: agentd schedule ls"],
    [["access", "rm", "x1"], "Use: agentd access revoke x1"],
    [["hooks", "remove"], "Use: agentd hooks uninstall"],
    [["goal", "new", "Port it"], "Use: agentd goal 'Port it'"],
    [["logs", "--tail=50", "builder"], "Use --lines instead of --tail"],
    [["wait", "builder", "--until", "idle"], "Use --for instead of --until"],
    [["ps", "--filter", "status=failed"], "Use: agentd ps --is failed"],
    [["backup", "--output", "x.zst"], "Use: agentd backup x.zst"],
    [["start", "builder", "--model", "opus"], "Use: agentd set builder --model opus"],
    [["accounts", "login"], "agentd login SERVER"],
    [["upgrade", "latest"], "npm install -g FILE.tgz"],
    [["schedule", "add", "nightly"], "agentd at TIME send AGENT TEXT"],
    [["approvals", "add", "git push"], "agentd approve CALL --for project"],
    [["status", "builder"], "Use: agentd ps builder"],
    [["demo", "stop"], "Use: agentd demo --stop"],
    [["verify", "all"], "Leave out all"],
    [["allow", "x1"], "Use: agentd approve x1"]
  ] as const)("%j", ([words, says]) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* inProcess([...words])
      assert.deepStrictEqual([code, out], [2, ""])
      assert.include(err, says)
      assert.notInclude(err, "Did you mean this?")
    })
  )

  it.live("has no text to send: the command line is named to which it is added", () =>
    Effect.gen(function* () {
      for (const words of [
        ["send", "builder"],
        ["channel", "post", "review"]
      ]) {
        const { code, err } = yield* agentd(words)
        assert.strictEqual(code, 2)
        assert.include(err, `agentd ${words.join(" ")} "TEXT"`)
      }
    })
  )

  it.live("names a status as a state directory", () =>
    Effect.gen(function* () {
      const { code, err } = yield* inProcess(["ps", "--state", `${yield* folder}/failed`])
      assert.strictEqual(code, 3)
      assert.include(err, "use --is instead: ps --is failed")
    }).pipe(Effect.scoped)
  )

  it.live("is answered with commands that exist, with their subcommands and flags", () =>
    Effect.gen(function* () {
      for (const [words, remedy] of Object.entries(AFTER)) {
        assert.isTrue([...VERBS, ...OLD].includes(words.split(" ")[0]!), words)
        const first = /^[A-Z]/.test(remedy) ? [] : [/^[a-z]+(?: -?-?[a-z]+)*/.exec(remedy)![0]]
        const others = [...remedy.matchAll(/(?<=agentd )[a-z]+(?: -?-?[a-z]+)*/g)].map(([command]) => command)
        const more = [...remedy.matchAll(/(?<=, or )(?!agentd)[a-z]+ --?[a-z]+/g)].map(([command]) => command)
        for (const command of [...first, ...others, ...more]) {
          const { code, err, out } = yield* inProcess([...command.split(" "), "--help"])
          assert.deepStrictEqual([code, err], [0, ""], `${words}: ${command}`)
          for (const flag of command.match(/--[a-z]+/g) ?? []) assert.include(out, flag, `${words}: ${command}`)
        }
      }
    })
  )
})

it.live("a file that the system refuses is named with the reason and the remedy, not with the system's own code", () =>
  Effect.gen(function* () {
    const base = yield* folder
    writeFileSync(`${base}/runes.db`, "")
    const refused = yield* BackupFile.make({
      state: base,
      file: `/tmp/${"x".repeat(300)}`,
      force: false,
      version: "1",
      progress: () => undefined
    }).pipe(Effect.flip)
    assert.include(refused.message, "could not be made: its name is too long.")
  }).pipe(Effect.scoped)
)

describe("a list of what does not exist", () => {
  const { rows } = boardOf({ agents: [agentInfo({ labels: ["slow"] }), agentInfo({ agent: "tester" })] })
  const of = (more: object) => absent(rows, { names: [], labels: [], project: undefined, ...more }, null)

  it("is refused with the name that was probably meant", () => {
    assert.include(of({ names: ["bulider"] })?.message, 'called "bulider"')
    assert.include(of({ names: ["bulider"] })?.remedy, 'Did you mean "')
    assert.include(of({ project: "wbe" })?.remedy, 'Did you mean "web"?')
    assert.include(of({ names: ["/srv/web"] })?.remedy, "Use the project's name, not a path: web")
    assert.notInclude(of({ names: ["3"] })?.remedy ?? "", "Did you mean")
    assert.include(of({ labels: ["slwo"] })?.remedy, 'Did you mean "slow"?')
  })

  it("is an empty list for a pattern, and a list for what exists", () => {
    for (const more of [
      { names: ["no*"] },
      { project: "no*" },
      { names: ["tester"], project: "web", labels: ["slow"] },
      { names: ["web"] }
    ])
      assert.isUndefined(of(more))
  })
})
