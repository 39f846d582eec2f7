/**
 * InheritedDescriptors: the files, pipes and sockets that the daemon was started with besides 0, 1 and 2:
 * the lock of a script, the pipe of a build, a connection of whoever started it.
 *
 * Guarantees: after `close` the daemon holds none of them, so that no child can and nobody waits for their
 * end; what Node has opened for itself stays open, and so do the sockets that systemd has handed over.
 *
 * Node marks what it opens close-on-exec, and on its way up also what it inherited with a low number. So what
 * lacks the mark is inherited; and of what bears it, what Node opens for itself before any module runs is told by its
 * kind: a file, a folder, a socket and one end of a pipe are none of it. Without /proc nothing is closed.
 *
 * Node reads certificates on a thread of its own meanwhile, by files without the mark: closing one under it would
 * leave the daemon without them. What may be such a file is spared, whoever opened it; it holds nothing secret.
 */
import { closeSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs"
import { url } from "node:inspector"

const FOLDER = "/proc/self/fd"
const CLOSE_ON_EXEC = 0o2000000

interface Descriptor {
  readonly fd: number
  /** `/etc/hosts`, `pipe:[17]`, `socket:[18]`, `anon_inode:[eventpoll]`. */
  readonly target: string
  readonly marked: boolean
}

/** Undefined for one that is closed by now: the reading of the folder was one. */
const look = (name: string): Descriptor | undefined => {
  try {
    const flags = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1] ?? "0"
    const target = readlinkSync(`${FOLDER}/${name}`)
    return { fd: Number(name), target, marked: (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0 }
  } catch {
    return undefined
  }
}

type Environment = { readonly [name: string]: string | undefined }

/** Where systems keep certificates and OpenSSL its settings. */
const CERTIFICATES = ["/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/lib/ssl"]

/** The files and folders that Node and OpenSSL may read certificates from, as the kernel names them. */
export const certificates = (environment: Environment): ReadonlyArray<string> =>
  ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF"]
    .flatMap((name) => [environment[name] ?? "", ...(environment[name] ?? "").split(":")])
    .concat(CERTIFICATES)
    .flatMap((path) => {
      try {
        return path === "" ? [] : realpathSync(path)
      } catch {
        return []
      }
    })

interface Own {
  /** Whether Node may have sockets of its own. */
  readonly sockets: boolean
  /** Files and folders that are Node's to read. */
  readonly files: ReadonlyArray<string>
}

/** Pure: those that were inherited. */
export const inherited = (all: ReadonlyArray<Descriptor>, { files, sockets }: Own): ReadonlyArray<Descriptor> => {
  const isSpared = ({ target }: Descriptor) => files.some((one) => target === one || target.startsWith(`${one}/`))
  const isAlone = ({ target }: Descriptor) => all.filter((other) => other.target === target).length === 1
  const isForeign = (one: Descriptor): boolean => {
    const { target } = one
    // a terminal and /dev/null are opened by Node, too
    if (target.startsWith("/")) return !target.startsWith("/dev/")
    if (target.startsWith("socket:")) return !sockets
    return target.startsWith("pipe:") && isAlone(one)
  }
  return all.filter((one) => one.fd > 2 && !isSpared(one) && (!one.marked || isForeign(one)))
}

/** Before the daemon opens anything, but what was `handed` to it. Returns what was closed. */
export const close = (environment: Environment, handed: ReadonlyArray<number> = []): ReadonlyArray<string> => {
  let names: ReadonlyArray<string>
  try {
    names = readdirSync(FOLDER)
  } catch {
    return []
  }
  const sockets = process.channel !== undefined || url() !== undefined
  return inherited(
    names.filter((name) => !handed.includes(Number(name))).flatMap((name) => look(name) ?? []),
    { sockets, files: certificates(environment) }
  ).map(({ fd, target }) => {
    closeSync(fd)
    return target
  })
}
