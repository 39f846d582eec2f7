/**
 * Ellipsis: shortens text to a maximum length. An ellipsis shows that something is left out, and no character is cut in
 * two. Pure.
 */

export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`

export const tail = (text: string, length: number): string =>
  text.length <= length ? text : `…${text.slice(1 - length).toWellFormed()}`
