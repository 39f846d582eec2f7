/** `agentd completions SHELL`: the script that completes its verbs and flags. */
import { Console, Effect } from "effect"
import { type Command, Completions } from "effect/cli"

export type Shell = "bash" | "zsh" | "fish"

/** `root` is the whole command: what it declares is what completes. */
export const run = (input: { readonly shell: Shell; readonly root: Command.Command.Any }) =>
  Effect.suspend(() =>
    Console.log(Completions.generate(input.root.name, input.shell, Completions.fromCommand(input.root)))
  )
