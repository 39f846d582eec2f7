/** DidYouMean: finds the known word that a misspelled word was probably meant to be. Pure. */

/** The edit distance of two words: the number of inserted, deleted, replaced and swapped letters. */
const distance = (a: string, b: string): number => {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array.from({ length: b.length }, () => 0)])
  rows[0] = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min(rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1, rows[i - 1]![j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, rows[i - 2]![j - 2]! + 1)
      rows[i]![j] = least
    }
  }
  return rows[a.length]![b.length]!
}

/** The most similar known word; undefined if none is similar. */
export const didYouMean = (word: string, known: ReadonlyArray<string>): string | undefined => {
  if (word.length > 64) return undefined
  const lower = word.toLowerCase()
  const near = known
    .map((candidate) => ({
      candidate,
      most: Math.max(1, Math.floor(Math.max(lower.length, candidate.length) / 3))
    }))
    // Skip words whose length differs too much, because the difference in length is the minimum number of edits.
    .filter(({ candidate, most }) => Math.abs(lower.length - candidate.length) <= most)
    .map(({ candidate, most }) => ({ candidate, most, away: distance(lower, candidate.toLowerCase()) }))
    .filter(({ away, candidate, most }) => away <= most && away < candidate.length)
    .toSorted((a, b) => a.away - b.away)
  return near[0]?.candidate
}
