/**
 * Lines of a shell against rules for calls: those that try to get past a rule, those that hold what a rule denies, and
 * those that agents send all day. Then laws of rules and limits.
 */
import { assert, describe, it } from "@effect/vitest"
import { type CallSubject, decide, MAX_DECIDED, type Setting } from "../../src/approvals/Decision.ts"
import type { Rule, RuleSubject } from "../../src/approvals/Rule.ts"
import { dice } from "../support/Dice.ts"
import { DENIED } from "./approvals/Denied.ts"
import { ATTACKS as EIGHTH } from "./approvals/EighthRound.ts"
import { ATTACKS as FIFTH } from "./approvals/FifthRound.ts"
import { ATTACKS as FIRST } from "./approvals/FirstRound.ts"
import { ATTACKS as FOURTEENTH } from "./approvals/FourteenthRound.ts"
import { ATTACKS as FOURTH } from "./approvals/FourthRound.ts"
import { ATTACKS as NINTH } from "./approvals/NinthRound.ts"
import * as Other from "./approvals/OtherCalls.ts"
import { PLAIN } from "./approvals/Plain.ts"
import { ATTACKS as SECOND } from "./approvals/SecondRound.ts"
import { ATTACKS as SIXTH } from "./approvals/SixthRound.ts"
import { ATTACKS as TENTH } from "./approvals/TenthRound.ts"
import { ATTACKS as THIRD } from "./approvals/ThirdRound.ts"
import { ATTACKS as THIRTEENTH } from "./approvals/ThirteenthRound.ts"
import { ALLOWED, decided, READERS, rulesOf, SETTING, WIDE } from "./approvals/Rules.ts"

const ROUNDS = {
  "first round": { kinds: FIRST, setting: SETTING },
  "second round": { kinds: SECOND, setting: SETTING },
  "third round": { kinds: THIRD, setting: WIDE },
  "fourth round": { kinds: FOURTH, setting: SETTING },
  "fifth round": { kinds: FIFTH, setting: SETTING },
  "sixth round": { kinds: SIXTH, setting: SETTING },
  "eighth round": { kinds: EIGHTH, setting: SETTING },
  "ninth round": { kinds: NINTH, setting: SETTING },
  "tenth round": { kinds: TENTH, setting: SETTING },
  "thirteenth round": { kinds: THIRTEENTH, setting: WIDE },
  "fourteenth round": { kinds: FOURTEENTH, setting: READERS }
}
const ATTACKS = Object.values(ROUNDS).flatMap(({ kinds }) => kinds)

/** Lines that are not decided as they must be, each with what was decided. */
const wrong = (lines: ReadonlyArray<string>, right: ReadonlyArray<string>, setting = SETTING): ReadonlyArray<string> =>
  lines.flatMap((line) => {
    const { reason, verdict } = decided(line, setting)
    return right.includes(verdict) ? [] : [`${verdict}: ${JSON.stringify(line)}: ${reason}`]
  })

for (const [round, { kinds, setting }] of Object.entries(ROUNDS)) {
  describe(`${round}: no rule allows a line that`, () => {
    for (const { kind, lines } of kinds)
      it(kind, () => assert.deepStrictEqual(wrong(lines, ["ask", "deny"], setting), []))
  })
}

describe("a line is denied that holds", () => {
  for (const { kind, lines } of DENIED) it(kind, () => assert.deepStrictEqual(wrong(lines, ["deny"]), []))
})

describe("a line runs unasked that", () => {
  for (const { kind, lines } of PLAIN) it(kind, () => assert.deepStrictEqual(wrong(lines, ["run"]), []))
})

describe("rules for files and addresses", () => {
  const rules = rulesOf({ ...Other.RULES, allow: [...ALLOWED, ...Other.RULES.allow] })
  const auto: Setting = { mode: "auto", root: "/repo", rules }
  const full: Setting = { ...auto, mode: "full_access" }
  const verdictOf = (subject: CallSubject, setting: Setting) => decide(subject, setting).verdict
  const fetch = (url: string): CallSubject => ({ _tag: "Fetch", tool: "WebFetch", url })
  const write = (path: string): CallSubject => ({
    _tag: "Files",
    tool: "Write",
    access: "writes",
    paths: [path],
    free: false
  })

  it("no rule allows another address", () => {
    assert.strictEqual(verdictOf(fetch("https://docs.example/x"), auto), "run")
    assert.deepStrictEqual(
      Other.ADDRESSES.filter((url) => verdictOf(fetch(url), auto) === "run"),
      []
    )
  })

  it("no spelling of a host that is denied runs, also with full access", () => {
    assert.strictEqual(verdictOf(fetch("https://evil.example/x"), full), "deny")
    assert.deepStrictEqual(
      Other.DENIED_ADDRESSES.filter((url) => verdictOf(fetch(url), full) === "run"),
      []
    )
  })

  it("no rule allows to write another file", () => {
    assert.strictEqual(verdictOf(write("build/a"), auto), "run")
    assert.strictEqual(verdictOf(write("/repo/build/a"), auto), "run")
    assert.deepStrictEqual(
      Other.FILES.filter((path) => verdictOf(write(path), auto) === "run"),
      []
    )
  })

  it("no spelling of a file that is denied runs, also with full access", () => {
    assert.strictEqual(verdictOf(write("gen/a"), full), "deny")
    assert.deepStrictEqual(
      Other.DENIED_FILES.filter((path) => verdictOf(write(path), full) === "run"),
      []
    )
  })

  it("no line reads or writes a file that is denied, also with full access", () => {
    for (const setting of [auto, full])
      assert.deepStrictEqual(
        Other.LINES.filter((line) => decided(line, setting).verdict === "run"),
        []
      )
  })

  it("a tool whose input is a text is not taken for one without the argument that a rule denies", () => {
    const query = (input: unknown): CallSubject => ({
      _tag: "Tool",
      tool: "mcp__db__query",
      input,
      readOnly: false,
      named: true
    })
    for (const input of [{ sql: "x; DROP y" }, { sql: ["DROP"] }, { sql: { text: "DROP" } }, '{"sql":"DROP"}'])
      assert.notStrictEqual(verdictOf(query(input), full), "run", JSON.stringify(input))
  })
})

it("no line is in a list twice, or in two lists", () => {
  const all = [...ATTACKS, ...DENIED, ...PLAIN].flatMap(({ lines }) => lines)
  assert.strictEqual(new Set(all).size, all.length)
})

/** Every line of the lists that a law is tried on, a part of them for each roll of the dice. */
const LINES = [...ATTACKS, ...DENIED, ...PLAIN].flatMap(({ lines }) => lines)

/** A rule at random: words of a line of the lists, or one of those in force, with any effect that is asked for. */
const someRule = (roll: (below: number) => number, effects: ReadonlyArray<Rule["effect"]>): Rule => {
  const words = LINES[roll(LINES.length)]!.split(/[\s;&|<>()]+/).filter((word) => word !== "")
  const command = words.slice(0, 1 + roll(3)).join(" ") || "ls"
  const subjects: ReadonlyArray<string | RuleSubject> = [
    command,
    `${command} **`,
    { write: ["**", "src/**", "build/*", "*.ts"][roll(4)]! },
    { read: ["**", ".env", "src/**"][roll(3)]! },
    ALLOWED[roll(ALLOWED.length)]!
  ]
  return rulesOf({ [effects[roll(effects.length)]!]: [subjects[roll(subjects.length)]!] })[0]!
}

/** The setting with another rule, at any place of the list. */
const with_ = (setting: Setting, rule: Rule, at: number): Setting => ({
  ...setting,
  rules: setting.rules.toSpliced(at, 0, rule)
})

describe("whatever rule is added", () => {
  const STRICT = { run: 0, ask: 1, deny: 2 }

  it("what was denied is denied", () => {
    const roll = dice(40)
    const denied = LINES.filter((line) => decided(line).verdict === "deny")
    for (let left = 0; left < 300; left++) {
      const more = with_(SETTING, someRule(roll, ["allow", "ask", "deny"]), roll(SETTING.rules.length + 1))
      for (let tries = 0; tries < 10; tries++) {
        const line = denied[roll(denied.length)]!
        assert.strictEqual(decided(line, more).verdict, "deny", `${line} with ${JSON.stringify(more.rules)}`)
      }
    }
  })

  it("if it asks or denies, no decision is less strict", () => {
    const roll = dice(41)
    for (let left = 0; left < 300; left++) {
      const rule = someRule(roll, ["ask", "deny"])
      const more = with_(SETTING, rule, roll(SETTING.rules.length + 1))
      for (let tries = 0; tries < 10; tries++) {
        const line = LINES[roll(LINES.length)]!
        const before = decided(line).verdict
        const after = decided(line, more).verdict
        assert.isAtLeast(STRICT[after], STRICT[before], `${line} with ${JSON.stringify(rule)}`)
      }
    }
  })

  it("if it allows, no decision is stricter", () => {
    const roll = dice(42)
    for (let left = 0; left < 300; left++) {
      const rule = someRule(roll, ["allow"])
      const more = with_(SETTING, rule, roll(SETTING.rules.length + 1))
      for (let tries = 0; tries < 10; tries++) {
        const line = LINES[roll(LINES.length)]!
        const before = decided(line).verdict
        const after = decided(line, more).verdict
        assert.isAtMost(STRICT[after], STRICT[before], `${line} with ${JSON.stringify(rule)}`)
      }
    }
  })

  it("with mode full_access, a rule that asks or denies holds as with auto", () => {
    const full = (rules: Setting["rules"]): Setting => ({ mode: "full_access", rules })
    for (const line of DENIED.flatMap(({ lines }) => lines))
      assert.strictEqual(decided(line, full(SETTING.rules)).verdict, "deny", line)
    for (const line of [
      "git push",
      "git push origin main",
      "ls; git push",
      "bash -c 'git push'",
      "$X push",
      "x=git; $x push"
    ])
      assert.strictEqual(decided(line, full(SETTING.rules)).verdict, "ask", line)
    for (const line of ["./evil", "cat .env", "$X"]) assert.strictEqual(decided(line, full([])).verdict, "run", line)
  })
})

describe("limits", () => {
  const rules = rulesOf({ allow: ["ls **", "npm test **", "echo **"], deny: ["curl"], ask: ["git push"] })
  const setting: Setting = { mode: "auto", rules }
  /** A line of exactly so many characters. */
  const long = (length: number, rest: string): string => `ls ${"a".repeat(length - 3 - rest.length)}${rest}`
  const parts = (count: number, last = "ls"): string =>
    [...Array.from({ length: count - 1 }, () => "ls"), last].join("; ")

  it("nothing allows more than 10,000 characters or 50 parts", () => {
    assert.strictEqual(decided(long(10_000, ""), setting).verdict, "run")
    assert.strictEqual(decided(long(10_001, ""), setting).verdict, "ask")
    assert.strictEqual(decided(parts(50), setting).verdict, "run")
    assert.strictEqual(decided(parts(51), setting).verdict, "ask")
    assert.strictEqual(decided(`ls $(${parts(51)})`, setting).verdict, "ask")
    assert.strictEqual(decided(`bash -c '${parts(51)}'`, setting).verdict, "ask")
  })

  it("what stays in no sandbox is asked about in a long line, too", () => {
    const inside: Setting = { mode: "auto", rules: [], inside: "run", confined: true }
    assert.strictEqual(decided(long(20_000, "; npm test"), inside).verdict, "run")
    for (const rest of ["; wget x", "; cat .env"]) {
      assert.strictEqual(decided(long(20_000, rest), inside).verdict, "ask", rest)
      assert.strictEqual(decided(long(20_000, rest), { mode: "auto", rules: [] }).verdict, "ask", rest)
    }
  })

  it("each part is still held against deny and ask", () => {
    assert.strictEqual(decided(long(20_000, "; curl x"), setting).verdict, "deny")
    assert.strictEqual(decided(long(MAX_DECIDED, "\ncurl x"), setting).verdict, "deny")
    for (const count of [51, 150, 199, 200, 201, 500, 2000]) {
      assert.strictEqual(decided(parts(count, "curl x"), setting).verdict, "deny", `${count} parts`)
      assert.strictEqual(decided(`curl x; ${parts(count)}`, setting).verdict, "deny", `${count} parts`)
      assert.strictEqual(decided(parts(count, "echo $(bash -c 'curl x')"), setting).verdict, "deny", `${count} parts`)
    }
    const asked = decided(parts(60, "git push"), { mode: "full_access", rules })
    assert.strictEqual(asked.verdict, "ask")
    assert.strictEqual(decided(parts(60), { mode: "full_access", rules: [] }).verdict, "run")
    assert.strictEqual(decided(parts(2000, "git push"), { mode: "full_access", rules }).verdict === "run", false)
  })

  it("a line of more than 32 kB is denied with words, in every mode", () => {
    for (const mode of ["auto", "read_only", "full_access"] as const) {
      const { reason, verdict } = decided(long(MAX_DECIDED + 1, ""), { mode, rules: [] })
      assert.strictEqual(verdict, "deny")
      assert.match(reason, /longer than 32768 characters/)
    }
  })

  it("depth hides nothing, and ends in a decision", () => {
    for (const depth of [10, 100, 300, 3000]) {
      for (const [open, close] of [
        ["$(", ")"],
        ["(", ")"],
        ["{ ", "; }"],
        ['"$(', ')"'],
        ["if ", "; then ls; fi"],
        ["`", "`"]
      ]) {
        const line = `ls ${open === "(" || open === "{ " || open === "if " ? "; " : ""}${open!.repeat(depth)}curl x${close!.repeat(depth)}`
        assert.notStrictEqual(decided(line, setting).verdict, "run", `${depth} of ${open}`)
      }
      assert.notStrictEqual(decided(`${"bash -c ".repeat(depth)}ls; zz`, setting).verdict, "run")
      assert.notStrictEqual(decided(`${"eval ".repeat(depth)}curl x`, setting).verdict, "run")
      assert.notStrictEqual(decided(`${"timeout 5 ".repeat(depth)}curl x`, setting).verdict, "run")
      assert.notStrictEqual(
        decided(`ls \${x:-`.repeat(depth) + "$(curl x)" + "}".repeat(depth), setting).verdict,
        "run"
      )
      assert.notStrictEqual(decided(`ls ${"{a,".repeat(depth)}$(curl x)${"}".repeat(depth)}`, setting).verdict, "run")
    }
    assert.notStrictEqual(decided(`ls ${"{a,b}".repeat(30)}; zz`, setting).verdict, "run")
  })

  it("a text that a pattern can read in many ways ends in a decision", { timeout: 20_000 }, () => {
    // a pattern that tries all ways takes minutes for one of them, and fails by the timeout
    const units = [
      "\\x41",
      "\\101",
      "\\u0041",
      "[a",
      "[[:a:]",
      "a-",
      "a_a",
      "s/a/",
      "/a/,",
      "{a,",
      "${a-",
      "$(",
      "<<E ",
      "a=a "
    ]
    for (const unit of units)
      for (const [open, close] of [
        ["ls $'", ""],
        ["ls $'", "\\z'"],
        ["sed '", "'"],
        ["sed 's/", "x'"],
        ["for ", " in a; do ls; done"],
        ["cat ", "\t"],
        ["printf '%", "' a"]
      ] as const)
        assert.notStrictEqual(decided(`${open}${unit.repeat(32)}${close}; zz`, setting).verdict, "run")
  })

  it("no text makes a decision fail", () => {
    const roll = dice(43)
    const letters = [..."ab \n\t;&|<>(){}[]$`'\"\\#!*?~=+-./0\u0000\r\u00a0\ud800é"]
    for (let left = 0; left < 3000; left++) {
      const line = Array.from({ length: 1 + roll(40) }, () => letters[roll(letters.length)]!).join("")
      assert.include(
        ["run", "ask", "deny"],
        decide({ _tag: "Shell", tool: "x", text: line, folders: [""] }, SETTING).verdict
      )
    }
  })
})
