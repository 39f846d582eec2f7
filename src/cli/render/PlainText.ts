/** PlainText: whether a text is one, or bytes of something else. Pure. */

/** Controls that no text has: what is left are tabs, ends of lines and pages, and what colours a terminal's output. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0007\u000e-\u001a\u001c-\u001f\u007f]/u

const REMEDY =
  "A file goes with a message: agentd send AGENT TEXT --file PATH (an image, a PDF or a text). Of any other, put it where the agent can read it, and send its path."

/** Why it is no text; undefined where it is one. */
export const troubleIn = (text: string): { readonly message: string; readonly remedy: string } | undefined => {
  const found = CONTROLS.exec(text)
  if (found === null) return undefined
  const code = found[0].charCodeAt(0).toString(16).padStart(2, "0")
  return {
    message: `This is no text: it has a control character (0x${code}) at ${found.index}. Nothing was sent.`,
    remedy: REMEDY
  }
}

/** The text of bytes, or why they are none. */
export const decoded = (bytes: Uint8Array): string | { readonly message: string; readonly remedy: string } => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes)
    return troubleIn(text) ?? text
  } catch {
    return { message: "This is no text: its bytes are no UTF-8. Nothing was sent.", remedy: REMEDY }
  }
}
