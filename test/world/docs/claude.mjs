/**
 * Stands for Claude Code in the documents: what it is asked there it does by a script of a few lines, and the fake of
 * test/fixtures speaks the protocol. A message that tells what to do (`do: [...]`) is left as it is.
 */
import { Transform } from "node:stream"

const PLAN = {
  tasks: [
    { id: "greeting", title: "Write the greeting" },
    { id: "test", title: "Test it", dependsOn: ["greeting"] }
  ]
}
const commit = (id) => `echo ${id} >> ${id}.txt && git add ${id}.txt && git commit -qm 'Add ${id}.txt'`

/** Each: what an input holds, and the steps that it leads to. */
const SCRIPT = [
  [/^Make a plan for this goal:/m, () => [{ say: `\`\`\`json\n${JSON.stringify(PLAN)}\n\`\`\`` }]],
  [/^Task ([\w-]+): /m, ([, id]) => [{ run: commit(id) }, { say: `I wrote ${id}.txt and read it back.` }]],
  [/^Say hello\.$/m, () => [{ say: "Hello." }]],
  [/^\W*Ask me before/m, () => [{ ask: "rm -rf build" }, { say: "The old build is gone." }]],
  [/^\W*Which database/m, () => [{ tool: ["AskUserQuestion", QUESTION] }]]
]
const QUESTION = {
  questions: [
    {
      question: "Which database?",
      header: "Database",
      multiSelect: false,
      options: [
        { label: "SQLite", description: "a file" },
        { label: "PostgreSQL", description: "a server" }
      ]
    }
  ]
}

/** A line as the fake is to read it; null: it is answered. */
const scripted = (line) => {
  const record = JSON.parse(line)
  if (record.request?.subtype === "set_permission_mode") {
    const response = { subtype: "success", request_id: record.request_id }
    process.stdout.write(`${JSON.stringify({ type: "control_response", response })}\n`)
    return null
  }
  const content = record.message?.content?.[0]
  if (record.type !== "user" || /^do/m.test(content.text)) return line
  for (const [holds, steps] of SCRIPT) {
    const found = holds.exec(content.text)
    if (found === null) continue
    content.text += `\ndo: ${JSON.stringify(steps(found))}`
    return JSON.stringify(record)
  }
  return line
}

let rest = ""
const input = new Transform({
  transform(chunk, _encoding, done) {
    const lines = (rest + chunk).split("\n")
    rest = lines.pop()
    done(
      null,
      lines
        .map(scripted)
        .filter((line) => line !== null)
        .map((line) => `${line}\n`)
        .join("")
    )
  }
})
const { stdin } = process
Object.defineProperty(process, "stdin", { value: stdin.pipe(input) })
await import("../../fixtures/claude/fake.mjs")
