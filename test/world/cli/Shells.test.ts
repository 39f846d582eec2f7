/**
 * Completions in the shells themselves: what bash, zsh and fish offer at a place, with a daemon, and without one. A
 * shell that this machine does not have is passed over, and said.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { modes, root } from "../../../src/cli/parse/Cli.ts"
import { offers } from "../../../src/cli/parse/Complete.ts"
import { script, type Shell } from "../../../src/cli/parse/Completions.ts"
import { agentInfo } from "../rpc/World.ts"
import { PATIENCE } from "../../support/Patience.ts"
import * as Home from "../docs/Home.ts"

const has = (shell: Shell): boolean => spawnSync(shell, ["-c", "exit 0"]).status === 0

/** The program by which a shell says what it would offer behind `line`, one a line; zsh's own widgets stand aside. */
const asks: { readonly [shell in Shell]: (script: string, line: string) => ReadonlyArray<string> } = {
  bash: (script, line) => [
    "-c",
    `source '${script}'; COMP_WORDS=(); IFS=$'\\n' read -rd '' -a COMP_WORDS < <(xargs -n1 <<< "$1"; [[ $1 == *' ' ]] && echo)
     [[ $1 == *' ' ]] && COMP_WORDS+=("")
     COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _agentd; printf '%s\\n' "\${COMPREPLY[@]}"`,
    "bash",
    line
  ],
  zsh: (script, line) => [
    "-fc",
    `compdef() { :; }; _files() { print -rl -- *(N); }; _describe() { [[ $1 == -o ]] && shift; 
       local -a all=("\${(@)\${(P@)2}%%:*}"); print -rl -- "\${(@M)all:#\${(b)words[CURRENT]}*}"; }
     source '${script}'; words=(\${(z)1}); [[ $1 == *' ' ]] && words+=(''); CURRENT=\${#words}; _agentd`,
    "zsh",
    line
  ],
  fish: (script, line) => [
    "--no-config",
    "-c",
    `source '${script}'; complete -C '${line}' | string replace -r '\\t.*' ''`
  ]
}

const CONFIG = {
  agents: {
    builder: { role: "builds", labels: ["web"], backend: { type: "claude" } },
    tester: { backend: { type: "claude" } }
  },
  channels: { review: { agents: ["builder", "tester"] } }
}

/** At these places: what is among the offers, and what is not. */
const PLACES: ReadonlyArray<readonly [line: string, offered: ReadonlyArray<string>, not: ReadonlyArray<string>]> = [
  ["agentd st", ["start", "stop", "status"], ["send"]],
  ["agentd goal ", ["ls", "show", "merge"], ["start"]],
  ["agentd send --", ["--urgent", "--file", "--json"], ["--no-urgent"]],
  ["agentd completions ", ["bash", "zsh", "fish"], ["builder"]],
  ["agentd wait --for ", ["idle", "needs-you"], ["builder"]]
]
const NAMES: typeof PLACES = [
  ["agentd send bu", ["builder"], ["tester"]],
  ["agentd send ", ["builder", "shop/tester"], ["g1", "review"]],
  ["agentd restart builder te", ["tester"], ["builder"]],
  ["agentd channel post ", ["review"], ["builder"]],
  ["agentd channel grant review ", ["builder", "tester"], ["review"]],
  ["agentd goal show ", ["g1"], ["builder"]],
  ["agentd project stop ", ["shop"], ["builder"]],
  ["agentd restart -l ", ["web"], ["builder"]],
  ["agentd why ", ["builder", "g1"], []]
]

const offered = (home: Home.Home, shell: Shell, line: string) => {
  const file = join(home.folder, `agentd.${shell}`)
  const { stdout } = spawnSync(shell, asks[shell](file, line), {
    cwd: home.cwd,
    encoding: "utf8",
    env: { ...home.environment, PATH: `${home.environment["PATH"]}:${process.env["PATH"]}`, TERM: "dumb" }
  })
  return stdout.split("\n").filter((one) => one !== "")
}

/** The offers, once these are among them: a daemon that has much to do may answer too late. */
const until = (home: Home.Home, shell: Shell, line: string, among: ReadonlyArray<string>) => {
  const deadline = Date.now() + PATIENCE
  for (;;) {
    const is = offered(home, shell, line)
    if (among.every((one) => is.includes(one)) || Date.now() > deadline) return is
  }
}

describe("completions", () => {
  const shells = (["bash", "zsh", "fish"] as const).filter((shell) => {
    if (!has(shell)) console.warn(`There is no ${shell} on this machine: its completions are not tried.`)
    return has(shell)
  })

  it.live("offer verbs and flags at once, and names as the daemon knows them; without it none, and no error", () =>
    Effect.gen(function* () {
      const home = yield* Home.make
      for (const shell of shells) writeFileSync(join(home.folder, `agentd.${shell}`), script({ root, modes }, shell))
      home.write("shop/agentd.jsonc", JSON.stringify(CONFIG))
      yield* home.run("cd shop")
      const holds = (places: typeof PLACES) => {
        for (const shell of shells) {
          for (const [line, among, not] of places) {
            const is = until(home, shell, line, among)
            for (const one of among) assert.include(is, one, `${shell}: ${line}`)
            for (const one of not) assert.notInclude(is, one, `${shell}: ${line}`)
          }
        }
      }
      holds(PLACES)
      for (const shell of shells)
        assert.deepStrictEqual(offered(home, shell, "agentd send "), [], `${shell}: no daemon`)
      const { code, err } = yield* home.run("agentd complete agent")
      assert.deepStrictEqual({ code, err }, { code: 0, err: "" })
      mkdirSync(join(home.folder, "plan"), { recursive: true })
      home.write("plan.json", JSON.stringify({ tasks: [{ id: "one", title: "One" }] }))
      const started = yield* home.run("agentd start && agentd goal 'Do it' --plan ~/plan.json")
      assert.strictEqual(started.code, 0, started.err)
      holds(NAMES)
    }).pipe(Effect.scoped)
  )

  it("offer no name that a shell could take for more than a word", () => {
    const row = (name: string) => ({
      ...agentInfo(),
      kind: "agent",
      name,
      called: name,
      asks: [],
      labels: [name],
      says: ""
    })
    const rows = ["builder", "$(touch x)", "`id`", "a b", "x;y", "a'b", 'a"b'].map(row)
    assert.deepStrictEqual(
      offers("label", rows as never, undefined).map(({ name }) => name),
      ["builder"]
    )
  })
})
