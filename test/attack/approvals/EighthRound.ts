/**
 * EighthRound: lines that try to get past the rules of `Rules.ts`, by words that a program reads as a language. The seventh round stands in
 * `OtherCalls.ts`.
 */
import type { Lines } from "./FirstRound.ts"

/** Lines that must be asked or denied, never run. */
export const ATTACKS: ReadonlyArray<Lines> = [
  {
    kind: "hides a command of sed among plain ones",
    lines: [
      "sed 's;a;id;e' a",
      "sed -n '/a/,/b/{p;w x' -e '}' a",
      "sed 's,a\\,b,c,e' a",
      "sed 's|a|b|;s|c|d|w x' a",
      "sed '1{e}' a",
      "sed '$!{$!e}' a",
      "sed -n '/\\n/e' a",
      "sed 'p;}w x' a",
      "sed 's/[/]/x/;e' a",
      "sed 's/[^/]/x/e' a",
      "sed '/[/e;]/p' a",
      "sed '0~4e' a",
      "sed 'N;e' a",
      "sed 'G;W x' a",
      "sed '=;e' a",
      "sed 'l;e' a",
      "sed 's/a/b/p;e;' a",
      "sed 's/a/b/gpi5w x' a",
      "sed 's/x/\\\ne/' a",
      "sed 'y/;/e/;e' a",
      "sed 'p # e\ne' a",
      "sed 's#a#b#;#\ne' a",
      "sed 's/a/b/;s/c/d/e;p' a",
      "sed '/s\\/a\\/b/e' a",
      "sed 's/\\//x/e' a",
      "sed \"s/a/'b'/e\" a",
      "sed -n '1p;2e;3p' a",
      "sed -n '1,3{p;e;}' a",
      "sed -E 's/(a)/\\1/e' a",
      "sed 's/a/b/I;s/a/b/Ie' a",
      "sed '/a/I,+2e' a",
      "sed 's:a:b:e' a",
      "sed '\\,a,e' a",
      "sed '1r .env' a",
      "sed -e 's/a/b/' -e 'r .env' a",
      "sed 's/a/b/;F;e' a"
    ]
  },
  {
    kind: "lets a builtin count what is no number",
    lines: [
      "[ a -eq 1 -o -v 'a[$(./evil)]' ]",
      '[ "a[\\$(./evil)]" -gt 0 ]',
      "[ ! 'a[$(./evil)]' -eq 1 ]",
      "[ '(' a -lt 'b[$(./evil)]' ')' ]",
      "[ -t 'a[$(./evil)]' ]",
      "test -t 'a[$(./evil)]'",
      "test -R 'a[$(./evil)]'",
      "x='a[$(./evil)]'; [ \"$x\" -ge 1 ]",
      "x='a[$(./evil)]'; [ 1 -ne $x ]",
      "x='a[$(./evil)]'; test 1 -eq \"$x\" -a -f a",
      "x='a[$(./evil)]'; exit $x",
      "x='a[$(./evil)]'; exit \"$x\"",
      "exit 'a[$(./evil)]'",
      "return 'a[$(./evil)]'",
      "for i in a; do break 'a[$(./evil)]'; done",
      "for i in a; do continue 'a[$(./evil)]'; done",
      "x='a[$(./evil)]'; printf '%d' \"$x\"",
      "x='a[$(./evil)]'; printf '%5d|%s' \"$x\" a",
      "x='a[$(./evil)]'; printf '%x %u %i %o' 1 2 3 \"$x\"",
      "printf '%s%%%n' a PATH; ls",
      "printf '%q%n' a PATH; ls",
      "printf '%(%Y)T%n' 1 PATH; ls",
      "printf '%b%n' x PATH; ls",
      "printf $'%n' PATH; ls",
      "printf '%s\\n%n' a PATH; ls",
      "printf '%%%%%n' PATH; ls",
      "printf -- '%s%n' a PATH; ls",
      "printf '%s' a -v PATH; printf \"-vPATH\" x",
      "printf -vPATH x; ls",
      'printf "-v" PATH x; ls',
      "shift 'a[$(./evil)]'",
      "wait 'a[$(./evil)]'; ./evil"
    ]
  }
]
