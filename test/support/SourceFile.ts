/**
 * SourceFile: the facts about a TypeScript file that the architecture rules check, read from its syntax tree, so that
 * comments and strings do not count as code.
 */
import { parseSync } from "rolldown/utils"

export interface SourceFile {
  /** Path from the project's root, with slashes. */
  readonly path: string
  readonly lines: number
  /** The first thing in the file, if that is a doc comment. */
  readonly opening: string | undefined
  readonly comments: ReadonlyArray<string>
  /** All imports and re-exports, including types. */
  readonly imports: ReadonlyArray<{ readonly from: string; readonly lazy: boolean }>
  /** Dotted names that are read or called: `Date.now`, `process.env`, `setTimeout`, `new Date()`. */
  readonly names: ReadonlySet<string>
  readonly castsToAny: boolean
  /** Whether the file has a field with a definite assignment, `x!: T`, which no type check proves. */
  readonly assumesField: boolean
  /** Whether the file reads a field of a `payload` by a name in brackets, which types do not check. */
  readonly indexesPayload: boolean
  /** Whether the file names git as a program: as the first argument of a call, or the first word of a command. */
  readonly startsGit: boolean
  /** Whether the file passes on a process's whole environment: `extendEnv`, a spread, a field, or no `env` option. */
  readonly inheritsEnvironment: boolean
  /** `let` and `var` outside every function. */
  readonly moduleVariables: ReadonlyArray<string>
  /** Regular expression literals. */
  readonly patterns: ReadonlyArray<{ readonly source: string; readonly flags: string }>
  /** Number of calls of `RegExp`, which compose patterns at run time. */
  readonly composes: number
}

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value

const childrenOf = (node: Node): ReadonlyArray<Node> =>
  Object.values(node)
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter(isNode)

const isPattern = (value: unknown): value is { readonly pattern: string; readonly flags: string } =>
  typeof value === "object" && value !== null && "pattern" in value && "flags" in value

export const parse = (path: string, text: string): SourceFile => {
  const { comments, errors, program } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`)

  const imports: Array<{ from: string; lazy: boolean }> = []
  const names = new Set<string>()
  const patterns: Array<{ source: string; flags: string }> = []
  let castsToAny = false
  let assumesField = false
  let indexesPayload = false
  let startsGit = false
  let inheritsEnvironment = false
  let composes = 0
  const visit = (node: Node): void => {
    const name = nameOf(node)
    if (name !== undefined) names.add(name)
    const from = importedBy(node)
    if (from !== undefined) imports.push({ from, lazy: node.type === "ImportExpression" })
    if (node.type === "Literal" && isPattern(node["regex"]))
      patterns.push({ source: node["regex"].pattern, flags: node["regex"].flags })
    const callee = node["callee"]
    if (isNode(callee) && callee["name"] === "RegExp") composes++
    castsToAny ||=
      node.type === "TSAsExpression" && isNode(node["typeAnnotation"]) && node["typeAnnotation"].type === "TSAnyKeyword"
    assumesField ||= node.type === "PropertyDefinition" && node["definite"] === true
    indexesPayload ||= isIndexedPayload(node)
    startsGit ||= isGit(node)
    inheritsEnvironment ||= isInherited(node)
    for (const child of childrenOf(node)) visit(child)
  }
  const body = (program.body as ReadonlyArray<unknown>).filter(isNode)
  for (const statement of body) visit(statement)

  const first = comments[0]
  const opens =
    first?.type === "Block" &&
    first.value.startsWith("*") &&
    text
      .slice(0, first.start)
      .replace(/^#!.*\n/, "")
      .trim() === ""
  return {
    path,
    lines: text.split("\n").length - 1,
    opening: opens ? first?.value : undefined,
    comments: comments.map(({ value }) => value),
    imports,
    names,
    castsToAny,
    assumesField,
    indexesPayload,
    startsGit,
    inheritsEnvironment,
    moduleVariables: body.flatMap(variablesOf),
    patterns,
    composes
  }
}

const STARTS = /^(make|spawn|spawnSync|exec|execSync|execFile|execFileSync|fork)$/

/** Whether a call starts a program, judged by the function's name. */
const isStart = (node: Node): boolean => {
  const callee = node["callee"]
  const name = !isNode(callee) ? undefined : isNode(callee["property"]) ? callee["property"]["name"] : callee["name"]
  return node.type === "CallExpression" && STARTS.test(String(name))
}

const nodesOf = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.filter(isNode) : [])

/**
 * Whether a name means a process's whole environment: `process.env`, `entry.env`, `environment`, `host.environment`.
 */
const isWhole = (node: Node): boolean =>
  node.type === "MemberExpression"
    ? isNode(node["property"]) &&
      (node["property"]["name"] === "environment" || /^(process|entry)\.env$/.test(nameOf(node) ?? ""))
    : node.type === "Identifier" && node["name"] === "environment"

const keyOf = (node: Node): unknown => (isNode(node["key"]) ? node["key"]["name"] : undefined)

const isInherited = (node: Node): boolean => {
  const { argument, value } = node
  if (node.type === "SpreadElement") return isNode(argument) && isWhole(argument)
  if (node.type === "Property" && isNode(value))
    return keyOf(node) === "extendEnv" ? value["value"] === true : keyOf(node) === "env" && isWhole(value)
  const { callee } = node
  const isOther = isNode(callee) && STARTS.test(String(callee["name"])) ? callee["name"] === "make" : true
  const isTheirs = isNode(callee) && nameOf(callee) === "ChildProcess.make"
  const options = isStart(node) && (isTheirs || !isOther) ? nodesOf(node["arguments"])[2] : undefined
  if (options?.type !== "ObjectExpression") return false
  return !nodesOf(options["properties"]).some((field) => field.type === "SpreadElement" || keyOf(field) === "env")
}

const isGit = (node: Node): boolean => {
  const of = isStart(node) ? node["arguments"] : node["elements"]
  const first: unknown = Array.isArray(of) ? of[0] : undefined
  return isNode(first) && typeof first["value"] === "string" && /^(.*\/)?git(-| |$)/.test(first["value"])
}

/** `payload[…]` and `rune.payload[…]`. */
const isIndexedPayload = (node: Node): boolean => {
  const { computed, object } = node
  if (node.type !== "MemberExpression" || computed !== true || !isNode(object)) return false
  const of = object.type === "MemberExpression" ? object["property"] : object
  return isNode(of) && of["name"] === "payload"
}

/** `a.b` for a member of a plain name, `f()` for a call with any arguments, `new C()` for one without arguments. */
const nameOf = (node: Node): string | undefined => {
  if (node.type === "MemberExpression" && isNode(node["object"]) && isNode(node["property"])) {
    const { object, property } = node
    return object.type === "Identifier" && property.type === "Identifier"
      ? `${object["name"]}.${property["name"]}`
      : undefined
  }
  const callee = node["callee"]
  if (!isNode(callee) || callee.type !== "Identifier") return undefined
  if (node.type === "CallExpression") return `${callee["name"]}()`
  const args = node["arguments"]
  return node.type === "NewExpression" && Array.isArray(args) && args.length === 0
    ? `new ${callee["name"]}()`
    : undefined
}

const importedBy = (node: Node): string | undefined => {
  const isImport = /^(Import(Declaration|Expression)|Export(Named|All)Declaration|TSImportType)$/.test(node.type)
  const source = node["source"]
  return isImport && isNode(source) && typeof source["value"] === "string" ? source["value"] : undefined
}

const variablesOf = (statement: Node): ReadonlyArray<string> => {
  const declaration = isNode(statement["declaration"]) ? statement["declaration"] : statement
  return declaration.type === "VariableDeclaration" && declaration["kind"] !== "const"
    ? [String(declaration["kind"])]
    : []
}
