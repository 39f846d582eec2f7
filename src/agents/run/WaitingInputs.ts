/**
 * WaitingInputs: the complete inputs of calls that wait for the user, exactly as the agent would execute them.
 *
 * Guarantees: An input is available while its call waits, even after a restart. It is in memory, and in a file that
 * only agentd's user can read (0600, in a folder of 0700). The file is deleted when the call is decided. It is used
 * only if its contents match the hash that it contains. Inputs are limited in number and size. A call whose input
 * cannot be stored can only be denied.
 */
import { ByteSize, Effect, FileSystem, Option, Schema } from "effect"
import { hashOf, MAX_INPUT } from "../../domain/CallHash.ts"
import { Redact } from "../../core/event-log/Redact.ts"

const WaitingInput = Schema.Struct({
  callId: Schema.String,
  conversation: Schema.String,
  agent: Schema.String,
  run: Schema.String,
  tool: Schema.String,
  folder: Schema.String,
  /** The input: any JSON value, not redacted. */
  input: Schema.Unknown,
  hash: Schema.String
})
export type WaitingInput = typeof WaitingInput.Type

const MAX_COUNT = 1_000
const MAX_BYTES = 64 * MAX_INPUT

/** The agent's name as part of the hash; no other agent with stored inputs has this name. */
const agentOf = ({ agent, conversation }: Pick<WaitingInput, "agent" | "conversation">): string =>
  `${conversation}/${agent}`

export type Unhashed = Omit<WaitingInput, "hash">

export const hashOfInput = (of: Unhashed): string | undefined =>
  hashOf({ agent: agentOf(of), run: of.run, call: of.callId, tool: of.tool, folder: of.folder, input: of.input })

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(WaitingInput))

interface Kept {
  readonly whole: WaitingInput
  readonly bytes: number
}

export class WaitingInputs {
  private readonly kept = new Map<string, Kept>()
  private bytes = 0
  private readonly files: FileSystem.FileSystem
  private readonly folder: string
  /** Masks registered secrets in a text. */
  readonly mask: (text: string) => string

  constructor(files: FileSystem.FileSystem, folder: string, mask: (json: string) => string) {
    this.files = files
    this.folder = folder
    this.mask = mask
  }

  /** The complete input as the user sees it: as JSON, with registered secrets masked. */
  shown({ input }: WaitingInput): string {
    return this.mask(JSON.stringify(input))
  }

  get(callId: string): WaitingInput | undefined {
    return this.kept.get(callId)?.whole
  }

  /** Ids of the agent's calls whose inputs are stored. */
  of(conversation: string, agent: string): ReadonlyArray<string> {
    return [...this.kept.values()].flatMap(({ whole }) =>
      whole.conversation === conversation && whole.agent === agent ? [whole.callId] : []
    )
  }

  private pathOf(callId: string): string {
    return `${this.folder}/${encodeURIComponent(callId)}.json`
  }

  private put(whole: WaitingInput, bytes: number): boolean {
    if (this.kept.has(whole.callId)) return false
    if (this.kept.size >= MAX_COUNT || this.bytes + bytes > MAX_BYTES) return false
    this.kept.set(whole.callId, { whole, bytes })
    this.bytes += bytes
    return true
  }

  /** Stores an input in memory, then on disk. If writing fails, the input is lost when this daemon ends. */
  keep(whole: WaitingInput): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.kept.has(whole.callId)) return Effect.void
      const text = JSON.stringify(whole)
      if (!this.put(whole, text.length))
        return Effect.logWarning(`${whole.callId} has an input that is too large to be stored: it can only be denied`)
      const path = this.pathOf(whole.callId)
      return this.files.makeDirectory(this.folder, { recursive: true, mode: 0o700 }).pipe(
        Effect.andThen(this.files.writeFileString(`${path}.part`, text, { mode: 0o600 })),
        Effect.andThen(this.files.rename(`${path}.part`, path)),
        Effect.catch((error) => Effect.logWarning(`${whole.callId}: its input is stored in memory only`, error))
      )
    })
  }

  drop(callId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const kept = this.kept.get(callId)
      if (kept === undefined) return Effect.void
      this.kept.delete(callId)
      this.bytes -= kept.bytes
      return Effect.ignore(this.files.remove(this.pathOf(callId), { force: true }))
    })
  }

  /** Loads the inputs that an earlier daemon stored, and deletes invalid files. */
  readonly restore: Effect.Effect<void> = Effect.suspend(() =>
    this.files.readDirectory(this.folder).pipe(
      Effect.orElseSucceed((): Array<string> => []),
      Effect.flatMap((names) => Effect.forEach(names, (name) => this.take(`${this.folder}/${name}`), { discard: true }))
    )
  )

  private take(path: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { size } = yield* this.files.stat(path)
      const text = size > ByteSize.bytes(2 * MAX_INPUT) ? "" : yield* this.files.readFileString(path)
      const whole = Option.getOrUndefined(decode(text))
      const isSound = whole !== undefined && path === this.pathOf(whole.callId) && hashOfInput(whole) === whole.hash
      if (!isSound || !this.put(whole, text.length)) yield* this.files.remove(path, { force: true })
    }).pipe(Effect.ignore)
  }
}

export const memory = (): WaitingInputs =>
  new WaitingInputs(
    FileSystem.makeNoop({
      makeDirectory: () => Effect.void,
      writeFileString: () => Effect.void,
      rename: () => Effect.void,
      remove: () => Effect.void
    }),
    "",
    (json) => json
  )

export const make = (folder: string) =>
  Effect.gen(function* () {
    const { values } = yield* Redact
    const inputs = new WaitingInputs(yield* FileSystem.FileSystem, folder, values)
    yield* inputs.restore
    return inputs
  })
