/** Random lines of a shell: bash runs those that the rules let run unasked, and tries nothing that no rule allows. */
import { assert, describe, it } from "@effect/vitest"
import { long } from "../support/Long.ts"
import { judge, lines, RULES } from "./approvals/Oracle.ts"
import { decided, rulesOf } from "./approvals/Rules.ts"

/** Lines that do what no rule allows, each in its own way. */
const HARMFUL = [
  "zz",
  "ls; zz",
  "ls || zz",
  "ls && zz",
  "(zz)&",
  "! zz",
  "echo $(zz)",
  "ls <(zz)",
  "cat <<E\n$(zz)\nE",
  "eval zz",
  "exec zz",
  "command zz",
  "./evil",
  "unset PATH; ls",
  "PATH=bin; ls",
  "PATH=bin ls",
  "for PATH in bin; do ls; done",
  "bash -c zz",
  "bash -c 'ls; zz'",
  "echo zz | bash",
  "bash <<< zz",
  "bash zz",
  "timeout 5 zz",
  "env zz",
  "nice zz",
  "env PATH=bin ls",
  "echo | xargs cat",
  "cat .env",
  "cat <.env",
  "echo $TOKEN",
  'echo "$(<.env)"',
  "cat ../x",
  "zz&",
  "read x <.env; echo $x",
  "ls >f",
  ">a",
  "echo >build/../f",
  "cd ..; ls",
  "cd .. && echo >f",
  "cd src && cat ../../x",
  "x=zz; $x",
  "x=-delete; find . $x",
  "find *",
  "sort *",
  "sort -o f a",
  "for f in .*; do cat $f; done",
  "curl x",
  "while read x; do cat $x; done <a",
  "ls() { zz; }; ls",
  "f() { zz; }; f",
  "npm test --x",
  "npm publish",
  "git push",
  'set -- zz; "$@"',
  "$(ls)",
  "return; zz",
  "trap zz EXIT",
  "coproc zz",
  "find . -exec ls \\;",
  "git -c a=b status"
]

const HARMLESS = [
  "ls",
  "ls -la",
  "npm test",
  "npm test src >build/f",
  "echo a >>notes.md",
  "ls 2>&1 | wc a",
  "cd src && cat ../a",
  "bash -c 'ls; npm test'",
  "timeout 5 ls",
  "env CI=1 ls",
  "echo $(ls)",
  "cat <<'E'\n$(zz)\nE",
  "cat <a",
  "exec ls",
  'for x in a b; do cat "$x"; done',
  "cat *",
  "git status",
  "x=zz; ls",
  "if ls; then ls; fi",
  "ls\nls",
  "not ( a line"
]

const setting = { mode: "auto", rules: rulesOf(RULES) } as const

/** Asserts that bash finds nothing wrong with those lines that run unasked, and that they are not few. */
const none = (seed: number, count: number): void => {
  const all = lines(seed, count)
  assert.strictEqual(new Set(all).size, count)
  const run = all.filter((line) => decided(line, setting).verdict === "run")
  assert.isAbove(run.length, count / 10)
  assert.deepStrictEqual(judge(run), [])
}

describe("bash as the judge", () => {
  it("sees what harmful lines do, and nothing wrong with harmless ones", () => {
    const found = new Set(judge([...HARMFUL, ...HARMLESS]).map(({ line }) => line))
    assert.deepStrictEqual(
      HARMFUL.filter((line) => !found.has(line)),
      []
    )
    assert.deepStrictEqual(
      HARMLESS.filter((line) => found.has(line)),
      []
    )
  })

  it("finds no wrong one among those of 5,000 random lines that run unasked", () => none(1, 5_000))
  long.it("of 100,000", { timeout: 1_800_000 }, () => none(2, 100_000))
})
