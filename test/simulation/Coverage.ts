/**
 * Coverage: which moves of which machine the seeds have reached. A cell that no seed
 * ever reaches is a gap in the workload, and is named.
 */
import * as Agent from "../../src/agents/AgentMachine.ts"
import * as Conversation from "../../src/agents/ConversationMachine.ts"
import * as Tool from "../../src/agents/ToolMachine.ts"
import * as Turn from "../../src/agents/TurnMachine.ts"
import * as Worker from "../../src/agents/WorkerMachine.ts"
import type { AnyMachine } from "../../src/event-actor/StateMachine.ts"
import * as Cells from "../support/Cells.ts"

const machines: ReadonlyArray<readonly [actor: string, machine: AnyMachine]> = [
  ["worker", Worker.Worker],
  ["turn", Turn.Turn],
  ["tool", Tool.Tool],
  ["agent", Agent.Agent],
  ["conversation", Conversation.Conversation]
]

export const coverage = (reached: ReadonlyMap<string, number>) =>
  machines.map(([actor, machine]) => {
    const all = [...new Set(Cells.cellsOf(machine).map((cell) => `${actor}: ${cell}`))]
    const missing = all.filter((edge) => !reached.has(edge))
    return { actor, all: all.length, reached: all.length - missing.length, missing }
  })
