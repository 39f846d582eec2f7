/** Rules: the rules in force for the lines of this folder, and what is decided under them. */
import { type Decision, decide, type Setting } from "../../../src/approvals/Decision.ts"
import type { Rule, RuleEffect, RuleSubject } from "../../../src/approvals/Rule.ts"

/** Rules of a project; a text is a command. */
export const rulesOf = (words: { readonly [effect in RuleEffect]?: ReadonlyArray<string | RuleSubject> }) =>
  (["allow", "ask", "deny"] as const).flatMap((effect) =>
    (words[effect] ?? []).map((subject): Rule => ({
      effect,
      subject: typeof subject === "string" ? { command: subject } : subject,
      place: { scope: "project", at: null }
    }))
  )

export const ALLOWED: ReadonlyArray<string | RuleSubject> = [
  "npm test **",
  "npm run build",
  "npm run lint **",
  "git add **",
  "git commit **",
  "git fetch **",
  "git checkout -b feature/x",
  "pytest **",
  "cargo test **",
  "go test **",
  "make test",
  "make check **",
  "eslint **",
  "prettier **",
  "vitest run **",
  "tsc **",
  "mkdir **",
  "touch **",
  "cp **",
  "node scripts/gen.js",
  "python3 -m json.tool",
  "foo --bar baz",
  "find **",
  "sed **",
  "sort **",
  "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
  { write: "build/**" },
  { write: "notes.md" }
]

export const SETTING: Setting = {
  mode: "auto",
  root: "/repo",
  isBare: (folder) => folder === "build",
  rules: rulesOf({
    allow: ALLOWED,
    ask: ["git push"],
    deny: ["git push --force", "rm -rf", "curl", "npm publish", "sudo", "git reset --hard"]
  })
}

export const decided = (text: string, setting: Setting = SETTING): Decision =>
  decide({ _tag: "Shell", tool: "Bash", text, folders: [""] }, setting)

/** Further rules, with a star for programs whose entry in the table has one. */
export const WIDE: Setting = {
  ...SETTING,
  rules: [
    ...SETTING.rules,
    ...rulesOf({
      allow: [
        "npm run * **",
        "yarn run * **",
        "pnpm run * **",
        "bun run * **",
        "bun test **",
        "jest **",
        "mocha **",
        "node --test **",
        "mypy **",
        "black **",
        "ruff check **",
        "ruff format **",
        "flake8 **",
        "python3 -m unittest **",
        "python3 -m unittest discover **",
        "python3 -m pytest **",
        "cargo clippy **",
        "cargo build **",
        "cargo run **",
        "cargo doc **",
        "cargo fmt **",
        "cargo bench **",
        "go build **",
        "go vet **",
        "go fmt **",
        "gofmt **",
        "rustfmt **",
        "oxlint **",
        "oxfmt **",
        "biome check **",
        "biome format **",
        "tee **",
        "mv **",
        "git mv **",
        "git merge **",
        "git cherry-pick **",
        "git revert **",
        "git switch **"
      ]
    })
  ]
}

/** Stars for programs that need no rule for plain use, and for files. */
export const READERS: Setting = {
  ...WIDE,
  rules: [
    ...WIDE.rules,
    ...rulesOf({
      allow: ["git log **", "ls **", "cat **", "grep **", "jq **", "git diff **", "pnpm test **", { write: "src/**" }]
    })
  ]
}
