/**
 * TerminalKeys: decodes the bytes that a terminal sends into keys, clicks and pasted text. Pure.
 *
 * Guarantees: pasted text is never decoded as keys, however it is split into chunks. If terminals send different
 * sequences for the same key, the result is the same. Unknown sequences are ignored.
 */

export type Input =
  | { readonly _tag: "Key"; readonly key: string }
  | { readonly _tag: "Paste"; readonly text: string }
  /** A click at column `x` and row `y`, both counted from 0. */
  | { readonly _tag: "Click"; readonly x: number; readonly y: number }
  | { readonly _tag: "Wheel"; readonly lines: number; readonly x: number; readonly y: number }
  | { readonly _tag: "Background"; readonly isLight: boolean }

const NAMES: { readonly [sent: string]: string } = {
  "\u001b": "esc",
  "\r": "enter",
  "\n": "enter",
  "\t": "tab",
  "\u001b[Z": "shift-tab",
  "\u0003": "ctrl-c",
  "\u0004": "page-down",
  "\u000b": "ctrl-k",
  "\u0015": "ctrl-u",
  "\u007f": "backspace",
  "\b": "backspace",
  "\u001b[A": "up",
  "\u001b[B": "down",
  "\u001b[C": "right",
  "\u001b[D": "left",
  "\u001bOA": "up",
  "\u001bOB": "down",
  "\u001bOC": "right",
  "\u001bOD": "left",
  "\u001b[5~": "page-up",
  "\u001b[6~": "page-down",
  "\u001b[H": "home",
  "\u001b[1~": "home",
  "\u001bOH": "home",
  "\u001b[F": "end",
  "\u001b[4~": "end",
  "\u001bOF": "end"
}

// oxlint-disable-next-line no-control-regex
const MOUSE = /^\u001b\[<(\d{1,4});(\d{1,4});(\d{1,4})([Mm])/
const COLOUR =
  // oxlint-disable-next-line no-control-regex
  /^\u001b\]11;rgb:([0-9a-f]{2})[0-9a-f]{0,2}\/([0-9a-f]{2})[0-9a-f]{0,2}\/([0-9a-f]{2})[0-9a-f]{0,2}(?:\u0007|\u001b\\)/i
// oxlint-disable-next-line no-control-regex
const SEQUENCE = /^\u001b(?:\[[0-9;<?]{0,20}[A-Za-z~]|O[A-Za-z])/
const PASTE = "\u001b[200~"
const PASTED = "\u001b[201~"
/** Maximum length of pasted text in characters. It is limited because the end mark might never arrive. */
const MAX_PASTE = 65_536

const mouseOf = ([, button, x, y, kind]: RegExpExecArray): Input | undefined => {
  const pressed = Number(button)
  const at = { x: Number(x) - 1, y: Number(y) - 1 }
  if (pressed === 64 || pressed === 65) return { _tag: "Wheel", lines: pressed === 65 ? 3 : -3, ...at }
  return pressed === 0 && kind === "M" ? { _tag: "Click", ...at } : undefined
}

const backgroundOf = ([, red, green, blue]: RegExpExecArray): Input => ({
  _tag: "Background",
  isLight: [red, green, blue].reduce((sum, part) => sum + Number.parseInt(part!, 16), 0) > 384
})

const one = (text: string): { readonly took: number; readonly input?: Input | undefined } => {
  const mouse = MOUSE.exec(text)
  if (mouse !== null) return { took: mouse[0].length, input: mouseOf(mouse) }
  const colour = COLOUR.exec(text)
  if (colour !== null) return { took: colour[0].length, input: backgroundOf(colour) }
  const sequence = SEQUENCE.exec(text)?.[0]
  if (sequence !== undefined) {
    const key = NAMES[sequence]
    return { took: sequence.length, input: key === undefined ? undefined : { _tag: "Key", key } }
  }
  const character = String.fromCodePoint(text.codePointAt(0)!)
  const key = NAMES[character] ?? (character < " " ? undefined : character)
  return { took: character.length, input: key === undefined ? undefined : { _tag: "Key", key } }
}

/** Decodes input chunk by chunk. Pasted text can be split between chunks at any position. */
export class TerminalKeys {
  private paste: string | undefined = undefined

  read(chunk: string): ReadonlyArray<Input> {
    const inputs: Array<Input> = []
    let rest = chunk
    while (rest !== "") {
      if (this.paste !== undefined) {
        const whole = this.paste + rest
        const end = whole.indexOf(PASTED)
        if (end < 0) {
          // keep enough characters to recognize an end mark that is split between two chunks
          this.paste = whole.length <= MAX_PASTE ? whole : whole.slice(0, MAX_PASTE) + whole.slice(1 - PASTED.length)
          return inputs
        }
        inputs.push({ _tag: "Paste", text: whole.slice(0, Math.min(end, MAX_PASTE)) })
        rest = whole.slice(end + PASTED.length)
        this.paste = undefined
      } else if (rest.startsWith(PASTE)) {
        this.paste = ""
        rest = rest.slice(PASTE.length)
      } else {
        const { input, took } = one(rest)
        if (input !== undefined) inputs.push(input)
        rest = rest.slice(took)
      }
    }
    return inputs
  }
}
