/**
 * Foreign: the text of others on the page, in a form that a person can judge: what `visible` is for the terminal.
 *
 * Guarantees: every text and every label of every page passes here on its way to the browser, whoever wrote it: what
 * does not show as itself is a mark; where a browser would draw the end of a line as a space, it is a sign.
 */
import { type ComponentChild, type ComponentChildren, Fragment, options, type VNode } from "preact"
import { visible } from "../domain/Visible.ts"

const SUSPECT = /[^\n -[\]-~]| {9}/
/** Whole emoji; the thin space that groups digits. */
const ITSELF = /(\p{RGI_Emoji}|(?<=\d)\u202f(?=\d{3}))/v
/** Indentation of code at the beginning of a line; more pushes it out of sight. */
const INDENT = /^[+-]?[ \t]{0,40}/

const lineOf = (text: string): string => {
  const [indent] = INDENT.exec(text)!
  const parts = text.slice(indent.length).split(ITSELF)
  return indent + parts.map((part, n) => (n % 2 === 1 ? part : visible(part))).join("")
}

/** The text with a mark in place of each character that does not show as itself; ends of lines stay. */
export const marked = (text: string): string => (SUSPECT.test(text) ? text.split("\n").map(lineOf).join("\n") : text)

const LABELS = ["title", "aria-label", "aria-description", "placeholder", "alt"]
const oneLine = (text: string): string => text.replaceAll("\n", "⏎")

const inOneLine = (children: ComponentChildren): ComponentChildren =>
  typeof children === "string"
    ? oneLine(children)
    : Array.isArray(children)
      ? (children as ReadonlyArray<ComponentChild>).map(inOneLine)
      : children

/** Elements that draw the end of a line as one. */
const keepsLines = (type: string, props: { readonly [name: string]: unknown }): boolean =>
  type === "pre" || type === "textarea" || /(^| )told( |$)/.test(String(props["class"] ?? ""))

const mark = ({ props: given, type }: VNode): void => {
  const props = given as { [name: string]: unknown }
  if (type !== Fragment && typeof type !== "string") return
  if (type === Fragment || !keepsLines(type as string, props))
    if (props["children"] !== undefined) props["children"] = inOneLine(props["children"] as ComponentChildren)
  for (const name of LABELS) if (typeof props[name] === "string") props[name] = oneLine(marked(props[name]))
}

/** From here on whatever is drawn is marked. */
export const begin = (): void => {
  const before = options.vnode
  options.vnode = (vnode) => {
    // a text is a node without a type
    const text = vnode as { props: unknown; readonly type: unknown }
    if (text.type !== null) mark(vnode)
    else if (typeof text.props === "string") text.props = marked(text.props)
    before?.(vnode)
  }
}
