/**
 * FourthRound: lines that try to get past the rules of `Rules.ts`, after the second round was answered.
 */
import type { Lines } from "./FirstRound.ts"

/** Lines that must be asked or denied, never run. */
export const ATTACKS: ReadonlyArray<Lines> = [
  {
    kind: "reads an octal number, a set or a comment in another way than the parser",
    lines: [
      "cat $'\\456env'",
      "cat $'\\456\\456/x'",
      "touch $'\\456git/config'",
      "find . $'\\455delete'",
      "npm test $'\\455\\455script-shell=./evil'",
      "touch [{]x},/../agentd.jsonc}",
      "cat ?{a},.env}",
      "cat a*{b},/../.env}",
      "cat [a]{b},/../../x}",
      "cat {a}*,.env}",
      "cat {$'a'},.env}",
      'cat {"a"},.env}',
      "cat {'a}',.env}",
      "cat {a\\},.env}",
      "cat x={a},/../../x}",
      "touch {a}{b},/../../x}",
      "cat {a}{.env,b}",
      "cat {{a},.env}",
      "cat {a,{b},.env}",
      "cat {}{x},.env}",
      "find . -name {a},-delete}",
      'for f in {a},.env}; do cat "$f"; done',
      "echo a > build/{a},/../../x}",
      "ls # x \\\n./evil",
      "ls # it's \\\n./evil # it's",
      "npm test # \\\\ \\\n./evil",
      "ls ; # a \\\n ./evil",
      "cat <<'E'\na \\\nE\n./evil\nE",
      "cat <<\\E\na \\\nE\n./evil\nE",
      "cat <<-'E'\n\ta \\\n\tE\n./evil\n\tE",
      "cat <<'E' # \\\nx\nE\n./evil",
      "ls \\\n\n./evil",
      "ls ' \\\n' ; ./evil",
      'ls " \\\n"; ./evil'
    ]
  },
  {
    kind: "changes the folder in a loop, by a name that is written in another way",
    lines: [
      "for i in 1 2; do echo a > notes.md; c''d src; done",
      'for i in 1 2; do echo a > notes.md; "c"d src; done',
      "for i in 1 2; do echo a > notes.md; c\\d src; done",
      "for i in 1 2; do echo a > notes.md; $'cd' src; done",
      "for i in 1 2; do echo a > notes.md; $'\\x63d' src; done",
      "for i in 1 2; do echo a > build/a; command 'c'd src; done",
      "while ls; do node scripts/gen.js; 'cd' src; c\"\"d vendor; done",
      'while ls; do node scripts/gen.js; c""d vendor; done',
      "until npm test; do echo a > build/a; \"\"cd src; c'd' src; done",
      'until npm test; do echo a > build/a; ""c"d" src; done'
    ]
  },
  {
    kind: "sets a variable after all",
    lines: [
      'for x in a; do for \\\n x in .env ../x; do :; done; cat "$x"; done',
      'for x in a; do : & for\t\\\n\tx in .env; do ls; done; head "$x"; done',
      'for x in build/a; do for \\\nx in src/a; do :; done; echo a > "$x"; done',
      "histchars='!^%'\nls # ; ./evil",
      "histchars='!^%'; ls\ncat a # ; ./evil",
      'x=1,9:.env; git log -L "$x"',
      'x=1,9:.env\ngit log -L "$x" -p',
      'for x in 1,9:.env; do git log -L "$x"; done',
      'x=%G?; git log --format="$x"',
      "x='%G?'; git show -s --format \"$x\" HEAD",
      "x=PATH; printf 'abc%n' \"$x\"; ls",
      'x=%n; printf "$x" PATH; ls',
      "for v in PATH; do printf 'abc%n' $v; ls; done",
      "printf %s%n a PATH; npm test",
      "printf '%5n' PATH; ls",
      "printf '%-5n' PATH; ls",
      "printf '%*n' 3 PATH; ls",
      "printf '%ln' PATH; ls",
      "printf '%%%n' PATH; ls",
      "printf '%hhn' PATH; ls",
      "printf '%.3n' PATH; ls",
      'printf "%""n" PATH; ls'
    ]
  },
  {
    kind: "takes a program of the work tree behind a wrapper",
    lines: [
      "timeout 5 /repo/npm test",
      "timeout 5 nice /repo/npm test",
      "env /repo/npm test",
      "env CI=1 /repo/ls",
      "nice -n 5 /repo/git status",
      "nohup /repo/npm test",
      "setsid /repo/npm test",
      "stdbuf -oL /repo/npm test",
      "command /repo/npm test",
      "time /repo/npm test",
      "\\time /repo/npm test",
      "find src -exec /repo/cat {} +",
      "bash -c '/repo/npm test'",
      "timeout 5 bash -c '/repo/npm test'",
      "cd /repo && /repo/npm test",
      "/repo/./npm test",
      "/repo//npm test",
      "/repo/bin/../npm test",
      "/repo/node_modules/../npm test"
    ]
  },
  {
    kind: "looks for a secret by a pattern that takes names with a dot, too",
    lines: [
      "find . -name '*env' -exec cat {} +",
      "find . -name '?env' -exec cat {} +",
      "find . -iname '*ENV*' -exec head {} +",
      "find . -name '*.p?m' -exec cat {} \\;",
      "find . -path '*nv' -exec cat {} +",
      "find . -regex '.*env' -exec cat {} +",
      "find . -wholename './.e*' -exec cat {} +",
      "find . -name '[.]env' -exec cat {} +",
      "find . -name 'id_*' -exec cat {} +",
      "find . -name '*_rsa' -exec cat {} \\;",
      "grep -rh . --include='*env'",
      "grep -rh . --include '.e*'",
      "grep -rh . --include='?env'",
      "grep -rh . --include='*.pem'",
      "grep -rh '' --include='id_*' .",
      "rg --hidden -g '*env' .",
      "rg -. -g '?env' ''",
      "rg --hidden --glob='*.p[e]m' ''",
      "rg --iglob '*ENV' --hidden .",
      "git grep -h '' -- '*env'",
      "git grep '' -- ':(glob)**/?env'",
      "git show HEAD -- '*env'",
      "git log -p -- '*.pem'",
      "git diff HEAD~1 -- '*_rsa'",
      "git ls-files -z '*env' | xargs -0 cat"
    ]
  }
]
