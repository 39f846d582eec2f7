/**
 * keeper: the process that holds the runs' programs while the daemon comes and goes.
 *
 *     node keeper.mjs DIR [--lease MS] [--warm N] [--bound BYTES] [--segment BYTES] [--cgroup PATH|own]
 *
 * DIR is private (0700): `sock`, `pid`, `epoch`, and in `runs` a folder for each program with the FIFOs `in`,
 * `out`, `err`, `spec`, `bye`, its output as segments `out.OFFSET` and `err.OFFSET`, `inputs`, `meta` and,
 * at the end, `exit`. Protocol.ts has the words that the daemon and this program speak, one JSON value a line.
 *
 * Guarantees: output is appended to files and never changed, so that a byte has one position for ever; an input
 * is written once, whoever sends it how often (rising numbers), and noted when the pipe has all of it; the exit
 * of a program is durable before it is told as ended; a slow or absent daemon stops a program at a bound and
 * loses nothing; without a daemon for the lease all programs are ended. The death of the keeper ends none: a
 * sleeping shell beside each (the anchor) holds its pipes open, and a new keeper finds it by its folder. A fault
 * of the system (a full disk, no more files) fails the order or waits for better times; a folder that is damaged
 * costs its own program only.
 *
 * A program starts in a shell that waits (a slot): the fork is paid before anyone asks. It imports nothing of agentd
 * and runs from a copy of its own. Its environment and arguments go through a FIFO and are in no file.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = fs.constants
const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? fallback : process.argv[at + 1]
}
const DIR = path.resolve(process.argv[2])
const RUNS = path.join(DIR, "runs")
const LEASE = Number(option("lease", "300000"))
const WARM = Number(option("warm", "2"))
/** Output that the daemon has not read, per stream: then the program waits. */
const BOUND = Number(option("bound", String(64 << 20)))
const SEGMENT = Number(option("segment", String(4 << 20)))
/** Input that waits for a program to read it. */
const INPUT_BOUND = 8 << 20
/** Characters of an order: of the daemon, and of one who has not said hello. */
const MAX_LINE = 64 << 20
const MAX_HELLO = 4096
/** The system's limit on one argument or variable, and a safe one on all of them. */
const MAX_WORD = 128 * 1024 - 1
const MAX_WORDS = 1_900_000
/** A shell names descriptors by one digit. */
const MAX_HANDED = 7
/** ms that a pipe may stay open in other hands once the program has gone. */
const HELD = 1000
const GRACE = 5000
/** ms that a keeper with nothing to hold waits for a daemon. */
const LINGER = 2000
/** ms until something that the system refused is tried again. */
const AGAIN = 1000
const VERSION = 1
/** No process has this pid. */
const NOBODY = 2 ** 31 - 1
const UMASK = process.umask(0o077)
const BOOT = text("/proc/sys/kernel/random/boot_id").trim()

/** What a file holds; nothing where there is none. Without descriptors nobody can say. */
function text(file) {
  try {
    return fs.readFileSync(file, "utf8")
  } catch (error) {
    if (error.code === "EMFILE" || error.code === "ENFILE") throw error
    return ""
  }
}

function log(...words) {
  console.error(new Date().toISOString(), ...words)
}

/** What fails is logged under this name, where it has one, and costs nothing else. */
const attempt = (what, body) => {
  try {
    return body()
  } catch (error) {
    if (what !== "") log(what, error)
  }
}
const parsed = (file) => attempt(file, () => JSON.parse(text(file) || "null"))
const remove = (dir) => attempt("remove", () => fs.rmSync(dir, { recursive: true, force: true }))
const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`
/** A process's start time; nothing where it has ended. */
const identity = (pid) => {
  const stat = text(`/proc/${pid}/stat`)
  const field = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return field[0] === "Z" || field[0] === "X" ? "" : (field[19] ?? "")
}

const runs = new Map()
/** Records of programs that ended under a keeper before this one. */
const past = new Map()
let client
let epoch = Number(text(path.join(DIR, "epoch")) || -1)
let retired = false
let expired = false
let lease
process.on("uncaughtException", (error) => log("fault", error))
process.on("SIGHUP", () => {})
process.on("SIGTERM", () => expire("SIGTERM"))

const tell = (message) => void (client?.writable && client.write(`${JSON.stringify(message)}\n`))
const isQuiet = () => asking.length === 0 && [...runs.values()].every(({ ended }) => ended)

/** A delegated cgroup; `own`: the one that the keeper was started in. */
const delegated = (asked) => {
  if (asked !== "own") return asked
  const root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].find((at) => fs.existsSync(`${at}/cgroup.procs`))
  const line = /^0::(.*)$/m.exec(text("/proc/self/cgroup"))
  if (root === undefined || line === null) return ""
  const own = path.join(root, line[1])
  // a cgroup that divides its resources holds no process itself
  fs.mkdirSync(`${own}/keeper`, { recursive: true })
  fs.writeFileSync(`${own}/keeper/cgroup.procs`, String(process.pid))
  for (const name of text(`${own}/cgroup.controllers`).match(/memory|pids|cpu\b/g) ?? [])
    attempt("cgroup", () => fs.writeFileSync(`${own}/cgroup.subtree_control`, `+${name}`))
  return own
}
let cgroups = attempt("cgroup", () => delegated(option("cgroup", ""))) ?? ""

// slots: shells that have forked, entered their cgroup and made their pipes, and wait to become a program

/** Ends the program's whole group where no keeper has come for $3 seconds. It is of that group: its number is not used again. */
const ANCHOR = String.raw`trap '' HUP INT TERM; exec >/dev/null
timer=
while exec 6<bye; do
  [ -z "$timer" ] || kill -9 $timer
  while read word <&6; do
    case $word in taken) rm -f handed.* ;; close) exec 3>&- ;; bye) exit ;; esac
  done
  exec 6<&-
  (exec 3>&- 4>&- 5>&-; sleep $3; kill -TERM 0; sleep 5; kill -KILL 0) & timer=$!
done`
/** Its standard input ends where the keeper dies before it has opened the pipes; then `spec` waits for one who writes it. */
const SLOT = String.raw`cd "$1" && mkfifo -m 600 spec in out err bye || exit 97
[ -z "$2" ] || echo 0 >"$2/cgroup.procs" || exit 98
echo; read go || exit
exec 3<>in 4<>out 5<>err
( (${ANCHOR}) & )
exec 0<in 3>&- 4>&- 5>&-
echo; exec >/dev/null
. ./spec
exit 97`
const slots = []
const asking = []
let made = 0
let warming = 0
let failures = 0

const drop = ({ cgroup, dir, pid }) => {
  if (pid !== undefined) signalGroup(pid, "SIGKILL")
  remove(dir)
  if (cgroup) fs.rmdir(cgroup, () => {})
}

const warm = () => {
  if (retired) return
  while (slots.length + warming < Math.max(WARM, asking.length)) prepare()
}

const prepare = () => {
  warming++
  const name = `slot-${process.pid}-${made++}`
  const dir = path.join(RUNS, name)
  const cgroup = cgroups && path.join(cgroups, name)
  let run
  let pid
  const failed = (error) => {
    if (run === undefined) warming--
    else if (slots.includes(run)) slots.splice(slots.indexOf(run), 1)
    else return
    if (run !== undefined) shut(run)
    run = {}
    drop({ dir, pid, cgroup })
    if (failures++ === 0) log("slot", error)
    if (error.code === 98) cgroups = ""
    asking.shift()?.({ error: typeof error.code === "string" ? error.code : "EAGAIN" })
    setTimeout(warm, Math.min(10_000, 100 * 2 ** failures))
  }
  try {
    fs.mkdirSync(dir)
    if (cgroup) fs.mkdirSync(cgroup)
    const argv = [path.join(DIR, "slot.sh"), dir, cgroup, String(LEASE / 1000)]
    const env = { PATH: process.env["PATH"] }
    const child = spawn("/bin/sh", argv, { detached: true, stdio: ["pipe", "pipe", "ignore"], env })
    pid = child.pid
    child.once("error", failed)
    if (pid === undefined) return
    child.once("exit", (code, signal) => (run?.id === undefined ? failed({ code }) : exited(run, code, signal)))
    child.stdin.on("error", () => {})
    const opened = () => {
      const meta = { pid, start: identity(pid), boot: BOOT, cgroup: cgroup || undefined }
      fs.writeFileSync(path.join(dir, "meta"), JSON.stringify(meta))
      const bye = openBoth(dir, "bye")
      child.stdin.end("go\n")
      child.stdout.once("data", () => {
        child.stdout.destroy()
        attemptOr(failed, () => {
          const ready = open(dir, { ...meta, bye })
          warming--
          failures = 0
          run = ready
          if (asking.length > 0) asking.shift()(run)
          else slots.push(run)
        })
      })
    }
    child.stdout.once("data", () => attemptOr(failed, opened))
  } catch (error) {
    failed(error)
  }
}

const attemptOr = (failed, body) => {
  try {
    body()
  } catch (error) {
    failed(error)
  }
}

const slot = (take) => {
  const ready = slots.shift()
  if (ready === undefined) asking.push(take)
  else take(ready)
  // after the program has begun: a fork here would delay it
  setTimeout(warm, slots.length > 0 ? 20 : 0)
}

// output: a FIFO is copied into segments; a byte's position never changes

const segments = (dir, name) =>
  fs
    .readdirSync(dir)
    .filter((file) => file.startsWith(`${name}.`))
    .map((file) => Number(file.slice(name.length + 1)))
    .filter(Number.isInteger)
    .toSorted((a, b) => a - b)
const segment = (dir, name, base) => path.join(dir, `${name}.${base}`)
const openSegment = (dir, name, base) => fs.openSync(segment(dir, name, base), O_WRONLY | O_APPEND | O_CREAT, 0o600)
const openBoth = (dir, name) => fs.openSync(path.join(dir, name), O_RDWR | O_NONBLOCK)

const lastOf = (dir, name) => {
  const base = segments(dir, name).at(-1)
  return { base, size: base + fs.statSync(segment(dir, name, base)).size }
}

/** `mark`: the daemon has read this much. `stuck`: the disk is full, and what was read waits. */
const stream = (run, name) => {
  const known = segments(run.dir, name)
  const base = known.at(-1) ?? 0
  const file = openSegment(run.dir, name, base)
  const size = base + fs.fstatSync(file).size
  return { run, name, pump: undefined, file, base, size, mark: known[0] ?? 0, stuck: false }
}
const isFull = ({ mark, size }) => size - mark > BOUND

/** Streams that have grown while the daemon did not listen: told once it does. */
const news = new Set()
const grown = (one) => {
  if (client?.writableNeedDrain) news.add(one)
  else tell({ tell: "output", run: one.run.id, stream: one.name, size: one.size })
}

/** Returns what could not be written. */
const keep = (one, chunk) => {
  if (one.run.forgotten) return chunk.subarray(chunk.length)
  let from = 0
  try {
    if (one.size - one.base >= SEGMENT) {
      const next = openSegment(one.run.dir, one.name, one.size)
      fs.closeSync(one.file)
      Object.assign(one, { file: next, base: one.size })
    }
    while (from < chunk.length) {
      const wrote = fs.writeSync(one.file, chunk, from)
      from += wrote
      one.size += wrote
    }
  } catch (error) {
    if (!one.stuck) log("output", one.run.id, error)
  }
  if (from > 0) grown(one)
  if (isFull(one)) one.pump?.pause()
  return chunk.subarray(from)
}

/** All pumps read into it: what is in it is written before another one reads. */
const buffer = Buffer.allocUnsafeSlow(1 << 16)

/** Read and written in one go: what SIGKILL finds between the two is lost. */
const pump = (one) => {
  const fd = fs.openSync(path.join(one.run.dir, one.name), O_RDONLY | O_NONBLOCK)
  // a full disk: the program waits, nothing is dropped
  const later = (chunk) => {
    const rest = keep(one, chunk)
    one.stuck = rest.length > 0
    if (one.stuck) setTimeout(later, AGAIN, rest)
    else if (!isFull(one)) socket.resume()
  }
  const callback = (length, from) => {
    const rest = keep(one, from.subarray(0, length))
    if (rest.length > 0) {
      one.stuck = true
      socket.pause()
      setTimeout(later, AGAIN, Uint8Array.from(rest))
    }
    return true
  }
  const socket = new net.Socket({ fd, readable: true, writable: false, onread: { buffer, callback } })
  one.pump = socket
  socket.resume()
  socket.on("error", () => {})
  socket.on("close", () => {
    one.pump = undefined
    settle(one.run)
  })
}

const mark = (one, position) => {
  one.mark = Math.max(one.mark, Math.min(Number(position) || 0, one.size))
  if (!isFull(one) && !one.stuck && one.pump?.isPaused()) one.pump.resume()
}

/** Whole segments go. */
const free = (one, position) => {
  const known = segments(one.run.dir, one.name)
  for (const [index, base] of known.entries())
    if (known[index + 1] <= position) fs.unlinkSync(segment(one.run.dir, one.name, base))
}

// a program's life

/** Lines of the inputs that the program has been given. */
const notesOf = (dir) => {
  const lines = text(path.join(dir, "inputs")).split("\n").slice(0, -1)
  return { lines, seq: lines.map((line) => Number(line.split(" ", 1)[0])).findLast(Number.isInteger) ?? 0 }
}

/** Notes go up to that number; the last one stays, since it tells the number. */
const trim = (run, seq) => {
  const { lines } = notesOf(run.dir)
  const kept = lines.filter((line, index) => !(Number.parseInt(line) <= seq) || index === lines.length - 1)
  if (kept.length === lines.length || run.closed) return
  const file = path.join(run.dir, "inputs")
  fs.writeFileSync(`${file}.tmp`, `${kept.join("\n")}\n`)
  const notes = fs.openSync(`${file}.tmp`, O_WRONLY | O_APPEND)
  fs.renameSync(`${file}.tmp`, file)
  fs.closeSync(run.notes)
  run.notes = notes
}

/** Its pipes and files; it has no name yet. */
const open = (dir, { bye, cgroup, pid, start }) => {
  const { lines, seq } = notesOf(dir)
  const run = { id: undefined, dir, pid, start, cgroup, bye, seq, flight: [], given: 0 }
  Object.assign(run, { exit: undefined, closed: false, ended: false, forgotten: false })
  try {
    run.notes = fs.openSync(path.join(dir, "inputs"), O_WRONLY | O_APPEND | O_CREAT, 0o600)
    run.out = stream(run, "out")
    run.err = stream(run, "err")
    if (!lines.some((line) => line.endsWith(" close"))) {
      run.inputFd = openBoth(dir, "in")
      run.input = new net.Socket({ fd: run.inputFd, readable: false, writable: true })
      run.input.on("error", () => {})
    }
    pump(run.out)
    pump(run.err)
    return run
  } catch (error) {
    shut(run)
    throw error
  }
}

const shut = (run) => {
  run.closed = true
  for (const one of [run.out, run.err]) one?.pump?.destroy()
  run.input?.destroy()
  for (const fd of [run.out?.file, run.err?.file, run.notes, run.bye]) if (fd !== undefined) fs.closeSync(fd)
}

const program = ({ argv, cwd, env }) => {
  const name = argv[0] ?? ""
  const folders = name.includes("/") ? [""] : (env["PATH"] ?? "/usr/bin:/bin").split(":")
  let code = "ENOENT"
  for (const file of folders.map((folder) => path.resolve(cwd, folder, name))) {
    try {
      fs.accessSync(file, fs.constants.X_OK)
      if (fs.statSync(file).isFile()) return { file }
      code = "EACCES"
    } catch (error) {
      if (error.code === "EACCES" || error.code === "ENOTDIR") code = error.code
    }
  }
  return { code }
}

/** Says why the program cannot be started; nothing where it can. */
const objection = ({ argv, cwd, env, handed = [], run }) => {
  if (retired) return "retired"
  const words = [...argv, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  if (!/^(?!slot-|\.+$)[\w.+-]{1,200}$/.test(run) || handed.length > MAX_HANDED) return "EINVAL"
  if ([...words, cwd].some((word) => word.includes("\0"))) return "EINVAL"
  if (runs.has(run) || past.has(run) || fs.existsSync(path.join(RUNS, run))) return "EEXIST"
  const sizes = words.map((word) => Buffer.byteLength(word))
  if (sizes.some((size) => size > MAX_WORD) || sizes.reduce((sum, size) => sum + size + 9, 0) > MAX_WORDS)
    return "E2BIG"
  try {
    if (!fs.statSync(cwd).isDirectory()) return "ENOTDIR"
    fs.accessSync(cwd, fs.constants.X_OK)
    return undefined
  } catch (error) {
    return error.code
  }
}

const script = ({ argv, cwd, env, handed = [], input }, file) => {
  const isPlain = (name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)
  const names = Object.keys(env)
  // a shell can export no other name
  const odd = names.filter((name) => !isPlain(name) && name !== "").map((name) => `${name}=${env[name]}`)
  const command = [...(odd.length > 0 ? ["/usr/bin/env", ...odd] : []), file, ...argv.slice(1)]
  return [
    "unset PATH OLDPWD",
    ...names.filter(isPlain).map((name) => `export ${name}=${quote(env[name])}`),
    `exec ${input === "none" ? "0</dev/null " : ""}1>out 2>err`,
    ...handed.map((_, index) => `exec ${index + 3}<handed.${index}`),
    ...(handed.length > 0 ? ["echo taken >bye"] : []),
    "{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null",
    `umask ${UMASK.toString(8)}`,
    `cd ${quote(cwd)} || exit 126`,
    "unset OLDPWD",
    `exec ${command.map(quote).join(" ")}`,
    ""
  ].join("\n")
}

/** In pieces that a FIFO takes: a long one waits for the shell to read, the first one for it to open. */
const feed = (run, bytes, fd) => {
  let isOver = run.exit !== undefined
  try {
    if (!isOver) {
      fd ??= fs.openSync(path.join(run.dir, "spec"), O_WRONLY | O_NONBLOCK)
      while (bytes.length > 0) bytes = bytes.subarray(fs.writeSync(fd, bytes, 0, Math.min(bytes.length, 32_768)))
    }
    isOver = true
  } catch (error) {
    isOver = error.code === "EPIPE"
  }
  if (!isOver) setTimeout(feed, 1, run, bytes, fd)
  else if (fd !== undefined) fs.closeSync(fd)
}

const start = (spec, answer) => {
  const no = objection(spec)
  if (no !== undefined) return answer({ error: no })
  const { code, file } = program(spec)
  if (file === undefined) return answer({ error: code })
  const words = Buffer.from(script(spec, file))
  const handed = (spec.handed ?? []).map((bytes) => Buffer.from(bytes, "base64"))
  slot((run) => {
    if (run.error !== undefined) return answer(run)
    const dir = path.join(RUNS, spec.run)
    try {
      for (const [name, value] of Object.entries(spec.limits ?? {}))
        if (run.cgroup !== undefined) fs.writeFileSync(path.join(run.cgroup, name), value)
      for (const [index, bytes] of handed.entries()) fs.writeFileSync(path.join(run.dir, `handed.${index}`), bytes)
      fs.renameSync(run.dir, dir)
    } catch (error) {
      shut(run)
      drop(run)
      return answer({ error: error.code === "ENOTEMPTY" ? "EEXIST" : error.code })
    }
    Object.assign(run, { id: spec.run, dir })
    runs.set(run.id, run)
    feed(run, words)
    answer({ pid: run.pid, start: run.start })
  })
}

const exited = (run, code, signal) => {
  if (run.exit !== undefined) return
  // what the keeper ends as it goes itself tells nothing of the program: a machine that shuts down ends it, too
  run.exit = { ...(expired && code !== 0 ? { code: null, signal: null } : { code, signal }), at: Date.now() }
  tell({ tell: "exited", run: run.id, ...run.exit })
  run.input?.destroy()
  run.input = undefined
  attempt("bye", () => fs.writeSync(run.bye, "bye\n"))
  settle(run)
  // somebody else holds a pipe open and says nothing; a pump that waits for the disk or the daemon is left to wait
  const sizes = { out: -1, err: -1 }
  let left = 5
  const look = () => {
    for (const { name, pump, size, stuck } of [run.out, run.err]) {
      const isSilent = size === sizes[name]
      sizes[name] = size
      if (pump === undefined || stuck) continue
      if ((isSilent && !pump.isPaused()) || left < 0) pump.destroy()
      else if (expired) pump.resume()
    }
    if (expired) left--
    if (run.out.pump !== undefined || run.err.pump !== undefined) setTimeout(look, HELD)
  }
  setTimeout(look, 0)
}

/** The program has gone and all it wrote is kept: the record is made durable, then told. */
const settle = (run) => {
  if (run.exit === undefined || run.closed || run.out.pump !== undefined || run.err.pump !== undefined) return
  run.closed = true
  const record = { ...run.exit, out: run.out.size, err: run.err.size, seq: run.seq }
  const last = path.join(run.dir, "exit")
  const write = async () => {
    if (run.forgotten) return
    await fs.promises.writeFile(`${last}.tmp`, JSON.stringify(record), { mode: 0o600, flush: true })
    await fs.promises.rename(`${last}.tmp`, last)
    const folder = await fs.promises.open(run.dir, "r")
    await folder.sync().finally(() => folder.close())
  }
  const done = () => {
    run.ended = true
    shut(run)
    tell({ tell: "ended", run: run.id, ...record })
    if (run.forgotten) forget(run)
    if (retired && isQuiet()) leave()
  }
  write().then(done, (error) => {
    log("exit", run.id, error)
    if (!fs.existsSync(DIR)) process.exit(1)
    setTimeout(() => ((run.closed = false), settle(run)), AGAIN)
  })
}

const forget = (run) => {
  run.forgotten = true
  for (const one of [run.out, run.err]) if (one.pump?.isPaused() && !one.stuck) one.pump.resume()
  if (!run.ended) return
  runs.delete(run.id)
  drop({ dir: run.dir, cgroup: run.cgroup })
  idle()
}

function signalGroup(pid, name) {
  try {
    process.kill(-pid, name)
  } catch {
    // all of it has ended
  }
}

const signal = (run, name) => {
  if (run.exit !== undefined || identity(run.pid) !== run.start) return
  if (name === "SIGKILL" && run.cgroup !== undefined)
    attempt("cgroup", () => fs.writeFileSync(path.join(run.cgroup, "cgroup.kill"), "1"))
  signalGroup(run.pid, name)
}

const end = (run, grace) => {
  signal(run, "SIGTERM")
  signal(run, "SIGCONT")
  if (run.exit === undefined) setTimeout(signal, grace, run, "SIGKILL")
}

/** Notes the inputs that the pipe has all of. Until that can be written they count as in flight. */
const noted = (run) => {
  try {
    for (; run.given > 0 && !run.ended; run.given--, run.flight.shift()) {
      const line = Buffer.from(`${run.flight[0]}\n`)
      const wrote = fs.writeSync(run.notes, line)
      if (wrote === line.length) continue
      fs.ftruncateSync(run.notes, fs.fstatSync(run.notes).size - wrote)
      throw new Error("a part of a line")
    }
  } catch (error) {
    log("inputs", run.id, error)
    setTimeout(noted, AGAIN, run)
  }
}

/** `data`: null closes the input. Answers when the pipe has all of it; until then it counts as taken while the keeper lives. */
const write = (run, { data, note = "", seq }, reply) => {
  if (!Number.isInteger(seq) || (data !== null && typeof data !== "string")) return reply({ error: "EINVAL" })
  if (seq <= run.seq) return reply({ seq: run.seq })
  if (seq !== run.seq + 1) return reply({ error: "gap", seq: run.seq })
  if (run.input?.writable !== true) return reply({ error: "EPIPE" })
  if (run.input.writableLength > INPUT_BOUND) return reply({ error: "busy" })
  run.seq = seq
  run.flight.push(`${seq} ${data === null ? "close" : String(note).replaceAll("\n", " ")}`)
  const kept = (error) => {
    if (error) return reply({ error: "EPIPE" })
    run.given++
    noted(run)
    reply({ seq })
  }
  if (data === null) {
    // the program hears the end of its input when the anchor and the keeper have closed it
    run.input.end(kept)
    return attempt("close", () => fs.writeSync(run.bye, "close\n"))
  }
  const bytes = Buffer.from(data)
  let sent = 0
  try {
    if (run.input.writableLength === 0) sent = fs.writeSync(run.inputFd, bytes)
  } catch {
    // the pipe is full: the socket waits
  }
  if (sent === bytes.length) kept()
  else run.input.write(bytes.subarray(sent), kept)
}

/** What a keeper before this one has left. Its exit codes are gone: nobody else may wait for those processes. */
const adopt = (id) => {
  const dir = path.join(RUNS, id)
  const { boot, cgroup, pid = NOBODY, start = "0" } = parsed(path.join(dir, "meta")) ?? {}
  const isAlive = () => boot === BOOT && identity(pid) === start
  // a slot that had heard nothing yet ends by itself
  if (id.startsWith("slot-")) return drop({ dir, cgroup, pid: isAlive() ? pid : undefined })
  const record = parsed(path.join(dir, "exit")) ?? {}
  const isOver = record.code !== undefined
  const run = isOver ? undefined : attempt(id, () => open(dir, { cgroup, pid, start, bye: openBoth(dir, "bye") }))
  if (run !== undefined) {
    runs.set(id, Object.assign(run, { id }))
    // a shell that waits to be told what it is to become ends; where there is none, this is refused
    attempt("", () => fs.closeSync(fs.openSync(path.join(dir, "spec"), O_WRONLY | O_NONBLOCK)))
    // a look that fails, for want of descriptors, comes again
    const looks = setInterval(() => isAlive() || (clearInterval(looks), exited(run, null, null)), 200)
    return
  }
  const sizeOf = (name) => attempt("", () => lastOf(dir, name).size) ?? 0
  const { at, code: last = null, signal: by = null, ...rest } = record
  // the machine has gone down since, and it may be that which ended the program
  const [code, signal] = boot !== BOOT && last !== 0 ? [null, null] : [last, by]
  const sizes = { out: sizeOf("out"), err: sizeOf("err"), seq: notesOf(dir).seq }
  past.set(id, { run: id, pid, start, cgroup, ...sizes, ...rest, exit: { code, signal, at }, ended: true })
}

// the daemon

const state = ({ ended, err, exit, flight, id, out, pid, seq, start }) => {
  return { run: id, pid, start, seq, flight, out: out.size, err: err.size, exit, ended }
}

const hello = (from, asked, reply) => {
  if (!Number.isInteger(asked)) return reply({ error: "EINVAL" })
  if (asked < epoch) return reply({ error: "fenced", epoch })
  epoch = asked
  const file = path.join(DIR, "epoch")
  attempt("epoch", () => (fs.writeFileSync(`${file}.tmp`, String(epoch)), fs.renameSync(`${file}.tmp`, file)))
  if (client !== from) client?.destroy()
  client = from
  news.clear()
  clearTimeout(lease)
  reply({ pid: process.pid, version: VERSION, runs: [...past.values(), ...[...runs.values()].map(state)] })
}

const retire = () => {
  retired = true
  for (const run of slots.splice(0)) {
    shut(run)
    drop(run)
  }
  if (isQuiet()) leave()
}

const orders = {
  write,
  signal: (run, { signal: name }, reply) => (signal(run, name), reply({})),
  end: (run, { grace = GRACE }, reply) => (end(run, grace), reply({})),
  forget: (run, _, reply) => (forget(run), reply({})),
  mark: (run, { err, out }, reply) => (mark(run.out, out), mark(run.err, err), reply({})),
  free: (run, { err, out, seq }, reply) => (free(run.out, out), free(run.err, err), trim(run, seq), reply({}))
}

const answer = (from, message, reply) => {
  const { op, run: id } = message
  if (op === "hello") return hello(from, message.epoch, reply)
  if (from !== client) return reply({ error: "hello first" })
  if (op === "spawn") return start(message, reply)
  if (op === "retire") return (reply({}), retire())
  const gone = past.get(id)
  if (op === "forget" && past.delete(id))
    return (drop({ ...gone, pid: undefined, dir: path.join(RUNS, id) }), reply({}))
  const run = runs.get(id)
  if (run === undefined) return reply({ error: "unknown" })
  if (!Object.hasOwn(orders, op)) return reply({ error: "no such op" })
  orders[op](run, message, reply)
}

/** Another keeper may have come to a folder of that name. */
const isOurs = () => text(path.join(DIR, "pid")) === String(process.pid)

const leave = () => {
  if (isOurs()) for (const name of ["sock", "pid"]) fs.rmSync(path.join(DIR, name), { force: true })
  setTimeout(() => process.exit(0), 50)
}

/** Without a daemon and without a program, it has nothing to do. */
const idle = () => {
  const isIdle = () => client === undefined && runs.size + past.size + asking.length === 0
  if (isIdle()) setTimeout(() => isIdle() && retire(), LINGER)
}

/** All programs are ended in order; then the keeper ends. */
const expire = (why) => {
  log(`${why}: all programs are ended`)
  expired = true
  for (const run of runs.values()) end(run, GRACE)
  retire()
}

/** Nobody watches: for the lease, and as long as its folder is there. */
const unwatched = (time) => {
  const until = performance.now() + time
  const look = () => {
    const isHere = attempt("look", isOurs) ?? true
    if (!isHere || performance.now() >= until) return expire(isHere ? `no daemon for ${time} ms` : "its folder is gone")
    lease = setTimeout(look, Math.min(GRACE, Math.max(1, until - performance.now())))
  }
  look()
  idle()
}

/** A peer that does not read its answers is not heard until it has. */
const serve = (socket) => {
  let pieces = []
  let length = 0
  const hear = (line) => {
    let id
    const reply = (body) => void (socket.writable && socket.write(`${JSON.stringify({ re: id, ...body })}\n`))
    try {
      const message = JSON.parse(line)
      id = message.id
      answer(socket, message, reply)
    } catch (error) {
      log("request", error)
      reply({ error: error.code ?? String(error) })
    }
  }
  socket.setEncoding("utf8")
  socket.on("data", (chunk) => {
    const lines = chunk.split("\n")
    const rest = lines.pop()
    if (lines.length > 0) {
      lines[0] = pieces.join("") + lines[0]
      pieces = []
      length = 0
    }
    pieces.push(rest)
    length += rest.length
    if (length > (socket === client ? MAX_LINE : MAX_HELLO)) return socket.destroy()
    for (const line of lines) hear(line)
    if (socket.writableNeedDrain) socket.pause()
  })
  socket.on("drain", () => {
    socket.resume()
    if (socket !== client) return
    const told = [...news]
    news.clear()
    told.forEach(grown)
  })
  socket.on("error", () => {})
  socket.on("close", () => {
    if (client !== socket) return
    client = undefined
    unwatched(LEASE)
  })
}

/** One keeper a folder: the highest lock names it, and is removed only once a higher one is there. */
const isAlone = () => {
  const locks = () => segments(DIR, "lock")
  const last = locks().at(-1) ?? 0
  const [pid, start] = text(segment(DIR, "lock", last)).split(" ")
  if (start !== undefined && identity(pid) === start) return false
  const own = path.join(DIR, `own.${process.pid}`)
  fs.writeFileSync(own, `${process.pid} ${identity(process.pid)}`)
  const isFirst = attempt("", () => (fs.linkSync(own, segment(DIR, "lock", last + 1)), true)) ?? false
  fs.rmSync(own)
  if (!isFirst || locks().at(-1) !== last + 1) return false
  for (const lower of locks().slice(0, -1)) fs.rmSync(segment(DIR, "lock", lower), { force: true })
  return true
}

fs.mkdirSync(RUNS, { recursive: true, mode: 0o700 })
for (let look = 0; !isAlone(); look++) {
  if (look === 100) process.exit(0)
  await new Promise((resolve) => setTimeout(resolve, 20))
}
fs.writeFileSync(path.join(DIR, "pid"), String(process.pid))
fs.writeFileSync(path.join(DIR, "slot.sh"), SLOT)
fs.rmSync(path.join(DIR, "sock"), { force: true })
for (const id of fs.readdirSync(RUNS)) attempt(id, () => adopt(id))
net.createServer(serve).listen(path.join(DIR, "sock"), () => {
  warm()
  unwatched(Math.max(LEASE, GRACE))
})
