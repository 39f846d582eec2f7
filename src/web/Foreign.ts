/**
 * Foreign: shows text from outside on the page so that a user can judge it, as `visible` does in the terminal.
 *
 * Guarantees: every text and every label of every page is checked here, whoever wrote it. A character that does not
 * display as itself is replaced by a mark. If a browser would show a line end as a space, a sign is shown instead.
 */
import { type ComponentChild, type ComponentChildren, Fragment, options, type VNode } from "preact"
import { visible } from "../domain/VisibleText.ts"

const SUSPECT = /[^\n -[\]-~]| {9}/
/** Matches characters that are shown unchanged: whole emoji, and the thin space that groups digits. */
const ITSELF = /(\p{RGI_Emoji}|(?<=\d)\u202f(?=\d{3}))/v
/**
 * Matches the indentation of code at the beginning of a line. It is limited, because a larger indentation would push
 * the text out of view.
 */
const INDENT = /^[+-]?[ \t]{0,40}/

const lineOf = (text: string): string => {
  const [indent] = INDENT.exec(text)!
  const parts = text.slice(indent.length).split(ITSELF)
  return indent + parts.map((part, n) => (n % 2 === 1 ? part : visible(part))).join("")
}

/** Replaces each character that does not display as itself by a mark. Line breaks stay. */
export const marked = (text: string): string => (SUSPECT.test(text) ? text.split("\n").map(lineOf).join("\n") : text)

const LABELS = ["title", "aria-label", "aria-description", "placeholder", "alt"]
const oneLine = (text: string): string => text.replaceAll("\n", "⏎")

const inOneLine = (children: ComponentChildren): ComponentChildren =>
  typeof children === "string"
    ? oneLine(children)
    : Array.isArray(children)
      ? (children as ReadonlyArray<ComponentChild>).map(inOneLine)
      : children

const keepsLines = (type: string, props: { readonly [name: string]: unknown }): boolean =>
  type === "pre" || type === "textarea" || /(^| )told( |$)/.test(String(props["class"] ?? ""))

const mark = ({ props: given, type }: VNode): void => {
  const props = given as { [name: string]: unknown }
  if (type !== Fragment && typeof type !== "string") return
  if (type === Fragment || !keepsLines(type as string, props))
    if (props["children"] !== undefined) props["children"] = inOneLine(props["children"] as ComponentChildren)
  for (const name of LABELS) if (typeof props[name] === "string") props[name] = oneLine(marked(props[name]))
}

/** From now on, marks suspicious characters in everything that is rendered. */
export const begin = (): void => {
  const before = options.vnode
  options.vnode = (vnode) => {
    // text is a node without a type
    const text = vnode as { props: unknown; readonly type: unknown }
    if (text.type !== null) mark(vnode)
    else if (typeof text.props === "string") text.props = marked(text.props)
    before?.(vnode)
  }
}
