/** DeclaredVerbs: all verbs that are declared, by the words that name them. A new one is a line here. */
import { alertTest } from "./AlertTest.ts"
import { answer, approve, deny } from "./Answer.ts"
import * as Channel from "./Channel.ts"
import * as Conversation from "./Conversation.ts"
import { pause, resume } from "./ConversationPause.ts"
import type { DeclaredVerb } from "./DeclaredVerb.ts"
import { forget } from "./Forget.ts"
import * as GoalLife from "./GoalLife.ts"
import * as GoalList from "./GoalList.ts"
import { interrupt } from "./Interrupt.ts"
import { log } from "./LogView.ts"
import { plates } from "./Plates.ts"
import { ps } from "./Ps.ts"
import { send } from "./Send.ts"
import { spawn } from "./Spawn.ts"
import { status } from "./Status.ts"
import { tree } from "./Tree.ts"
import { waiting } from "./Waits.ts"
import { why } from "./Why.ts"

const all: ReadonlyArray<DeclaredVerb> = [
  ps,
  status,
  why,
  tree,
  send,
  interrupt,
  spawn,
  log,
  alertTest,
  plates,
  waiting,
  approve,
  deny,
  answer,
  forget,
  Channel.ls,
  Channel.show,
  Channel.post,
  Channel.begin,
  Channel.assign,
  Channel.remove,
  Channel.order,
  Channel.grant,
  Channel.skip,
  Channel.requeue,
  Channel.pause,
  Channel.resume,
  Channel.close,
  Conversation.ls,
  Conversation.show,
  Conversation.begin,
  pause,
  resume,
  GoalList.ls,
  GoalList.show,
  GoalLife.approve,
  GoalLife.reject,
  GoalLife.plan,
  GoalLife.cancel,
  GoalLife.retry
]

export const declared: ReadonlyMap<string, DeclaredVerb> = new Map(all.map((verb) => [verb.path.join(" "), verb]))
