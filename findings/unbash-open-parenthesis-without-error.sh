#!/bin/sh
# unbash 6.0.4: an open parenthesis behind a command is dropped without an error.
#
# Expected: `parse("ls (")` returns a tree with `errors`, as for `ls )`, because bash does not read either line.
# Seen: `ls )` has the error "unexpected token ')'". `ls (` has none: the tree is the command `ls`, and no node covers
#   the parenthesis. A program that takes a tree without errors for a line that bash reads has to check for itself that
#   the nodes cover the text.
#
# Needs bash, node 20 or newer and npm. Ends with 0 while it is so, and with 1 when it is not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm i --silent --no-audit --no-fund unbash@6.0.4
cat > look.mjs <<'JS'
import { spawnSync } from "node:child_process"
import { parse } from "unbash"

const look = (line) => {
  const { commands, errors = [] } = parse(line)
  const { command } = commands[0]
  const reads = spawnSync("bash", ["-n", "-c", line]).status === 0
  const words = [command.name?.text, ...command.args.map(({ text }) => text)]
  console.log(`${line}: words ${JSON.stringify(words)}, errors ${errors.length}, bash reads it: ${reads}`)
  return { errors: errors.length, reads }
}
const [close, open] = [look("ls )"), look("ls (")]
process.exit(close.errors > 0 && !close.reads && open.errors === 0 && !open.reads ? 0 : 1)
JS
node look.mjs
