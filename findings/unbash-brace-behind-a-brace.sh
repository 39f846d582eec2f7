#!/bin/sh
# unbash 6.0.4: a list in braces is one text if a closing brace comes before its comma.
#
# Expected: `echo {a},b}` has a word with a part of type BraceExpansion, as `echo {a,b}` has, because bash makes two
#   words of it.
# Seen: bash prints `a} b` for `echo {a},b}`. The parser returns one word without parts, with the value `{a},b}`. A
#   program that reads the words of a line from the tree gets another number of words than bash.
#
# Needs bash, node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund unbash@6.0.4
cat > look.mjs <<'JS'
import { execFileSync } from "node:child_process"
import { parse } from "unbash"

const look = (line) => {
  const [word] = parse(line).commands[0].command.args
  const isList = word.parts?.some(({ type }) => type === "BraceExpansion") === true
  const printed = execFileSync("bash", ["-c", line], { encoding: "utf8" }).trim()
  console.log(`${line}: the parser sees a list: ${isList}; bash prints: ${printed}`)
  return { isList, printed }
}
const [plain, behind] = [look("echo {a,b}"), look("echo {a},b}")]
process.exit(plain.isList && plain.printed === "a b" && !behind.isList && behind.printed === "a} b" ? 0 : 1)
JS
node look.mjs
