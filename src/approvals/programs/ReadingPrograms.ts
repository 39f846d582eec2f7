/**
 * ReadingPrograms: programs that show files, folders and the machine, and the shell's own words that do no more.
 */
import {
  awkProgram,
  cdWords,
  dateWords,
  jqFilter,
  numbers,
  printfWords,
  readWords,
  sedScripts,
  setWords,
  testWords
} from "./Checks.ts"
import { tableOf } from "./ProgramTable.ts"

const FILES = tableOf(`
# man 1 %, Debian 12
@gnu: --help --version
cat: read *
  -A -b -E -n --number -s --squeeze-blank -T -v @gnu
tac: read *
  -b -r -s: --separator: @gnu
nl: read *
  -b: --body-numbering: -n: --number-format: -s: -v: -w: --number-width: @gnu
head: read *
  -NUM -c: --bytes: -n: --lines: -q --quiet --silent -v --verbose -z @gnu
tail: read *
  -NUM -c: --bytes: -f --follow? -F -n: --lines: -q --quiet --silent --retry -s: -v --verbose -z @gnu
wc: read *
  -c --bytes -m --chars -l --lines -L --max-line-length -w --words @gnu
ls: read *
  -a --all -A --almost-all -b --block-size: -B -c -C --color? -d --directory -f -F --classify? --full-time -g
  --group-directories-first -G -h --human-readable -H -i --inode -I: --ignore: -k -l -m -n -N -o -p -q
  -Q -r --reverse -R --recursive -s --size -S --sort: --time: --time-style: -t -T: -u -U -v -w: --width: -x -X -1 @gnu
grep|egrep|fgrep: pattern *
  -E --extended-regexp -F --fixed-strings -G -P --perl-regexp -e:any --regexp:any -f:path --file:path -i -y
  --ignore-case -v --invert-match -w --word-regexp -x --line-regexp -c --count --color? -L --files-without-match -l
  --files-with-matches -m: --max-count: -o --only-matching -q --quiet --silent -s --no-messages -b -H --with-filename -h
  --no-filename -n --line-number -T -Z --null -A: --after-context: -B: --before-context: -C: --context: -NUM -a --text
  --binary-files: -d: -D: --exclude: --exclude-from:path --exclude-dir: -I --include: -r --recursive
  --line-buffered -U -z --null-data -V @gnu
  by -e --regexp -f --file
# man 1 find, Debian 12
find: read words *
  -P -H -regextype: -d -depth -maxdepth: -mindepth: -mount -xdev -atime:any -cmin:any -ctime:any -empty -executable
  -false -iname: -ipath: -mmin:any -mtime:any -name: -newer:path -newermt: -path: -wholename: -perm:any -regex: -iregex:
  -samefile:path -size:any -true -type: -xtype: -user: -ls -print -print0 -printf:any -prune -quit -a -and -o -or -not
  runs -exec -execdir -ok -okdir
  writes -delete -fls: -fprint: -fprint0: -fprintf:
  secrets -files0-from:
  marks ( ) ! ,
# man 1 rg 13.0, Debian 12
rg: pattern *
  --column -A: --after-context: -B: --before-context: --binary -b -s --case-sensitive --color: -C: --context: -c --count
  --count-matches --crlf -E: --encoding: -f:path --file:path --files -l --files-with-matches --files-without-match -F
  --fixed-strings -g: --glob: --heading --no-heading -. --hidden --iglob: -i --ignore-case
  --ignore-file:path -v --invert-match --json -n --line-number -x --line-regexp -M: --max-columns: -m: --max-count:
  --max-depth: --max-filesize: -U --multiline --multiline-dotall --no-config -I --no-filename -N --no-line-number
  --no-messages -0 --null -o --only-matching --passthru -P --pcre2 -p --pretty -q --quiet -e:any --regexp:any -r:
  --replace: -S --smart-case --sort: --sortr: --stats -a --text -j: --threads: --trim -t: --type: --type-list -T:
  --type-not: --vimgrep -H --with-filename -w --word-regexp -h -V @gnu
  runs --pre: --pre-glob: --hostname-bin: -z --search-zip
  secrets -u --unrestricted --no-ignore --no-ignore-vcs --no-ignore-dot --no-ignore-files --no-ignore-parent
  by -e --regexp -f --file --files --type-list
# man 1 fdfind 8.6, Debian 12
fd|fdfind: pattern *
  -H --hidden -I --no-ignore -u --no-ignore-vcs -s --case-sensitive -i --ignore-case -g --glob --regex -F
  --fixed-strings -a --absolute-path -l --list-details -p --full-path -0 --print0 --max-results: -1 -q -d:
  --max-depth: --min-depth: --prune -t: --type: -e: --extension: -E: --exclude: --ignore-file:path -c: --color: -j: -S:
  --size: --changed-within: --changed-before: --search-path:path -h -V @gnu
  runs -x -X --exec --exec-batch
  secrets --base-directory:
# man 1 tree 2.1, Debian 12; -R writes a file into each folder
tree: read flags *
  -a -d -f -L: -P: -I: --gitignore --ignore-case --prune --noreport -p -s -h --du -F -v --dirsfirst --sort: -n -C -J
  @gnu
  writes -o: -R
# man 1 %, Debian 12
stat: read *
  -L --dereference -f --file-system -c:any --format:any --printf:any @gnu
file: read *
  -b --brief -i --mime --mime-type --mime-encoding -L --dereference @gnu
  writes -C --compile
  secrets -f: --files-from: -m: --magic-file:
  runs -z -Z --uncompress --uncompress-noreport -S --no-sandbox
realpath: read *
  -e -m --relative-to:path -s -z @gnu
readlink: read *
  -f --canonicalize -e -m -z @gnu
du: read *
  -0 -a --all --apparent-size -B: -b --bytes -c --total -d: --max-depth: -h --human-readable -k -m -P -S -s
  --summarize -t: --threshold: --time? --exclude: -X:path --exclude-from:path -x --one-file-system @gnu
cksum|sum: read *
  @gnu
od: read *
  -A: -t: -j: -N: -v -c -x -b -d -o @gnu
join: read *
  -1: -2: -a: -e: -i -j: -o: -t: -v: @gnu
md5sum|sha1sum|sha256sum|sha512sum|b2sum: read *
  -b --binary -t --text -z @gnu
diff: read *
  -q --brief -s -c -C: -u -U: --unified? -e -n -y --side-by-side -W: --width: --suppress-common-lines -p -F: --label: -t
  -r --recursive -N --new-file -x: --exclude: -X:path --exclude-from:path --from-file:path --to-file:path -i
  --ignore-case -E -Z -b --ignore-space-change -w --ignore-all-space -B --ignore-blank-lines -I: -a --text
  --strip-trailing-cr -d --minimal --color? --normal -v @gnu
  runs -l --paginate
cmp: read *
  -b -l -n: --bytes: -s --quiet --silent @gnu
xxd: read words 1 *
  -a -b -c: -g: -l: -p -ps -s:any
  writes -r -revert
`)

const TEXT = tableOf(
  `
# man 1 %, Debian 12
@gnu: --help --version
sort: read *
  -b -d -f --ignore-case -g -i -M -h --human-numeric-sort -n --numeric-sort -R -r --reverse --sort: -V --version-sort -c
  --check? -C --debug -k: --key: -m -s --stable -S: -t: --field-separator: -u --unique -z --zero-terminated @gnu
  writes -o: --output: -T: --temporary-directory:
  runs --compress-program:
  secrets --files0-from:
uniq: read 1 *
  -c --count -d --repeated -f: -w: -i --ignore-case -u --unique @gnu
cut: read *
  -b: --bytes: -c: --characters: -d: --delimiter: -f: --fields: -n --complement -s --output-delimiter: -z @gnu
tr: text deaf *
  -c -C --complement -d --delete -s --squeeze-repeats -t @gnu
comm: read *
  -1 -2 -3 --output-delimiter: -z @gnu
paste: read *
  -d: --delimiters: -s --serial -z @gnu
fold: read *
  -b --bytes -s --spaces -w: --width: @gnu
rev: read *
  -h -V @gnu
base64: read *
  -d --decode -i -w: --wrap: @gnu
column: read *
  -o: --output-separator: -s: --separator: -t --table -h -V @gnu
sed: pattern *
  -n --quiet --silent --debug -e:any --expression:any --follow-symlinks -l: --posix -E -r --regexp-extended -s
  --separate --sandbox -u --unbuffered -z --null-data @gnu
  writes -i? --in-place?
  runs -f: --file:
  by -e --expression -f --file
# man 1 mawk 1.3.4, Debian 12
awk|gawk|mawk|nawk: pattern
  -F:
# man 1 jq 1.6, Debian 12
jq: pattern flags *
  --slurp -s --raw-input -R --null-input -n --compact-output -c --tab --indent: --color-output -C --monochrome-output -M
  --ascii-output -a --unbuffered --sort-keys -S --raw-output -r --join-output -j -e --exit-status --seq --stream --arg:2
  --argjson:2 --slurpfile:2path --rawfile:2path --args --jsonargs -h @gnu
  secrets -f: --from-file: -L: --run-tests
`,
  { sed: sedScripts, jq: jqFilter, "awk|gawk|mawk|nawk": awkProgram }
)

const MACHINE = tableOf(
  `
# man 1 %, Debian 12
@gnu: --help --version
pwd: none *
  -L -P @gnu
whoami: none *
  @gnu
basename: text deaf *
  -a --multiple -s: --suffix: -z @gnu
dirname: text deaf *
  -z @gnu
seq: text deaf *
  -NUM -f: --format: -s: --separator: -w --equal-width @gnu
sleep: text deaf *
  @gnu
which: text deaf *
  -a
df: read *
  -a -h --human-readable -H -i -k -T @gnu
date: text *
  -d:any --date:any --debug -I? --iso-8601? -R --rfc-email --rfc-3339: -r:path --reference:path -u --utc @gnu
  writes -s: --set:
  secrets -f: --file:
id: text *
  -g -G -n -u @gnu
uname: none *
  -a --all -s -n -r -m @gnu
hostname: none *
  -s --short -h -V
nproc: none *
  --all --ignore: @gnu
free: none *
  -b -k -m -g -h -t -w
uptime: none *
  -p -s @gnu
# help of bash 5.2; man 1 expr, Debian 12
echo|true|false|:|expr: text deaf open *
read: text
  -r
test|[: text deaf open *
printf: text deaf open *
cd: text 1 *
  -L -P -e
exit|return|break|continue: text deaf open *
type: text deaf *
  -a -f -t -p -P
wait: text *
  -f -n
jobs: text *
  -l -n -p -r -s
set: none
  -e -u -o:{pipefail,errexit,nounset}
command: any open runs = runs a program
command -v|-V: text *
`,
  {
    cd: cdWords,
    date: dateWords,
    printf: printfWords,
    read: readWords,
    set: setWords,
    "test|[": testWords,
    "exit|return|break|continue": numbers
  }
)

export const READING = { ...FILES, ...TEXT, ...MACHINE }
