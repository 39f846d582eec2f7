/**
 * A command is declared once: a new one is a procedure in its topic's protocol and a verb in its topic's
 * file, two places in two files, and with that has its bounds, its refusals, its help, its `--json`, its
 * completion, and both entries of the program.
 */
import { assert } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isAll, long } from "../../support/Long.ts"

const root = join(import.meta.dirname, "../../..")

const PROCEDURE = `export const channels = [
  /** Asks each agent of a channel for a word. */
  procedure(command("RollCall", { word: Bounds.line(40) }, "acts"), ({ channels }, { caller, name, word }) =>
    channels.post(name, \`Say \${word}.\`, caller)
  ),
`

const VERB = `
export const roll = act({
  path: ["channel", "roll"],
  description: "Ask each agent of a channel for a word",
  examples: [{ command: "agentd channel roll reviews here", description: "Who is there" }],
  args: { name, word: word("What to say") },
  rpc: ({ name, word }, caller) => send("RollCall", { name, word, caller })
})
`

const CONFIG = JSON.stringify({
  agents: { pm: { backend: { type: "command", shell: "cat" } } },
  channels: { reviews: { agents: ["pm"] } }
})

long.it("touches two files", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentd-command-")))
  const edit = (file: string, change: (text: string) => string) => {
    const before = readFileSync(join(folder, file), "utf8")
    const after = change(before)
    assert.notStrictEqual(after, before, `${file} is not as it was when this was written`)
    writeFileSync(join(folder, file), after)
  }
  try {
    for (const part of ["src", "scripts", "package.json", "package-lock.json", "tsconfig.json"])
      cpSync(join(root, part), join(folder, part), { recursive: true })
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    edit("tsconfig.json", (text) =>
      text.replace(/"include": \[.*\]/u, '"include": ["src"]').replace(/"incremental.*\n.*\n/u, "")
    )

    edit("src/api/rpc/ChannelProtocol.ts", (text) => text.replace("export const channels = [\n", PROCEDURE))
    edit("src/cli/channels/Channel.ts", (text) => text + VERB)

    const run = (command: string, ...args: ReadonlyArray<string>) => {
      const { status, stderr, stdout } = spawnSync(command, args, { cwd: folder, encoding: "utf8" })
      return { status, said: `${stdout}${stderr}` }
    }
    const good = (command: string, ...args: ReadonlyArray<string>) => {
      const { said, status } = run(command, ...args)
      assert.strictEqual(status, 0, `${command} ${args.join(" ")}: ${said}`)
      return said
    }
    // the types of the whole house are half a minute of work
    if (isAll) good("sh", "scripts/typecheck")
    good(process.execPath, "scripts/bundle.ts")
    const [whole, quick] = [join(folder, "dist/agentd.mjs"), join(folder, "dist/quick.cjs")]
    assert.match(good(process.execPath, whole, "channel", "--help"), /roll +Ask each agent of a channel for a word/)
    assert.include(good(process.execPath, whole, "completions", "bash"), "roll")

    writeFileSync(join(folder, "agentd.jsonc"), CONFIG)
    const state = join(folder, "state")
    const daemon = spawn(process.execPath, [whole, "--state", state, "up"], { cwd: folder, stdio: "ignore" })
    const ended = new Promise((resolve) => daemon.on("exit", resolve))
    try {
      const ask = (file: string, ...args: ReadonlyArray<string>) =>
        run(process.execPath, file, "--state", state, "channel", "roll", "reviews", ...args)
      while (run(process.execPath, whole, "--state", state, "channel", "show", "reviews").status !== 0)
        assert.isNull(daemon.exitCode, "the daemon ended")
      for (const file of [quick, whole]) {
        assert.deepStrictEqual(
          [ask(file, "here").status, typeof JSON.parse(ask(file, "here", "--json").said)],
          [0, "object"]
        )
        assert.match(ask(file, "x".repeat(41)).said, /word .*40[\s\S]*→/u)
      }
      assert.match(good(process.execPath, whole, "--state", state, "channel", "show", "reviews"), /Say here\./)
    } finally {
      daemon.kill("SIGTERM")
      await ended
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
