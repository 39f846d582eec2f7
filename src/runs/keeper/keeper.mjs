/**
 * keeper: the process that holds the programs of runs while daemons stop and start.
 *
 *     node keeper.mjs DIR '{"lease": MS, "warm": N, "bound": BYTES, "segment": BYTES}' [CGROUP]
 *
 * DIR (0700) contains `sock`, `pid`, `epoch`, and in `runs` a folder for each program: the FIFOs `in`, `out`, `err`,
 * `spec`, `bye`, its output as segments `out.OFFSET` and `err.OFFSET`, `seq`, `meta`, and at the end `exit`.
 * Protocol.ts describes the messages.
 *
 * Guarantees: A byte of output never changes its position. An input is written once, however often it is sent; inputs
 * have rising numbers. The exit of a program is durable before it is reported as ended. If the daemon is slow or
 * absent, a program waits when its unread output reaches a limit, and no output is lost. If no daemon connects within
 * the lease, all programs are ended.
 *
 * The keeper's death ends no program: a shell next to each one (the anchor, in slot.sh) holds its pipes open, and a new
 * keeper finds it by its folder. A system error (a full disk, too many open files) fails the order, or the work is
 * retried later. A damaged folder affects only its program. The keeper's owner is a daemon that knows the store's
 * secret, which is stored next to the keeper's folder. The keeper runs from its own copy of this file. A program starts
 * in a shell that already waits for it (a slot), so the fork is done in advance.
 */
import { spawn } from "node:child_process"
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { once } from "node:events"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = fs.constants
const DIR = path.resolve(process.argv[2])
const RUNS = path.join(DIR, "runs")
/** `bound`: maximum unread bytes per stream. If it is reached, the program waits. */
const { bound = 64 << 20, lease = 300_000, segment = 4 << 20, warm = 2 } = JSON.parse(process.argv[3] ?? "{}")
const cgroups = process.argv[4] ?? ""
/**
 * Maximum bytes of input that wait for a program; maximum characters of an order from the daemon, and from a peer
 * before its hello.
 */
const [INPUT_BOUND, MAX_LINE, MAX_HELLO] = [8 << 20, 64 << 20, 4096]
const MAX_EPOCH = 2 ** 31 - 1
/**
 * Times in ms. HELD: wait for a pipe that another process holds open. GRACE: wait for the end of a program. LINGER:
 * until an idle keeper exits. AGAIN: until a retry after a system error. MOMENT: wait for the daemon's response to a
 * message.
 */
const [HELD, GRACE, LINGER, AGAIN, MOMENT] = [1000, 5000, 2000, 1000, 50]

/**
 * Reads a file. Empty if the file cannot be read. Throws if no file descriptor is free, because then the content is
 * unknown.
 */
const text = (file) => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch (error) {
    if (error.code === "EMFILE" || error.code === "ENFILE") throw error
    return ""
  }
}
const log = (...words) => console.error(new Date().toISOString(), ...words)
/** Runs `body`. An error is logged under the name `what`, unless that is empty, and has no other effect. */
function attempt(what, body) {
  try {
    return body()
  } catch (error) {
    if (what !== "") log(what, error)
  }
}
/** Returns a process's start time. Empty: the process has ended. */
const identity = (pid) => {
  const stat = text(`/proc/${pid}/stat`)
  const field = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return field[0] === "Z" || field[0] === "X" ? "" : (field[19] ?? "")
}
const BOOT = text("/proc/sys/kernel/random/boot_id").trim()
const placeOf = ({ anchor, births, pid, start }) => ({ pid, start, births, anchor })

/** All programs, including ended ones until they are forgotten. */
const runs = new Map()
let [client, watch, epoch] = [undefined, undefined, -1]
/** `starting`: number of programs that are being started. `made`: number of slots made so far. */
let [retired, expired, starting, made] = [false, false, 0, 0]
/** Sends a message to the daemon, except about a slot, which has no run. */
const tell = (message) => void (message.run && client?.writable && client.write(`${JSON.stringify(message)}\n`))

/** Shells that wait to become a program; undefined for one that could not be made. */
const slots = []
const fill = () => {
  if (retired) return
  while (slots.length < warm) slots.push(prepare().catch((error) => log("slot", error)))
}

/** Removes a slot or a program. `isAlive`: the slot's shell still runs and belongs to no program. */
const drop = (run, isAlive) => {
  shut(run)
  if (isAlive && run.pid) attempt("", () => process.kill(-run.pid, "SIGKILL"))
  attempt("remove", () => fs.rmSync(run.dir, { recursive: true, force: true }))
  if (run.cgroup) fs.rmdir(run.cgroup, () => {})
}

/** Reads the next line from the shell. */
const said = async (child, over) => {
  const told = await Promise.race([once(child.stdout, "data"), over])
  if (!Array.isArray(told)) throw new Error(`a shell has ended with ${told.code ?? told.signal}`)
  return String(told[0]).trim()
}

const prepare = async () => {
  const name = `slot-${process.pid}-${made++}`
  const run = { dir: path.join(RUNS, name), cgroup: cgroups && path.join(cgroups, name), pid: undefined }
  const known = () => JSON.stringify({ ...placeOf(run), boot: BOOT, cgroup: run.cgroup })
  const meta = () => fs.writeFileSync(path.join(run.dir, "meta"), known())
  try {
    // number of processes that the machine has started before, if the system reports it
    run.births = Number(/^processes (\d+)$/m.exec(text("/proc/stat"))?.[1]) || undefined
    fs.mkdirSync(run.dir)
    const argv = [path.join(DIR, "slot.sh"), run.dir, run.cgroup, String(lease / 1000)]
    const [env, stdio] = [{ PATH: process.env["PATH"] }, ["pipe", "pipe", "ignore"]]
    const child = spawn("/bin/sh", argv, { detached: true, stdio, env })
    const over = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })))
    child.stdin?.on("error", () => {})
    run.pid = child.pid
    await once(child, "spawn")
    await said(child, over)
    run.start = identity(run.pid)
    meta()
    run.bye = openBoth(run.dir, "bye")
    child.stdin.end("go\n")
    const anchor = Number(await said(child, over))
    child.stdout.destroy()
    run.anchor = { pid: anchor, start: identity(anchor) }
    meta()
    open(run)
    void over.then(({ code, signal }) => exited(run, code, signal))
    return run
  } catch (error) {
    drop(run, true)
    throw error
  }
}

const segments = (dir, name) => {
  const files = fs.readdirSync(dir).filter((file) => file.startsWith(`${name}.`))
  return files.map((file) => Number(file.slice(name.length + 1))).toSorted((a, b) => a - b)
}
const segmentOf = (dir, name, base) => path.join(dir, `${name}.${base}`)
const openAppend = (file) => fs.openSync(file, O_WRONLY | O_APPEND | O_CREAT, 0o600)
const openBoth = (dir, name) => fs.openSync(path.join(dir, name), O_RDWR | O_NONBLOCK)

/** `mark`: bytes that the daemon has read. `stuck`: the disk is full, and data that was read waits to be written. */
const stream = (run, name) => {
  const known = segments(run.dir, name)
  const base = known.at(-1) ?? 0
  const file = openAppend(segmentOf(run.dir, name, base))
  const size = base + fs.fstatSync(file).size
  return { run, name, pump: undefined, file, base, size, mark: known[0] ?? 0, stuck: false }
}
const isFull = ({ mark, run, size }) => !expired && !run.forgotten && size - mark > bound
const both = ({ err, out }) => [out, err].filter((one) => one !== undefined)

/** Streams that have grown. Reported when the daemon can receive messages. */
const news = new Set()
const flush = () => {
  if (client?.writableNeedDrain) return
  for (const { name, run, size } of news) tell({ tell: "output", run: run.id, stream: name, size })
  news.clear()
}

/** Appends a chunk to the output file. Returns the bytes that could not be written. */
const keep = (one, chunk) => {
  if (one.run.forgotten) return chunk.subarray(chunk.length)
  let from = 0
  try {
    if (one.size - one.base >= segment) {
      const next = openAppend(segmentOf(one.run.dir, one.name, one.size))
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
  if (from > 0) news.add(one)
  flush()
  return chunk.subarray(from)
}

/** Shared by all pumps: its content is written before another pump reads. */
const buffer = Buffer.allocUnsafeSlow(1 << 16)

/**
 * Copies a program's pipe to a file, without a pause between reading and writing. If SIGKILL comes between the two, the
 * data that was read is lost.
 */
const pump = (one) => {
  const fd = fs.openSync(path.join(one.run.dir, one.name), O_RDONLY | O_NONBLOCK)
  const take = (chunk) => {
    const rest = keep(one, chunk)
    one.stuck = rest.length > 0
    // if the disk is full, the program waits and nothing is dropped
    if (one.stuck) setTimeout(take, AGAIN, Uint8Array.from(rest))
    if (one.stuck || isFull(one)) socket.pause()
    goOn(one)
  }
  const callback = (length, from) => (take(from.subarray(0, length)), true)
  const socket = new net.Socket({ fd, readable: true, writable: false, onread: { buffer, callback } })
  one.pump = socket
  socket.resume()
  socket.on("error", () => {})
  socket.on("close", () => {
    one.pump = undefined
    void settle(one.run)
  })
}

const goOn = (one) => void (!isFull(one) && !one.stuck && one.pump?.resume())

/** Reads the number of the last input that the pipe has accepted completely, and whether that closed the input. */
const takenIn = (dir) => {
  const [seq = 0, close] = text(path.join(dir, "seq")).trim().split(" ")
  return { seq: Number(seq), isDeaf: close !== undefined }
}

/** Overwrites the stored number of the last input. A failure is retried later. */
const noted = (run) => {
  const words = `${run.given}${run.isDeaf ? " close" : ""}`.padEnd(32)
  const isNoted = run.closed || attempt("seq", () => fs.writeSync(run.notes, words, 0)) !== undefined
  if (!isNoted) setTimeout(noted, AGAIN, run)
}

/** Opens the program's pipes and files. If that fails, the caller calls `shut` for the part that was opened. */
const open = (run) => {
  const { isDeaf, seq } = takenIn(run.dir)
  run.bye ??= openBoth(run.dir, "bye")
  Object.assign(run, { seq, given: seq, isDeaf, closed: false, ended: false, forgotten: false })
  run.notes = fs.openSync(path.join(run.dir, "seq"), O_WRONLY | O_CREAT, 0o600)
  run.out = stream(run, "out")
  run.err = stream(run, "err")
  if (!isDeaf) {
    run.inputFd = openBoth(run.dir, "in")
    run.input = new net.Socket({ fd: run.inputFd, readable: false, writable: true })
    run.input.on("error", () => {})
  }
  both(run).forEach(pump)
}

const shut = (run) => {
  run.closed = true
  for (const one of both(run)) one.pump?.destroy()
  run.input?.destroy()
  const files = [...both(run).map(({ file }) => file), run.notes, run.bye].filter((fd) => fd !== undefined)
  if (run.isShut !== true) for (const fd of files) fs.closeSync(fd)
  run.isShut = true
}

/** Writes the script in pieces that a FIFO accepts. Waits for the shell to open the FIFO and to read a long script. */
const feed = (run, bytes, fd) => {
  try {
    if (run.exit === undefined) fd ??= fs.openSync(path.join(run.dir, "spec"), O_WRONLY | O_NONBLOCK)
    while (run.exit === undefined && bytes.length > 0)
      bytes = bytes.subarray(fs.writeSync(fd, bytes, 0, Math.min(bytes.length, 32_768)))
  } catch (error) {
    if (error.code !== "EPIPE") return void setTimeout(feed, 1, run, bytes, fd)
  }
  if (fd !== undefined) fs.closeSync(fd)
}

const start = async (from, { handed = [], run: id, script }) => {
  if (retired) return { error: "retired" }
  const isMeant = Array.isArray(handed) && [script, id, ...handed].every((word) => typeof word === "string")
  if (!isMeant || !/^(?!slot-|\.+$)[\w.+-]{1,200}$/.test(id)) return { error: "EINVAL" }
  if (runs.has(id)) return { error: "EEXIST" }
  starting++
  // delayed, because a fork now would delay the program's start
  setTimeout(fill, slots.length > 1 ? 20 : 0)
  let run
  try {
    run = await slots.shift()
    // the slot could not be made, or its shell has ended
    if (run === undefined || run.exit !== undefined) run = await prepare()
    // the next daemon already has a list without this program
    if (from !== client) throw Object.assign(new Error("its daemon has gone"), { code: "fenced" })
    const dir = path.join(RUNS, id)
    for (const [at, bytes] of handed.entries())
      fs.writeFileSync(path.join(run.dir, `handed.${at}`), Buffer.from(bytes, "base64"))
    fs.renameSync(run.dir, dir)
    runs.set(id, Object.assign(run, { id, dir }))
    feed(run, Buffer.from(script))
    return placeOf(run)
  } catch (error) {
    if (run !== undefined) drop(run, true)
    return { error: error.code === "ENOTEMPTY" ? "EEXIST" : (error.code ?? "EAGAIN") }
  } finally {
    starting--
    leave()
  }
}

const exited = (run, code, signal) => {
  if (run.exit !== undefined || run.isShut) return
  // while the keeper itself is ending, a failure says nothing about the program, because a shutdown ends the program,
  // too
  run.exit = { ...(expired && code !== 0 ? { code: null, signal: null } : { code, signal }), at: Date.now() }
  tell({ tell: "exited", run: run.id, ...run.exit })
  run.input?.destroy()
  // An anchor of this keeper has nothing left to do and is killed at once. An anchor of an earlier keeper may still
  // have a timer.
  const { pid, start } = run.anchor ?? {}
  if (!expired && (code ?? signal) !== null && start && identity(pid) === start)
    attempt("anchor", () => process.kill(pid, "SIGKILL"))
  else attempt("bye", () => fs.writeSync(run.bye, "bye\n"))
  void settle(run)
  drained(run)
}

/**
 * Closes a pipe that another process holds open without writing. A pipe that waits for the disk or the daemon stays
 * open.
 */
const drained = (run) => {
  const left = both(run).filter(({ pump }) => pump)
  for (const one of left) {
    if (!one.stuck && !one.pump.isPaused() && one.seen === one.size) one.pump.destroy()
    one.seen = one.size
  }
  if (left.length > 0) setTimeout(drained, HELD, run)
}

/** Reports that the program has ended and its output is complete, and again when the exit record is durable. */
const settle = async (run) => {
  if (run.exit === undefined || run.closed || both(run).some(({ pump }) => pump)) return
  run.closed = true
  const record = { ...run.exit, out: run.out.size, err: run.err.size, seq: run.seq }
  const file = path.join(run.dir, "exit")
  tell({ tell: "whole", run: run.id, ...record })
  try {
    if (!run.forgotten) fs.writeFileSync(`${file}.tmp`, JSON.stringify(record), { mode: 0o600 })
    if (!run.forgotten) fs.renameSync(`${file}.tmp`, file)
    // a connected daemon gets the message first and can forget the program, which saves waiting for the disk
    if (client !== undefined) await new Promise((go) => setTimeout(go, MOMENT))
    for (const name of run.forgotten ? [] : [file, run.dir]) {
      const opened = await fs.promises.open(name, "r")
      await opened.sync().finally(() => opened.close())
    }
  } catch (error) {
    log("exit", run.id, error)
    if (!fs.existsSync(DIR)) process.exit(1)
    run.closed = false
    return void setTimeout(settle, AGAIN, run)
  }
  run.ended = true
  shut(run)
  tell({ tell: "ended", run: run.id, ...record })
  if (run.forgotten) forget(run)
  leave()
}

const forget = (run) => {
  run.forgotten = true
  both(run).forEach(goOn)
  if (run.ended && runs.delete(run.id)) drop(run)
}

/**
 * Writes to the program's input. Resolves when the pipe has accepted the data, or with the error. `data`: null closes
 * the input.
 */
const put = ({ bye, input, inputFd }, data) =>
  new Promise((resolve) => {
    // the program's input ends only when both the anchor and the keeper have closed it
    if (data === null) attempt("close", () => fs.writeSync(bye, "close\n"))
    if (data === null) return input.end(resolve)
    const bytes = Buffer.from(data)
    // if the pipe is full, the socket writes the rest
    const sent = input.writableLength === 0 ? (attempt("", () => fs.writeSync(inputFd, bytes)) ?? 0) : 0
    return sent === bytes.length ? resolve() : input.write(bytes.subarray(sent), resolve)
  })

/** Answers when the pipe has accepted the data. Until then the input counts as accepted while this keeper lives. */
const write = async (run, { data, seq }) => {
  if (!Number.isInteger(seq) || (data !== null && typeof data !== "string")) return { error: "EINVAL" }
  if (seq <= run.seq) return { seq: run.seq }
  if (seq !== run.seq + 1) return { error: "gap", seq: run.seq }
  if (run.input?.writable !== true) return { error: "EPIPE" }
  if (run.input.writableLength > INPUT_BOUND) return { error: "busy" }
  run.seq = seq
  if ((await put(run, data)) instanceof Error) return { error: "EPIPE" }
  Object.assign(run, { given: seq, isDeaf: data === null })
  noted(run)
  return { seq }
}

/**
 * Takes over a program of an earlier keeper. Its exit code will not be known, because only the parent can wait for a
 * process.
 */
const adopt = (id) => {
  const dir = path.join(RUNS, id)
  const meta = attempt(id, () => JSON.parse(text(path.join(dir, "meta")) || "{}"))
  const run = { pid: 0, start: "0", ...meta, dir }
  const isAlive = () => run.boot === BOOT && identity(run.pid) === run.start
  // a slot without a program ends by itself
  if (id.startsWith("slot-")) return drop(run, isAlive())
  if (fs.existsSync(path.join(dir, "exit"))) return // belongs to the daemon
  if (attempt(id, () => (open(run), true)) !== true) return shut(run)
  runs.set(id, Object.assign(run, { id }))
  // ends a shell that still waits for its script; fails if there is none
  attempt("", () => fs.closeSync(fs.openSync(path.join(dir, "spec"), O_WRONLY | O_NONBLOCK)))
  // a check that fails for lack of file descriptors is repeated
  const looks = setInterval(() => isAlive() || (clearInterval(looks), exited(run, null, null)), 100)
}

/**
 * Returns a digest made with the store's secret. No connection and no file of the keeper contains the secret. Empty:
 * there is no secret.
 */
const proof = (...words) => {
  const secret = text(path.join(DIR, "..", "secret")).trim()
  return secret === "" ? "" : createHmac("sha256", secret).update(words.join(" ")).digest("hex")
}
const isProof = (given, ...words) => {
  const [one, other] = [Buffer.from(String(given)), Buffer.from(proof(...words))]
  return other.length > 0 && one.length === other.length && timingSafeEqual(one, other)
}

/** Each connection has its own nonce. */
const nonces = new WeakMap()
const meet = (from, theirs) => {
  const nonce = randomBytes(32).toString("hex")
  nonces.set(from, nonce)
  return { nonce, epoch, proof: proof("keeper", String(theirs).slice(0, 64), nonce, epoch) }
}

const hello = (from, { epoch: asked, proof: given }) => {
  if (!Number.isInteger(asked) || asked < 0 || asked > MAX_EPOCH) return { error: "EINVAL" }
  if (!nonces.has(from) || !isProof(given, "daemon", nonces.get(from), asked)) return { error: "unproven" }
  if (asked < epoch || (asked === epoch && client !== undefined && client !== from)) return { error: "fenced", epoch }
  epoch = asked
  attempt("epoch", () => fs.writeFileSync(path.join(DIR, "epoch"), `${epoch} ${proof("epoch", epoch)}`))
  if (client !== from) client?.destroy()
  client = from
  clearInterval(watch)
  const listed = ({ ended, err, exit, id, out, seq, ...run }) =>
    Object.assign(placeOf(run), { run: id, seq, out: out.size, err: err.size, exit, ended })
  return { pid: process.pid, version: 3, runs: [...runs.values()].map(listed) }
}

const answer = async (from, message) => {
  const { op, run: id } = message
  if (op === "meet") return meet(from, message.nonce)
  if (op === "hello") return hello(from, message)
  if (from !== client) return { error: "hello first" }
  if (op === "spawn") return start(from, message)
  if (op === "retire") return retire()
  const run = runs.get(id)
  if (run === undefined) return { error: "unknown" }
  if (op === "write") return write(run, message)
  if (op === "forget") return forget(run)
  if (op !== "mark") return { error: "no such op" }
  for (const one of both(run)) {
    one.mark = Math.max(one.mark, Math.min(Number(message[one.name]) || 0, one.size))
    goOn(one)
  }
}

/** While a peer does not read its answers, no further orders are read from it. */
const serve = (socket) => {
  let [pieces, length] = [[], 0]
  const hear = async (line) => {
    const message = attempt("", () => JSON.parse(line)) ?? {}
    const failed = (error) => (log("request", error), { error: error.code ?? String(error) })
    const body = await answer(socket, message).catch(failed)
    if (socket.writable) socket.write(`${JSON.stringify({ re: message.id, ...body })}\n`)
  }
  socket.setEncoding("utf8")
  socket.on("data", (chunk) => {
    const [first, ...lines] = chunk.split("\n")
    pieces.push(first)
    length += first.length
    for (const line of lines) {
      void hear(pieces.join(""))
      ;[pieces, length] = [[line], line.length]
    }
    if (length > (socket === client ? MAX_LINE : MAX_HELLO)) return socket.destroy()
    if (socket.writableNeedDrain) socket.pause()
  })
  socket.on("drain", () => (socket.resume(), socket === client && flush()))
  socket.on("error", () => {})
  socket.on("close", () => {
    if (client !== socket) return
    client = undefined
    unwatched(lease)
  })
}

/** Exits once the keeper is retired and has no program. */
const leave = () => {
  if (!retired || starting > 0 || [...runs.values()].some(({ ended }) => !ended)) return
  if (attempt("leave", isOurs)) for (const name of ["sock", "pid"]) fs.rmSync(path.join(DIR, name), { force: true })
  setTimeout(() => process.exit(0), 50)
}

const retire = async () => {
  retired = true
  for (const run of await Promise.all(slots.splice(0))) if (run !== undefined) drop(run, true)
  leave()
}

/** Ends all programs through their anchors; then the keeper exits, even if a pipe is still open. */
const expire = (why) => {
  log(`${why}: all programs are ended`)
  clearInterval(watch)
  expired = true
  for (const run of [...runs.values()].filter(({ ended }) => !ended)) {
    attempt("end", () => fs.writeSync(run.bye, "end\n"))
    if (run.cgroup) setTimeout(attempt, GRACE, "cgroup", () => fs.writeFileSync(`${run.cgroup}/cgroup.kill`, "1"))
    both(run).forEach(goOn)
  }
  setTimeout(() => process.exit(1), 3 * GRACE)
  void retire()
}

/** False if another keeper has taken the folder, or the folder is gone. */
const isOurs = () => text(path.join(DIR, "pid")) === String(process.pid)

/**
 * Runs while no daemon is connected. Ends all programs after `time` ms, or if the folder is gone. Retires when there is
 * nothing to do. A check that fails is repeated.
 */
const unwatched = (time) => {
  const since = performance.now()
  watch = setInterval(() => {
    const passed = performance.now() - since
    if (passed >= time) expire(`no daemon for ${time} ms`)
    else if (!isOurs()) expire("its folder is gone")
    else if (passed >= LINGER && runs.size + starting === 0) void retire()
  }, 100)
}

process.on("uncaughtException", (error) => log("fault", error))
for (const signal of ["SIGTERM", "SIGINT", "SIGQUIT", "SIGXCPU"]) process.on(signal, () => expire(signal))
for (const signal of "HUP USR1 USR2 ALRM VTALRM PROF IO PWR SYS XFSZ STKFLT".split(" "))
  process.on(`SIG${signal}`, () => log(`SIG${signal}: nothing is done`))
process.umask(0o077)
fs.mkdirSync(RUNS, { recursive: true, mode: 0o700 })
const own = path.join(DIR, `sock.${process.pid}`)
fs.rmSync(own, { force: true })
await once(net.createServer(serve).listen(own), "listening")
// the name appears only once the socket listens; linking fails if another keeper is there
const isFirst = attempt("another keeper is there", () => (fs.linkSync(own, path.join(DIR, "sock")), true))
fs.rmSync(own)
if (isFirst !== true) process.exit(0)
fs.writeFileSync(path.join(DIR, "pid"), String(process.pid))
// a damaged epoch, or one without a valid proof, is ignored
const [last, proven] = (attempt("epoch", () => text(path.join(DIR, "epoch"))) ?? "").trim().split(" ")
if (isProof(proven, "epoch", last)) epoch = Number(last)
for (const id of fs.readdirSync(RUNS)) attempt(id, () => adopt(id))
fill()
unwatched(Math.max(lease, GRACE)) // the daemon that started the keeper still has to connect
