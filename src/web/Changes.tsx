/**
 * Changes: shows what an agent has changed in its folder, as a diff. A user can comment on its lines.
 *
 * Guarantees: comments are sent to the agent as one message, each with its file, its line number and the line. A
 * comment that has not been sent is kept while the page is open.
 */
import { signal } from "@preact/signals"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { DiffInfo } from "../domain/DiffMessages.ts"
import { act } from "./PageActions.ts"
import { type Comment, type FilePatch, filesOf, type Line, messageOf } from "./FilePatch.ts"
import { useKeys } from "./KeyMap.ts"
import { useAnswer } from "./VerbQuery.ts"
import { mayAct } from "./BoardStore.ts"
import { Empty, Failed, Kbd, Loading } from "./Ui.tsx"

/** Unsent comments by the agent's name, then by file and line. */
const drafts = signal<{ readonly [name: string]: { readonly [place: string]: Comment } }>({})
const placeOf = (path: string, { number, sign }: Line): string => `${path}:${sign === "-" ? "-" : ""}${number}`
const put = (name: string, place: string, comment: Comment | undefined) => {
  const { [place]: _, ...rest } = drafts.peek()[name] ?? {}
  drafts.value = { ...drafts.peek(), [name]: comment === undefined ? rest : { ...rest, [place]: comment } }
}

interface EditorProps {
  readonly draft: string
  readonly done: (text: string | undefined) => void
}
const Editor = ({ done, draft }: EditorProps) => {
  const box = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => box.current?.focus(), [])
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault()
        done(box.current?.value.trim() ?? "")
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation()
          done(undefined)
        } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
          event.preventDefault()
          done(box.current?.value.trim() ?? "")
        }
      }}
    >
      <textarea ref={box} rows={2} defaultValue={draft} placeholder="A comment on this line …" aria-label="Comment" />
      <button class="btn small-btn">
        Keep<Kbd>↵</Kbd>
      </button>
    </form>
  )
}

interface FileProps {
  readonly file: FilePatch
  readonly name: string
  /** File and line of the comment that is being edited; undefined if none is. */
  readonly at: string | undefined
  readonly open: (place: string | undefined) => void
  readonly cursor: string | undefined
}
const SIGN = { "+": "add", "-": "del", " ": "", "@": "hunk" } as const

const LineRow = ({ at, cursor, file: { path }, line, name, open }: FileProps & { readonly line: Line }) => {
  const place = placeOf(path, line)
  const comment = drafts.value[name]?.[place]
  const isOn = cursor === place
  const row = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (isOn) row.current?.scrollIntoView({ block: "nearest" })
  }, [isOn])
  if (line.sign === "@") return <div class="code hunk">… {line.text}</div>
  return (
    <>
      <div
        ref={row}
        class={`code ${SIGN[line.sign]}${isOn ? " on" : ""}`}
        onClick={() => mayAct.peek() && getSelection()?.isCollapsed !== false && open(place)}
      >
        <span class="ln">{line.number}</span>
        <span class="sign">{line.sign}</span>
        <code>{line.text === "" ? " " : line.text}</code>
      </div>
      {at === place ? (
        <Editor
          draft={comment?.text ?? ""}
          done={(text) => {
            if (text !== undefined) put(name, place, text === "" ? undefined : { path, line, text })
            open(undefined)
          }}
        />
      ) : (
        comment !== undefined && (
          <button type="button" class="comment kept told" onClick={() => open(place)}>
            {comment.text}
          </button>
        )
      )}
    </>
  )
}

/** Maximum number of lines of a file for which the file is unfolded at first. */
const MAX_OPEN = 600

const FileView = (props: FileProps) => {
  const { lines, path } = props.file
  return (
    <details class="file" open={lines.length <= MAX_OPEN}>
      <summary>
        <b class="clip">{path}</b>
        <span class="num small">
          <span class="c-good">+{lines.filter(({ sign }) => sign === "+").length}</span>{" "}
          <span class="c-failed">−{lines.filter(({ sign }) => sign === "-").length}</span>
        </span>
      </summary>
      <div class="lines" tabIndex={0} role="region" aria-label={`Changes of ${path}`}>
        {lines.length === 0 && <p class="muted small none">no text, or only its mode has changed</p>}
        {lines.map((line, n) => (
          <LineRow key={n} {...props} line={line} />
        ))}
      </div>
    </details>
  )
}

const Bar = ({ name }: { readonly name: string }) => {
  const comments = Object.values(drafts.value[name] ?? {})
  if (comments.length === 0) return null
  const send = async () => {
    if (await act("Send", { name, text: messageOf(comments), how: "queue" }))
      drafts.value = { ...drafts.peek(), [name]: {} }
  }
  return (
    <div class="comments-bar">
      <span class="grow">
        {comments.length} {comments.length === 1 ? "comment" : "comments"}
      </span>
      <button type="button" class="btn primary" onClick={() => void send()}>
        Send as one message
      </button>
    </div>
  )
}

/** The view of an agent's changes. `when`: a value that changes when the agent might have changed a file. */
export const Changes = ({ name, when }: { readonly name: string; readonly when: unknown }) => {
  const { problem, value } = useAnswer<DiffInfo>("Diff", { name }, when)
  const [at, setAt] = useState<string | undefined>(undefined)
  const [cursor, setCursor] = useState<string | undefined>(undefined)
  const files = value === undefined ? [] : filesOf(value.patch)
  const places = files.flatMap(({ lines, path }) =>
    lines.filter(({ sign }) => sign !== "@").map((line) => placeOf(path, line))
  )
  useKeys(({ is }) => {
    if (is === "down" || is === "up") {
      const from = cursor === undefined ? -1 : places.indexOf(cursor)
      setCursor(places[Math.max(0, Math.min(places.length - 1, from + (is === "down" ? 1 : -1)))])
    } else if (is === "open" && cursor !== undefined && mayAct.peek()) setAt(cursor)
    else return false
    return true
  })
  if (value === undefined) return problem === undefined ? <Loading /> : <Failed problem={problem} />
  if (files.length === 0)
    return (
      <Empty title="Nothing is changed">
        <p>
          Against <code>{value.base.slice(0, 12)}</code> in <code>{value.folder}</code>
        </p>
      </Empty>
    )
  return (
    <div class="changes">
      <div class="scroll changes-in" tabIndex={0} role="region" aria-label="Changes">
        <p class="muted small">
          {value.files.length} {value.files.length === 1 ? "file" : "files"} against{" "}
          <code>{value.base.slice(0, 12)}</code>
          {mayAct.value && ". To comment on a line, click it, or go to it with j k and press ↵."}
          {value.isCut && " The patch is longer than what is shown."}
        </p>
        {files.map((file) => (
          <FileView key={file.path} file={file} name={name} at={at} open={setAt} cursor={cursor} />
        ))}
      </div>
      <Bar name={name} />
    </div>
  )
}
