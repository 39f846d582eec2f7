/**
 * `agentd access ls|new|revoke`: lists, creates and revokes access for pages and programs that use the HTTP interface.
 */
import { act, declare, off, read, send, word } from "../parse/DeclaredVerb.ts"
import { age, plain, table } from "../render/Output.ts"

const HEAD = ["ID", "RIGHT", "LABEL", "SINCE", "BY"]

export const ls = declare({
  path: ["access", "ls"],
  description: "List the pages and programs with access over HTTP, each with its rights",
  examples: [
    { command: "agentd access ls", description: "List all access that agentd open and agentd access new have granted" }
  ],
  args: {},
  rpc: () => read("Accesses", null),
  view: (rows, world) =>
    rows.length === 0
      ? ["No page and no program has access. Open the web page: agentd open"]
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
  description: "Create an access token for a program; the token is shown only once",
  examples: [
    { command: "agentd access new dashboard", description: "Create a token that can only read" },
    { command: "agentd access new ci --act", description: "Create a token that can do everything that you can" }
  ],
  args: {
    label: word("Name of the program that uses the token", { name: "LABEL" }),
    act: off("Allow the program to act as well as to read")
  },
  rpc: ({ act, label }, caller) => send("Grant", { right: act ? "act" : "view", label, caller }),
  view: ({ address, id }) => [
    `Token ${plain(id)}, shown only this time. Send it as "authorization: Bearer …" to ${plain(address)}/v1/VERB:`
  ],
  verbatim: ({ token }) => [plain(token)]
})

export const revoke = act({
  path: ["access", "revoke"],
  description: "Revoke a token; connections that use it end at once",
  examples: [{ command: "agentd access revoke 3kq9", description: "Revoke the token whose id begins with 3kq9" }],
  args: { id: word("The token's id, or the first characters of the id", { name: "ID" }) },
  rpc: ({ id }, caller) => send("Revoke", { name: id, caller })
})
