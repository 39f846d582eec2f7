/**
 * Limits: limits on requests from callers, and on connections and calls at the same time.
 */
export const Limits = {
  textBytes: 256 * 1024,
  nameLength: 256,
  pathLength: 4096,
  reasonLength: 1024,
  /** Maximum number of bytes of a file's content in one call. */
  pieceBytes: 768 * 1024,
  /** Maximum number of calls that are approved at once. */
  batch: 100,
  /** Answers to a call's questions: maximum number of answers, and maximum length of each. */
  answers: { count: 8, length: 8 * 1024 },
  kinds: 64,
  /** Maximum number of runes that one `tail` may request. */
  tail: 10_000,
  /** Evidence in a report: maximum number of entries, and maximum length of each. */
  evidence: { count: 64, length: 8 * 1024 },
  /** Limits of a goal: its text in bytes (`goal`), a check in characters (`check`), the review rounds (`rounds`). */
  goal: 64 * 1024,
  check: 4096,
  /** Maximum size in bytes of a scheduled message or goal, which is stored until it is sent. */
  scheduled: 32 * 1024,
  rounds: 100,
  /** Maximum bytes of a line: enough for the longest text in its longest JSON encoding, and for the other fields. */
  lineBytes: 2 * 1024 * 1024,
  connections: 256,
  /** Maximum number of connections that have not sent a complete line yet, in addition to `connections`. */
  strangers: 1024,
  /** Maximum size of the incomplete lines of all connections together, in bytes. */
  halfLines: 16 * 1024 * 1024,
  /** Maximum number of calls in progress at the same time, including subscribers of the log. */
  calls: 512,
  /** Limits of the sockets of runs, separate from those above: for one run (`each`), and for all together (`all`). */
  runs: {
    connections: { each: 16, all: 512 },
    halfLines: { each: 4 * 1024 * 1024, all: 32 * 1024 * 1024 },
    calls: { each: 8, all: 256 },
    /** Number of lines that are read from one run per second, after the run has sent `burst` lines. */
    lines: { perSecond: 50, burst: 500 }
  }
} as const
