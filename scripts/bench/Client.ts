/** Client: asks a daemon on its control socket, on one connection, and takes whatever comes in pieces. */
import { createConnection, type Socket } from "node:net"
import { join } from "node:path"
import type { Place } from "./History.ts"

interface Reply {
  readonly exit: { readonly _tag: string; readonly value?: unknown; readonly cause?: unknown }
}

export class Client {
  private readonly socket: Socket
  private readonly asked = new Map<string, (reply: Reply) => void>()
  private next = 1

  constructor({ state }: Place) {
    this.socket = createConnection(join(state, "control.sock"))
    let text = ""
    this.socket.on("data", (data) => {
      text += String(data)
      const lines = text.split("\n")
      text = lines.pop()!
      for (const line of lines) {
        const message = JSON.parse(line) as Reply & { readonly _tag: string; readonly requestId: string }
        if (message._tag === "Chunk") this.send({ _tag: "Ack", requestId: message.requestId })
        if (message._tag !== "Exit") continue
        this.asked.get(message.requestId)?.(message)
        this.asked.delete(message.requestId)
      }
    })
  }

  ask(tag: string, payload: unknown): Promise<Reply["exit"]> {
    const id = String(this.next++)
    return new Promise((resolve) => {
      this.asked.set(id, ({ exit }) => resolve(exit))
      this.send({ _tag: "Request", id, tag, payload, headers: [] })
    })
  }

  private send(message: object): void {
    this.socket.write(`${JSON.stringify(message)}\n`)
  }

  close(): void {
    this.socket.destroy()
  }
}
