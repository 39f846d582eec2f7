/**
 * AcpAdoption: while the output of a resumed agent's process is read again, handles the agent's requests that an
 * earlier daemon has already answered.
 *
 * Guarantees: the events of each request are emitted as before. Nothing is asked, done or answered again.
 */
import type { RunEvent } from "../Backend.ts"
import type { AcpHistory, Note } from "./AcpHistory.ts"
import * as Messages from "./AcpMessages.ts"
import type { AcpUpdates, Asked } from "./AcpUpdates.ts"

type Reply = Extract<Note, { readonly say: "reply" }>

const DONE = "an earlier agentd did it"
const NOT_DONE = "an earlier agentd did not do it"

const NO_CALL = { asked: undefined, options: undefined }

/** A command that an earlier daemon started for the agent. */
export interface Left {
  readonly number: number
  readonly id: unknown
  readonly callId: string
  readonly request: typeof Messages.CreateTerminal.Type
  /** True if the agent was told that its command has begun. */
  readonly isTold: boolean
}

/** A call for which the agent requested an approval. */
interface Call {
  readonly callId: string
  /** The options of the permission request; undefined for an action that agentd performs itself. */
  readonly options: Messages.PermissionOptions | undefined
  /** The command that the call runs; undefined if the call runs none. */
  readonly request?: Left["request"] | undefined
}

export class AcpAdoption {
  private readonly history: AcpHistory
  private readonly updates: AcpUpdates
  private readonly calls = new Map<string, Call>()
  /** Answers that were found in the notes before the request itself was read again. */
  private readonly early = new Set<string>()
  private readonly left = new Map<number, Left>()

  constructor(history: AcpHistory, updates: AcpUpdates) {
    this.history = history
    this.updates = updates
  }

  /** Bytes of output that existed when the process was resumed. */
  get size(): number {
    return this.history.size
  }

  upTo(end: number): ReadonlyArray<Note> {
    return this.history.upTo(end)
  }

  /** Returns the events of a request that an earlier daemon handled; undefined if the request has no answer yet. */
  asked(id: unknown, method: string, params: unknown): (() => ReadonlyArray<RunEvent>) | undefined {
    const reply = this.history.replyTo(id)
    if (reply === undefined && !this.history.isBegun(id)) return undefined
    return () => {
      const { asked, ...more } = this.history.isUntold(id) ? NO_CALL : this.taken(id, method, params)
      if (asked === undefined) return this.updates.sign()
      this.calls.set(JSON.stringify(id), { callId: asked.callId, ...more })
      const isEarly = reply !== undefined && this.early.has(JSON.stringify(id))
      return isEarly ? [...asked.events, ...this.replied(reply)] : asked.events
    }
  }

  /** Whether the agent requested permission for the call in a request of its own. */
  isAsked(callId: string): boolean {
    return [...this.calls.values()].some((call) => call.callId === callId && call.options !== undefined)
  }

  private taken(
    id: unknown,
    method: string,
    params: unknown
  ): { readonly asked: Asked | undefined } & Pick<Call, "options" | "request"> {
    switch (method) {
      case "session/request_permission": {
        const request = Messages.read(Messages.PermissionRequest, params)
        return request === undefined
          ? { asked: undefined, options: undefined }
          : { asked: this.updates.ask(request.toolCall, id), options: request.options }
      }
      case "fs/read_text_file":
        return this.deed(method, Messages.read(Messages.ReadFile, params), true)
      case "fs/write_text_file":
        return this.deed(method, Messages.read(Messages.WriteFile, params), false)
      case "terminal/create": {
        const request = Messages.read(Messages.CreateTerminal, params)
        return { ...this.deed(method, request === undefined ? undefined : Messages.given(request), false), request }
      }
      default:
        return { asked: undefined, options: undefined }
    }
  }

  private deed(tool: string, request: unknown, readOnly: boolean) {
    const asked = request === undefined ? undefined : this.updates.deed({ tool, arguments: request, readOnly })
    return { asked, options: undefined }
  }

  askedAgain(id: unknown): ReadonlyArray<RunEvent> {
    const call = this.calls.get(JSON.stringify(id))
    const asked = call === undefined ? undefined : this.updates.askAgain(call.callId)
    if (call === undefined || asked === undefined) return []
    this.calls.set(JSON.stringify(id), { ...call, callId: asked.callId })
    return asked.events
  }

  replied({ done, id, option }: Reply): ReadonlyArray<RunEvent> {
    const call = this.calls.get(JSON.stringify(id))
    if (call === undefined) {
      this.early.add(JSON.stringify(id))
      return []
    }
    const { callId, options, request } = call
    // if a command was started, other notes cause the events of its start and result
    if (this.history.isBegun(id)) return done ? [] : this.updates.settled(callId, "error", NOT_DONE)
    if (request !== undefined) return this.updates.settled(callId, "denied", NOT_DONE)
    if (options === undefined) {
      const begun = this.updates.begun(callId)
      return [...begun, ...this.updates.settled(callId, done ? "success" : "error", done ? DONE : NOT_DONE)]
    }
    const chosen = options.find(({ optionId }) => optionId === option)
    if (chosen === undefined) return []
    return this.updates.answered(callId, chosen.kind?.startsWith("allow") === true)
  }

  /** The command that begins here; undefined if the request for it is unknown. */
  begins(id: unknown, number: number): Left | undefined {
    const call = this.calls.get(JSON.stringify(id))
    if (call?.request === undefined) return undefined
    const { callId, request } = call
    const left = { number, id, callId, request, isTold: this.history.replyTo(id) !== undefined }
    this.left.set(number, left)
    return left
  }

  callOf(number: number): string | undefined {
    return this.left.get(number)?.callId
  }
}
