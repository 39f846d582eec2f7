/**
 * PlanFile: reads a plan from a file or a planner's answer, and checks it.
 *
 * Guarantees: an accepted plan has only known fields within their limits, unique ids, existing dependencies and owners,
 * and no cycle. Any other plan is rejected with an error that names the invalid fields of the first problems. Checks
 * are linear in tasks and dependencies, do not recurse, and let other work run in between. JSON is parsed without a
 * pause, so its size is limited.
 */
import { Context, Duration, Effect, Result, Schema, SchemaIssue } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { isUtf8 } from "node:buffer"
import { constants } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { isAbsolute } from "node:path"
import { inTurns, type Steps } from "../domain/TimeSlices.ts"
import { MAX_PLAN_BYTES, MAX_TASKS, PlanDocument, PlannedTask, type Task } from "../domain/GoalMessages.ts"
import { cut } from "./Ellipsis.ts"

/** `problems` lists the invalid fields; `message` describes all problems for the plan's author. */
export class PlanRefused extends Schema.TaggedError<PlanRefused>()("PlanRefused", {
  problems: Schema.Array(Schema.Struct({ field: Schema.String, message: Schema.String })),
  message: Schema.String,
  remedy: Schema.String
}) {}

/** The agents and task ids that a plan may use. */
export interface Door {
  /** Agents that a task can name as its owner. */
  readonly workers: ReadonlyArray<string>
  /** Task ids in use. Maps each id to true if new tasks may depend on the task. */
  readonly known?: ReadonlyMap<string, boolean>
}

interface Problem {
  readonly field: string
  readonly message: string
}

const MAX_PROBLEMS = 20
/** Maximum number of different combinations of owner and needs. Each combination is examined at every assignment. */
export const MAX_LANES = 1_000
/** Cost in steps (see TimeSlices) of decoding a task, and of checking one relation between tasks. */
const [DECODED, LOOKED_AT] = [2, 0.1]

export const refuse = (
  problems: ReadonlyArray<Problem>,
  remedy = "Fix the plan and submit it again. Its format: agentd schema goal"
): PlanRefused =>
  new PlanRefused({
    problems,
    message: problems.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)).join("\n"),
    remedy
  })

const one = (field: string, message: string): PlanRefused => refuse([{ field, message }])

export const jsonSchema = (): { readonly [key: string]: unknown } => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(PlanDocument, { onExcessProperty: "error" })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A plan of agentd",
    ...schema,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
}

const decodeTask = Schema.decodeUnknownResult(PlannedTask)
const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Clearer wording for the schema's error messages. */
const WORDS: { readonly [message: string]: string } = {
  "Expected no excess property": "is not a field of a task",
  "Expected object": "must be an object: a task"
}

const pathOf = (index: number, path: ReadonlyArray<unknown>): string =>
  path.reduce<string>(
    (field, part) => (typeof part === "number" ? `${field}[${part}]` : `${field}.${String(part)}`),
    `tasks[${index}]`
  )

const taskOf = (planned: PlannedTask): Task => ({
  id: planned.id,
  title: planned.title.trim(),
  description: planned.description ?? "",
  dependsOn: [...new Set(planned.dependsOn)],
  priority: planned.priority,
  owner: planned.owner ?? null,
  needs: [...new Set(planned.needs)],
  timeout: planned.timeout === undefined ? null : Duration.toMillis(planned.timeout),
  // `commit` is set only if requested, so that the hash of plans without it stays the same
  ...(planned.commit === true ? { commit: true } : {})
})

const decoded = function* (raw: ReadonlyArray<unknown>): Steps<ReadonlyArray<Task> | PlanRefused> {
  const tasks: Array<Task> = []
  const problems: Array<Problem> = []
  for (const [index, item] of raw.entries()) {
    const result = decodeTask(item, { errors: "all", onExcessProperty: "error" })
    if (Result.isSuccess(result)) {
      tasks.push(taskOf(result.success))
      yield DECODED + LOOKED_AT * result.success.dependsOn.length
    } else {
      for (const { message, path } of format(result.failure.issue).issues) {
        const field = pathOf(index, path ?? [])
        // a value can break two rules with the same message
        const isSaid = problems.some(
          (said) => said.field === field && said.message === cut(WORDS[message] ?? message, 300)
        )
        if (!isSaid) problems.push({ field, message: cut(WORDS[message] ?? message, 300) })
      }
    }
    if (problems.length >= MAX_PROBLEMS) break
  }
  return problems.length > 0 ? refuse(problems.slice(0, MAX_PROBLEMS)) : tasks
}

const related = function* (tasks: ReadonlyArray<Task>, { known, workers }: Door): Steps<ReadonlyArray<Problem>> {
  const problems: Array<Problem> = []
  const say = (index: number, field: string, message: string) =>
    problems.push({ field: `tasks[${index}].${field}`, message })
  const ids = new Map<string, number>()
  const owners = new Set(workers)
  const lanes = new Set<string>()
  for (const [index, { id, needs, owner }] of tasks.entries()) {
    const first = ids.get(id)
    if (first !== undefined) say(index, "id", `"${id}" is already the id of tasks[${first}]`)
    else if (known?.has(id) === true) say(index, "id", `"${id}" is already the id of another task`)
    else ids.set(id, index)
    if (owner !== null && !owners.has(owner)) {
      say(
        index,
        "owner",
        `there is no agent "${owner}" to work on tasks; the agents are: ${cut(workers.join(", "), 200) || "none"}`
      )
    }
    lanes.add(JSON.stringify([owner, needs.toSorted()]))
    yield LOOKED_AT
    if (problems.length >= MAX_PROBLEMS) return problems
  }
  if (lanes.size > MAX_LANES) {
    problems.push({
      field: "tasks",
      message: `${lanes.size} different combinations of owner and needs; at most ${MAX_LANES} are allowed`
    })
  }
  for (const [index, { dependsOn, id }] of tasks.entries()) {
    for (const [at, other] of dependsOn.entries()) {
      if (other === id) say(index, `dependsOn[${at}]`, `"${id}" depends on itself`)
      else if (!ids.has(other) && known?.get(other) === undefined) {
        say(index, `dependsOn[${at}]`, `there is no task "${other}"`)
      } else if (!ids.has(other) && known?.get(other) === false) {
        say(
          index,
          `dependsOn[${at}]`,
          `"${other}" cannot be a dependency: it failed, was cancelled, or belongs to an earlier plan`
        )
      }
    }
    yield LOOKED_AT * (1 + dependsOn.length)
    if (problems.length >= MAX_PROBLEMS) return problems
  }
  return problems
}

/** The ids of one cycle; undefined if there is none. Repeatedly removes tasks that depend on nothing. */
export const cycle = function* (
  tasks: ReadonlyArray<Pick<Task, "dependsOn" | "id">>
): Steps<ReadonlyArray<string> | undefined> {
  const place = new Map<string, number>()
  for (const [index, { id }] of tasks.entries()) {
    place.set(id, index)
    yield LOOKED_AT
  }
  // by index, because there can be millions of dependencies
  const missing = new Int32Array(tasks.length)
  const dependents: Array<Array<number> | undefined> = []
  for (const [index, { dependsOn }] of tasks.entries()) {
    for (const id of dependsOn) {
      const other = place.get(id)
      if (other === undefined) continue
      missing[index]!++
      const list = dependents[other]
      if (list === undefined) dependents[other] = [index]
      else list.push(index)
    }
    yield LOOKED_AT * (1 + dependsOn.length)
  }
  const open = [...tasks.keys()].filter((index) => missing[index] === 0)
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    const all = dependents[index] ?? []
    for (const other of all) if (--missing[other]! === 0) open.push(other)
    yield LOOKED_AT * (1 + all.length)
  }
  const first = missing.findIndex((left) => left > 0)
  if (first === -1) return undefined
  // Every remaining task depends on another remaining one, so following them must lead into a cycle.
  const path: Array<number> = []
  const seen = new Map<number, number>()
  for (
    let index = first;
    ;
    index = place.get(tasks[index]!.dependsOn.find((id) => missing[place.get(id) ?? -1]! > 0)!)!
  ) {
    const before = seen.get(index)
    if (before !== undefined) return path.slice(before).map((each) => tasks[each]!.id)
    seen.set(index, path.length)
    path.push(index)
  }
}

const cycleProblem = function* (tasks: ReadonlyArray<Task>): Steps<ReadonlyArray<Problem>> {
  const found = yield* cycle(tasks)
  if (found === undefined) return []
  const index = tasks.findIndex(({ id }) => id === found[0])
  const shown = found.length > 10 ? `${found.slice(0, 10).join(" → ")} → … (${found.length} tasks)` : found.join(" → ")
  return [{ field: `tasks[${index}].dependsOn`, message: `a cycle: ${shown} → ${found[0]}` }]
}

export const check = Effect.fnUntraced(function* (value: unknown, door: Door) {
  if (!isObject(value)) {
    return yield* one("", 'a plan is an object: { "tasks": [ … ] }')
  }
  const unknown = Object.keys(value).find((key) => key !== "tasks" && key !== "$schema")
  if (unknown !== undefined) return yield* one(unknown, 'is not a field of a plan; its field is "tasks"')
  const raw = (value as { readonly tasks?: unknown }).tasks
  if (!Array.isArray(raw)) return yield* one("tasks", "must be a list of tasks")
  if (raw.length > MAX_TASKS) {
    const message = `contains ${raw.length} tasks; at most ${MAX_TASKS} are allowed`
    return yield* refuse([{ field: "tasks", message }], "Split it into several goals.")
  }
  if (raw.length === 0 && door.known === undefined) return yield* one("tasks", "contains no task")
  const tasks = yield* inTurns(decoded(raw))
  if (tasks instanceof PlanRefused) return yield* tasks
  const problems = yield* inTurns(related(tasks, door))
  if (problems.length > 0) return yield* refuse(problems.slice(0, MAX_PROBLEMS))
  const cycles = yield* inTurns(cycleProblem(tasks))
  if (cycles.length > 0) return yield* refuse(cycles)
  return tasks
})

/** Parses JSON text, which may begin with a byte order mark. */
const parsed = (text: Uint8Array): Effect.Effect<unknown, PlanRefused> => {
  if (!isUtf8(text)) return Effect.fail(one("plan", "is not UTF-8"))
  return Effect.try({
    try: () => JSON.parse(new TextDecoder().decode(text)) as unknown,
    catch: (error) => one("plan", `is not JSON: ${cut((error as SyntaxError).message, 300)}`)
  })
}

export const parse = Effect.fnUntraced(function* (text: Uint8Array, door: Door) {
  if (text.length > MAX_PLAN_BYTES) {
    return yield* one("plan", `has ${text.length} bytes; at most ${MAX_PLAN_BYTES} are allowed`)
  }
  return yield* check(yield* parsed(text), door)
})

export class PlanUnread extends Schema.TaggedError<PlanUnread>()("PlanUnread", {
  reason: Schema.Literals(["Unreadable", "NoFile", "TooLong"]),
  message: Schema.String
}) {}

/** Reads a file of at most `most` bytes. */
export type Read = (path: string, most: number) => Effect.Effect<Uint8Array, PlanUnread>

/** Reads at most one byte more than allowed: a file can be longer than its size says, even endless. */
const readBounded = async (file: FileHandle, most: number): Promise<Uint8Array> => {
  const bytes = Buffer.alloc(most + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, length)
    length += bytesRead
    if (bytesRead === 0) return bytes.subarray(0, length)
  }
}

/** Reads a regular file; anything else is rejected. Opens it without blocking, because the path may be a pipe. */
const readFile: Read = (path, most) => {
  const reading = <A>(read: () => Promise<A>) =>
    Effect.tryPromise({
      try: read,
      catch: (error) => {
        const why = error instanceof Error ? error.message.split(",")[0] : String(error)
        return new PlanUnread({ reason: "Unreadable", message: `${path} cannot be read: ${why}` })
      }
    })
  return Effect.acquireUseRelease(
    reading(() => open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)),
    (file) =>
      Effect.gen(function* () {
        const info = yield* reading(() => file.stat())
        if (!info.isFile()) return yield* new PlanUnread({ reason: "NoFile", message: `${path} is not a regular file` })
        if (info.size > most) {
          const message = `${path} has ${info.size} bytes; at most ${most} are allowed`
          return yield* new PlanUnread({ reason: "TooLong", message })
        }
        return yield* reading(() => readBounded(file, most))
      }),
    (file) => Effect.ignore(reading(() => file.close()))
  )
}

/** Reads plan files. A simulation replaces this function. */
export const PlanSource = Context.Reference<Read>("agentd/goals/PlanSource", { defaultValue: () => readFile })

const UNREADABLE = "Check that it exists, and that the user that runs agentd can read it."

/** Reads and checks the plan file at `path`, which must be absolute. */
export const load = Effect.fn("PlanFile.load")(function* (path: string, door: Door) {
  if (!isAbsolute(path)) return yield* one("plan", `${path} is not an absolute path`)
  const read = yield* PlanSource
  const bytes = yield* Effect.mapError(read(path, MAX_PLAN_BYTES), ({ message, reason }) =>
    reason === "Unreadable" ? refuse([{ field: "plan", message }], UNREADABLE) : one("plan", message)
  )
  return yield* parse(bytes, door)
})
