/** PlainText: checks that a text is really text, and not the bytes of something else. Pure. */

/** Control characters that no text has. Tabs, line ends, page breaks and escapes (colours of output) are allowed. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0007\u000e-\u001a\u001c-\u001f\u007f]/u

const REMEDY =
  "A file goes with a message: agentd send AGENT TEXT --file PATH (an image, a PDF or a text). Of any other, put it where the agent can read it, and send its path."

/** Why the text is not valid; undefined if it is. */
export const troubleIn = (text: string): { readonly message: string; readonly remedy: string } | undefined => {
  const found = CONTROLS.exec(text)
  if (found === null) return undefined
  const code = found[0].charCodeAt(0).toString(16).padStart(2, "0")
  return {
    message: `This is not plain text: it has a control character (0x${code}) at ${found.index}. Nothing was sent.`,
    remedy: REMEDY
  }
}

/** Decodes bytes as text, or says why they are not text. */
export const decoded = (bytes: Uint8Array): string | { readonly message: string; readonly remedy: string } => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes)
    return troubleIn(text) ?? text
  } catch {
    return { message: "This is not plain text: its bytes are not valid UTF-8. Nothing was sent.", remedy: REMEDY }
  }
}
