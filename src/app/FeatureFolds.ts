/**
 * FeatureFolds: the folds that the daemon's features compute over the log's streams. The log reads each stream once for
 * all folds, and each feature requests its own result.
 */
import * as Access from "../access/Access.ts"
import * as OpenNotices from "../alerts/OpenNotices.ts"
import * as Outbox from "../alerts/Outbox.ts"
import * as Agents from "../projects/Recovery.ts"
import * as Budgets from "../budgets/Recovery.ts"
import * as Channels from "../channels/Recovery.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as Goals from "../goals/GoalRegistry.ts"
import * as Plates from "../plates/Recovery.ts"
import * as Providers from "../providers/Recovery.ts"
import * as Schedules from "../schedules/ScheduleState.ts"

export const folds: ReadonlyArray<StreamFold<unknown>> = [
  Agents.project,
  Agents.archives,
  Channels.fold,
  Goals.fold,
  Schedules.fold,
  Plates.fold,
  Providers.fold,
  Budgets.fold,
  Outbox.fold,
  OpenNotices.fold,
  Access.fold
]
