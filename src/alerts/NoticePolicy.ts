/**
 * NoticePolicy: which runes channels tell, and in which words: from a rune to a notice or nothing. Pure.
 */
import type { Rune } from "../event-log/Rune.ts"
import { type Alert, alertOf, kinds as mailed } from "./AlertPolicy.ts"
import * as Notice from "./Notice.ts"

export const kinds: ReadonlyArray<string> = mailed

/** Facts beside those that the rune says. */
export interface Facts {
  /** How commands name its project. */
  readonly project: string
}

const noticeOf = (alert: Alert, { project }: Facts): Notice.Notice | undefined => {
  switch (alert.kind) {
    case "agent.stopped":
      return Notice.of({
        kind: "failed",
        title: `${project}/${alert.name} stopped for good`,
        body: alert.reason,
        command: `agentd start ${project}/${alert.name}`,
        urgency: "soon",
        about: `agent:${alert.stream}/${alert.name}`,
        project
      })
    default:
      return undefined
  }
}

/** The alert that a rune is for channels, once its facts are known; undefined: none, whatever they are. */
export const noticed = (rune: Rune): ((facts: Facts) => Alert | undefined) | undefined => {
  const alert = alertOf(rune)
  if (alert === undefined) return undefined
  return (facts) => {
    const notice = noticeOf(alert, facts)
    return notice === undefined ? undefined : { ...alert, notice }
  }
}
