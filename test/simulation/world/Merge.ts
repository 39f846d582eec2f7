/** Merge: two trees of files with a common beginning, brought together file by file. Pure. */

/** Texts by path. */
export type Tree = ReadonlyMap<string, string>

export interface Merged {
  readonly tree: Tree
  /** Files that both sides have changed, each in its own way; the tree has our side's. */
  readonly conflicts: ReadonlyArray<string>
}

export const isSame = (a: Tree, b: Tree): boolean =>
  a.size === b.size && [...a].every(([path, text]) => b.get(path) === text)

export const merge = (base: Tree, ours: Tree, theirs: Tree): Merged => {
  const tree = new Map<string, string>()
  const conflicts: Array<string> = []
  for (const path of new Set([...ours.keys(), ...theirs.keys()])) {
    const [was, our, their] = [base.get(path), ours.get(path), theirs.get(path)]
    const isConflict = our !== their && our !== was && their !== was
    if (isConflict) conflicts.push(path)
    const text = isConflict || our !== was ? our : their
    if (text !== undefined) tree.set(path, text)
  }
  return { tree, conflicts: conflicts.toSorted() }
}
