/**
 * ImportCycles: finds files that import each other, directly or through others: the strongly connected components of
 * the imports, by Tarjan's algorithm.
 */

/** `importsOf`: the imports of each file, by path. An import that is no key is not a file of the project. */
export const cycles = (importsOf: ReadonlyMap<string, ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> => {
  const index = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: Array<string> = []
  const found: Array<ReadonlyArray<string>> = []
  const visit = (file: string): number => {
    const own = index.size
    index.set(file, own)
    lowest.set(file, own)
    stack.push(file)
    for (const next of importsOf.get(file)!) {
      if (!importsOf.has(next)) continue
      const reached = index.has(next) ? (stack.includes(next) ? index.get(next)! : own) : visit(next)
      lowest.set(file, Math.min(lowest.get(file)!, reached))
    }
    if (lowest.get(file) === own) {
      const members = stack.splice(stack.indexOf(file))
      if (members.length > 1 || importsOf.get(file)!.includes(file)) found.push(members.toSorted())
    }
    return lowest.get(file)!
  }
  for (const file of importsOf.keys()) if (!index.has(file)) visit(file)
  return found
}
