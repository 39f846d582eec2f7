/** Requests of a model that fail at the gateway are counted until one has its answer. */
import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { open } from "../../../src/runs/gateway/Gateway.ts"

const ask = (socketPath: string, method: string, target: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const request = http.request({ socketPath, method, path: target }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode))
    })
    request.on("error", reject).end()
  })

it("since when, how many, and how; an answer ends it; what no repetition helps, and what asks no model, does not count", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "agentd-failing-"))
  let status = 503
  const provider = http.createServer((_, response) => response.writeHead(status).end("{}"))
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve))
  const { port } = provider.address() as AddressInfo
  const socket = path.join(folder, "s")
  const route = await open({ socket, baseUrl: `http://127.0.0.1:${port}`, key: null })
  const asks = async (answers: number) => {
    status = answers
    await ask(socket, "POST", "/v1/messages")
    return route.count().failing
  }
  try {
    const first = await asks(503)
    assert.deepInclude(first, { times: 1, words: "answered 503" })
    assert.deepStrictEqual(await asks(429), { since: first!.since, times: 2, words: "answered 429" })
    await asks(400)
    status = 200
    await ask(socket, "GET", "/v1/models")
    assert.strictEqual(route.count().failing?.times, 2)
    assert.isUndefined(await asks(200))
    await new Promise((resolve) => provider.close(resolve))
    provider.closeAllConnections()
    const gone = await asks(200)
    assert.strictEqual(gone?.times, 1)
    assert.match(gone!.words, /^could not be reached: /)
  } finally {
    route.close()
    provider.close()
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
