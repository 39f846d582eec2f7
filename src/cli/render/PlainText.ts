/** PlainText: checks that a text is plain text, and not binary data. Pure. */

/**
 * Control characters that plain text does not contain. Tabs, line ends, page breaks and escapes (for colours) are not
 * among them.
 */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0007\u000e-\u001a\u001c-\u001f\u007f]/u

const REMEDY =
  "To send an image, a PDF or a text file: agentd send AGENT TEXT --file PATH. Put any other file where the agent can read it, and send its path."

/** The error if the text is not plain text; undefined if it is. */
export const troubleIn = (text: string): { readonly message: string; readonly remedy: string } | undefined => {
  const found = CONTROLS.exec(text)
  if (found === null) return undefined
  const code = found[0].charCodeAt(0).toString(16).padStart(2, "0")
  return {
    message: `This is not plain text: it has a control character (0x${code}) at position ${found.index}. Nothing was sent.`,
    remedy: REMEDY
  }
}

/** The bytes as text; an error if they are not plain text. */
export const decoded = (bytes: Uint8Array): string | { readonly message: string; readonly remedy: string } => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes)
    return troubleIn(text) ?? text
  } catch {
    return { message: "This is not plain text: its bytes are not valid UTF-8. Nothing was sent.", remedy: REMEDY }
  }
}
