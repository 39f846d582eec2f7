/** `agentd spawn PARENT NAME TASK`: starts a sub-agent of a running agent, with its first task. */
import { act, option, send, word } from "../parse/DeclaredVerb.ts"

export const spawn = act({
  path: ["spawn"],
  description: "Give a running agent a sub-agent with a task; it ends with its parent",
  examples: [
    {
      command: 'agentd spawn builder tester "Run the tests and report"',
      description: "It is otherwise like its parent"
    }
  ],
  args: {
    parent: word("The running agent that it is a sub-agent of"),
    name: word("Its name in this project"),
    task: word("Its first message"),
    role: option("TEXT", "Its role, in a few words; default: its parent's"),
    instructions: option("TEXT", "Text added to each of its prompts; default: its parent's")
  },
  rpc: ({ instructions, name, parent, role, task }, caller) =>
    send("Spawn", {
      name: parent,
      request: {
        name,
        task,
        ...(role === undefined ? {} : { role }),
        ...(instructions === undefined ? {} : { instructions })
      },
      caller
    })
})
