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
 * sleeping shell beside each (the anchor) holds its pipes open, and a new keeper finds it by its folder.
 *
 * A program starts in a shell that waits for it (a slot): the fork is paid before anyone asks. It imports nothing
 * of agentd and runs from a copy of its own, so that an upgrade below it harms nobody. Its environment and
 * arguments go through a FIFO and are in no file.
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
/** Output that the daemon has not durably, per stream: then the program waits. */
const BOUND = Number(option("bound", String(64 << 20)))
const SEGMENT = Number(option("segment", String(4 << 20)))
/** Input that waits for a program to read it. */
const INPUT_BOUND = 8 << 20
/** ms that a pipe may stay open in other hands once the program has gone. */
const HELD = 1000
const GRACE = 5000
/** ms that a keeper with nothing to hold waits for a daemon. */
const LINGER = 2000
const VERSION = 1
const UMASK = process.umask(0o077)
const BOOT = text("/proc/sys/kernel/random/boot_id").trim()

/** A delegated cgroup; `own`: the one that the keeper was started in. */
const CGROUP = (() => {
  const asked = option("cgroup", "")
  if (asked !== "own") return asked
  const root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].find((at) => fs.existsSync(`${at}/cgroup.procs`))
  const line = /^0::(.*)$/m.exec(text("/proc/self/cgroup"))
  if (root === undefined || line === null) return ""
  const own = path.join(root, line[1])
  try {
    // a cgroup that divides its resources holds no process itself
    fs.mkdirSync(`${own}/keeper`, { recursive: true })
    fs.writeFileSync(`${own}/keeper/cgroup.procs`, String(process.pid))
    for (const name of text(`${own}/cgroup.controllers`).trim().split(" "))
      if (/^(memory|pids|cpu)$/.test(name)) fs.writeFileSync(`${own}/cgroup.subtree_control`, `+${name}`)
    return own
  } catch (error) {
    log("cgroup", error)
    return ""
  }
})()

/** What a file holds; nothing where there is none. */
function text(file) {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

function log(...words) {
  console.error(new Date().toISOString(), ...words)
}

const runs = new Map()
/** Records of programs that ended under a keeper before this one. */
const past = new Map()
let client
let epoch = Number(text(path.join(DIR, "epoch")) || -1)
let retired = false
let lease
process.on("uncaughtException", (error) => log("fault", error))
process.on("SIGHUP", () => {})
process.on("SIGTERM", () => expire("SIGTERM"))

const tell = (message) => void (client?.writable && client.write(`${JSON.stringify(message)}\n`))
const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`
/** A process's start time; nothing where it has ended. */
const identity = (pid) => {
  const stat = text(`/proc/${pid}/stat`)
  const field = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return field[0] === "Z" || field[0] === "X" ? "" : (field[19] ?? "")
}
const openBoth = (dir, ...names) => names.map((name) => fs.openSync(path.join(dir, name), O_RDWR | O_NONBLOCK))
const remove = (dir) => fs.rmSync(dir, { recursive: true, force: true })
const isQuiet = () => [...runs.values()].every(({ ended }) => ended)

// slots: shells that have forked, entered their cgroup and made their pipes, and wait to become a program

/** Ends the program's whole group where no keeper has come for $3 seconds. It is of that group: its number is not used again. */
const ANCHOR = String.raw`trap '' HUP INT TERM; exec >/dev/null
timer=
while exec 6<bye; do
  [ -z "$timer" ] || kill -9 $timer
  while read word <&6; do
    case $word in close) exec 3>&- ;; bye) exit ;; esac
  done
  exec 6<&-
  (exec 3>&- 4>&- 5>&-; sleep $3; kill -TERM 0; sleep 5; kill -KILL 0) & timer=$!
done`
/** Its standard input ends where the keeper dies before it has opened the pipes. */
const SLOT = String.raw`cd "$1" && mkfifo -m 600 spec in out err bye || exit 97
[ -z "$2" ] || echo 0 >"$2/cgroup.procs" || exit 97
echo; exec >/dev/null
read go || exit
exec 3<>in 4<>out 5<>err
( (${ANCHOR}) & )
exec 3>&- 4>&- 5>&- 0</dev/null
. ./spec`
const slots = []
const asking = []
let made = 0
let warming = 0

const warm = () => {
  if (retired) return
  while (slots.length + warming < Math.max(WARM, asking.length)) {
    warming++
    const name = `slot-${process.pid}-${made++}`
    const dir = path.join(RUNS, name)
    fs.mkdirSync(dir)
    const cgroup = CGROUP === "" ? undefined : path.join(CGROUP, name)
    if (cgroup !== undefined) fs.mkdirSync(cgroup)
    const child = spawn("/bin/sh", [path.join(DIR, "slot.sh"), dir, cgroup ?? "", String(LEASE / 1000)], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: process.env["PATH"] }
    })
    const gone = () => {
      warming--
      remove(dir)
      setTimeout(warm, 200)
    }
    child.stdin.on("error", () => {})
    child.once("error", gone)
    child.once("exit", gone)
    child.stdout.once("data", () => {
      child.off("error", gone).off("exit", gone)
      child.on("error", () => {})
      child.stdout.destroy()
      warming--
      const [spec, bye] = openBoth(dir, "spec", "bye")
      const [pid, start] = [child.pid, identity(child.pid)]
      fs.writeFileSync(path.join(dir, "meta"), JSON.stringify({ pid, start, boot: BOOT, cgroup }))
      child.stdin.end("go\n")
      slots.push({ dir, pid, start, child, spec, bye, cgroup })
      asking.shift()?.(slots.shift())
    })
  }
}

const slot = (take) => {
  let ready = slots.shift()
  while (ready !== undefined && identity(ready.pid) === "") ready = slots.shift()
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
    .toSorted((a, b) => a - b)

const openSegment = (dir, name, base) =>
  fs.openSync(path.join(dir, `${name}.${base}`), O_WRONLY | O_APPEND | O_CREAT, 0o600)

/** `mark`: the daemon has this much durably. `stuck`: the disk is full, and what was read waits. */
const stream = (dir, name) => {
  const known = segments(dir, name)
  const base = known.at(-1) ?? 0
  const file = openSegment(dir, name, base)
  return { pump: undefined, file, base, size: base + fs.fstatSync(file).size, mark: known[0] ?? 0, stuck: false }
}

/** Returns what could not be written. */
const keep = (run, name, chunk) => {
  const one = run[name]
  if (run.forgotten) return chunk.subarray(chunk.length)
  let from = 0
  try {
    if (one.size - one.base >= SEGMENT) {
      const next = openSegment(run.dir, name, one.size)
      fs.closeSync(one.file)
      one.file = next
      one.base = one.size
    }
    while (from < chunk.length) {
      const wrote = fs.writeSync(one.file, chunk, from)
      from += wrote
      one.size += wrote
    }
  } catch (error) {
    log("output", run.id, error)
    return chunk.subarray(from)
  }
  tell({ tell: "output", run: run.id, stream: name, size: one.size })
  if (one.size - one.mark > BOUND) one.pump?.pause()
  return chunk.subarray(from)
}

/** Read and written in one go: what SIGKILL finds between the two is lost. */
const pump = (run, name) => {
  const fd = fs.openSync(path.join(run.dir, name), O_RDONLY | O_NONBLOCK)
  const buffer = Buffer.allocUnsafeSlow(1 << 16)
  // a full disk: the program waits, nothing is dropped
  const later = (chunk) => {
    const rest = keep(run, name, chunk)
    run[name].stuck = rest.length > 0
    if (run[name].stuck) setTimeout(later, 1000, rest)
    else if (run[name].size - run[name].mark <= BOUND) socket.resume()
  }
  const take = (length, from) => {
    const rest = keep(run, name, from.subarray(0, length))
    if (rest.length > 0) {
      run[name].stuck = true
      socket.pause()
      setTimeout(later, 1000, Uint8Array.from(rest))
    }
    return true
  }
  const socket = new net.Socket({ fd, readable: true, writable: false, onread: { buffer, callback: take } })
  run[name].pump = socket
  socket.resume()
  socket.on("error", () => {})
  socket.on("close", () => {
    run[name].pump = undefined
    settle(run)
  })
}

const mark = (run, name, position, isFree) => {
  const one = run[name]
  one.mark = Math.max(one.mark, Math.min(position, one.size))
  const known = isFree ? segments(run.dir, name) : []
  known.forEach((base, index) => {
    const end = known[index + 1]
    if (end !== undefined && end <= one.mark) fs.unlinkSync(path.join(run.dir, `${name}.${base}`))
  })
  if (one.size - one.mark <= BOUND && !one.stuck && one.pump?.isPaused()) one.pump.resume()
}

// a program's life

const open = (id, { bye, cgroup, dir, pid, start }) => {
  const noted = text(path.join(dir, "inputs")).split("\n").slice(0, -1)
  const isClosed = noted.some((line) => line.endsWith(" close"))
  const inputFd = isClosed ? -1 : openBoth(dir, "in")[0]
  const input = isClosed ? undefined : new net.Socket({ fd: inputFd, readable: false, writable: true })
  input?.on("error", () => {})
  const notes = fs.openSync(path.join(dir, "inputs"), O_WRONLY | O_APPEND | O_CREAT, 0o600)
  const seq = Number(noted.at(-1)?.split(" ", 1)[0] ?? 0)
  const run = { id, dir, pid, start, cgroup, bye, input, inputFd, notes, seq, flight: [] }
  const rest = { exit: undefined, closed: false, ended: false, forgotten: false }
  Object.assign(run, rest, { out: stream(dir, "out"), err: stream(dir, "err") })
  runs.set(id, run)
  pump(run, "out")
  pump(run, "err")
  return run
}

const program = ({ argv, cwd, env }) => {
  const name = argv[0] ?? ""
  const found = name.includes("/")
    ? [path.resolve(cwd, name)]
    : (env["PATH"] ?? "/usr/bin:/bin").split(":").map((folder) => path.resolve(cwd, folder, name))
  let code = "ENOENT"
  for (const file of found) {
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

/** The system's limit on one argument or variable, and a safe one on all of them. */
const MAX_WORD = 128 * 1024 - 1
const MAX_WORDS = 1_900_000

/** Says why the program cannot be started; nothing where it can. */
const objection = ({ argv, cwd, env, run }) => {
  if (retired) return "retired"
  if (runs.has(run) || fs.existsSync(path.join(RUNS, run))) return "EEXIST"
  const words = [...argv, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  if (!/^[\w.+-]{1,200}$/.test(run) || [...words, cwd].some((word) => word.includes("\0"))) return "EINVAL"
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
    `exec 0<${input === "none" ? "/dev/null" : "in"} 1>out 2>err`,
    ...handed.map((_, index) => `exec ${index + 3}<handed.${index}`),
    "{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null",
    `umask ${UMASK.toString(8)}`,
    `cd ${quote(cwd)} || exit 126`,
    "unset OLDPWD",
    `exec ${command.map(quote).join(" ")}`,
    ""
  ].join("\n")
}

/** In pieces that a FIFO takes: a long one waits for the shell to read. */
const feed = (fd, bytes) => {
  let sent = 0
  try {
    while (sent < bytes.length) sent += fs.writeSync(fd, bytes, sent, Math.min(bytes.length - sent, 32_768))
  } catch (error) {
    if (error.code === "EAGAIN") setTimeout(() => feed(fd, bytes.subarray(sent)), 2)
  }
}

const start = (spec, answer) => {
  const no = objection(spec)
  if (no !== undefined) return answer({ error: no })
  const { code, file } = program(spec)
  if (file === undefined) return answer({ error: code })
  slot((ready) => {
    const dir = path.join(RUNS, spec.run)
    fs.renameSync(ready.dir, dir)
    for (const [name, value] of Object.entries(spec.limits ?? {}))
      if (ready.cgroup !== undefined) fs.writeFileSync(path.join(ready.cgroup, name), value)
    const handed = (spec.handed ?? []).map((bytes, index) => {
      const at = path.join(dir, `handed.${index}`)
      fs.writeFileSync(at, Buffer.from(bytes, "base64"), { mode: 0o600 })
      return at
    })
    // the program first: what it writes waits in its pipes
    feed(ready.spec, Buffer.from(script(spec, file)))
    const run = open(spec.run, { ...ready, dir })
    const clear = () => handed.splice(0).forEach((at) => fs.rmSync(at, { force: true }))
    if (handed.length > 0) setTimeout(clear, GRACE).unref()
    // open until then: the shell may come to read it only now
    ready.child.once("exit", (code, signal) => {
      fs.closeSync(ready.spec)
      clear()
      exited(run, code, signal)
    })
    answer({ pid: run.pid, start: run.start })
  })
}

const exited = (run, code, signal) => {
  if (run.exit !== undefined) return
  run.exit = { code, signal, at: Date.now() }
  tell({ tell: "exited", run: run.id, ...run.exit })
  run.input?.destroy()
  run.input = undefined
  fs.writeSync(run.bye, "bye\n")
  settle(run)
  // somebody else holds a pipe open and says nothing; a pump that waits for the disk or the daemon is left to wait
  const sizes = { out: -1, err: -1 }
  const look = () => {
    for (const name of ["out", "err"]) {
      const { pump, size } = run[name]
      if (pump?.isPaused() === false && size === sizes[name]) pump.destroy()
      sizes[name] = size
    }
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
    const file = await fs.promises.open(`${last}.tmp`, "w", 0o600)
    await file.writeFile(JSON.stringify(record))
    await file.sync()
    await file.close()
    await fs.promises.rename(`${last}.tmp`, last)
    const folder = await fs.promises.open(run.dir, "r")
    await folder.sync()
    await folder.close()
  }
  const done = () => {
    for (const fd of [run.out.file, run.err.file, run.notes, run.bye]) fs.closeSync(fd)
    run.ended = true
    tell({ tell: "ended", run: run.id, ...record })
    if (run.forgotten) forget(run)
    if (retired && isQuiet()) leave()
  }
  write().then(done, (error) => {
    log("exit", run.id, error)
    if (!fs.existsSync(DIR)) process.exit(1)
    setTimeout(() => ((run.closed = false), settle(run)), 1000)
  })
}

const forget = (run) => {
  run.forgotten = true
  for (const name of ["out", "err"]) if (run[name].pump?.isPaused() && !run[name].stuck) run[name].pump.resume()
  if (!run.ended) return
  runs.delete(run.id)
  remove(run.dir)
  if (run.cgroup !== undefined) fs.rmdir(run.cgroup, () => {})
  idle()
}

const signal = (run, name) => {
  if (run.exit !== undefined || identity(run.pid) !== run.start) return
  try {
    if (name === "SIGKILL" && run.cgroup !== undefined) fs.writeFileSync(path.join(run.cgroup, "cgroup.kill"), "1")
    process.kill(-run.pid, name)
  } catch {}
}

const end = (run, grace) => {
  if (run.exit !== undefined) return
  signal(run, "SIGTERM")
  signal(run, "SIGCONT")
  setTimeout(() => signal(run, "SIGKILL"), grace)
}

/** `data`: null closes the input. Answers when the pipe has all of it; until then it counts as taken while the keeper lives. */
const write = (run, { data, note = "", seq }, reply) => {
  if (seq <= run.seq) return reply({ seq: run.seq })
  if (seq !== run.seq + 1) return reply({ error: "gap", seq: run.seq })
  if (run.input === undefined) return reply({ error: "EPIPE" })
  if (run.input.writableLength > INPUT_BOUND) return reply({ error: "busy" })
  run.seq = seq
  run.flight.push(`${seq} ${data === null ? "close" : note}`)
  const kept = () => {
    const line = run.flight.shift()
    if (!run.closed) fs.writeSync(run.notes, `${line}\n`)
    reply({ seq })
  }
  if (data === null) {
    // the program hears the end of its input when the anchor and the keeper have closed it
    run.input.end()
    run.input = undefined
    fs.writeSync(run.bye, "close\n")
    return kept()
  }
  const bytes = Buffer.from(data)
  let sent = 0
  try {
    if (run.input.writableLength === 0) sent = fs.writeSync(run.inputFd, bytes)
  } catch {
    // the pipe is full: the socket waits
  }
  if (sent === bytes.length) kept()
  else run.input.write(bytes.subarray(sent), (error) => (error ? reply({ error: "EPIPE" }) : kept()))
}

/** What a keeper before this one has left. Its exit codes are gone: nobody else may wait for those processes. */
const adopt = () => {
  for (const id of fs.readdirSync(RUNS)) {
    const dir = path.join(RUNS, id)
    const exit = text(path.join(dir, "exit"))
    if (exit !== "") {
      const { at, code, signal, ...rest } = JSON.parse(exit)
      const { pid, start } = JSON.parse(text(path.join(dir, "meta")) || "{}")
      past.set(id, { run: id, pid, start, ...rest, exit: { code, signal, at }, ended: true })
      continue
    }
    const meta = JSON.parse(text(path.join(dir, "meta")) || "null") ?? undefined
    if (id.startsWith("slot-") || meta === undefined) {
      // a slot has ended with its keeper; one that had heard nothing of it yet ends now, and its anchor
      const fds = openBoth(dir, ...["spec", "bye"].filter((name) => fs.existsSync(path.join(dir, name))))
      for (const fd of fds) fs.writeSync(fd, fd === fds[0] ? "exit\n" : "bye\n")
      const clear = () => {
        fds.forEach((fd) => fs.closeSync(fd))
        remove(dir)
      }
      setTimeout(clear, 1000)
      continue
    }
    const [spec, bye] = openBoth(dir, "spec", "bye")
    // a shell that the keeper before had told nothing yet
    fs.writeSync(spec, "exit 97\n")
    setTimeout(() => fs.closeSync(spec), 1000)
    const run = open(id, { ...meta, bye, dir })
    const look = () => {
      if (identity(run.pid) === run.start && meta.boot === BOOT) return
      clearInterval(timer)
      exited(run, null, null)
    }
    const timer = setInterval(look, 200)
    look()
  }
}

// the daemon

const state = ({ ended, err, exit, flight, id, out, pid, seq, start }) => {
  return { run: id, pid, start, seq, flight, out: out.size, err: err.size, exit, ended }
}

const answer = (from, message, reply) => {
  const { op, run: id } = message
  if (op === "hello") {
    if (message.epoch < epoch) return reply({ error: "fenced", epoch })
    epoch = message.epoch
    fs.writeFileSync(path.join(DIR, "epoch"), String(epoch))
    if (client !== from) client?.destroy()
    client = from
    clearTimeout(lease)
    return reply({ pid: process.pid, version: VERSION, runs: [...past.values(), ...[...runs.values()].map(state)] })
  }
  if (from !== client) return reply({ error: "hello first" })
  if (op === "spawn") return start(message, reply)
  if (op === "retire") {
    retired = true
    drop()
    reply({})
    return isQuiet() ? leave() : undefined
  }
  if (op === "forget" && past.delete(id)) {
    remove(path.join(RUNS, id))
    return reply({})
  }
  const run = runs.get(id)
  if (run === undefined) return reply({ error: "unknown" })
  if (op === "write") return write(run, message, reply)
  if (op === "signal") return (signal(run, message.signal), reply({}))
  if (op === "end") return (end(run, message.grace ?? GRACE), reply({}))
  if (op === "mark") {
    for (const name of ["out", "err"]) mark(run, name, message[name] ?? 0, message.free === true)
    return reply({})
  }
  if (op === "forget") return (forget(run), reply({}))
  reply({ error: "no such op" })
}

const drop = () => {
  for (const one of slots.splice(0)) {
    try {
      process.kill(-one.pid, "SIGKILL")
    } catch {}
    remove(one.dir)
    if (one.cgroup !== undefined) fs.rmdir(one.cgroup, () => {})
  }
}

const leave = () => {
  retired = true
  drop()
  for (const name of ["sock", "pid"]) fs.rmSync(path.join(DIR, name), { force: true })
  setTimeout(() => process.exit(0), 50)
}

/** Without a daemon and without a program, it has nothing to do. */
const idle = () => {
  if (client !== undefined || runs.size > 0 || past.size > 0) return
  setTimeout(() => client === undefined && runs.size === 0 && leave(), LINGER)
}

/** All programs are ended in order; then the keeper ends. */
const expire = (why) => {
  log(`${why}: all programs are ended`)
  retired = true
  for (const run of runs.values()) end(run, GRACE)
  if (isQuiet()) leave()
}

/** Nobody watches: for the lease, and as long as its folder is there. */
const unwatched = () => {
  const until = performance.now() + LEASE
  const look = () => {
    const isGone = text(path.join(DIR, "slot.sh")) === ""
    if (isGone || performance.now() >= until) return expire(isGone ? "its folder is gone" : `no daemon for ${LEASE} ms`)
    lease = setTimeout(look, Math.min(GRACE, Math.max(1, until - performance.now())))
  }
  look()
  idle()
}

const serve = (socket) => {
  let rest = ""
  socket.setEncoding("utf8")
  socket.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n")
    rest = lines.pop()
    for (const line of lines) {
      let id
      const reply = (body) => void (socket.writable && socket.write(`${JSON.stringify({ re: id, ...body })}\n`))
      try {
        const message = JSON.parse(line)
        id = message.id
        answer(socket, message, reply)
      } catch (error) {
        log("request", error)
        reply({ error: String(error) })
      }
    }
  })
  socket.on("error", () => {})
  socket.on("close", () => {
    if (client !== socket) return
    client = undefined
    unwatched()
  })
}

fs.mkdirSync(RUNS, { recursive: true, mode: 0o700 })
fs.writeFileSync(path.join(DIR, "slot.sh"), SLOT)
adopt()
fs.rmSync(path.join(DIR, "sock"), { force: true })
net.createServer(serve).listen(path.join(DIR, "sock"), () => {
  warm()
  fs.writeFileSync(path.join(DIR, "pid"), String(process.pid))
  unwatched()
})
