/**
 * Wrappers: programs whose words are another command. Pure.
 *
 * A clear wrapper (`timeout 5 npm test`) leaves the command as it is: a rule for the command holds within it. Other
 * wrappers change who runs it or where (`sudo`, `npx`): no rule for the command allows it there, but rules that deny or
 * ask still meet it.
 */
import type { Word } from "./Reading.ts"

export type Unwrapped =
  /** The command within. `rest`: the wrapper's own words, which have effects of their own. */
  | {
      readonly _tag: "Command"
      readonly words: ReadonlyArray<Word>
      readonly clear: boolean
      readonly assignments: ReadonlyArray<string>
      readonly rest: ReadonlyArray<Word>
    }
  /** A text that a shell runs. */
  | { readonly _tag: "Text"; readonly text: string; readonly clear: boolean }
  /** A wrapper in a use that is not followed. */
  | { readonly _tag: "Unclear"; readonly why: string }

interface Wrapper {
  /** Options without a value, and options whose value is the next word. All others are unknown. */
  readonly flags: ReadonlySet<string>
  readonly valued: ReadonlySet<string>
  /** The options among them that change where or how the command runs. */
  readonly changes: ReadonlySet<string>
  /** How many words stand before the command: `timeout 5 …`. */
  readonly before: number
  readonly clear: boolean
}

const set = (text: string): ReadonlySet<string> => new Set(text.split(" ").filter(Boolean))

const wrapper = (flags: string, valued: string, { before = 0, changes = "", clear = false } = {}): Wrapper => ({
  flags: set(flags),
  valued: set(valued),
  changes: set(changes),
  before,
  clear
})

/** Options from the manual pages of coreutils 9.1, findutils 4.9, util-linux 2.38, sudo 1.9, and bash 5.2. */
const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map([
  ["nice", wrapper("", "-n --adjustment", { clear: true })],
  ["ionice", wrapper("-t --ignore", "-c -n --class --classdata", { clear: true })],
  ["nohup", wrapper("", "", { clear: true })],
  [
    "timeout",
    wrapper("--foreground --preserve-status -v --verbose", "-s -k --signal --kill-after", { before: 1, clear: true })
  ],
  ["time", wrapper("-p", "", { clear: true })],
  ["stdbuf", wrapper("", "-i -o -e --input --output --error", { clear: true })],
  ["setsid", wrapper("-w -f --wait --fork", "", { clear: true })],
  ["command", wrapper("-p", "", { changes: "-p", clear: true })],
  [
    "env",
    wrapper("-i -0 -v - --ignore-environment", "-u -C --unset --chdir", {
      changes: "-i - --ignore-environment -u -C --unset --chdir",
      clear: true
    })
  ],
  ["xargs", wrapper("-0 -r -t --null --no-run-if-empty --verbose", "-n -P -L -d -I -s", { clear: true })],
  ["sudo", wrapper("-n -E -S -H -k -b", "-u -g -h -p -C")],
  ["doas", wrapper("-n", "-u -C")],
  ["exec", wrapper("-c -l", "-a")],
  ["builtin", wrapper("", "")],
  ["chroot", wrapper("", "", { before: 1 })],
  ["unshare", wrapper("-r -n -m -p -f -U -i -u", "")],
  ["flock", wrapper("-n -s -x -e -o", "-w", { before: 1 })],
  ["strace", wrapper("-f -c -q", "-e -o -p -s")],
  ["npx", wrapper("-y --yes --no-install --no", "-p --package")],
  ["bunx", wrapper("", "")],
  ["uvx", wrapper("", "--from")]
])

const SHELLS: ReadonlySet<string> = new Set("sh bash dash zsh ksh ash fish".split(" "))
/** Shells whose text this parser reads as they do. */
const READ_SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash"])

const unclear = (why: string): Unwrapped => ({ _tag: "Unclear", why })

/** The last part of a program's path. */
export const programName = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** True if the word runs the system's program of that name, not a file elsewhere. */
const isSystem = (value: string): boolean =>
  [programName(value), `/bin/${programName(value)}`, `/usr/bin/${programName(value)}`].includes(value)

const ofShell = (name: string, words: ReadonlyArray<Word>): Unwrapped => {
  for (let at = 1; at < words.length; at++) {
    const { value } = words[at]!
    if (value === undefined) return unclear(`${name} gets a word that is not known`)
    if (/^-[le]*c$/.test(value)) {
      const text = words[at + 1]?.value
      if (text === undefined) return unclear(`${name} -c gets a text that is not known`)
      // further words are the text's $0, $1 …
      const isAlone = words.length === at + 2
      return { _tag: "Text", text, clear: isAlone && READ_SHELLS.has(name) && isSystem(words[0]!.value!) }
    }
    if (!/^-[leux]+$/.test(value))
      return unclear(value.startsWith("-") ? `${name} ${value} is not known` : `${name} runs a file`)
  }
  return unclear(`${name} reads its commands from elsewhere`)
}

const EXECS: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"])

const ofFind = (words: ReadonlyArray<Word>): Unwrapped | undefined => {
  const at = words.findIndex(({ value }) => EXECS.has(value ?? ""))
  if (at < 0) return undefined
  // a plus ends the command only behind {}
  const isEnd = ({ value }: Word, index: number) =>
    index > at && (value === ";" || (value === "+" && words[index - 1]?.value === "{}"))
  const end = words.findIndex(isEnd)
  if (end < 0) return unclear("find -exec has no end")
  if (words.slice(end).some(({ value }) => EXECS.has(value ?? ""))) return unclear("find runs more than one program")
  const inner = words.slice(at + 1, end)
  if (inner.length === 0 || inner[0]!.value?.includes("{}") !== false) return unclear("find runs what it finds")
  const root = words[1]?.value?.startsWith("-") === false ? words[1].value : "."
  // what is found lies below the folder that find begins at
  const found: Word = { value: `${root.endsWith("/") ? root : `${root}/`}found`, globs: false, text: "{}" }
  return {
    _tag: "Command",
    words: inner.map((word) =>
      word.value === "{}" ? found : word.value?.includes("{}") === true ? { ...word, value: undefined } : word
    ),
    clear: words[at]!.value === "-exec",
    assignments: [],
    rest: [...words.slice(0, at), ...words.slice(end + 1)]
  }
}

/** Words that xargs adds, which nobody knows before. */
const ADDED: Word = { value: undefined, globs: true, text: "(the words that xargs reads)" }

const ofXargs = (inner: ReadonlyArray<Word>, replaced: string | undefined): ReadonlyArray<Word> => {
  if (inner.length === 0) return [{ value: "echo", globs: false, text: "echo" }, ADDED]
  if (replaced === undefined) return [...inner, ADDED]
  return inner.map((word) => (word.value?.includes(replaced) === true ? { ...ADDED, text: word.text } : word))
}

/** The text that `eval` runs, or `env -S`. */
const ofText = (words: ReadonlyArray<Word>): Unwrapped =>
  words.some(({ value }) => value === undefined)
    ? unclear("it runs a text that is not known")
    : { _tag: "Text", text: words.map(({ value }) => value).join(" "), clear: false }

interface Options {
  /** Index of the first word behind the options. */
  readonly end: number
  readonly assignments: ReadonlyArray<string>
  /** The text that xargs -I replaces. */
  readonly replaced: string | undefined
  /** True if an option changes where or how the command runs. */
  readonly isChanged: boolean
}

/** Reads the wrapper's options; a text says why they are not followed. */
const optionsOf = (name: string, { changes, flags, valued }: Wrapper, words: ReadonlyArray<Word>): Options | string => {
  const assignments: Array<string> = []
  let replaced: string | undefined
  let isChanged = false
  let at = 1
  for (; at < words.length; at++) {
    const { value } = words[at]!
    if (value === undefined) return `${name} gets a word that is not known`
    if (value === "--") {
      at++
      break
    }
    if (name === "env" && /^[A-Za-z_]\w*=/.test(value)) {
      assignments.push(value)
      continue
    }
    if (!value.startsWith("-") || (value === "-" && !flags.has("-"))) break
    isChanged ||= changes.has(value) || changes.has(value.split("=")[0]!)
    if (valued.has(value)) {
      at++
      if (value === "-I") replaced = words[at]?.value
    } else if (name === "xargs" && value.startsWith("-I")) replaced = value.slice(2)
    else if (!flags.has(value) && !isAttached(name, value, valued)) return `${name} ${value} is not known`
  }
  return { end: at, assignments, replaced, isChanged }
}

/** An option with its value in one word: `-n5`, `--signal=TERM`; `nice -5`. */
const isAttached = (name: string, value: string, valued: ReadonlySet<string>): boolean =>
  value.startsWith("--")
    ? value.includes("=") && valued.has(value.slice(0, value.indexOf("=")))
    : valued.has(value.slice(0, 2)) || (name === "nice" && /^-\d+$/.test(value))

/** The command within a wrapper; undefined if the words are no wrapper with a command. */
export const unwrap = (words: ReadonlyArray<Word>): Unwrapped | undefined => {
  const first = words[0]?.value
  if (first === undefined) return undefined
  const name = programName(first)
  if (SHELLS.has(name)) return ofShell(name, words)
  if (name === "find") return ofFind(words)
  if (name === "eval") return ofText(words.slice(1))
  if (name === "env" && /^(-\w*S|--split-string$)/.test(words[1]?.value ?? "")) return ofText(words.slice(2))
  if (name === "command" && /^-[vV]+$/.test(words[1]?.value ?? "")) return undefined
  const known = WRAPPERS.get(name)
  if (known === undefined) return undefined
  const options = optionsOf(name, known, words)
  if (typeof options === "string") return unclear(options)
  const { assignments, end, isChanged, replaced } = options
  const inner = words.slice(end + known.before)
  if (inner.length === 0 && name !== "xargs") return undefined
  return {
    _tag: "Command",
    words: name === "xargs" ? ofXargs(inner, replaced) : inner,
    clear: known.clear && !isChanged && isSystem(first),
    assignments,
    rest: []
  }
}
