/**
 * Seccomp: a system call filter in the kernel's binary form (classic BPF, eight bytes per instruction), for `bwrap
 * --seccomp FD` and for prctl. No compiler is needed.
 *
 * These fail with EPERM:
 * - calls that reach into the kernel or past namespaces and that no coding agent needs (keyrings, bpf, perf,
 *   userfaultfd, mounts, modules, kexec, clocks, other processes' memory)
 * - new user namespaces
 * - sockets of other families than unix, inet and netlink
 * - typing into a terminal (TIOCSTI, TIOCLINUX)
 * - making a set-uid file, which any user of the machine could run as the daemon's user
 * - making a set-gid file, if the call creates the file. chmod of set-gid is allowed: no filter can distinguish a
 *   directory, for which git needs it.
 *
 * The flags of clone3, openat2 and io_uring cannot be read by a filter. They fail with ENOSYS as on an older kernel,
 * and programs use other calls.
 *
 * Guarantees: A call by another ABI (32 bits, x32) kills its process, so that a call number has only one meaning. For a
 * machine without a table, `program` returns undefined.
 */

const LD = 0x20
const JEQ = 0x15
const JGE = 0x35
const JSET = 0x45
const RET = 0x06

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const EPERM = 0x00050001
const ENOSYS = 0x00050026

/** Offsets of fields in `struct seccomp_data`. The lower half of each argument is enough here. */
const NUMBER = 0
const ABI = 4
const [FIRST, SECOND, THIRD] = [16, 24, 32] as const

interface Table {
  /** The machine's ABI, as the number that the kernel calls AUDIT_ARCH. */
  readonly abi: number
  readonly socket: number
  readonly ioctl: number
  readonly clone: number
  readonly refused: ReadonlyArray<number>
  /**
   * System calls that change a file's mode (`modes`), that open and possibly create a file (`opens`), and that create a
   * file (`makes`). Each is listed with the offset of its mode or flags.
   */
  readonly modes: ReadonlyArray<readonly [call: number, mode: number]>
  readonly opens: ReadonlyArray<readonly [call: number, flags: number]>
  readonly makes: ReadonlyArray<readonly [call: number, mode: number]>
}

const FCHMODAT2 = [452, THIRD] as const
/** System calls that fail as on an older kernel: io_uring_setup, io_uring_enter, io_uring_register, clone3, openat2. */
const UNKNOWN = [425, 426, 427, 435, 437]
/** System calls with the same number on all machines: this is true from number 424 on. */
const EVERYWHERE = {
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  mount_setattr: 442,
  quotactl_fd: 443,
  open_tree_attr: 467
}

const X64 = {
  ptrace: 101,
  syslog: 103,
  pivot_root: 155,
  chroot: 161,
  acct: 163,
  settimeofday: 164,
  mount: 165,
  umount2: 166,
  swapon: 167,
  swapoff: 168,
  reboot: 169,
  init_module: 175,
  delete_module: 176,
  quotactl: 179,
  clock_settime: 227,
  kexec_load: 246,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  unshare: 272,
  perf_event_open: 298,
  open_by_handle_at: 304,
  setns: 308,
  process_vm_readv: 310,
  process_vm_writev: 311,
  kcmp: 312,
  finit_module: 313,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323
}

const ARM64 = {
  umount2: 39,
  mount: 40,
  pivot_root: 41,
  chroot: 51,
  quotactl: 60,
  acct: 89,
  unshare: 97,
  kexec_load: 104,
  init_module: 105,
  delete_module: 106,
  clock_settime: 112,
  syslog: 116,
  ptrace: 117,
  reboot: 142,
  settimeofday: 170,
  add_key: 217,
  request_key: 218,
  keyctl: 219,
  swapon: 224,
  swapoff: 225,
  perf_event_open: 241,
  open_by_handle_at: 265,
  setns: 268,
  process_vm_readv: 270,
  process_vm_writev: 271,
  kcmp: 272,
  finit_module: 273,
  bpf: 280,
  userfaultfd: 282,
  kexec_file_load: 294
}

const tables: { readonly [architecture: string]: Table } = {
  x64: {
    abi: 0xc000003e,
    socket: 41,
    ioctl: 16,
    clone: 56,
    refused: Object.values({ ...EVERYWHERE, ...X64 }),
    // chmod, fchmod, fchmodat; open, openat; creat, mknod, mknodat
    modes: [[90, SECOND], [91, SECOND], [268, THIRD], FCHMODAT2],
    opens: [
      [2, SECOND],
      [257, THIRD]
    ],
    makes: [
      [85, SECOND],
      [133, SECOND],
      [259, THIRD]
    ]
  },
  arm64: {
    abi: 0xc00000b7,
    socket: 198,
    ioctl: 29,
    clone: 220,
    refused: Object.values({ ...EVERYWHERE, ...ARM64 }),
    // fchmod, fchmodat; openat; mknodat
    modes: [[52, SECOND], [53, THIRD], FCHMODAT2],
    opens: [[56, THIRD]],
    makes: [[33, THIRD]]
  }
}

/** Number of the prctl call, with which a process installs a filter for itself. */
export const PRCTL: { readonly [architecture: string]: number } = { x64: 157, arm64: 167 }

const FAMILIES = { unix: 1, inet: 2, inet6: 10, netlink: 16 }
const TYPING = { TIOCSTI: 0x5412, TIOCLINUX: 0x541c }
const CLONE_NEWUSER = 0x10000000
/** Mode bits, and the flags with which open creates a file: O_CREAT, O_TMPFILE. */
const [SET_UID, SET_ID, MAKES] = [0o4000, 0o6000, 0o20000100]
/** Bit in the system calls of the x32 ABI, which has the same ABI number as x64. */
const X32 = 0x40000000

/** A BPF instruction. `holds` and `fails`: how many instructions are skipped if the test is true or false. */
type Instruction = readonly [operation: number, k: number, holds?: number, fails?: number]

/**
 * Tests an argument of one system call. The number of the call must be loaded; for any other number, the test is
 * skipped.
 */
const closer = (call: number, offset: number, test: ReadonlyArray<Instruction>): ReadonlyArray<Instruction> => [
  [JEQ, call, 0, test.length + 1],
  [LD, offset],
  ...test
]

/** Makes the filter return `found` if the loaded argument is one of the values, otherwise `other`. */
const oneOf = (values: ReadonlyArray<number>, found: number, other: number): ReadonlyArray<Instruction> => [
  ...values.map((value, index): Instruction => [JEQ, value, values.length - index, 0]),
  [RET, other],
  [RET, found]
]

/** Makes the filter return EPERM if the loaded argument has one of these bits. */
const without = (bits: number): ReadonlyArray<Instruction> => [
  [JSET, bits, 0, 1],
  [RET, EPERM],
  [RET, ALLOW]
]

const instructions = ({
  abi,
  clone,
  ioctl,
  makes,
  modes,
  opens,
  refused,
  socket
}: Table): ReadonlyArray<Instruction> => [
  [LD, ABI],
  [JEQ, abi, 1, 0],
  [RET, KILL],
  [LD, NUMBER],
  [JGE, X32, 0, 1],
  [RET, KILL],
  ...refused.flatMap((number): ReadonlyArray<Instruction> => [
    [JEQ, number, 0, 1],
    [RET, EPERM]
  ]),
  ...UNKNOWN.flatMap((number): ReadonlyArray<Instruction> => [
    [JEQ, number, 0, 1],
    [RET, ENOSYS]
  ]),
  ...closer(clone, FIRST, without(CLONE_NEWUSER)),
  ...modes.flatMap(([call, mode]) => closer(call, mode, without(SET_UID))),
  ...makes.flatMap(([call, mode]) => closer(call, mode, without(SET_ID))),
  // the mode is the next argument; without such a flag it has no meaning and is not checked
  ...opens.flatMap(([call, flags]) =>
    closer(call, flags, [[JSET, MAKES, 1, 0], [RET, ALLOW], [LD, flags + 8], ...without(SET_ID)])
  ),
  ...closer(socket, FIRST, oneOf(Object.values(FAMILIES), ALLOW, EPERM)),
  ...closer(ioctl, SECOND, oneOf(Object.values(TYPING), EPERM, ALLOW)),
  [RET, ALLOW]
]

/**
 * Builds the filter for an architecture, given by Node's name for it; undefined if its system call numbers are not
 * known.
 */
export const program = (architecture: string): Uint8Array | undefined => {
  const table = Object.hasOwn(tables, architecture) ? tables[architecture] : undefined
  if (table === undefined) return undefined
  const code = instructions(table)
  const bytes = Buffer.alloc(code.length * 8)
  code.forEach(([operation, k, holds = 0, fails = 0], index) => {
    bytes.writeUInt16LE(operation, index * 8)
    bytes.writeUInt8(holds, index * 8 + 2)
    bytes.writeUInt8(fails, index * 8 + 3)
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4)
  })
  return bytes
}
