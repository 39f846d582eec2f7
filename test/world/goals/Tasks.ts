/** Tasks as tests write them. */
import type { GoalOptions, Task } from "../../../src/domain/GoalMessages.ts"

export const task = (id: string, more: Partial<Task> = {}): Task => ({
  id,
  title: `do ${id}`,
  description: "",
  dependsOn: [],
  priority: 0,
  owner: null,
  needs: [],
  timeout: null,
  ...more
})

export const options = (more: Partial<GoalOptions> = {}): GoalOptions => ({
  planner: null,
  critic: null,
  workers: null,
  checks: [],
  checkTimeout: 60_000,
  autoStart: true,
  rounds: 3,
  target: null,
  planTries: 3,
  maxTaskErrors: 3,
  maxErrors: 20,
  backoff: { base: 2_000, cap: 60_000, jitter: 0 },
  taskTimeout: 3_600_000,
  blockedTimeout: 86_400_000,
  ...more
})
