/**
 * Tests of the table of programs: each entry and each subcommand has lines here, those of plain use and those with an
 * extra effect. An entry without its lines fails.
 */
import { assert, describe, it } from "@effect/vitest"
import { folderEffect, joined, pathEffect } from "../../../src/approvals/Paths.ts"
import { KINDS, nameIn, wordsOf } from "../../../src/approvals/programs/Program.ts"
import type { Program } from "../../../src/approvals/programs/Program.ts"
import { PROGRAMS } from "../../../src/approvals/programs/Programs.ts"
import { tableOf } from "../../../src/approvals/programs/ProgramTable.ts"
import { readProgram } from "../../../src/approvals/programs/ReadProgram.ts"
import type { Folders, Word } from "../../../src/approvals/Reading.ts"
import { ATTACKS } from "./ProgramAttacks.ts"
import { LINES } from "./ProgramLines.ts"

/** A word as a shell gives it: in quotes it is one word; `$` outside of single quotes is not known. */
const wordOf = (text: string): Word => {
  const isQuoted = /^['"]/.test(text)
  const bare = text.replaceAll(
    /'([^']*)'|"([^"]*)"/g,
    (_, one: string | undefined, two: string | undefined) => one ?? two ?? ""
  )
  const isUnknown = text.replaceAll(/'[^']*'/g, "").includes("$")
  if (isUnknown) return { value: undefined, globs: !isQuoted, text }
  return { value: bare, globs: /[*?]|\[.+\]/.test(text.replaceAll(/'[^']*'|"[^"]*"/g, "")), text }
}
const split = (line: string): ReadonlyArray<Word> => (line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map(wordOf)
const TREE: Folders = [""]
const NOWHERE = "nowhere"
const folders = (given: Folders | typeof NOWHERE): Folders => (given === NOWHERE ? undefined : given)
const read = (line: string, at: Folders | typeof NOWHERE = TREE) => readProgram(split(line), folders(at))
const extra = (line: string, at: Folders | typeof NOWHERE = TREE) =>
  read(line, at).extra.map(({ kind, what }) => `${kind}: ${what}`)

/** All entries, with their subcommands, such as `git log`. */
const entries = (
  programs: { readonly [name: string]: Program },
  above = ""
): ReadonlyArray<readonly [string, Program]> =>
  Object.entries(programs).flatMap(([name, program]) => [
    [`${above}${name}`, program] as const,
    ...entries(program.subs, `${above}${name} `)
  ])
const all = entries(PROGRAMS)

const same = (program: Program): string =>
  JSON.stringify({ ...program, is: [...program.is], subs: {}, source: "", most: `${program.most} ${program.check}` })

/** The lines of an entry. What has the very same entry under another name is tested by its lines, too. */
const linesOf = (name: string, program: Program): { plain: ReadonlyArray<string>; more: ReadonlyArray<string> } => {
  const twin = all.find(([other, one]) => LINES[other] !== undefined && same(one) === same(program))?.[0]
  const { more = [], plain = [] } = LINES[name] ?? LINES[twin ?? ""] ?? {}
  return { plain: plain.map((line) => `${name} ${line}`.trim()), more: more.map((line) => `${name} ${line}`.trim()) }
}
const isNever = ({ is }: Program): boolean => is.has("open") && !is.has("*")

describe("the table of programs", () => {
  for (const [name, program] of all) {
    if (program.is.has("sub")) {
      it(`${name} alone, and a subcommand that is not in the table, are not known`, () => {
        for (const line of [name, `${name} no-such-thing`]) {
          const { base, star } = read(line)
          assert.isFalse(star)
          assert.isDefined(base)
        }
      })
      continue
    }
    it(name, () => {
      const { more, plain } = linesOf(name, program)
      // an entry that is never read has nothing to say but that a word is not known
      const own = isNever(program)
      const plains = own ? [...plain, `${name} x`] : plain
      const mores = own ? [...more, `${name} $X`, `${name} /etc/passwd`] : more
      assert.isNotEmpty(plains, `no plain line of ${name}`)
      // nothing can be added to what prints any word
      const isDeaf = program.is.has("deaf") && program.is.has("open")
      if (!isDeaf) assert.isNotEmpty(mores, `no line of ${name} with an extra`)
      for (const line of plains) {
        const reading = read(line)
        assert.deepEqual(reading.extra, [], line)
        assert.strictEqual(reading.shape.slice(0, name.split(" ").length).join(" "), name, line)
        assert.strictEqual(reading.star, program.is.has("*"), line)
        if (program.does !== undefined) assert.strictEqual(reading.base?.kind, program.does, line)
      }
      for (const line of mores) assert.isNotEmpty(extra(line), line)
    })
  }

  it("names a source for each entry, and no option without one", () => {
    for (const [name, { lists, source }] of all) {
      assert.isNotEmpty(source, name)
      if ((lists.options ?? "") !== "") assert.match(source, /^(man 1|help|docs|go help)/, name)
    }
  })

  it("knows nothing of an entry that it cannot read", () => {
    const { a, b } = tableOf("a: read writs\nb: read writes *")
    assert.deepEqual([a?.does, a?.is.has("*"), b?.does, b?.is.has("*")], ["unknown", false, "writes", true])
  })

  it("has no option twice", () => {
    for (const [name, program] of all) {
      const names = (["options", "edits", ...KINDS] as const)
        .flatMap((list) => wordsOf(program.lists[list]))
        .map((token) => nameIn(token)[0])
      const twice = names.filter((one, index) => names.indexOf(one) !== index && one !== "-")
      assert.deepEqual([...new Set(twice)], [], name)
    }
  })
})

describe("lines that try to get past the table", () => {
  for (const line of ATTACKS.trim().split("\n")) {
    it(line, () => {
      const { base, extra, star } = read(line)
      assert.isTrue(extra.length > 0 || (base !== undefined && !star))
    })
  }
})

describe("paths", () => {
  const path = (text: string, access: "reads" | "writes" = "reads", at: Folders | typeof NOWHERE = TREE) =>
    pathEffect(wordOf(text), folders(at), access)?.kind

  it("inside the work tree are harmless", () => {
    for (const text of [
      "a",
      "./a",
      "src/a.ts",
      "src/../a",
      "*.ts",
      "src/*",
      "/dev/null",
      "-",
      ".env.example",
      ".gitignore",
      "a?.ts",
      "*.json",
      "*.txt",
      "*_test.go",
      ".docker/Dockerfile",
      ".config/nextest.toml"
    ]) {
      assert.isUndefined(path(text), text)
    }
    for (const text of ["a", "src/new.ts", "/dev/null", "/dev/stderr", ".gitignore", ".eslintrc.json"]) {
      assert.isUndefined(path(text, "writes"), text)
    }
    assert.isUndefined(path("../a", "reads", ["src"]))
  })

  it("outside, and secrets by name, are not", () => {
    for (const text of [
      "/",
      "/etc/passwd",
      "~",
      "~/.ssh/id_rsa",
      "../a",
      "a/../../b",
      ".env",
      ".ENV",
      ".env-prod",
      "deploy/prod.env",
      "config/secrets.yml",
      "x.tfstate",
      "a/.env.local",
      ".npmrc",
      "key.pem",
      "certs/x.KEY",
      "id_rsa",
      "id_ed25519.pub",
      "a/.ssh/config",
      ".env/../a",
      ".e*",
      ".en[v]",
      ".e?v",
      "*.pem",
      "*.p?m",
      "foo.p*",
      "a/.*/b",
      "./.env",
      "src/../.env",
      ".?/x",
      "/dev/sda",
      "/proc/self/environ",
      "id_*",
      "*/.env",
      "*_rsa",
      ".docker/config.json",
      "a/.docker/c*",
      ".config/gh/hosts.yml",
      "secrets/a",
      "token.txt",
      ".ſsh/config",
      "prod.env"
    ]) {
      assert.strictEqual(path(text), "secrets", text)
    }
    assert.strictEqual(path("../../a", "reads", ["src"]), "secrets")
    assert.strictEqual(path("../a", "reads", ["src", ""]), "secrets", "a cd that may have failed")
    assert.strictEqual(path("config", "reads", [".ssh"]), "secrets")
    assert.strictEqual(path("$X"), "unknown")
    assert.strictEqual(path("a", "reads", NOWHERE), "unknown")
  })

  it("that other programs trust must not be written", () => {
    for (const text of [
      ".git/config",
      ".git",
      "./.GIT/hooks/pre-commit",
      "a/../.git/config",
      "packages/a/.git/x",
      ".claude/settings.json",
      ".codex/config.toml",
      ".gemini/x",
      ".qwen/x",
      ".opencode/x",
      ".cursor/rules",
      ".agents/x",
      ".vscode/tasks.json",
      ".idea/x",
      ".husky/pre-commit",
      ".github/workflows/a.yml",
      ".gitlab-ci.yml",
      ".envrc",
      ".npmrc",
      "agentd.json",
      "agentd.jsonc",
      "Agentd.JSONC",
      "AGENTS.md",
      "docs/CLAUDE.md",
      ".mcp.json",
      "A*.md",
      "agent?.md",
      "agentd.jſonc",
      "node_modules/.bin/tsc",
      ".cargo/config.toml",
      "Jenkinsfile",
      ".gi*/config",
      "../a",
      "/tmp/x",
      "~/.bashrc",
      ".env"
    ]) {
      assert.strictEqual(path(text, "writes"), "trusted", text)
    }
    assert.strictEqual(path("hooks/x", "writes", [".git"]), "trusted")
    assert.strictEqual(path("../.git/x", "writes", ["src"]), "trusted")
    assert.isUndefined(path(".git/HEAD"))
    assert.isUndefined(path("AGENTS.md"))
  })

  it("are joined within the work tree alone", () => {
    assert.strictEqual(joined("", "a/./b/../c"), "a/c")
    assert.strictEqual(joined("a", ".."), "")
    assert.strictEqual(joined("a/b", "../c"), "a/c")
    for (const text of ["/a", "~", "~a", ".."]) assert.isUndefined(joined("", text), text)
    assert.isUndefined(joined("a", "../.."))
  })

  it("of folders that the shell goes into", () => {
    const into = (text: string, at: Folders | typeof NOWHERE = TREE) => folderEffect(wordOf(text), folders(at))?.kind
    assert.isUndefined(into("src"))
    assert.isUndefined(into("..", ["src"]))
    assert.deepEqual([into(".."), into("/"), into("~"), into(".ssh")], ["secrets", "secrets", "secrets", "secrets"])
    assert.deepEqual([into(".git/hooks"), into("hooks", [".git"]), into(".Claude")], ["trusted", "trusted", "trusted"])
    assert.deepEqual([into("-"), into("$X"), into("a", NOWHERE)], ["unknown", "unknown", "unknown"])
  })
})

describe("what a program is", () => {
  it("without an entry, or with a path, is not known", () => {
    for (const line of [
      "foo",
      "foo --bar baz",
      "./env ls",
      "./run.sh",
      "/tmp/git status",
      "constructor",
      "__proto__",
      "$X",
      "l?"
    ]) {
      const { base, star } = read(line)
      assert.strictEqual(base?.kind, "unknown", line)
      assert.isFalse(star, line)
    }
    assert.deepEqual(readProgram([], [""]).shape, [])
  })

  it("has a shape with its subcommands, and with the name of a script", () => {
    const shape = (line: string) => {
      const { named, shape } = read(line)
      return named ? [...shape, "(named)"] : shape
    }
    assert.deepEqual(shape("git log -5"), ["git", "log"])
    assert.deepEqual(shape("git --no-pager log"), ["git", "log"])
    assert.deepEqual(shape("git frobnicate x"), ["git", "frobnicate"])
    assert.deepEqual(shape("npm run build"), ["npm", "run", "build", "(named)"])
    assert.deepEqual(shape("npm run --silent build -- --fix"), ["npm", "run", "build", "(named)"])
    assert.deepEqual(shape("npm test"), ["npm", "test"])
    assert.deepEqual(shape("make -j4 check"), ["make", "check", "(named)"])
    assert.deepEqual(shape("python -m pytest -x"), ["python", "-m", "pytest"])
    assert.deepEqual(shape("npm run $X"), ["npm", "run"])
  })

  it("is not known where git -C names another folder: a folder of the tree may be a repository with settings that run", () => {
    assert.deepEqual(extra("git -C . status"), [])
    for (const folder of ["packages/a", "../other", "$X"]) assert.isNotEmpty(extra(`git -C ${folder} status`), folder)
  })

  it("has no star for a name that may be a program", () => {
    const named = (line: string) => [read(line).named, read(line).shape.at(-1), read(line).star]
    assert.deepEqual(named("npm run build"), [true, "build", true])
    assert.deepEqual(named("yarn run build"), [false, "build", true])
    assert.deepEqual(named("bun run build"), [false, "build", false])
  })

  it("in a folder that is not known is not known", () => {
    for (const line of ["ls", "git status", "npm test", "npm ci", "cat a", "make", "rg x"]) {
      assert.isNotEmpty(extra(line, NOWHERE), line)
    }
    for (const line of ["echo a", "true", "pwd", "seq 3"]) assert.deepEqual(extra(line, NOWHERE), [], line)
  })

  it("keeps its star if it only edits by an option", () => {
    assert.isUndefined(read("ruff check src").base)
    assert.deepEqual(read("ruff check --fix src").base?.kind, "writes")
    assert.deepEqual(extra("ruff check --fix src"), [])
    assert.isNotEmpty(extra("ruff check --fix .github"))
    assert.isNotEmpty(extra("prettier --write AGENTS.md"))
    assert.deepEqual(extra("prettier --check AGENTS.md"), [])
    assert.isUndefined(read("node --version").base)
    assert.strictEqual(read("node --version x").base?.kind, "runs")
  })
})
