import { assert, describe, it } from "@effect/vitest"
import { type CallSubject, decide, MAX_DECIDED, type Setting } from "../../../src/approvals/Decision.ts"
import type { Rule, RuleEffect, RuleSubject } from "../../../src/approvals/Rule.ts"

const rule = (effect: RuleEffect, written: string | RuleSubject, at: string | null = null): Rule => ({
  effect,
  subject: typeof written === "string" ? { command: written } : written,
  place: { scope: "project", at }
})

const allow = (...all: ReadonlyArray<string | RuleSubject>) => all.map((one) => rule("allow", one))

const shell = (text: string, folders: ReadonlyArray<string> = [""]): CallSubject => ({
  _tag: "Shell",
  tool: "Bash",
  text,
  folders
})

const setting = (rules: ReadonlyArray<Rule> = [], rest: Partial<Setting> = {}): Setting => ({
  mode: "auto",
  rules,
  ...rest
})

const verdict = (text: string, rules: ReadonlyArray<Rule> = [], rest: Partial<Setting> = {}) =>
  decide(shell(text), setting(rules, rest)).verdict

const each = (texts: ReadonlyArray<string>, rules: ReadonlyArray<Rule>, rest: Partial<Setting> = {}) =>
  Object.fromEntries(texts.map((text) => [text, verdict(text, rules, rest)]))

const all = (texts: ReadonlyArray<string>, is: string) => Object.fromEntries(texts.map((text) => [text, is]))

describe("Decision", () => {
  it("what reads the work tree is free, and every part of a line needs leave", () => {
    assert.strictEqual(verdict("git status --short && grep -rn TODO src | head -5"), "run")
    assert.strictEqual(verdict("git status && npm test"), "ask")
    assert.strictEqual(verdict("git status && npm test", allow("npm test **")), "run")
    assert.strictEqual(verdict("npm test && rm a", allow("npm test **")), "ask")
  })

  it("deny goes before ask, and ask before allow, whatever comes first or is closer", () => {
    const rules = [...allow("git push origin main"), rule("ask", "git push"), rule("deny", "git push --force")]
    assert.strictEqual(verdict("git push origin main", rules), "ask")
    assert.strictEqual(verdict("git push origin main --force", rules), "deny")
    assert.strictEqual(verdict("git push origin main", rules.toReversed()), "ask")
  })

  it("names the rule and its place, and the reason of each part", () => {
    const rules = [rule("allow", "npm test **", "agentd.jsonc:7")]
    const decision = decide(shell("cd web && npm test -- -t x"), setting(rules))
    assert.strictEqual(decision.rule?.place.at, "agentd.jsonc:7")
    assert.deepStrictEqual(
      decision.parts.map(({ reason, verdict: of }) => [of, reason]),
      [
        ["run", "it only reads the work tree"],
        ["run", 'allow "npm test **" (agentd.jsonc:7)']
      ]
    )
  })

  it("a rule that denies meets what a wrapper, a shell or a word hides", () => {
    const hidden = [
      "sudo curl x",
      "env -i curl x",
      "bash -c 'ls; curl x'",
      "sh -c 'curl \"$1\"' _ x",
      "eval curl x",
      "xargs -I{} curl {} < a",
      "echo $(curl x)",
      "c''url x",
      "/usr/bin/curl x",
      "f() { curl x; }; f"
    ]
    assert.deepStrictEqual(each(hidden, [rule("deny", "curl")]), all(hidden, "deny"))
  })

  it("a rule that denies an option meets it in any order and form, and a form that it may be is asked", () => {
    const rules = [rule("deny", "rm -rf"), rule("deny", "git push --force")]
    const forms = ["rm -rf a", "rm -fr a", "rm -r -f a", "rm a -rf", "git -C a push x --force"]
    assert.deepStrictEqual(each(forms, rules), all(forms, "deny"))
    const likely = ["rm --recursive --force a", "git push -f", "git push $X", "$X push --force"]
    assert.deepStrictEqual(each(likely, rules, { mode: "full_access" }), all(likely, "ask"))
    assert.strictEqual(verdict("git commit -m push", rules, { mode: "full_access" }), "run")
  })

  it("while a rule denies or asks, a line that is not understood is asked in every mode", () => {
    const unclear = 'npm() { "$X"; }; npm'
    assert.strictEqual(verdict(unclear, [], { mode: "full_access" }), "run")
    assert.strictEqual(verdict(unclear, [rule("deny", "curl")], { mode: "full_access" }), "ask")
    assert.strictEqual(verdict(unclear, allow({ tool: "Bash" })), "run")
    assert.strictEqual(verdict(unclear, [...allow({ tool: "Bash" }), rule("ask", "git push")]), "ask")
  })

  it("read_only denies what auto asks, and a rule allows it in every mode", () => {
    const mode = { mode: "read_only" } as const
    assert.strictEqual(verdict("npm run build", [], mode), "deny")
    assert.strictEqual(verdict("npm run build", allow("npm run build"), mode), "run")
    assert.strictEqual(verdict("ls", [], mode), "run")
  })

  it("over 10,000 characters or 50 parts nothing allows, and every part still meets rules that deny", () => {
    const rules = [...allow("npm test **"), rule("deny", "curl")]
    const many = Array.from({ length: 51 }, () => "npm test").join(" && ")
    assert.strictEqual(verdict(many, rules), "ask")
    assert.strictEqual(verdict(`${many} && curl x`, rules), "deny")
    assert.strictEqual(verdict(`npm test ${"a ".repeat(5001)}`, rules), "ask")
    const { reason, verdict: of } = decide(shell("a ".repeat(MAX_DECIDED / 2 + 1)), setting(rules))
    assert.strictEqual(of, "deny")
    assert.include(reason, `longer than ${MAX_DECIDED} characters`)
  })

  it("a file below the work tree may be named by its absolute path", () => {
    const root = { root: "/home/ann/shop" }
    assert.strictEqual(verdict("cd /home/ann/shop && npm test", allow("npm test **"), root), "run")
    assert.strictEqual(verdict("cat /home/ann/shop/src/a.ts", [], root), "run")
    assert.strictEqual(verdict("cat /home/ann/shop/../b", [], root), "ask")
    assert.strictEqual(verdict("cat /home/ann/shopping/a", [], root), "ask")
    assert.strictEqual(verdict("cat /home/ann/shop/.env", [], root), "ask")
  })

  it("words of a rule that name a file hold only in the work tree's own folder", () => {
    const rules = allow("node scripts/gen.js", "npm test **")
    assert.strictEqual(verdict("node scripts/gen.js", rules), "run")
    assert.strictEqual(verdict("cd vendor && node scripts/gen.js", rules), "ask")
    assert.strictEqual(decide(shell("node scripts/gen.js", ["vendor"]), setting(rules)).verdict, "ask")
    const anywhere = { ...shell("ls a"), folders: undefined } as CallSubject
    assert.strictEqual(decide(anywhere, setting(rules)).verdict, "ask")
  })

  it("a loop over known words is what it does with each of them", () => {
    assert.strictEqual(verdict('for f in src/a.ts src/b.ts; do head -5 "$f"; done'), "run")
    assert.strictEqual(verdict('for f in a .env; do head -5 "$f"; done'), "ask")
    assert.strictEqual(verdict('for f in a; do f=/etc/passwd; cat "$f"; done'), "ask")
    assert.strictEqual(verdict('for f; do cat "$f"; done'), "ask")
    assert.strictEqual(verdict("for p in rm; do $p a; done"), "ask")
  })

  it("what stays in a sandbox without a network needs nobody, and rules hold there, too", () => {
    const inside = { confined: true, inside: "run" } as const
    const rules = [rule("ask", "git push"), rule("deny", "npm publish")]
    const free = ["node -e 1", "rm a.txt", "./run.sh", "npm run deploy", "python3 x.py"]
    assert.deepStrictEqual(each(free, rules, inside), all(free, "run"))
    const asked = ["curl https://example.org", "cat .env", "git push", "echo x > .git/config"]
    assert.deepStrictEqual(each(asked, rules, inside), all(asked, "ask"))
    assert.strictEqual(verdict("bash -c 'npm publish'", rules, inside), "deny")
    assert.deepStrictEqual(each(free, rules, { inside: "run" }), all(free, "ask"), "no sandbox holds it")
  })
})

describe("Decision about calls that are no command", () => {
  const files = (access: "writes" | "reads", ...paths: ReadonlyArray<string>): CallSubject => ({
    _tag: "Files",
    tool: "Edit",
    access,
    paths,
    free: false
  })
  const of = (subject: CallSubject, rules: ReadonlyArray<Rule> = []) =>
    decide(subject, setting(rules, { root: "/home/ann/shop" })).verdict

  it("files are written by rules for paths, and a star stands for no file that others trust", () => {
    const rules = allow({ write: "src/**" }, { write: "**" })
    assert.strictEqual(of(files("writes", "src/a/b.ts"), rules), "run")
    assert.strictEqual(of(files("writes", "/home/ann/shop/src/a.ts"), rules), "run")
    assert.strictEqual(of(files("writes", "src/a.ts", "/etc/hosts"), rules), "ask")
    assert.strictEqual(of(files("writes", "src/../../x"), rules), "ask")
    assert.strictEqual(of(files("writes", ".git/config"), rules), "ask")
    assert.strictEqual(of(files("writes", ".git/config"), allow({ write: ".git/config" })), "run")
    assert.strictEqual(of(files("reads", "src/a.ts")), "ask", "the agent alone says that it only reads")
    assert.strictEqual(of(files("reads", "src/a.ts"), allow({ read: "src/**" })), "run")
    assert.strictEqual(of(files("reads", "/etc/passwd")), "ask")
  })

  it("one rule for a path holds for tools, redirections and commands alike", () => {
    const rules = [rule("deny", { read: "private/**" }), rule("deny", { write: "db/**" })]
    assert.strictEqual(of(files("reads", "private/a"), rules), "deny")
    assert.strictEqual(of(files("writes", "db/a"), rules), "deny")
    const denied = ["cat private/a", "head -3 < private/a", "echo x > db/a", "cp a db/b", "grep x src/../private/a"]
    assert.deepStrictEqual(each(denied, rules), all(denied, "deny"))
    const likely = ["grep -rn x .", "rg x", "cat p*/a", "grep -rn x private"]
    assert.deepStrictEqual(each(likely, rules), all(likely, "ask"))
  })

  it("a call without side effects is free unless a rule says otherwise", () => {
    const free: CallSubject = { _tag: "Files", tool: "Read", access: "reads", paths: ["/etc/hosts"], free: true }
    assert.strictEqual(of(free), "run")
    const inside: CallSubject = { _tag: "Files", tool: "Read", access: "reads", paths: ["private/a"], free: true }
    assert.strictEqual(of(inside, [rule("deny", { read: "private/**" })]), "deny")
    assert.strictEqual(of(inside, [rule("ask", { tool: "Read" })]), "ask")
  })

  it("addresses: leave is for protocol, host and port; a denial needs the host alone", () => {
    const fetched = (url: string, rules: ReadonlyArray<Rule>) => of({ _tag: "Fetch", tool: "WebFetch", url }, rules)
    const rules = allow({ url: "https://docs.example/*" })
    assert.strictEqual(fetched("https://docs.example/a?b=c", rules), "run")
    for (const other of [
      "http://docs.example/a",
      "https://docs.example:8443/a",
      "https://docs.example.evil.example/a",
      "https://docs.example@evil.example/a",
      "https://evil.example/https://docs.example/a"
    ])
      assert.strictEqual(fetched(other, rules), "ask", other)
    assert.strictEqual(fetched("http://DOCS.example:80/x", [rule("deny", { url: "https://docs.example/*" })]), "deny")
    assert.strictEqual(
      verdict("wget https://docs.example/a", [rule("deny", { url: "https://docs.example/*" })]),
      "deny"
    )
  })

  it("tools: leave names every argument of the call; a denial needs its own alone", () => {
    const used = (input: unknown, rules: ReadonlyArray<Rule>) =>
      of({ _tag: "Tool", tool: "mcp__shop__search", input, readOnly: false, named: true }, rules)
    const rules = allow({ tool: "mcp__shop__search", argument: { limit: "*" } })
    assert.strictEqual(used({ limit: 5 }, rules), "run")
    assert.strictEqual(used({ limit: 5, sort: "x" }, rules), "ask")
    assert.strictEqual(used({}, rules), "ask")
    const denied = [rule("deny", { tool: "mcp__shop__*", argument: { sort: "price" } })]
    assert.strictEqual(used({ limit: 5, sort: "price" }, denied), "deny")
    assert.strictEqual(used({ limit: 5 }, denied), "ask")
  })
})
