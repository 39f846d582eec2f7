/** Markdown: writes tables, without padding: because of long cells it would make them several times larger. */

/** Escapes a text for a cell of a table. */
export const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ")

export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n")
}
