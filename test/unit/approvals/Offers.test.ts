import { assert, describe, it } from "@effect/vitest"
import { type CallSubject, decide, type Setting } from "../../../src/approvals/Decision.ts"
import type { Rule } from "../../../src/approvals/Rule.ts"
import { faultOf } from "../../../src/approvals/RuleFault.ts"

const shell = (text: string): CallSubject => ({ _tag: "Shell", tool: "Bash", text, folders: [""] })
const auto: Setting = { mode: "auto", rules: [] }

const CALLS: ReadonlyArray<CallSubject> = [
  ..."npm test|npm run lint|npm run lint -- --fix|git add -A|git commit -m 'a b'|node scripts/gen.js|rm a.txt".split(
    "|"
  ),
  "npm test && git commit -m x",
  "ls > out/a.txt",
  "npm run build > build/log.txt 2>&1",
  "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
  "cd web && npm run e2e",
  "git add '*'",
  "git add src/*.ts",
  "foo '**' \"it's\"",
  "timeout 60 npm test",
  "bash -lc 'npm test'",
  "python3 -m json.tool"
]
  .map(shell)
  .concat([
    { _tag: "Files", tool: "Edit", access: "writes", paths: ["src/a.ts", "README.md"], free: false },
    { _tag: "Fetch", tool: "WebFetch", url: "https://docs.example/a?b=c" },
    {
      _tag: "Tool",
      tool: "mcp__shop__search",
      input: { limit: 5, tags: ["a"], query: "tea" },
      readOnly: false,
      named: true
    }
  ])

const asRules = (rules: ReadonlyArray<Pick<Rule, "effect" | "subject">>): ReadonlyArray<Rule> =>
  rules.map((rule) => ({ ...rule, place: { scope: "run", at: null } }))

const offered = (subject: CallSubject) => decide(subject, auto).offers

describe("Offers", () => {
  it("each offer, added, allows that very call", () => {
    for (const call of CALLS) {
      const offers = offered(call)
      assert.isAbove(offers.length, 0, JSON.stringify(call))
      for (const { rules, words } of offers)
        assert.strictEqual(decide(call, { ...auto, rules: asRules(rules) }).verdict, "run", words)
    }
  })

  it("the narrowest offer allows none of the other calls, but the same commit with another message", () => {
    const same = new Set([
      "git commit -m 'a b'",
      "timeout 60 npm test",
      "bash -lc 'npm test'",
      "npm test && git commit -m x",
      "npm test"
    ])
    for (const call of CALLS) {
      const rules = asRules(offered(call)[0]!.rules)
      const others = CALLS.filter((other) => other !== call && decide(other, { ...auto, rules }).verdict === "run")
      // the same command in another wrapper is the same command
      const isSame = ({ text }: { readonly text?: string }) => same.has(text ?? "")
      assert.deepStrictEqual(isSame(call as object) ? others.filter((one) => !isSame(one as object)) : others, [])
    }
  })

  it("are the narrowest rule first, then wider ones in words", () => {
    const words = (text: string) => offered(shell(text)).map((offer) => offer.words)
    assert.deepStrictEqual(words("npm run lint"), ["npm run lint", "any plain npm run lint …", "any npm run …"])
    assert.deepStrictEqual(words("npm test && git commit -m x"), [
      "npm test and git commit -m *",
      "any plain npm test … and any plain git commit …"
    ])
    assert.deepStrictEqual(words("node scripts/gen.js"), ["node scripts/gen.js"])
    assert.deepStrictEqual(words("ls > out/a.txt"), ["write out/a.txt", "write out/**"])
    assert.deepStrictEqual(words("git add '*'")[0], "git add '*'")
  })

  it("a commit is the same with another message, also one from a here-document, and no other commit", () => {
    const message = `git commit -am "$(cat <<'EOF'\nA (b)\n\nc\nEOF\n)"`
    const verdict = (given: string, text: string) => {
      const rules = asRules(offered(shell(given))[0]!.rules)
      assert.isUndefined(faultOf("allow", rules[0]!.subject))
      return decide(shell(text), { ...auto, rules }).verdict
    }
    for (const text of [message, "git commit -am x", "git commit -am 'a; b'"])
      assert.strictEqual(verdict(message, text), "run", text)
    for (const text of [
      "git commit -m x",
      "git commit -am x a.txt",
      "git commit -am",
      "git commit -am --amend",
      "git commit -am $X",
      "git commit -am *",
      'git commit -am "$TOKEN"',
      'git commit -am "$(cat .env)"',
      'git commit -am "$(./x)"',
      "git commit --amend -am x",
      "EDITOR=x git commit -am x"
    ])
      assert.strictEqual(verdict(message, text), "ask", text)
    assert.strictEqual(verdict("git commit --message a -- a.txt", "git commit --message b -- a.txt"), "run")
    assert.strictEqual(verdict("git commit --message a -- a.txt", "git commit --message b -- b.txt"), "ask")
  })

  it("there are none for what must be looked at each time", () => {
    for (const text of [
      "cat .env",
      "ls $(x)y",
      "npm test $X",
      "echo rm | sh",
      "f() { x; }; f",
      "echo x > ../y",
      "echo x > .git/config",
      "npm test *"
    ])
      assert.deepStrictEqual(offered(shell(text)), [], text)
    const asked = [{ effect: "ask", subject: { command: "git push" }, place: { scope: "user", at: null } }] as const
    assert.deepStrictEqual(decide(shell("git push"), { ...auto, rules: asked }).offers, [])
  })
})
