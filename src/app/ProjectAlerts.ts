/**
 * ProjectAlerts: provides the alerter with data of other features: who receives a project's mail, and which events led
 * to an alert. The config is read for each alert, so a config change takes effect at once.
 */
import { Effect, FileSystem, Layer } from "effect"
import { AlertContext } from "../alerts/AlertContext.ts"
import { Agents } from "../projects/service/Agents.ts"
import { explain } from "../projects/service/Explain.ts"
import { inWorld } from "../cli/parse/HintCommand.ts"
import type { UserConfig } from "../config/Config.ts"
import type * as ConfigFile from "../config/ConfigFile.ts"
import * as GoalHistory from "../goals/GoalHistory.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import * as NoticeDetails from "../alerts/NoticeDetails.ts"

/**
 * `own`: the user's config in force, for projects without a mail section. `world`: the state directory that commands
 * must name with `--state`; null for the default one.
 */
export const layer = (
  own: Effect.Effect<UserConfig, ConfigFile.ConfigError, FileSystem.FileSystem>,
  world: string | null = null
) =>
  Layer.effect(
    AlertContext,
    Effect.gen(function* () {
      const agents = yield* Agents
      const log = yield* EventLog
      const fileSystem = yield* FileSystem.FileSystem
      const user = Effect.provideService(own, FileSystem.FileSystem, fileSystem)
      const section = <K extends "mail" | "notify">(name: K) =>
        user.pipe(
          Effect.map((config) => config[name]),
          Effect.catch((error) =>
            Effect.as(Effect.logWarning(`no ${name} from the user's config: ${error.message}`), undefined)
          )
        )
      const ownMail = section("mail")
      const agentOf = (stream: string, actor: string) =>
        Effect.map(agents.all, (rows) =>
          rows.find((row) => row.conversation === stream && actor === `worker/${row.agent}`)
        )
      return AlertContext.of({
        mailFor: (stream) =>
          Effect.flatMap(agents.configOf(stream), (config) =>
            config?.mail === undefined ? ownMail : Effect.succeed(config.mail)
          ),
        notify: section("notify"),
        projectName: (stream) =>
          Effect.map(agents.projects, (projects) => projects.find(({ conversation }) => conversation === stream)?.name),
        facts: yield* NoticeDetails.make,
        typed: (text) => inWorld(text, world),
        why: ({ actor, cause, stream }) =>
          Effect.gen(function* () {
            const goal = yield* GoalHistory.story(log, { stream, actor, upTo: cause })
            if (goal.length > 0) return goal
            const agent = yield* agentOf(stream, actor)
            if (agent === undefined) return []
            return (yield* explain(agent)).lines
          }).pipe(
            Effect.provideService(Agents, agents),
            Effect.provideService(EventLog, log),
            // a mail without the preceding events is better than no mail
            Effect.catch((error) =>
              Effect.as(Effect.logWarning(`a mail is sent without the events before it: ${error.message}`), [])
            )
          )
      })
    })
  )
