/** `agentd access ls|new|revoke`: the access tokens of pages and programs that use the HTTP interface. */
import { act, declare, off, read, send, word } from "../parse/DeclaredVerb.ts"
import { age, plain, table } from "../render/Output.ts"

const HEAD = ["ID", "RIGHT", "LABEL", "SINCE", "BY"]

export const ls = declare({
  path: ["access", "ls"],
  description: "List the pages and programs with access over HTTP, each with its rights",
  examples: [{ command: "agentd access ls", description: "Made by agentd open and agentd access new" }],
  args: {},
  rpc: () => read("Accesses", null),
  view: (rows, world) =>
    rows.length === 0
      ? ["No page or program has access. Open the page: agentd open"]
      : table(
          HEAD,
          rows.map(({ by, id, label, right, since }) =>
            [plain(id), right, plain(label), `${age(Math.max(0, world.now - since))} ago`, plain(by)].map((text) => ({
              text
            }))
          ),
          world
        )
})

export const make = declare({
  path: ["access", "new"],
  description: "Make a token for a program; it is shown once",
  examples: [
    { command: "agentd access new dashboard", description: "It may read" },
    { command: "agentd access new ci --act", description: "It may do all that you may" }
  ],
  args: {
    label: word("Name of the program that uses it", { name: "LABEL" }),
    act: off("Allow the program to act, not only to read")
  },
  rpc: ({ act, label }, caller) => send("Grant", { right: act ? "act" : "view", label, caller }),
  view: ({ address, id }) => [
    `Token ${plain(id)}, shown this once; send it as "authorization: Bearer …" to ${plain(address)}/v1/VERB:`
  ],
  verbatim: ({ token }) => [plain(token)]
})

export const revoke = act({
  path: ["access", "revoke"],
  description: "Revoke a token: its connections end at once",
  examples: [{ command: "agentd access revoke 3kq9", description: "By its id or the beginning of it" }],
  args: { id: word("Its id or the beginning of it", { name: "ID" }) },
  rpc: ({ id }, caller) => send("Revoke", { name: id, caller })
})
