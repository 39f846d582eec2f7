/**
 * lines: orders that come over a socket, one JSON value a line, and their answers, for the keeper. Lies beside
 * keeper.mjs wherever that runs.
 *
 * Guarantees: each line is answered, as the order {} where it is none; a peer that does not read its answers is not
 * heard until it has; a line longer than may be ends the connection, however it comes.
 */
const orderOf = (line) => {
  try {
    return JSON.parse(line) ?? {}
  } catch {
    return {}
  }
}

/** `answer`: of an order, never fails. `longest`: characters. */
export const lines = (socket, answer, longest) => {
  let [pieces, length] = [[], 0]
  const hear = async (line) => {
    const order = orderOf(line)
    const body = await answer(order)
    if (socket.writable) socket.write(`${JSON.stringify({ re: order.id, ...body })}\n`)
  }
  socket.setEncoding("utf8")
  socket.on("data", (chunk) => {
    const [first, ...others] = chunk.split("\n")
    pieces.push(first)
    length += first.length
    for (const line of others) {
      void hear(pieces.join(""))
      ;[pieces, length] = [[line], line.length]
    }
    if (length > longest()) return socket.destroy()
    if (socket.writableNeedDrain) socket.pause()
  })
  socket.on("drain", () => socket.resume())
  socket.on("error", () => {})
}
