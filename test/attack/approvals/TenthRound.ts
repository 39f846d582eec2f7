/**
 * TenthRound: lines of one kind, the first of which bash found as the judge of 100,000 random lines.
 */
import type { Lines } from "./FirstRound.ts"

/** Lines that must be asked or denied, never run. */
export const ATTACKS: ReadonlyArray<Lines> = [
  {
    kind: "begins with two brackets that are no arithmetic, so that bash reads a here-document later",
    lines: [
      "((cat <<E\n./evil\nE\n) || ls )",
      "((cat <<'E'\n./evil\nE\n); ls)",
      "((cat <<E\n./evil\nE\n) )",
      "((cat <<-E\n\t./evil\n\tE\n) | cat)",
      "((npm test <<E\n./evil\nE\n) && npm test)",
      "ls; ((cat <<E\n./evil\nE\n) || ls )",
      "if ((cat <<E\n./evil\nE\n) ); then ls; fi",
      "bash -c '((cat <<E\n./evil\nE\n) || ls )'",
      "((ls; cat <<E\n./evil\nE\n) || ls )",
      "((cat <<E\n$(ls)\n./evil\nE\n) || ls )",
      "{ ((cat <<E\n./evil\nE\n) || ls ); }",
      "(( (cat <<E\n./evil\nE\n) || ls ) )",
      "(((cat <<E\n./evil\nE\n) || ls ) )",
      "timeout 60 bash -c '((npm test <<E\n./evil\nE\n) )'",
      "for i in a; do ((cat <<E\n./evil\nE\n) ); done"
    ]
  }
]
