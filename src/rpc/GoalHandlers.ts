/**
 * GoalHandlers: what each procedure on goals does.
 */
import { Effect } from "effect"
import { Goals } from "../goals/Goals.ts"
import { group } from "./GoalProtocol.ts"

export const layer = group.toLayer(
  Effect.map(Goals, (goals) =>
    group.of({
      GoalSubmit: ({ caller, request }) => goals.submit(request, caller),
      Goals: ({ all, caller }) => goals.list({ all }, caller),
      Goal: ({ caller, from, name }) => goals.page(name, Math.max(0, from), caller),
      GoalPlan: ({ caller, name, path }) => goals.plan(name, path, caller),
      GoalApprove: ({ caller, name }) => goals.approve(name, caller),
      GoalReject: ({ caller, name, reason }) => goals.reject(name, reason, caller),
      GoalCancel: ({ caller, name, reason }) => goals.cancel(name, reason, caller),
      GoalRetry: ({ caller, name, task }) => goals.retry(name, task, caller),
      GoalMerge: ({ all, caller, into, name, unreviewed }) => goals.merge(name, { into, unreviewed, all }, caller)
    })
  )
)
