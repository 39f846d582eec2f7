/** Tests of docs/protocol.md: each of its examples is asked of a real daemon, and answered as it says there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import * as Client from "../../../src/client/Client.ts"
import { OLDEST_PROTOCOL, PROTOCOL } from "../../../src/api/rpc/Version.ts"
import * as Sandbox from "../../support/Sandbox.ts"

const page = readFileSync(join(import.meta.dirname, "../../../docs/protocol.md"), "utf8")
const blocks = (kind: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${kind}\n([^]*?)^\`\`\``, "gm"))].map(([, text]) => text!)

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** Holds an answer against what the page shows of it: numbers differ, `…` stands for anything, more may be there. */
const shows = (shown: unknown, is: unknown, at: string): void => {
  if (typeof shown === "string") {
    assert.match(String(is), new RegExp(`^${escaped(shown).replaceAll("…", "[^]*")}$`), at)
  } else if (typeof shown === "object" && shown !== null) {
    assert.strictEqual(Array.isArray(is), Array.isArray(shown), at)
    for (const [key, value] of Object.entries(shown))
      shows(value, (is as Record<string, unknown> | undefined)?.[key], `${at}.${key}`)
  } else assert.strictEqual(is === null ? "null" : typeof is, shown === null ? "null" : typeof shown, at)
}

/** Speaks with a connection of its own, a line at a time. */
const spoken = (socket: string, lines: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const connection = connect(socket)
    let rest = ""
    const frames: Array<unknown> = []
    const heard: Array<() => void> = []
    connection.setEncoding("utf8").on("data", (text: string) => {
      const parts = (rest + text).split("\n")
      rest = parts.pop()!
      frames.push(...parts.map((part) => JSON.parse(part) as unknown))
      heard.shift()?.()
    })
    const next = async (): Promise<unknown> => {
      while (frames.length === 0) await new Promise<void>((resolve) => heard.push(resolve))
      return frames.shift()
    }
    for (const line of lines) {
      if (line.startsWith("→ ")) connection.write(`${line.slice(2)}\n`)
      else shows(JSON.parse(line.slice(2)), await next(), line)
    }
    connection.destroy()
  })

/** The first text of a stream that has what is waited for, or all of an answer. */
const bodyOf = async (response: Response, isStream: boolean): Promise<string> => {
  if (!isStream) return response.text()
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let all = ""
  while (!/\ndata: .*\n\n/.test(all)) {
    const { done, value } = await reader.read()
    if (done) break
    all += value
  }
  await reader.cancel()
  return all
}

const asked = (address: string, token: string, block: string) =>
  Effect.promise(async () => {
    const [request = "", answer = ""] = block.trim().split("\n\n")
    const [first = "", ...more] = request.split("\n")
    const [method = "", path = ""] = first.split(" ")
    const headers = more.filter((line) => /^[\w-]+: /.test(line)).map((line) => line.split(": ") as [string, string])
    const body = more.find((line) => line.startsWith("{"))
    const response = await fetch(`${address}${path}`, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value.replace("TOKEN", token)]),
      ...(body === undefined ? {} : { body })
    })
    const [status, ...lines] = answer.split("\n")
    const isStream = method === "GET"
    const text = await bodyOf(response, isStream)
    assert.strictEqual(String(response.status), status, `${first}: ${text}`)
    const data = lines.find((line) => line.startsWith("data: ") || line.startsWith("{"))!.replace("data: ", "")
    const is = isStream ? /^data: (.*)$/m.exec(text)![1]! : text.trim().split("\n")[0]!
    shows(JSON.parse(data), JSON.parse(is), first)
    if (isStream) assert.match(text, /^id: \d+$/m)
  })

describe("docs/protocol.md", () => {
  it("names the versions", () => {
    assert.include(
      page,
      `This page describes version ${PROTOCOL} of the protocol. The daemon also supports version ${OLDEST_PROTOCOL}.`
    )
  })

  it.live("shows what a daemon answers: on its socket, over HTTP, and as streams that go on after a cursor", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { builder: { backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      yield* box.untilAgent("builder", "is idle", ({ word }) => word === "idle")
      for (const block of blocks("socket")) yield* spoken(join(box.state, "control.sock"), block.trim().split("\n"))
      const caller = Client.caller("ada")
      const { address, token } = yield* Client.use({ state: box.state })((client) =>
        client.Grant({ right: "act", label: "docs", caller })
      )
      assert.isAbove(blocks("http").length, 7)
      for (const block of blocks("http")) yield* asked(address, token, block)
    })
  )
})
