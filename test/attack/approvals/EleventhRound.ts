/**
 * EleventhRound: calls one after the other in a shell that keeps its folder. All but the last of them were made, by a
 * person's leave or without a question; the last one must be asked or denied.
 */
import type { Rule } from "../../../src/approvals/Rule.ts"
import { ALLOWED, rulesOf } from "./Rules.ts"

export const RULES: ReadonlyArray<Rule> = rulesOf({
  allow: [...ALLOWED, { write: "out.txt" }],
  ask: [{ read: "notes/**" }],
  deny: [{ read: "private/**" }, { write: "locked/**" }]
})

/** Ways into `private`, behind each of which `cat key` reads what a rule denies. */
const WAYS: ReadonlyArray<ReadonlyArray<string>> = [
  ["cd private"],
  ["cd ./private"],
  ["cd 'private'"],
  ["cd -- private"],
  ["cd -P private"],
  ["cd -L private"],
  ["cd -e private"],
  ["cd /repo/private"],
  ["cd src/../private"],
  ["cd src", "cd ../private"],
  ["cd src", "cd /repo/private"],
  ["cd private", "cd sub", "cd .."],
  ["cd private && ls"],
  ["cd private; ls"],
  ["cd private || cd src"],
  ["cd src || cd private"],
  ["ls | cat; cd private"],
  ["{ cd private; }"],
  ["if cd private; then ls; fi"],
  ["while cd private; do break; done"],
  ["for d in src private; do cd $d; break; done"],
  ["case x in x) cd private;; esac"],
  ["! cd private"],
  ["time cd private"],
  ["command cd private"],
  ["builtin cd private"],
  ["command builtin cd private"],
  ["eval cd private"],
  ["eval 'cd private'"],
  ['eval "$(echo cd private)"'],
  ["pushd private"],
  ["pushd src", "pushd private", "popd"],
  ["pushd src", "pushd +1"],
  ["pushd -n private", "popd"],
  ["pushd"],
  ["popd"],
  ["cd private", "cd -"],
  ["cd -"],
  ["cd $OLDPWD"],
  ["cd"],
  ["cd ~"],
  ["cd ~+"],
  ["cd priv*"],
  ["cd {private,src}"],
  ["c\\d private"],
  ["'cd' private"],
  ["c''d private"],
  ["$'\\x63d' private"],
  ["x=cd; $x private"],
  ["$(echo cd) private"],
  ["CDPATH=private cd sub"],
  ["CDPATH=/repo/private", "cd sub"],
  ["export CDPATH=/repo", "cd private"],
  ["HOME=/repo/private; cd"],
  ["f() { cd private; }; f"],
  ["f() { cd private; }", "f"],
  ["function go { cd private; }; go"],
  ["alias ls='cd private'", "ls"],
  ["trap 'cd private' EXIT"],
  ["source ./go.sh"],
  [". ./go.sh"],
  ["coproc cd private; cd private"],
  ["cd private & cd private"],
  ["cd private 2>/dev/null"],
  ["true && cd private > out.txt"],
  ["cd \\\nprivate"],
  ["cd a", "cd b", "cd c", "cd d", "cd e"],
  ["cd link", "cd ../private"]
]

export interface Sequence {
  readonly before: ReadonlyArray<string>
  readonly last: string
}

export const SEQUENCES: ReadonlyArray<Sequence> = [
  ...WAYS.map((before) => ({ before, last: "cat key" })),
  { before: ["cd src"], last: "node scripts/gen.js" },
  { before: ["cd src"], last: "echo x > out.txt" },
  { before: ["cd locked"], last: "echo x > out.txt" },
  { before: ["cd notes"], last: "head -5 a.md" },
  { before: ["cd notes"], last: "grep -r x ." },
  { before: ["cd src", "cd .."], last: "cat ../private/key" }
]
