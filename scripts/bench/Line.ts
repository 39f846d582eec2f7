/**
 * Line: a connection to a daemon's control socket, for benches that ask the same daemon again and again.
 *
 * Guarantees: a question is answered with what its handler said; a line that breaks fails what waits on it.
 */
import { createConnection, type Socket } from "node:net"

interface Exit {
  readonly requestId: string
  readonly exit: { readonly _tag: "Success"; readonly value: unknown } | { readonly _tag: "Failure" }
}

interface Asked {
  readonly done: (value: unknown) => void
  readonly failed: (error: Error) => void
}

export class Line {
  private readonly socket: Socket
  private readonly asked = new Map<string, Asked>()
  private count = 0
  private text = ""

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding("utf8")
    socket.on("data", (part: string) => this.take(part))
    socket.on("error", () => {})
    socket.on("close", () => {
      for (const { failed } of this.asked.values()) failed(new Error("the daemon hung up"))
    })
  }

  static open(path: string): Promise<Line> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(path)
      socket.once("error", reject)
      socket.once("connect", () => resolve(new Line(socket)))
    })
  }

  ask(tag: string, payload: unknown = null): Promise<unknown> {
    const id = String(this.count++)
    return new Promise((done, failed) => {
      this.asked.set(id, { done, failed })
      this.socket.write(`${JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] })}\n`)
    })
  }

  close(): void {
    this.socket.destroy()
  }

  private take(part: string): void {
    this.text += part
    const lines = this.text.split("\n")
    this.text = lines.pop()!
    for (const line of lines.filter((line) => line.includes('"Exit"'))) {
      const { exit, requestId } = JSON.parse(line) as Exit
      const asked = this.asked.get(requestId)
      this.asked.delete(requestId)
      if (exit._tag === "Success") asked?.done(exit.value)
      else asked?.failed(new Error(line.slice(0, 2_000)))
    }
  }
}
