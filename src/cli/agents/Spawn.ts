/** `agentd spawn PARENT NAME TASK`: starts a sub-agent of a running agent, with its first task. */
import { act, option, send, word } from "../parse/DeclaredVerb.ts"

export const spawn = act({
  path: ["spawn"],
  description: "Start a sub-agent of a running agent, with a task; the sub-agent ends with its parent",
  examples: [
    {
      command: 'agentd spawn builder tester "Run the tests and report"',
      description: "Start the sub-agent tester of builder, with the role and instructions of builder"
    }
  ],
  args: {
    parent: word("The running agent that becomes the parent"),
    name: word("Name of the sub-agent in this project"),
    task: word("Task of the sub-agent, as its first message"),
    role: option("TEXT", "Role of the sub-agent, in a few words; default: the parent's role"),
    instructions: option("TEXT", "Text added to each prompt of the sub-agent; default: the parent's instructions")
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
