/** Limits: what a caller may send, and how much is served at one time. */
export const Limits = {
  textBytes: 256 * 1024,
  nameLength: 256,
  pathLength: 4096,
  reasonLength: 1024,
  /** Of a file's content in one call. */
  pieceBytes: 768 * 1024,
  /** To the questions of a call: so many, each so long. */
  answers: { count: 8, length: 8 * 1024 },
  kinds: 64,
  /** Runes that one `tail` may ask for. */
  tail: 10_000,
  /** Of a report: so many pieces, each so long. */
  evidence: { count: 64, length: 8 * 1024 },
  /** Of a goal: bytes of its text, a check's characters, and how often it may be worked over. */
  goal: 64 * 1024,
  check: 4096,
  /** Of what is to be sent later: it is kept until then. */
  scheduled: 32 * 1024,
  rounds: 100,
  /** A line holds the longest text in its longest JSON spelling, and the rest. */
  lineBytes: 2 * 1024 * 1024,
  connections: 256,
  /** Besides those: connections that have not sent a whole line yet. */
  strangers: 1024,
  /** Bytes of lines that are not whole, of all connections together. */
  halfLines: 16 * 1024 * 1024,
  /** Calls under way at one time, followers of the log among them. */
  calls: 512,
  /** Of the runs' own sockets, besides those: what one run has, and what all have together. */
  runs: {
    connections: { each: 16, all: 512 },
    halfLines: { each: 4 * 1024 * 1024, all: 32 * 1024 * 1024 },
    calls: { each: 8, all: 256 },
    /** Lines of one run that are read in a second, once it has sent that many. */
    lines: { perSecond: 50, burst: 500 }
  }
} as const
