/**
 * HookCommand: generates the command that the hooks of coding CLIs run. The command is a small program that sends the hook's
 * JSON to the daemon's unix socket, and prints the daemon's answer if there is one. A socket is used because any
 * program could occupy a port, and then receive and answer hooks. The socket is in a folder to which only its owner can
 * write.
 *
 * Guarantees: the command uses no port and no token. It sends nothing to a socket whose folder belongs to another user,
 * or to which others can write. The input is sent as soon as its JSON object is complete. An input that is too long is
 * truncated, and the daemon reports that. Whatever fails (no daemon, a daemon that hangs, no program), the command
 * exits in time with code 0, and prints nothing, because exit code 2 would stop the agent.
 *
 * The program is written in three versions. `perl` is preferred, because nearly every machine has it, and it delays an
 * agent least; then `curl`, then `node`.
 */
import { Effect, FileSystem } from "effect"
import { join, resolve } from "node:path"
import { MAX_BYTES } from "../../plates/HookBody.ts"
import { quoted } from "../../config/ShellWord.ts"

const written = "Written by agentd: hands a hook of a coding CLI to the daemon. It says nothing, and fails never."

const perl = String.raw`#!/usr/bin/perl
# ${written}
#   perl report.pl SOCKET ROUTE SECONDS
# No module is loaded: that is where perl's time goes. An exit code of 2, or of die, would stop the agent.
my ($path, $route, $seconds) = @ARGV;
$SIG{PIPE} = 'IGNORE';
$SIG{ALRM} = sub { exit 0 };
alarm $seconds;
my ($body, $answer) = ('', '');
binmode STDIN;
# An object that is whole goes at once: the session may leave its end open. The daemon says what is cut.
my ($at, $depth, $text) = (0, 0, 0);
READ: while (sysread STDIN, $body, 65536, length $body) {
  last if length $body > ${MAX_BYTES};
  pos($body) = $at;
  while ($body =~ /(\\.|["{}])/gcs) {
    if ($1 eq '"') { $text = !$text }
    elsif (!$text && $1 eq '{') { $depth++ }
    elsif (!$text && $1 eq '}') { last READ if --$depth == 0 }
    $at = pos $body;
  }
  # nothing of it is looked at twice; a backslash at its end is half of a pair
  $at = length($body) - ($at < length $body && $body =~ /\\\z/);
}
$body = substr $body, 0, ${MAX_BYTES};
# Only we may write in the folder: nobody else can have put a socket there.
my ($folder) = $path =~ m{^(.*)/};
my @stat = stat $folder or exit 0;
exit 0 if $stat[4] != $> || ($stat[2] & 022);
socket(my $socket, 1, 1, 0) or exit 0;
connect($socket, $^O eq 'linux' ? pack('Sa*x', 1, $path) : pack('CCa*x', length($path) + 3, 1, $path)) or exit 0;
my ($plate, $run) = map { my $value = defined $ENV{$_} ? $ENV{$_} : ''; $value =~ s/[^\w.:\/-]//g; substr $value, 0, 256 } 'AGENTD_PLATE', 'AGENTD_RUN';
my $request = join "\r\n", "POST $route HTTP/1.0", 'content-type: application/json', 'content-length: ' . length $body,
  "x-agentd-plate: $plate", "x-agentd-run: $run", 'x-agentd-pid: ' . getppid, '', $body;
for (my $at = 0; $at < length $request;) { $at += syswrite($socket, $request, 65536, $at) || exit 0 }
while (sysread $socket, $answer, 65536, length $answer) { exit 0 if length $answer > ${MAX_BYTES} }
print substr $answer, 4 + index $answer, "\r\n\r\n" if $answer =~ m{^HTTP/1\.[01] 200 };
exit 0;
`

/** The first part of both sh scripts, which reads the hook's input. */
export const reading = String.raw`PATH=/usr/bin:/bin:$PATH LC_ALL=C; export PATH LC_ALL
clean() { printf '%s' "$1" | tr -cd 'A-Za-z0-9_.:/-' | head -c 256; }
# An object that is whole goes at once: the session may leave its end open. The daemon says what is cut.
body=
while part=$(dd bs=65536 count=1; echo .); part="${"$"}{part%.}"; [ -n "$part" ]; do
  body=$body$part
  [ ${"$"}{#body} -le ${MAX_BYTES} ] || break
  case $part in *"}"*) ;; *) continue ;; esac
  open=$(printf '%s' "$body" | tr -d '\n' | sed -e 's/\\.//g' -e 's/"[^"]*"//g' -e 's/[^"{}]//g' -e ':a' -e 's/{}//g' -e ta)
  [ -n "$open" ] || break
done 2>/dev/null
said() { printf '%s' "$body" | head -c ${MAX_BYTES}; }
`

const curl = String.raw`#!/bin/sh
# ${written}
#   sh report.sh SOCKET ROUTE SECONDS
folder=${"$"}{1%/*}
[ -O "$folder" ] || exit 0
# Only we may write in the folder: nobody else can have put a socket there.
case $(ls -ldL "$folder") in d????-??-*) ;; *) exit 0 ;; esac
${reading}said | command curl -q -s -f --noproxy '*' --unix-socket "$1" -m "$3" --max-filesize ${MAX_BYTES} --data-binary @- \
  -H 'content-type: application/json' -H 'expect:' \
  -H "x-agentd-pid: $PPID" -H "x-agentd-plate: $(clean "$AGENTD_PLATE")" -H "x-agentd-run: $(clean "$AGENTD_RUN")" "http://agentd$2"
exit 0
`

const node = String.raw`// ${written}
//   node report.cjs SOCKET ROUTE SECONDS
"use strict"
const [socketPath, path, seconds] = process.argv.slice(2)
const done = () => process.exit(0)
process.on("uncaughtException", done)
if (Number(seconds) > 0) setTimeout(done, seconds * 1000)
// Only we may write in the folder: nobody else can have put a socket there.
const { mode, uid } = require("node:fs").statSync(require("node:path").dirname(socketPath))
if (uid !== process.geteuid() || (mode & 0o022) !== 0) done()
const parts = []
let size = 0
let sent = false
// An object that is whole goes at once: the session may leave its end open. The daemon says what is cut.
const isWhole = (part) => {
  if (!/}\s*$/.test(part.toString("latin1", Math.max(0, part.length - 8)))) return false
  try {
    return typeof JSON.parse(Buffer.concat(parts)) === "object"
  } catch {
    return false
  }
}
process.stdin.on("data", (part) => {
  size += part.length
  parts.push(part)
  if (size > ${MAX_BYTES} || isWhole(part)) send()
})
process.stdin.on("end", () => send())
const clean = (text = "") => text.replace(/[^\w.:/-]/g, "").slice(0, 256)
const send = () => {
  if (sent) return
  sent = true
  process.stdin.pause()
  const body = Buffer.concat(parts).subarray(0, ${MAX_BYTES})
  const [plate, run] = [clean(process.env.AGENTD_PLATE), clean(process.env.AGENTD_RUN)]
  const headers = { "content-type": "application/json", "content-length": body.length, "x-agentd-plate": plate, "x-agentd-run": run, "x-agentd-pid": process.ppid }
  const request = require("node:http").request({ socketPath, path, method: "POST", headers, agent: false }, (response) => {
    if (response.statusCode !== 200) done()
    let answer = ""
    response.setEncoding("utf8").on("data", (part) => ((answer += part).length > ${MAX_BYTES} ? done() : undefined))
    response.on("end", () => process.stdout.write(answer, done))
  })
  request.on("error", done)
  request.end(body)
}
`

/** The programs that can run the hook command, in order of preference. */
export const WAYS = ["perl", "curl", "node"] as const
export type Way = (typeof WAYS)[number]

/** How hooks reach the daemon: the program that runs the hook command, and the paths of its script and socket. */
export interface Reporter {
  readonly way: Way
  /** Absolute path of the script. */
  readonly script: string
  /** Absolute path of the daemon's HTTP socket. */
  readonly socket: string
}

const scripts: { readonly [way in Way]: { readonly name: string; readonly text: string } } = {
  perl: { name: "report.pl", text: perl },
  curl: { name: "report.sh", text: curl },
  node: { name: "report.cjs", text: node }
}

/** The command that runs each script. For `node`, this is the Node that runs agentd. */
const programs: { readonly [way in Way]: string } = { perl: "perl", curl: "sh", node: quoted(process.execPath) }
/** The program that must be installed for each version of the hook command. */
const needed: { readonly [way in Way]: string } = { perl: "perl", curl: "curl", node: quoted(process.execPath) }

/** Prefix of all hook commands of agentd, which distinguishes them from other hooks. */
export const MARK = "AGENTD_HOOK=1"

/** The user's environment variables that would make a program load, print or reject something while a script runs. */
const SILENCERS =
  "PERL5OPT PERL5LIB PERLLIB PERL5DB PERL_UNICODE PERLIO PERLIO_DEBUG NODE_OPTIONS NODE_PATH NODE_CHANNEL_FD NODE_V8_COVERAGE OPENSSL_CONF TIME_STYLE BASH_ENV ENV"

/**
 * The command line of a hook, for `sh -c`. `seconds`: timeout of the command; 0: only Claude Code's own timeout
 * applies.
 */
export const line = ({ script, socket, way }: Reporter, route: string, seconds: number): string =>
  `${MARK}; PATH=/usr/bin:/bin:$PATH; [ -r ${quoted(script)} ] && command -v ${needed[way]} >/dev/null || exit 0; ` +
  `unset ${SILENCERS}; exec ${programs[way]} ${quoted(script)} ${quoted(socket)} ${route} ${seconds} 2>/dev/null`

/** The preferred program that is installed in a folder of the PATH; `node` if there is neither `perl` nor `curl`. */
const wayOf = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  for (const way of ["perl", "curl"] as const) {
    for (const folder of path.split(":").filter((folder) => folder !== "")) {
      const info = yield* Effect.option(fs.stat(resolve(folder, way)))
      if (info._tag === "Some" && info.value.type === "File" && (info.value.mode & 0o111) !== 0) return way
    }
  }
  return "node"
})

interface Place {
  readonly folder: string
  readonly socket: string
}

export const reporterBy = (way: Way, { folder, socket }: Place): Reporter => ({
  way,
  script: join(folder, scripts[way].name),
  socket
})

/** The reporter with the preferred program in the PATH. */
export const reporter = ({ path, ...place }: Place & { readonly path: string }) =>
  Effect.map(wayOf(path), (way) => reporterBy(way, place))

/** Replaces a script atomically: a hook that runs at the same time sees the old script or the new one, never a part. */
export const writeScript = Effect.fnUntraced(function* (path: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const made = `${path}.new`
  yield* fs.writeFileString(made, text, { mode: 0o700 })
  yield* fs.rename(made, path)
})

export const write = (folder: string) =>
  Effect.forEach(Object.values(scripts), ({ name, text }) => writeScript(join(folder, name), text), { discard: true })
