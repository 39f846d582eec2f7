/** Limits: what a caller may send, and how many connections and calls are served at the same time. */
export const Limits = {
  textBytes: 256 * 1024,
  nameLength: 256,
  pathLength: 4096,
  reasonLength: 1024,
  /** Bytes of a file's content in one call. */
  pieceBytes: 768 * 1024,
  /** Answers to the questions of a call: their number, and the length of each. */
  answers: { count: 8, length: 8 * 1024 },
  kinds: 64,
  /** Maximum number of runes that one `tail` may request. */
  tail: 10_000,
  /** Evidence in a report: the number of entries, and the length of each. */
  evidence: { count: 64, length: 8 * 1024 },
  /** Of a goal: its text in bytes (`goal`), a check in characters (`check`), the number of review rounds (`rounds`). */
  goal: 64 * 1024,
  check: 4096,
  /** Bytes of a scheduled message or goal: it is stored until it is sent. */
  scheduled: 32 * 1024,
  rounds: 100,
  /** Maximum bytes of a line: enough for the longest text in its longest JSON encoding, plus the rest. */
  lineBytes: 2 * 1024 * 1024,
  connections: 256,
  /** Maximum connections that have not sent a whole line yet, in addition to `connections`. */
  strangers: 1024,
  /** Maximum bytes of incomplete lines, of all connections together. */
  halfLines: 16 * 1024 * 1024,
  /** Maximum number of calls in progress at the same time, including subscribers of the log. */
  calls: 512,
  /** Limits of the runs' own sockets, separate from those above: for one run, and for all together. */
  runs: {
    connections: { each: 16, all: 512 },
    halfLines: { each: 4 * 1024 * 1024, all: 32 * 1024 * 1024 },
    calls: { each: 8, all: 256 },
    /** Lines per second that are read from one run, once it has sent `burst` lines. */
    lines: { perSecond: 50, burst: 500 }
  }
} as const
