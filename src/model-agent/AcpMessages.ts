/**
 * AcpMessages: the events of the engine as messages of the Agent Client Protocol, and prompts as inputs of the engine.
 * Pure.
 *
 * Guarantees: what the protocol has no word for is in `_meta` under agentd's key (AgentdMeta), so that another client
 * understands the rest.
 */
import type {
  ContentBlock,
  McpServer,
  PromptResponse,
  SessionUpdate,
  ToolCallContent,
  ToolKind
} from "@agentclientprotocol/sdk"
import { MEDIA_TYPES } from "../runs/AttachedFile.ts"
import type { Happening, GivenServer, RunEvent } from "../runs/Backend.ts"
import { type AgentdMeta, type Fault, KEY } from "../runs/acp/AgentdMeta.ts"
import type { TurnEnd } from "./ModelOutcome.ts"
import type { ModelInput } from "./ModelTurn.ts"
import type { FilePart, Message } from "./Provider.ts"

type Event<Tag extends Happening["_tag"]> = Extract<Happening, { readonly _tag: Tag }>

const metaOf = (meta: AgentdMeta) => ({ _meta: { [KEY]: meta } })

/** An update that only agentd reads. */
const aside = (meta: AgentdMeta): SessionUpdate => ({ sessionUpdate: "session_info_update", ...metaOf(meta) })

const KINDS: { readonly [tool: string]: ToolKind } = {
  shell: "execute",
  read: "read",
  list: "read",
  write: "edit",
  edit: "edit",
  search: "search"
}

export const toolCall = (
  { arguments: rawInput, callId, readOnly, tool, voice }: Event<"ToolCall">,
  asks: Event<"ApprovalRequested"> | undefined
): SessionUpdate => ({
  sessionUpdate: "tool_call",
  toolCallId: callId,
  title: tool,
  kind: KINDS[tool] ?? "other",
  // the call is complete: agentd holds back a call that is pending
  status: "in_progress",
  rawInput,
  ...metaOf({
    call: {
      tool,
      readOnly,
      ...(voice === true ? { voice } : {}),
      ...(asks === undefined ? {} : { reason: asks.reason, always: asks.always === true })
    }
  })
})

const content = (text: string): { content?: Array<ToolCallContent> } =>
  text === "" ? {} : { content: [{ type: "content", content: { type: "text", text } }] }

const result = ({ callId, output, status }: Event<"ToolResult">): SessionUpdate => ({
  sessionUpdate: "tool_call_update",
  toolCallId: callId,
  status: status === "success" ? "completed" : "failed",
  ...content(typeof output === "string" ? output : JSON.stringify(output)),
  ...metaOf({ status })
})

export const usageOf = (events: ReadonlyArray<RunEvent>): Pick<AgentdMeta, "usage"> => {
  const usage = events.flatMap((event) => {
    if (event._tag !== "Usage") return []
    const { _tag, place: _place, usd, ...rest } = event
    return [{ ...rest, ...(usd === undefined ? {} : { usd }) }]
  })
  return usage.length === 0 ? {} : { usage }
}

/** The update for an event of a turn; undefined for an event that is no update. `message`: number of the answer. */
export const updateOf = (event: RunEvent, message: number): SessionUpdate | undefined => {
  switch (event._tag) {
    case "TurnStarted":
      return aside({ begun: true })
    case "Delta": {
      const sessionUpdate = event.stream === "thinking" ? "agent_thought_chunk" : "agent_message_chunk"
      return { sessionUpdate, messageId: `${message}`, content: { type: "text", text: event.text } }
    }
    case "ToolStarted":
      return { sessionUpdate: "tool_call_update", toolCallId: event.callId, ...metaOf({ started: true }) }
    case "ToolProgress": {
      const { callId, chunk, stream } = event
      return { sessionUpdate: "tool_call_update", toolCallId: callId, ...metaOf({ progress: { stream, chunk } }) }
    }
    case "ToolResult":
      return result(event)
    case "Usage":
      return aside(usageOf([event]))
    case "Windows": {
      const { _tag, place: _place, ...windows } = event
      return aside({ windows })
    }
    case "Compacted": {
      const { _tag, place: _place, ...compacted } = event
      return aside({ compacted })
    }
    case "Notice": {
      const { _tag, place: _place, ...notice } = event
      return aside({ notice })
    }
    default:
      return undefined
  }
}

type Failed = Extract<TurnEnd, { readonly _tag: "Failed" }>

/** The error of a turn. `now`: ms since the epoch. */
export const faultOf = ({ errorType, fatal, message, outcome, retry }: Failed, now: number): Fault => {
  const until = outcome._tag === "Uncounted" ? outcome.until : undefined
  return {
    class: errorType,
    message,
    retry,
    goesOn: !fatal,
    outcome,
    ...(until === undefined ? {} : { retryAfter: Math.max(0, until - now) })
  }
}

/** The answer to a prompt whose turn has not failed. `owed`: usage that comes together with the turn's end. */
export const answerOf = (
  end: Exclude<TurnEnd, { readonly _tag: "Failed" }>,
  owed: ReadonlyArray<RunEvent>
): PromptResponse => ({
  stopReason: end._tag === "Completed" ? "end_turn" : "cancelled",
  ...metaOf({ ...usageOf(owed), output: end.output })
})

const fileOf = (data: string, mimeType: string | null | undefined, uri: string | null | undefined) => {
  const type = MEDIA_TYPES.find((one) => one === mimeType)
  const name = decodeURIComponent((uri ?? "").slice((uri ?? "").lastIndexOf("/") + 1))
  return type === undefined ? [] : [{ filename: name === "" ? "file" : name, type, data } satisfies FilePart]
}

/** The files and the text of a prompt. A link is text, because the model can open the file with its tools. */
export const inputOf = (turnId: string, prompt: ReadonlyArray<ContentBlock>): ModelInput => {
  const attached: Array<FilePart> = []
  const text = prompt.map((block): string => {
    switch (block.type) {
      case "text":
        return block.text
      case "image":
        attached.push(...fileOf(block.data, block.mimeType, block.uri))
        return ""
      case "resource": {
        const { resource } = block
        if ("text" in resource) return resource.text
        attached.push(...fileOf(resource.blob, resource.mimeType, resource.uri))
        return ""
      }
      case "resource_link":
        return block.uri
      default:
        return `[${block.type}: not shown]`
    }
  })
  return { turnId, text: text.filter((one) => one !== "").join("\n"), ...(attached.length === 0 ? {} : { attached }) }
}

/** The servers that a client gives a session. Only those that are programs are announced as supported. */
export const serversOf = (servers: ReadonlyArray<McpServer>): { readonly [name: string]: GivenServer } =>
  Object.fromEntries(
    servers.flatMap((server) =>
      "command" in server
        ? [
            [
              server.name,
              {
                argv: [server.command, ...server.args],
                env: Object.fromEntries(server.env.map(({ name, value }) => [name, value]))
              }
            ]
          ]
        : []
    )
  )

/** A conversation as the updates that show it again. */
export const replayOf = (history: ReadonlyArray<Message>): ReadonlyArray<SessionUpdate> =>
  history.flatMap((message, at): ReadonlyArray<SessionUpdate> => {
    const text = (sessionUpdate: "user_message_chunk" | "agent_message_chunk", words: string): SessionUpdate => ({
      sessionUpdate,
      messageId: `old-${at}`,
      content: { type: "text", text: words }
    })
    switch (message.role) {
      case "user":
        return message.note === true ? [] : [text("user_message_chunk", message.text)]
      case "assistant":
        return message.parts.flatMap((part): ReadonlyArray<SessionUpdate> => {
          if (part.type === "text") return [text("agent_message_chunk", part.text)]
          if (part.type !== "call") return []
          const { id: toolCallId, input: rawInput, name: title } = part
          return [
            {
              sessionUpdate: "tool_call",
              toolCallId,
              title,
              kind: KINDS[title] ?? "other",
              status: "pending",
              rawInput
            }
          ]
        })
      case "tool":
        return message.results.map(({ callId, error, output }) => ({
          sessionUpdate: "tool_call_update",
          toolCallId: callId,
          status: error ? "failed" : "completed",
          ...content(output)
        }))
    }
  })
