/**
 * StateDiagram: generates the documentation of a state machine from its table: a Mermaid diagram, the transition table,
 * timeouts, enter activities and rune kinds.
 *
 * Transitions are grouped to keep the result readable. The diagram has one arrow for each pair of states. In the
 * tables, equal cells share one row. A branch list that many states share is drawn as a choice.
 */
import type { Payload } from "../event-log/Rune.ts"
import { type AnyMachine, branchesOf, type Cell, edges } from "./StateMachine.ts"

type AnyCell = Cell<string, string, string, string, string>
type Row = { readonly [event: string]: AnyCell }
type Table = { readonly [state: string]: Row }
type Edge = ReturnType<typeof edges>[number]

const tableOf = (machine: AnyMachine): Table => machine.table
const statesOf = (machine: AnyMachine): ReadonlyArray<string> => Object.keys(machine.table)

const group = <A>(items: Iterable<A>, key: (item: A) => string): ReadonlyArray<readonly [A, ...Array<A>]> => {
  const groups = new Map<string, [A, ...Array<A>]>()
  for (const item of items) {
    const name = key(item)
    const found = groups.get(name)
    if (found === undefined) groups.set(name, [item])
    else found.push(item)
  }
  return [...groups.values()]
}

const unique = (names: Iterable<string>): ReadonlyArray<string> => [...new Set(names)]

/** Minimum number of states that must share a branch list so that the diagram draws the list as a choice. */
const SHARED = 3

/** Returns the branch lists that several states of a machine share, each with its name in the diagram. */
const choicesOf = (machine: AnyMachine): ReadonlyMap<unknown, string> => {
  const users = new Map<unknown, Set<string>>()
  for (const [state, row] of Object.entries(tableOf(machine))) {
    for (const cell of Object.values(row)) {
      if (typeof cell === "string" || branchesOf(cell).length < 2) continue
      users.set(cell.then, (users.get(cell.then) ?? new Set()).add(state))
    }
  }
  const shared = [...users].filter(([, states]) => states.size >= SHARED)
  return new Map(shared.map(([then], index) => [then, index === 0 ? "settle" : `settle${index + 1}`]))
}

/**
 * Mermaid's symbol for the start and the end of a diagram. If a machine's initial state has this name, it is drawn as
 * the start, because Mermaid allows no brackets in names.
 */
const START = "[*]"
const MAX_LABEL = 4

const label = (events: ReadonlyArray<string>): string => {
  const names = unique(events)
  return names.length <= MAX_LABEL
    ? names.join(" / ")
    : `${names.slice(0, MAX_LABEL - 1).join(" / ")} / ${names.length - MAX_LABEL + 1} more`
}

export const mermaid = (machine: AnyMachine): string => {
  const choices = choicesOf(machine)
  const table = tableOf(machine)
  const drawn = (edge: Edge): boolean => {
    const cell = table[edge.from]![edge.event]!
    return typeof cell !== "string" && !choices.has(cell.then)
  }
  const arrows = group(edges(machine).filter(drawn), (edge) => `${edge.from} ${edge.to}`).map(
    (same) =>
      `    ${same[0].from} --> ${same[0].to} : ${label(same.map((edge) => edge.event + (edge.when === undefined ? "" : ` [${edge.when}]`)))}`
  )
  const forks = [...choices].flatMap(([then, name]) => {
    const users = statesOf(machine).flatMap((state) => {
      const events = Object.entries(table[state]!).flatMap(([event, cell]) =>
        typeof cell !== "string" && cell.then === then ? [event] : []
      )
      return events.length === 0 ? [] : [`    ${state} --> ${name} : ${label(events)}`]
    })
    const targets = branchesOf({ then } as AnyCell).map(
      (branch) => `    ${name} --> ${branch.to} : ${branch.when ?? "otherwise"}`
    )
    return [`    state ${name} <<choice>>`, ...users, ...targets]
  })
  const start = machine.initial === START ? [] : [`    ${START} --> ${machine.initial}`]
  const ends = (machine.final as ReadonlyArray<string>).map((state) => `    ${state} --> ${START}`)
  return ["```mermaid", "stateDiagram-v2", ...start, ...arrows, ...forks, ...ends, "```"].join("\n")
}

const code = (names: ReadonlyArray<string>): string => names.map((name) => `\`${name}\``).join(", ")

/** Lists states by name. If almost all states are meant, writes "every state except" and lists the few others. */
const named = (states: ReadonlyArray<string>, all: ReadonlyArray<string>): string => {
  if (states.length === all.length) return "every state"
  const others = all.filter((state) => !states.includes(state))
  return states.length > 3 && others.length <= 2 ? `every state except ${code(others)}` : code(states)
}

/** Returns a Markdown table with aligned columns, as the formatter writes it. */
export const markdown = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = head.map((title, column) => Math.max(3, title.length, ...rows.map((cells) => cells[column]!.length)))
  const line = (cells: ReadonlyArray<string>) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n")
}

interface Use {
  readonly state: string
  readonly event: string
  readonly cell: AnyCell
}

const usesOf = (machine: AnyMachine): ReadonlyArray<Use> =>
  Object.entries(tableOf(machine)).flatMap(([state, row]) =>
    Object.entries(row).map(([event, cell]) => ({ state, event, cell }))
  )

/** Groups equal cells by their events and states. Events that are accepted in the same states share a row. */
const rowsOf = (uses: ReadonlyArray<Use>) =>
  group(uses, (use) => JSON.stringify(use.cell)).flatMap((alike) => {
    const byEvent = group(alike, (use) => use.event)
    return group(byEvent, (same) => same.map((use) => use.state).join(" ")).map((events) => ({
      cell: alike[0].cell,
      events: events.map((same) => same[0].event),
      states: events[0].map((use) => use.state)
    }))
  })

const targetsOf = (machine: AnyMachine, cell: AnyCell): ReadonlyArray<ReadonlyArray<string>> =>
  branchesOf(cell).map((branch, index) => [
    branch.when ?? (index === 0 ? "" : "otherwise"),
    `\`${branch.to}\`${branch.reenter === true ? " (entered again)" : ""}`,
    (branch.act ?? []).join(", "),
    `\`${branch.rune ?? machine.rune}\``
  ])

/** Equal cells share a row, and each branch is a line. Branch lists that states share have tables of their own. */
export const transitions = (machine: AnyMachine): string => {
  const all = statesOf(machine)
  const choices = choicesOf(machine)
  const rows = rowsOf(usesOf(machine)).flatMap(({ cell, events, states }) => {
    if (typeof cell === "string") return []
    const choice = choices.get(cell.then)
    const targets = choice === undefined ? targetsOf(machine, cell) : [["", `_${choice}_`, "", ""]]
    return targets.map(([when, target, act, rune], index) =>
      [
        ...(index === 0 ? [named(states, all), code(events)] : ["", ""]),
        when,
        target,
        index === 0 ? (cell.set ?? "") : "",
        act,
        rune
      ].map((text) => text ?? "")
    )
  })
  const shared = [...choices].map(
    ([then, name]) =>
      `Targets of _${name}_:\n\n${markdown(["When", "To", "Actions", "Rune"], targetsOf(machine, { then } as AnyCell))}`
  )
  return [markdown(["From", "Event", "When", "To", "Data", "Actions", "Rune"], rows), ...shared].join("\n\n")
}

export const refusals = (machine: AnyMachine): string => {
  const all = statesOf(machine)
  const refused = usesOf(machine).filter((use) => typeof use.cell === "string")
  const rows = group(refused, (use) => `${use.state} ${String(use.cell)}`).map((same) => ({
    state: same[0].state,
    why: same[0].cell,
    events: same.map((use) => use.event)
  }))
  const merged = group(rows, (row) => `${String(row.why)} ${row.events.join(" ")}`)
  return markdown(
    ["State", "Refused as", "Events"],
    merged.map((same) => [
      named(
        same.map((row) => row.state),
        all
      ),
      String(same[0].why),
      most(same[0].events, Object.keys(tableOf(machine)[same[0].state]!))
    ])
  )
}

/** Lists events by name. If most events are meant, writes "every event except" and lists the others. */
const most = (events: ReadonlyArray<string>, all: ReadonlyArray<string>): string => {
  const others = all.filter((event) => !events.includes(event))
  if (others.length === 0) return "every event"
  return others.length < events.length / 2 ? `every event except ${code(others)}` : code(events)
}

/** Lists the default timeouts of the states, computed from the machine's initial data. */
const timeouts = (machine: AnyMachine, initial: unknown): string | undefined => {
  const rows = Object.entries(machine.states).flatMap(([state, spec]) => {
    if (spec.timeout === undefined) return []
    const timer = machine.timers[spec.timeout]!
    return [[`\`${state}\``, spec.timeout, duration(timer.after(initial, 0)), `\`${timer.fires(initial)._tag}\``]]
  })
  return rows.length === 0 ? undefined : markdown(["State", "Timeout", "Default", "Event"], rows)
}

const duration = (millis: number): string => (millis === Infinity ? "none" : `${millis / 1000} s`)

const activities = (machine: AnyMachine): string | undefined => {
  const rows = Object.entries(machine.states).flatMap(([state, spec]) =>
    spec.enter === undefined ? [] : [[`\`${state}\``, spec.enter]]
  )
  return rows.length === 0 ? undefined : markdown(["State", "Enter activity"], rows)
}

/** Lists the states that the machine leaves immediately: the rune that enters such a state also leaves it. */
const passing = (machine: AnyMachine, initial: unknown): string | undefined => {
  const states = Object.entries(machine.passing ?? {}) as ReadonlyArray<
    [string, ((data: unknown) => { readonly _tag: string }) | undefined]
  >
  const rows = states.flatMap(([state, by]) => (by === undefined ? [] : [[`\`${state}\``, `\`${by(initial)._tag}\``]]))
  return rows.length === 0
    ? undefined
    : markdown(["State left immediately", "Event that leaves it, in the same rune"], rows)
}

/**
 * Lists the payload fields of each rune kind. The list is found by computing the payload from the machine's initial
 * data, for each event that writes a rune of this kind.
 */
const kindsOf = (machine: AnyMachine, kinds: ReadonlyArray<string>, initial: unknown): string => {
  const all = edges(machine)
  return markdown(
    ["Rune kind", "Fields in addition to the event"],
    kinds.map((kind) => {
      const fields: ((data: unknown, event: unknown) => Payload) | undefined = machine.fields[kind]
      const events = unique(all.filter((edge) => (edge.rune ?? machine.rune) === kind).map((edge) => edge.event))
      const names = unique(
        events.flatMap((event) => (fields === undefined ? [] : Object.keys(fields(initial, { _tag: event }))))
      )
      return [`\`${kind}\``, code(names)]
    })
  )
}

export interface Described {
  readonly machine: AnyMachine
  /** A paragraph that describes the purpose and the guarantees of the machine. */
  readonly about: string
  readonly kinds: ReadonlyArray<string>
  readonly initial: unknown
}

export const chapter = ({ about, initial, kinds, machine }: Described): string =>
  [
    `## ${machine.name.charAt(0).toUpperCase()}${machine.name.slice(1)}`,
    about,
    mermaid(machine),
    transitions(machine),
    timeouts(machine, initial),
    activities(machine),
    passing(machine, initial),
    kindsOf(machine, kinds, initial),
    `<details><summary>Refused events</summary>\n\n${refusals(machine)}\n\n</details>`
  ]
    .filter((part) => part !== undefined)
    .join("\n\n")
