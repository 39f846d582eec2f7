/**
 * `agentd approvals rm RULE`: removes a rule from its config file.
 *
 * Guarantees: the change is shown before the question. Only the text that was shown is changed, completely or not at
 * all. An agent's run cannot remove a rule. A running daemon puts the change of a project's file into force at once; if
 * it refuses, the old text is restored.
 */
import { Console, Effect } from "effect"
import { ruleWords, subjectWords } from "../../approvals/Rule.ts"
import { diffOf } from "../../config/ConfigChange.ts"
import { remove } from "../../config/JsoncEdit.ts"
import * as OwnFile from "../../config/OwnFile.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import * as ConfigTrust from "../../projects/ConfigTrust.ts"
import * as PeerProcess from "../../runs/process/PeerProcess.ts"
import { confirm } from "../parse/Confirm.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { diffLines } from "../projects/ConfigRows.ts"
import * as Trust from "../projects/Trust.ts"
import { plain } from "../render/Output.ts"
import { type FiledRule, read, ruleForm } from "./RuleFiles.ts"

export interface Input {
  readonly rule: string
  readonly yes: boolean
}

const failed = (message: string, remedy: string, exitCode: number = ExitCode.failed) =>
  new VerbFailed({ message, remedy, exitCode })

const find = (text: string, kept: ReadonlyArray<FiledRule>) => {
  const found = kept.filter(({ rule }) => {
    const words = subjectWords(rule.subject)
    return [rule.place.at, words, `${rule.effect} ${words}`, ruleWords(rule)].includes(text.trim())
  })
  const [one, ...others] = found
  if (one === undefined)
    return Effect.fail(
      failed(`There is no rule "${plain(text)}".`, "List the rules: agentd approvals ls", ExitCode.usage)
    )
  if (others.length === 0) return Effect.succeed(one)
  const places = found.map(({ rule }) => ruleWords(rule)).join(", ")
  return Effect.fail(
    failed(
      `Several rules have these words: ${plain(places)}.`,
      "Name one by its place: agentd approvals rm FILE:LINE",
      ExitCode.usage
    )
  )
}

/** The beginning of the ids of calls in the list of what waits. */
const CALL = "call/"

/** The calls that wait for the user because of the rule. Empty without a daemon. */
const restingOn = Effect.fnUntraced(function* ({ rule }: FiledRule) {
  const { caller, paths } = yield* Invocation
  const words = ruleWords(rule)
  return yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const { rows } = yield* client.Waiting()
      const names = rows.flatMap(({ id }) => (id.startsWith(CALL) ? [id.slice(CALL.length)] : []))
      const calls = yield* Effect.forEach(names, (name) => Effect.option(client.Asked({ name, caller })))
      return calls.flatMap((one) => (one._tag === "Some" ? [one.value] : []))
    })
  ).pipe(
    Effect.map((calls) =>
      calls.filter(
        ({ parts = [], reason }) => reason?.includes(words) === true || parts.some((part) => part.rule === words)
      )
    ),
    Effect.orElseSucceed(() => [])
  )
})

/** The name of the running daemon's project with this file; undefined if there is none. Fails if a change waits. */
const registered = Effect.fnUntraced(function* (config: string) {
  const { paths } = yield* Invocation
  const found = yield* probe(paths.socket)
  if (found === "absent" || found === "stale") return undefined
  const projects = yield* call(paths.socket, (client) => client.Projects())
  const project = projects.find((one) => one.config === config)
  if (project === undefined) return undefined
  if (project.waits !== undefined || project.problems.length > 0) {
    return yield* failed(
      `${config} has changes that are not in force, so nothing was removed.`,
      `Review the changes first: agentd trust ${project.name}`
    )
  }
  return project.name
})

const write = (file: string, before: string, after: string) =>
  Effect.mapError(OwnFile.replaceText(file, before, after), ({ message, remedy }) =>
    failed(`${file} ${message}. Nothing was removed.`, remedy || "Run the command again.")
  )

/** True if this process or one above it is an agent's run. */
const isOfRun = Effect.gen(function* () {
  if (yield* Trust.isRun) return true
  const { paths } = yield* Invocation
  return (yield* PeerProcess.make(PeerProcess.storeId(paths.state)).believe(process.ppid))._tag === "Run"
})

export const run = Effect.fnUntraced(function* ({ rule: text, yes }: Input) {
  if (yield* isOfRun) {
    return yield* failed(
      "This command runs inside an agent, which may not remove a rule.",
      "Run this in your own terminal, outside of the agent: agentd approvals rm"
    )
  }
  const { colour, json, paths } = yield* Invocation
  const { kept, texts } = yield* read
  const one = yield* find(text, kept)
  const { file, path, rule } = one
  const before = texts.get(file) ?? ""
  const after = remove(before, path)
  if (after === undefined) return yield* failed(`${file} cannot be edited.`, "Remove the rule with an editor.")
  const project = file === paths.userConfig ? undefined : yield* registered(file)
  const calls = yield* restingOn(one)
  const diff = diffOf(before, after)
  const waits = calls.map(({ id }) => plain(id)).join(", ")
  const rests = calls.length === 0 ? "" : ` These calls wait because of it: ${waits}.`
  if (!json) {
    yield* Effect.forEach([plain(file), ...diffLines(diff, colour)], (line) => Console.log(line), { discard: true })
  }
  yield* confirm(yes, `This removes ${plain(ruleWords(rule))}.${rests}`, "Remove the rule?")
  const files = project === undefined ? {} : (yield* ConfigTrust.look(file)).config.files
  yield* write(file, before, after)
  if (project !== undefined) {
    yield* Effect.onError(Trust.agree(file, ConfigTrust.hashOf(file, after, files)), () =>
      Effect.ignore(OwnFile.replaceText(file, after, before))
    )
  }
  yield* print({ removed: ruleForm(one), diff, waiting: calls.map(({ id }) => id) }, () => [
    plain(`Removed: ${ruleWords(rule)}.${yes ? rests : ""}`)
  ])
})
