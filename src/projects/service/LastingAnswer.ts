/**
 * LastingAnswer: an approval that also adds rules: for the call's run, or in a config file.
 *
 * Guarantees: the approval names the hash of the whole preview: of the call, the scope, the offer, and the file with its
 * change. If any of them has changed since, nothing is approved and nothing is written. A file is written before the
 * call is answered, so an approval never promises a rule that does not exist. If the call is decided by somebody else
 * in the meantime, the error says that the rule was written. A rule holds at once, also for calls that wait.
 */
import { createHash } from "node:crypto"
import { Effect, Semaphore } from "effect"
import type { AgentScope } from "../../agents/actors/AgentScope.ts"
import type { Answer } from "../../agents/machines/CallRow.ts"
import { ANSWER_SCOPES, type AnswerScope, givenWords, type Lasting, scopeWords } from "../../approvals/AnswerScope.ts"
import type { RuleSubject } from "../../approvals/Rule.ts"
import * as ConfigChange from "../../config/ConfigChange.ts"
import * as ConfigFile from "../../config/ConfigFile.ts"
import * as JsoncEdit from "../../config/JsoncEdit.ts"
import { entryOf } from "../../config/RuleConfig.ts"
import * as OwnFile from "../../config/OwnFile.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import * as CallHash from "../../domain/CallHash.ts"
import {
  type AnswerPreview,
  type AskedCall,
  type Caller,
  CommandRefused,
  type Done,
  refuse
} from "../../domain/Messages.ts"
import { UserApprovals } from "../../domain/UserApprovals.ts"
import type { Project } from "../Project.ts"

export interface Asked {
  readonly project: Project
  readonly agentScope: AgentScope
  readonly callId: string
}

interface Change {
  readonly path: string
  /** The text of the file; undefined: it does not exist. */
  readonly before: string | undefined
  readonly after: string
}

interface Planned extends AnswerPreview {
  readonly call: AskedCall
  readonly rules: ReadonlyArray<RuleSubject>
  readonly change: Change | undefined
}

/** Maximum size of a config file that is edited, bytes. */
const MAX_BYTES = 1024 * 1024

const again = ({ callId }: Pick<Asked, "callId">): string => `Look at it again: agentd approve ${callId}`

/** The call as it is shown, with the scopes in which a rule can be kept now. */
export const shown = ({ project }: Pick<Asked, "project">, asked: AskedCall): Effect.Effect<AskedCall> =>
  Effect.gen(function* () {
    if (asked.offers === undefined) return asked
    const { path } = yield* UserApprovals
    const onlyHere = yield* project.unsettled
    if (onlyHere !== undefined) return { ...asked, onlyHere }
    return { ...asked, scopes: ANSWER_SCOPES.filter((scope) => path !== undefined || !isOwn(scope)) }
  })

/** True if the rules of the scope are kept in the user's own config. */
const isOwn = (scope: AnswerScope): boolean => scope === "agent" || scope === "project"

const readOwn = (path: string) =>
  OwnFile.readText(path, MAX_BYTES).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "missing",
      () => Effect.succeed(undefined)
    ),
    Effect.mapError(({ message, remedy }) => refuse("conflict", `${path} ${message}.`, remedy || "Correct the file."))
  )

const changeOf = Effect.fnUntraced(function* (
  { agentScope, project }: Asked,
  scope: AnswerScope,
  rules: ReadonlyArray<RuleSubject>
) {
  if (scope === "run") return undefined
  const user = yield* UserApprovals
  const path = isOwn(scope) ? (user.path ?? "") : project.path
  const { root } = project.config
  const place =
    scope === "everyone"
      ? ["approvals", "rules"]
      : ["approvals", "projects", root, ...(scope === "agent" ? ["agents", agentScope.name] : []), "rules"]
  const before = yield* readOwn(path)
  // the answer puts the whole file into force: all of it but the rule must be in force already
  if (scope === "everyone" && before !== undefined && !project.trusts(before))
    return yield* refuse(
      "conflict",
      `${path} has a change that nobody has agreed to.`,
      `See it and agree to it first: agentd trust ${project.name}`
    )
  const after = rules.reduce<string | undefined>(
    (text, subject) => (text === undefined ? undefined : JsoncEdit.append(text, place, entryOf("allow", subject))),
    before ?? "{}\n"
  )
  if (after === undefined)
    return yield* refuse(
      "conflict",
      `No rule can be added to ${path}: it has problems, or ${place.join(".")} is not a list.`,
      "Correct the file, or approve only this call."
    )
  const parsed = isOwn(scope)
    ? Effect.asVoid(ConfigFile.parseUser(after, path))
    : Effect.asVoid(ConfigFile.parse(after, path))
  yield* Effect.mapError(parsed, ({ message, remedy }) => refuse("conflict", message, remedy))
  return { path, before, after } satisfies Change
})

const planned = Effect.fnUntraced(function* (of: Asked, { offer: number, scope }: Lasting) {
  const { agentScope, callId } = of
  const found = agentScope.asked(callId)
  if (found instanceof CommandRefused) return yield* found
  const rules = agentScope.offered(callId)[number - 1]
  const call = yield* shown(of, found)
  const { hash: seen, offers = [], onlyHere, scopes = [] } = call
  const offer = offers[number - 1]
  if (offer === undefined || rules === undefined)
    return yield* refuse(
      "invalid",
      offers.length === 0
        ? `Only this call can be approved: there is no rule for it that holds longer.`
        : `There is no offer ${number}: this call has ${offers.length}.`,
      again(of)
    )
  if (!scopes.includes(scope))
    return yield* refuse(
      "conflict",
      `It cannot be approved ${scopeWords[scope]} now${onlyHere === undefined ? "" : `: ${onlyHere}`}.`,
      `Approve it once or for this run: agentd approve ${callId}`
    )
  const change = yield* changeOf(of, scope, rules)
  const parts = [seen, scope, offer, change?.path, change?.before, change?.after]
  const hash = createHash("sha256")
    .update(`agentd.answer.1\n${JSON.stringify(parts)}`)
    .digest("hex")
  return {
    hash,
    scope,
    offer,
    file: change?.path ?? null,
    diff: change === undefined ? [] : ConfigChange.diffOf(change.before ?? "", change.after),
    call,
    rules,
    change
  } satisfies Planned
})

export const preview = (of: Asked, lasting: Lasting): Effect.Effect<AnswerPreview, CommandRefused> =>
  Effect.map(planned(of, lasting), ({ diff, file, hash, offer, scope }) => ({ hash, scope, offer, file, diff }))

/** Answers the call after its rule was written. If the call is gone, the error says that the rule is there. */
const answered = (
  { agentScope, callId }: Asked,
  { call, change, rules, scope }: Planned,
  said: Answer,
  caller: Caller
): Effect.Effect<Done, CommandRefused | StorageError> =>
  agentScope.answer(callId, { ...said, hash: call.hash, lasting: { scope, rules } }, caller).pipe(
    Effect.map((done) => ({
      ...done,
      message: `${done.message.replace(/\.$/, "")}, ${givenWords(scope, rules)}${change === undefined ? "" : ` (${change.path})`}.`
    })),
    Effect.catchTag("CommandRefused", (error) =>
      change === undefined
        ? error
        : refuse(
            "conflict",
            `The rule was written to ${change.path} and holds from now on. The call itself was not approved: ${error.message}`,
            error.remedy
          )
    )
  )

/** Lets one approval at a time write a file. */
const writing = Semaphore.makeUnsafe(1)

export const answer = (of: Asked, lasting: Lasting, said: Answer, caller: Caller) =>
  Effect.gen(function* () {
    const plan = yield* planned(of, lasting)
    if (said.hash === undefined || !CallHash.names(said.hash, plan.hash))
      return yield* refuse(
        "conflict",
        `The call, its offers or the file have changed since they were shown. Nothing was approved, and nothing was written.`,
        again(of)
      )
    const { change } = plan
    // reading the file takes a moment, in which somebody else may have answered
    const now = of.agentScope.asked(of.callId)
    if (now instanceof CommandRefused) return yield* now
    if (change === undefined) return yield* answered(of, plan, said, caller)
    const write = Effect.mapError(
      OwnFile.replaceText(change.path, change.before, change.after),
      ({ message, remedy }) =>
        refuse("conflict", `${change.path} ${message}. Nothing was approved.`, remedy || again(of))
    )
    if (plan.scope === "everyone") {
      return yield* of.project.rewritten(
        change.after,
        caller.by,
        Effect.andThen(write, answered(of, plan, said, caller))
      )
    }
    yield* write
    const user = yield* UserApprovals
    return yield* Effect.ensuring(answered(of, plan, said, caller), user.reread)
  }).pipe(Effect.uninterruptible, writing.withPermit)
