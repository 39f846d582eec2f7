import { assert, describe, it } from "@effect/vitest"
import { type CallSubject, decide, type Setting } from "../../../src/approvals/Decision.ts"
import type { Rule } from "../../../src/approvals/Rule.ts"

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

  it("the narrowest offer allows none of the other calls", () => {
    const same = new Set(["timeout 60 npm test", "bash -lc 'npm test'", "npm test && git commit -m x", "npm test"])
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
      "npm test and git commit -m x",
      "any plain npm test … and any plain git commit …"
    ])
    assert.deepStrictEqual(words("node scripts/gen.js"), ["node scripts/gen.js"])
    assert.deepStrictEqual(words("ls > out/a.txt"), ["write out/a.txt", "write out/**"])
    assert.deepStrictEqual(words("git add '*'")[0], "git add '*'")
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
