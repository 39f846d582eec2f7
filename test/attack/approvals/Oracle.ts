/**
 * Oracle: random lines of a shell, and bash as the judge of those that a decision would run. bash has no program in
 * reach: it notes the words of each that it tries, as they are after all quotes, variables and globs. A rule of its own
 * says which words are right, in far fewer lines than the decision.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { type Dice, dice } from "../../support/Dice.ts"
import { make } from "../../support/Scratch.ts"

/** Rules that fit the words of the lines, and `allowed` below. */
export const RULES = {
  allow: ["npm test **", "find **", "sort **", "git add **", { write: "build/**" }, { write: "notes.md" }],
  deny: ["curl"]
} as const

const GOOD = [
  "ls ",
  "ls -la ",
  "wc a ",
  "cat a ",
  "cat src/b ",
  "grep x a ",
  "head -n 3 a ",
  "npm test ",
  "git status "
]
const GOOD_TOO = [
  "sort a ",
  "find . ",
  "git add a ",
  "echo a ",
  "npm test src ",
  "true ",
  "sort -u a ",
  "cat <<E\na\nE\n"
]
const BAD = ["zz ", "yy ", "rm a ", "curl a ", "./evil ", "npm publish ", "git push ", "npm test --zz=1 "]
const BAD_TOO = [
  "cat .env ",
  "cat ../x ",
  "sort -o f a ",
  "find . -delete ",
  "eval zz ",
  "PATH=bin ls ",
  "echo $TOKEN "
]
const WRITES = [">f ", ">>f ", ">build/f ", ">notes.md ", "2>f ", "&>f ", ">|f ", ">a ", ">build/../f ", "<>f "]
const REST = [
  [" ", " ", "\n", ";", "&&", "||", "|", "&", "(", ")", "{ ", "; }", "'", "'", '"', '"', "\\", "`", "`", "$(", ")"],
  ["$((1", "))", "${x:-", "}", "<(", ")", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "\n\tE\n", "<<<", "<a ", "<.env "],
  [">/dev/null ", "2>&1 ", "#", " # ", "CI=", "CI=1 ", "$x", "$'", "\\x61", "\r", "\t", "[[ ", " ]]", "if ", "; then "],
  [
    "; fi",
    "for i in 1; do ",
    "for x in a zz; do ",
    "; done",
    "case x in x) ",
    ";; esac",
    "! ",
    "time ",
    "f() { ",
    "a["
  ],
  ["]", "((", "))", "{a,b}", "*", "?", ".*", "|&", "coproc ", "\\\n", ";;", "!(", "bash -c '", "env ", "timeout 5 "],
  ["cd src ", "cd .. ", "cd src && ", "x=zz ", "x=-delete;", "-delete ", "-o f ", ".env ", "$x ", '"$x" ', "$i ", "f "],
  ["--", "-o", "zz", "npm", "test", "ls", "exec ", "command ", "xargs ", "nice ", "set -- zz;", '"$@" ', "read x <a;"],
  ["PATH=bin;", "unset PATH;", "for PATH in bin; do ", "$TOKEN ", "while read x; do ", "; done <a ", "else ", "elif "]
].flat()

const pick = <A>(roll: Dice, all: ReadonlyArray<A>): A => all[roll(all.length)]!

/** A command, mostly one that is allowed; `depth` is how much further it may hold others. */
const command = (roll: Dice, depth: number): ReadonlyArray<string> => {
  const plain = () => [pick(roll, roll(16) === 0 ? [...BAD, ...BAD_TOO] : [...GOOD, ...GOOD_TOO])]
  if (depth === 0) return plain()
  const one = () => command(roll, depth - 1)
  const forms: ReadonlyArray<() => ReadonlyArray<string>> = [
    plain,
    plain,
    () => [...plain(), pick(roll, [">/dev/null ", "2>&1 ", "<a ", ...WRITES])],
    () => [pick(roll, ["timeout 5 ", "env ", "env CI=1 ", "nice ", "CI=1 ", "! ", "time ", "command "]), ...plain()],
    () => [...one(), pick(roll, ["; ", " && ", " || ", " | ", " & ", "\n", " |& "]), ...one()],
    () => [...one(), pick(roll, ["; ", " && ", " | ", "\n"]), ...one()],
    () => ["(", ...one(), ")"],
    () => ["((", ...one(), "); ", ...one(), ")"],
    () => ["{ ", ...one(), "; }"],
    () => ["if ", ...one(), "; then ", ...one(), pick(roll, ["", "; else ls"]), "; fi"],
    () => ["for x in ", pick(roll, ["a", "a src/b", "*", "$(ls)", ".env", "zz"]), "; do ", ...one(), '"$x"', "; done"],
    () => ["case a in a) ", ...one(), ";; esac"],
    () => ["bash -c '", ...plain(), "'"],
    () => ["bash -c '", ...one(), "'"],
    () => ["cd src && ", ...one()],
    () => ["echo ", pick(roll, ['"', ""]), "$(", ...one(), ")", pick(roll, ['"', ""])],
    () => ["cat <<", pick(roll, ["E", "'E'", "-E"]), "\n", "a\n", pick(roll, ["$(", "x"]), ...one(), ")\nE\n"],
    () => ["x=", pick(roll, ["a", "zz", "-delete", ".env"]), "; ", ...plain(), pick(roll, ["$x", '"$x"', "${x}"])]
  ]
  return pick(roll, forms)()
}

/** A line of tokens in any order, or one that a grammar makes, which may then lose or gain tokens. */
const line = (roll: Dice): string => {
  const tokens = [...GOOD, ...GOOD_TOO, ...REST, ...WRITES, ...BAD]
  if (roll(3) === 0)
    return [
      pick(roll, GOOD),
      ...Array.from({ length: 1 + roll(8) }, () => pick(roll, roll(4) === 0 ? GOOD : tokens))
    ].join("")
  const made = [...command(roll, roll(4))]
  for (let left = roll(4); left > 0; left--) {
    const at = roll(made.length + 1)
    if (roll(3) === 0) made.splice(at, 1)
    else made.splice(at, 0, pick(roll, roll(3) === 0 ? [...BAD, ...BAD_TOO] : tokens))
  }
  const text = made.join("")
  return roll(4) === 0 ? torn(roll, text) : text
}

/** Characters and ends of words that parsers disagree about. */
const TEARS = [
  "\\\n",
  "\\",
  "$",
  "{",
  "}",
  ",f}",
  "{x},",
  "'",
  '"',
  "$'",
  "\n",
  "#",
  "$\\\n",
  "\\x{7a}",
  "printf 'aa%n' x;"
]

/** The text with one of them at any place, also within a word. */
const torn = (roll: Dice, text: string): string => {
  const at = roll(text.length + 1)
  return `${text.slice(0, at)}${pick(roll, TEARS)}${text.slice(at)}`
}

/** Returns `count` distinct lines; the same ones for the same seed. */
export const lines = (seed: number, count: number): ReadonlyArray<string> => {
  const roll = dice(seed)
  const all = new Set<string>()
  while (all.size < count) all.add(line(roll))
  return [...all]
}

/** A line that must not run unasked, with what bash would have done. */
export interface FalseAllow {
  readonly line: string
  readonly did: string
}

/** The content of a tree's files. A file that can run says that it ran. */
const FILES = {
  a: ".env\n../x\n-delete\n",
  b: "",
  "-delete": "",
  "-oz": "",
  ".env": "a secret\n",
  "notes.md": "",
  "src/b": "",
  "src/zz": ": >ran\n",
  evil: ": >ran\n",
  ls: ": >ran\n",
  "bin/ls": ": >ran\n",
  "bin/npm": ": >ran\n",
  zz: ": >ran\n",
  "build/old": ""
}
const TREES = 40
/** The name of a line that is always wrong. */
const LAST = "last"

const plant = (folder: string): void => {
  for (let tree = 0; tree < TREES; tree++)
    for (const [name, content] of Object.entries(FILES)) {
      const path = join(folder, "trees", `${tree}`, "1/2/3/4/tree", name)
      mkdirSync(join(path, ".."), { recursive: true })
      writeFileSync(path, content)
      chmodSync(path, 0o755)
    }
}

const WRAPPERS = new Set(["timeout", "env", "nice", "nohup", "bash", "sh", "xargs", "time"])

/** True for a path in the tree, as seen from that folder of it, that is no secret. */
const inside = (folder: string, word: string): boolean =>
  word === "/dev/null" ||
  !(word.startsWith("/") || /(?:^|\/)(?:\.\.|\.env)(?:\/|$)/.test(normalize(join(folder, word))))

/** True if the rules, or that it only reads, let these words run: written from the words of the rules alone. */
const allowed = (folder: string, words: ReadonlyArray<string>): boolean => {
  const [name = "", ...rest] = words
  if (WRAPPERS.has(name)) return true
  const options = rest.filter((word) => word.startsWith("-") && word !== "--")
  const none = (pattern: RegExp) => !options.some((word) => pattern.test(word))
  if (name === "npm") return rest[0] === "test" && options.length === 0
  if (!rest.every((word, at) => inside(folder, word) || (name === "grep" && at === 0))) return false
  if (["ls", "wc", "cat", "head"].includes(name)) return none(/^--f/)
  if (name === "grep") return none(/^-[^-]*f|^--f/)
  if (name === "git") return (rest[0] === "status" || rest[0] === "add") && none(/^-[^-]*[ecip]|^--/)
  if (name === "sort") return none(/^-[^-]*[oT]|^--/)
  if (name === "find") return none(/^-(?:delete|exec|ok|f|L|H)/)
  return false
}

/** Text of the state that no line may change: PATH, two variables that name programs, and the home folder. */
const same = (state: string): boolean => /^\/nonexistent\|\|\|.*\/1\/2\/3\/4\/tree$/.test(state)

/** Describes the fault of a line that a note of the log shows; undefined if there is none. */
const wrongIn = (fields: ReadonlyArray<string>): string | undefined => {
  const [, word, what = "", state = "", input = "", ...words] = fields
  if (word !== "ran") {
    const name = /^(\S+): not found/.exec(what)?.[1]
    return name !== undefined && (WRAPPERS.has(name) || allowed(".", [name, "test"])) ? undefined : `${word} ${what}`
  }
  const place = /\/1\/2\/3\/4\/tree(?:$|\/(.*))/.exec(what)
  const right = place !== null && allowed(place[1] ?? ".", words) && same(state) && !input.includes("secret")
  return right ? undefined : `tried ${JSON.stringify(words)} in ${what}, ${state}, ${input}`
}

/** Lets bash run each line, and returns those that did what no rule allows. Fails if more than 40 of them write a file. */
export const judge = (all: ReadonlyArray<string>): ReadonlyArray<FalseAllow> => {
  const folder = make("approvals-oracle-")
  try {
    mkdirSync(join(folder, "lines"))
    for (const [at, text] of all.entries()) writeFileSync(join(folder, "lines", `${at}`), text)
    // bash runs the files in the order of their names
    writeFileSync(join(folder, "lines", LAST), "zz")
    plant(folder)
    const script = join(import.meta.dirname, "oracle.sh")
    const { status } = spawnSync("bash", ["--norc", "--noprofile", script, folder], { stdio: "ignore" })
    if (status !== 0) throw new Error(`bash ended with ${status}`)
    const path = join(folder, "log")
    const found = new Map<string, string>()
    for (const note of existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : []) {
      const fields = note.split("\u001f").map((field) => field.replaceAll("\u001e", "\n"))
      const did = wrongIn(fields)
      if (did !== undefined && !found.has(fields[0]!)) found.set(fields[0]!, did)
    }
    if (!found.delete(LAST)) throw new Error("bash did not come to the end of the lines, or its notes are lost")
    return [...found].map(([number, did]) => ({ line: all[Number(number)]!, did }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
