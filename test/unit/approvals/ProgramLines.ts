/**
 * Lines of each entry of the table: the words behind its name, of plain use and with a further effect. `$X` is a word
 * that only the shell knows.
 */
type Lines = { readonly plain: ReadonlyArray<string>; readonly more: ReadonlyArray<string> }
const lines = (plain: ReadonlyArray<string>, more: ReadonlyArray<string>): Lines => ({ plain, more })

const reading: { readonly [name: string]: Lines } = {
  cat: lines(
    ["README.md", "-nA a b", "-", "src/*.ts"],
    ["/etc/passwd", ".env", "-- .env", "--sho a", "$X", "~/a", "a -Q"]
  ),
  tac: lines(["a"], ["../a"]),
  nl: lines(["-b a -w3 a"], ["-Q a"]),
  head: lines(["-20 a", "-n 5 a b", "-n5 a", "-n -5 a", "--lines=3 a"], ["-c5 .env", "--line=3 a", "-n $X a"]),
  tail: lines(["-n +5 a", "-f a", "-50 a"], ["-n 5 /var/log/syslog"]),
  wc: lines(["-l src/*.ts", "-lwc a"], ["--files0-from=x", "-l .npmrc"]),
  ls: lines(["", "-la src", "-1 --color=always", "-ltrh a b"], ["/", "../..", "-Y", "--col=always", "~"]),
  grep: lines(
    [
      "-rn TODO src",
      "-rn 'a b; rm x' src",
      "-E 'a|b' a",
      "-e x -e y a",
      "-A3 -B 2 x a",
      "-3 x a",
      "--include=*.ts -r x .",
      "-e -x a",
      "-c '' a"
    ],
    [
      "-f /etc/shadow a",
      "-r x /etc",
      "-rn x . --include=.env",
      "x ../a",
      "$X a",
      "-rx$X a",
      "--fil=a b",
      "x .e*",
      "-e x .env",
      "-R x .",
      "--include='?env' -r x .",
      "--include='*.pem' -r x ."
    ]
  ),
  rg: lines(
    [
      "-n foo src",
      "foo",
      "--files -g '*.ts'",
      "-e a -e b src",
      "-t ts -C3 x",
      "--hidden x src",
      "-uu".replace("uu", "ii x")
    ],
    [
      "--pre ./x foo",
      "--pre=./x foo",
      "--hostname-bin=./x foo",
      "-z foo",
      "-uu x",
      "x /etc",
      "-f ../x",
      "-g .env x",
      "-nz x",
      "-L x",
      "--follow x",
      "--hidden -g '*env' x",
      "--files ../a"
    ]
  ),
  find: lines(
    [
      ". -name '*.ts' -type f",
      ". -mtime -7 -size +1k",
      "src '(' -name a -o -name b ')' -print",
      ". ! -name x",
      ". -maxdepth 2 -newer a"
    ],
    [
      ". -delete",
      ". -exec rm {} +",
      ". -execdir ls {} +",
      ". -ok rm {} ;",
      ". -fprint x",
      ". -fprintf x %p",
      "/ -name x",
      "-files0-from x",
      ". -name .env",
      ". -name '*env'",
      ". -path '*nv'",
      "-L . -name x",
      ". -newer /etc/x",
      ". -samefile ../x",
      "$X",
      ". -nam x"
    ]
  ),
  fd: lines(
    ["x src", "-e ts", "-H -t f x"],
    ["x -x rm", "x -X rm", "--exec rm", "--base-directory / x", "x ..", "--search-path=/ x", "--ignore-file ../a x"]
  ),
  tree: lines(["-L 2", "-a -I node_modules", "-aF src", "-aL 2"], ["-o x", "-R -L 1", "-Io x y", "/", "--fromfile x"]),
  stat: lines(["-c %s a", "a b"], ["/etc/passwd"]),
  file: lines(["a", "-bi a"], ["-C -m x", "-m x y", "-f x", "-z a", "-Z a", "-S a"]),
  realpath: lines(["a", "-m a/b"], ["../..", "--relative-to=/ a"]),
  readlink: lines(["-f a"], ["-f /proc/1/exe"]),
  du: lines(["-sh .", "-d 1 -h", "-h --max-depth=1 src"], ["--files0-from=x", "-sh /", "-X ../a ."]),
  cksum: lines(["a b"], ["-c a", "../a"]),
  sum: lines(["a"], ["-r a", ".env"]),
  od: lines(["-c a", "-A x -t x1z -N 16 a"], ["--traditional a", "../a", "-w a"]),
  join: lines(["-t, -1 2 a b"], ["a ../b", "--header a b"]),
  b2sum: lines(["a"], ["-c a", "--check a"]),
  md5sum: lines(["a"], ["~/.netrc"]),
  diff: lines(
    ["-u a b", "-r a b", "-U3 a b", "-qr a b"],
    ["-l a b", "a /etc/passwd", "--to-file=/x a", "--paginate a b"]
  ),
  cmp: lines(["-s a b"], ["a ../b"]),
  xxd: lines(["-l 64 a", "a"], ["a src/b", "-r a b", "-rev a", "a -ps"]),
  pwd: lines(["", "-P"], ["x"]),
  basename: lines(["a/b", "$X", "-s .ts a"], ["-Q a"]),
  dirname: lines(["$X"], ["-Q a"]),
  seq: lines(["1 $N", "-w 3", "-5 5"], ["--foo 1"]),
  sleep: lines(["5", "$X"], ["-x"]),
  expr: lines(["1 + $X"], []),
  which: lines(["-a node"], ["-x a"]),
  type: lines(["-a node"], ["-x a"]),
  df: lines(["-h ."], ["-h /", "--outpu=x"]),
  date: lines(
    ["", "+%s", "-u +%F", "-d '1 day ago' +%F", "-d $X".replace("$X", "now"), "--iso-8601=seconds"],
    ["-s x", "--set=x", "01010000", "-f x", "-r /etc/x", "$X"]
  ),
  id: lines(["-u"], ["--foo"]),
  whoami: lines([""], ["x"]),
  uname: lines(["-a"], ["x"]),
  hostname: lines([""], ["evil", "-F x"]),
  nproc: lines([""], ["x"]),
  free: lines(["-m", ""], ["-s 1", "x"]),
  uptime: lines(["-p"], ["x"]),
  echo: lines(["-n a", "'done: '$?", "$X", "*"], []),
  test: lines(
    ["-f a", '-f "$X"', '! -d "$X"', '"$X" = y', "a -nt b", '-n "$X"', '"$X"'],
    [
      "-f /etc/x",
      "-e ../x",
      "! -d .ssh",
      "a -nt /x",
      "-v a",
      "-v 'a[$(rm x)]'",
      "a = b $X",
      '"$X" "$Y"',
      "-n $X",
      'a -a "$X" = b',
      "-R a"
    ]
  ),
  printf: lines(["'%s\\n' $X", "hi", "-- hi"], ["-- '%n' PATH", "'%-5n' PATH", "-v 'a[x]' y", "$X", '"$X" a', "-va y"]),
  cd: lines(
    ["src", "a/b/..", "-P src", "-- src"],
    ["", "-", "..", "/", "~", "$X", ".git/hooks", ".claude", ".ssh", "a b", "a/../..", "s*", "--"]
  ),
  read: lines(["-r line", "a b_c"], ["", "-r", "PATH", "-r 'a[$(rm x)]'", "-a x", "$X"]),
  exit: lines(["1", "$?"], ["$X", "'a[$(rm x)]'"]),
  wait: lines(["1"], ["-p x", "$X"]),
  jobs: lines(["-l"], ["-x rm"]),
  set: lines(["-e", "-euo pipefail", "-eu"], ["", "-- x", "-x", "-o xtrace", "-a", "+e"]),
  command: lines(["ls"], ["$X"]),
  "command -v": lines(["node"], ["-x", "$X"]),
  "command -V": lines(["node"], ["$X"])
}

const text: { readonly [name: string]: Lines } = {
  sort: lines(
    ["-u a", "-k 2 a", "-t, -k2,2n a", "-rn", "a b", "-c a", "--key=2 a"],
    [
      "-o src/a b",
      "--output=x a",
      "--compress-program=./x a",
      "--compress-prog=./x a",
      "-T / a",
      "a -ob",
      "-uo x a",
      "*",
      "--files0-from=x",
      "-- .env"
    ]
  ),
  uniq: lines(["-c a", "-c", "-w 3 a"], ["a src/b", "$X", "a -c"]),
  cut: lines(["-d: -f1 a", "-c1-3 a", "-f 2"], [".env", "-Q"]),
  tr: lines(["a-z A-Z", "-d '\\n'", "-s $X"], ["-q a"]),
  comm: lines(["-12 a b"], ["a ../b"]),
  paste: lines(["-sd, a"], ["/x"]),
  fold: lines(["-sw80 a"], ["/x"]),
  rev: lines(["a"], ["/x"]),
  base64: lines(["-d a"], ["id_rsa"]),
  column: lines(["-t -s , a"], ["/x"]),
  sed: lines(
    [
      "-n 1,40p a",
      "-n '1,40p;50q' a",
      "s/a/b/g a",
      "-E 's|a/b|c|' a",
      "-n '/foo/,/bar/p' a",
      "-n -e 1p -e '$p' a",
      "/x/d a",
      "-n '/a/{p;q}' a",
      "'s/^[[:space:]]*//' a",
      "-n '10,+5p' a",
      "= a",
      "'$!d' a"
    ],
    [
      "-i s/a/b/ a",
      "-i.bak s/a/b/ a",
      "--in-place s/a/b/ a",
      "--in-pl s/a/b/ a",
      "s/a/b/e a",
      "'w out' a",
      "-n '1e rm x' a",
      "-f x y",
      "-n '/a/w x' a",
      "s/a/b/w a",
      "-n -e 1p -e 'w x' a",
      "e",
      "'1r /etc/passwd' a",
      "R a",
      "'s/a/b/;w x' a",
      "$X a",
      "-ni p a",
      "-n p .env",
      "'s/a/b/gw x' a",
      "'y/a/b/;e' a",
      "'s/x/\\n/;W a' a",
      "'/[/]w x;/p' a",
      "'s/[/]/_/g' a",
      "-e $X a",
      "'a\\' a"
    ]
  ),
  awk: lines(
    [
      "'{print $1}' a",
      "'NR>=10 && NR<=20' a",
      "-F: '{print $1, $NF}' a",
      "-F '\\t' '$3 == \"x\" {print $1\":\"$2}'",
      "'/^a[a-z]+ b|c/{ print }' a",
      "'!/x/' a",
      "'END{print NR}' src/*.ts",
      "'NR==1,NR==5' a",
      "1 a"
    ],
    [
      "'{print > \"a\"}'",
      "'{print $1 > $2}'",
      "'{print | \"sh\"}'",
      "'{\"sh\" | getline}'",
      "'{getline < \"/etc/passwd\"; print}'",
      "'{print ENVIRON[\"X\"]}'",
      "'{print system(1)}'",
      "'BEGIN{system(\"x\")}'",
      "'/[/]/{print > \"a\"}/]/'",
      '\'{print "\\" > "a"}\'',
      "'@include \"a\"'",
      "'{print $x}'",
      "'{print}\n{print > 1}'",
      "-f a",
      "--file=a",
      "-v a=b 1",
      "-i inplace 1 a",
      "1 /etc/passwd",
      "1 .env",
      "$X a"
    ]
  ),
  jq: lines(
    [
      ". a",
      "-r .name package.json",
      "-rc '.[] | select(.a == \"b\")' a",
      "--arg x y '.a == $x' a".replace("'.a == $x'", "'.a == \"x\"'"),
      "-n 1",
      "-s add a b",
      "--slurpfile x a . b"
    ],
    [
      "env",
      "-n '$ENV.KEY'",
      "-n 'import \"x\" as y; y::z'",
      "-f x y",
      "-L x . a",
      "--rawfile x /etc/passwd .",
      "--slurpfile x .env .",
      "'include \"x\"; .'",
      ". ../a",
      "-nf x",
      "$X",
      ". $X",
      "--argfile x ~/a ."
    ]
  )
}

const git: { readonly [name: string]: Lines } = {
  "git status": lines(["", "--short", "-sb", "--porcelain=v2", "-uno", "-u src"], ["--foo", "../..", "$X"]),
  "git diff": lines(
    [
      "",
      "HEAD~1 -- src",
      "--stat",
      "--cached",
      "main...HEAD",
      "main..feature/x",
      "--name-only",
      "-U3",
      "-U 3",
      "-w a b",
      "--word-diff=color",
      "-M50%"
    ],
    [
      "--ext-diff",
      "--output=src/a",
      "--outp=src/a",
      "--no-index /etc/passwd a",
      "/etc/passwd /etc/group",
      "../a ../b",
      "HEAD -- .env",
      "HEAD:.env",
      "--textconv",
      "-Ox",
      "$X",
      "~/a"
    ]
  ),
  "git log": lines(
    [
      "",
      "--oneline -5",
      "-n 3 --format='%h %s'",
      "-5 --stat",
      "--since='2 days ago' --author=x",
      "-S foo -- src",
      "-L1,5:src/a.ts",
      "--graph --all --oneline",
      "-p -1",
      "--grep='.*foo'",
      "-n3"
    ],
    [
      "--output=../x",
      "--ext-diff",
      '"$X"',
      "$X",
      "-O x",
      "-- ../..",
      "--show-signature",
      "--oneli",
      "--stdin",
      "-gOx",
      "/etc"
    ]
  ),
  "git show": lines(
    ["HEAD", "HEAD:src/a.ts", "--stat HEAD~2", "abc123 -- src"],
    ["HEAD:.env", "HEAD:a/.npmrc", "--output=x", "$X"]
  ),
  "git whatchanged": lines(["-3"], ["--output=x"]),
  "git blame": lines(
    ["-L 1,5 a", "-w a", "-L1,5 a"],
    ["-S /x a", "--contents=/etc/passwd a", "/etc/passwd", "--contents .env a"]
  ),
  "git rev-parse": lines(
    ["HEAD", "--abbrev-ref HEAD", "--show-toplevel", "--short=7 HEAD", "--git-dir"],
    ["--parseopt", "--resolve-git-dir /x", "$X"]
  ),
  "git ls-files": lines(["", "-o --exclude-standard", "-m src", "'*.ts'"], ["-X /x", "../..", "--exclude-from=.env"]),
  "git ls-tree": lines(["-r --name-only HEAD"], ["HEAD ../..", "-Q"]),
  "git check-ignore": lines(["-v a b"], ["--stdin", "../a", ".env"]),
  "git for-each-ref": lines(
    ["--sort=-committerdate --count=5 --format='%(refname)' refs/heads"],
    ["--stdin", "--format='%(signature)'"]
  ),
  "git name-rev": lines(["--name-only HEAD"], ["--stdin", "--annotate-stdin"]),
  "git count-objects": lines(["-vH"], ["x"]),
  "git diff-tree": lines(
    ["--no-commit-id --name-only -r HEAD"],
    ["--stdin", "-r HEAD:.env", "--ext-diff HEAD", "--output=a HEAD"]
  ),
  "git cat-file": lines(["-p HEAD:a", "-t HEAD"], ["-p HEAD:.env", "--textconv HEAD:a", "--filters HEAD:a", "--batch"]),
  "git merge-base": lines(["main HEAD", "--is-ancestor a b"], ["$X main"]),
  "git rev-list": lines(["--count HEAD", "-n 3 main..HEAD"], ["--stdin", "--use-bitmap-index HEAD"]),
  "git describe": lines(["--tags --always --dirty"], ["--foo"]),
  "git shortlog": lines(["-sne", "-s -n", "--format=%s"], ["--output=x", "--format=%GK"]),
  "git grep": lines(
    ["-n foo", "-n /foo -- src", "-e a --and -e b", "-il foo HEAD -- src", "-n foo -- '*.ts'"],
    [
      "foo HEAD:.env",
      "foo -- ':(top).env'",
      "foo -- '*env'",
      "-O./x foo",
      "-O foo",
      "--open-files-in-pager=x foo",
      "--no-index x /etc",
      "-f /x",
      "--ext-grep x",
      "-nO x",
      "foo -- ../..",
      "--textconv x",
      "-e x -- .env"
    ]
  ),
  "git show-ref": lines(["--heads"], ["--exclude-existing"]),
  "git reflog": lines(["-5"], ["--output=x"]),
  "git reflog show": lines(["HEAD"], ["--output=x"]),
  "git branch": lines(
    [
      "",
      "-a",
      "-vv",
      "--show-current",
      "--list 'feature/*'",
      "--contains HEAD",
      "--merged main",
      "-r --sort=-committerdate"
    ],
    [
      "x",
      "-d x",
      "-D x",
      "-m a b",
      "-u origin/x",
      "--set-upstream-to=origin/x",
      "--edit-description",
      "-f x HEAD",
      "-aD x",
      "$X",
      "-c a b"
    ]
  ),
  "git tag": lines(
    ["", "-l 'v*'", "--list --sort=-v:refname", "--points-at HEAD", "-n"],
    ["--format='%(signature)'", "--sort=signature", "v1", "-a v1 -m x", "-d v1", "-F /x v1", "-s v1", "-v v1"]
  ),
  "git remote": lines(["", "-v"], ["foo", "prune-x"]),
  "git remote get-url": lines(["origin"], ["--x"]),
  "git remote show": lines(["origin"], ["ext::sh", "../x"]),
  "git worktree list": lines(["--porcelain"], ["x"]),
  "git stash list": lines([""], ["--output=x"]),
  "git stash show": lines(["-p", "stash@{1}"], ["--output=x", "--ext-diff"]),
  "git add": lines(
    ["-A", "src/a.ts", ".", "-u", "-- a"],
    [
      "../other",
      "$HOME",
      ".env",
      "':(attr:x).env'",
      "'.e*'",
      "-f dist",
      "--pathspec-from-file=x",
      "-e",
      "-i",
      "*",
      "--chmo=+x a"
    ]
  ),
  "git commit": lines(
    [
      "-m 'a; b && c'",
      "-am x",
      "--amend --no-edit",
      '-m "$X"',
      "-m '- fix'",
      "-F msg.txt",
      "-qm x",
      "--allow-empty -m x",
      "--message='x y'",
      "--fixup=HEAD"
    ],
    [
      "--fixup=reword:HEAD",
      "--fixup $X",
      "--squash=HEAD",
      "-F /etc/passwd",
      "--template=x -m y",
      "-t x",
      "-m x --exec y",
      "--no-verify -m x",
      "-n -m x",
      "-S -m x",
      "-m $X",
      "-F .env",
      "--gpg-sign=x",
      "-m",
      "-e",
      "--fil=x",
      "../a -m x"
    ]
  ),
  "git switch": lines(
    ["-c feature/x", "main", "-", "--detach HEAD"],
    ["-C x", "-f main", "--discard-changes main", "$X", "-fc x", "--orphan x"]
  ),
  "git merge": lines(
    ["--no-ff main", "--squash x -m y"],
    ["--abort", "--quit", "--continue", "-s ours x", "--strategy=x y", "-F /x a", "--no-verify x", "-e", "$X"]
  ),
  "git cherry-pick": lines(["abc", "-x abc", "-n abc"], ["--continue", "--skip", "-e abc", "-S abc", "--foo"]),
  "git revert": lines(["--no-edit HEAD"], ["--abort", "-e HEAD", "-S HEAD"]),
  "git mv": lines(["a b", "-v a b"], ["a ../b", "a .git/hooks/x", "-f a b", "a .github/x"]),
  "git fetch": lines(
    ["", "origin", "--all --prune", "origin main"],
    [
      "origin +main",
      "origin main:main",
      "-f origin",
      "--upload-pack=./x origin",
      "--upload-p=./x origin",
      "ext::sh origin",
      "https://example.org/x",
      "../x",
      "file:///x",
      "-u origin",
      "--stdin",
      "/x",
      "./x"
    ]
  ),
  "git pull": lines(
    ["", "--rebase origin main", "--ff-only"],
    ["ext::sh", "--upload-pack x origin", "-s x origin", "https://example.org"]
  ),
  "git push": lines(
    ["", "origin main", "-u origin HEAD", "--force"],
    ["--receive-pack=./x origin", "--exec=./x origin", "https://example.org", "../x", "--repo=x", "-o x"]
  ),
  "git ls-remote": lines(["origin", "--heads origin"], ["--upload-pack=./x .", ".", "ext::sh"])
}

const node: { readonly [name: string]: Lines } = {
  "npm run": lines(
    [
      "build",
      "lint -- --fix",
      "--silent build",
      "test:unit -- -t name src/a.test.ts",
      "build --workspaces",
      "build -w packages/a",
      "build --if-present"
    ],
    [
      "",
      "$X",
      "build --foo",
      "build -- --out ../x",
      "lint -- @x",
      "build -- --config=/x",
      "--script-shell=./x build",
      "--script-sh=./x build",
      "build --node-options=--require=./x",
      "build -- --require ./x.js",
      "build $X",
      "build --prefix ../x",
      "b*",
      "build -w ../x"
    ]
  ),
  "npm test": lines(
    ["", "-- --grep x", "-- -t name src/a.test.ts", "--silent", "-- --watch=false", "-- --reporter=dot"],
    [
      "--script-shell=./x",
      "/x",
      "-- --config=/x",
      "-- --require ./x.js",
      "-- --reporter=./x.js",
      "$X",
      '"$X"',
      "--userconfig x",
      "-- -t /x",
      "../x",
      "-- --watch=x"
    ]
  ),
  "npm ls": lines(["--depth=0", "react"], ["--prefix /", "-g", "$X"]),
  "npm why": lines(["react"], ["--prefix /"]),
  "npm root": lines([""], ["-g"]),
  "npm version": lines([""], ["patch", "--script-shell=x"]),
  "npm ci": lines(["", "--ignore-scripts"], ["--registry=https://x", "--foo", "-g"]),
  "npm view": lines(["react version"], ["--registry=x react", "$X"]),
  "npm audit": lines(["--json"], ["foo", "--registry=x"]),
  "npm audit signatures": lines([""], ["--foo"]),
  "npm pkg get": lines(["name"], ["--foo"]),
  "pnpm run": lines(
    ["build", "build --fix", "-r build", "--filter @a/b build", "test src/a.test.ts"],
    ["build --config=/x", "-C / build", "", "build ../x", "--dir x build", "build --out-dir x"]
  ),
  "pnpm test": lines(
    ["", "-t name"].map((line) => (line === "" ? line : `-- ${line}`)),
    ["-C x", "--script-shell=x", "-- --config x"]
  ),
  "pnpm list": lines(["--depth 0", "-r"], ["-g", "-C /"]),
  "pnpm outdated": lines([""], ["-C /"]),
  "pnpm install": lines(["--frozen-lockfile"], ["-C /", "--foo"]),
  "yarn run": lines(["build", "build --fix"], ["env", "", "build --config x", "--cwd / build"]),
  "yarn test": lines(["", "-- --fix"], ["--cwd /", "--use-yarnrc x", "../a"]),
  "yarn list": lines(["--depth=0"], ["--cwd /"]),
  "yarn why": lines(["react"], ["--cwd /"]),
  "yarn install": lines(["--frozen-lockfile"], ["--registry x", "--cwd /"]),
  bun: lines(["x.ts"], ["$X", "--preload /x a"]),
  "bun test": lines(
    ["", "src/a.test.ts -t x", "--bail=1"],
    ["--preload ./x", "--reporter-outfile=x", "--coverage-reporter=x", "../a", "--cwd=/"]
  ),
  "bun run": lines(["build", "build --fix"], ["", "--shell=x build", "-e 1", "build ../x"]),
  vitest: lines(["src/a.test.ts", "--run -t x"], ["--config x", "-c x", "--root ..", "--ui"]),
  "vitest run": lines(
    [
      "",
      "src/a.test.ts -t x",
      "--coverage",
      "--reporter=verbose",
      "--reporter verbose a",
      "--bail=1",
      "-u",
      "--maxWorkers=1 a"
    ],
    [
      "--config x",
      "--config=x",
      "--reporter=./x.js",
      "-t ../x",
      "--outputFile=x",
      "-tc x",
      "--environment ./x",
      "--execArgv=--require=x",
      "/x",
      "--root=x",
      "@x",
      "--browser=x",
      "--conf x",
      "--coverage.reporter=x",
      "$X"
    ]
  ),
  jest: lines(
    ["-t x src/a.test.ts", "--coverage --ci", "--watchAll=false", "-i a", "--maxWorkers=50%"],
    [
      "-c x",
      "--config=x",
      "--reporters=./x",
      "--transform=x",
      "--outputFile=x",
      "--rootDir /",
      "-ic x",
      "--globalSetup ./x",
      "../a",
      "--testRunner=x"
    ]
  ),
  node: lines(["x.js", "scripts/gen.js --x"], ["$X", "../x.js", "/x", "--require=$X"]),
  "node --test": lines(
    ["", "test/a.test.js", "--test-name-pattern=x a", "--test-reporter=spec"],
    ["--import ./x", "--test-reporter=./x", "--require=x", "../a", "--test-reporter-destination=x", "$X", "-r x"]
  ),
  "node -c": lines(["a.js"], ["-r ./x a.js", "/x", "--require=x a"]),
  tsc: lines(
    ["--noEmit", "-b", "-p packages/a --noEmit", "--noEmit --pretty false", "--build", "src/a.ts"],
    [
      ".github/scripts/a.ts",
      "-p ../x",
      "--project /x",
      "--outDir x",
      "--outFile=x",
      "@x",
      "--generateTrace x",
      "--init",
      "--outdir x",
      "-w",
      "--plugins x",
      "-b --clean",
      "../a.ts"
    ]
  ),
  eslint: lines(
    ["src", "--fix src", "--max-warnings 0 --ext .ts,.tsx .", "--quiet --cache .", "-f json ."],
    [
      "-c ../x.js src",
      "--config x src",
      "--rulesdir x src",
      "-o x src",
      "--res x",
      "--fix=x src",
      "-f ./x src",
      "--plugin x .",
      "--fix .github",
      "--output-file=x .",
      "--parser ./x .",
      "../a",
      "@x"
    ]
  ),
  prettier: lines(
    ["--check .", "--write src", "--write src/*.ts", "-l src", "-c a.md", "-c 'src/**/*.ts'"],
    [
      "--write '{agentd,x}.jsonc'",
      "--write 'src/!(a)'",
      "--plugin=./x src",
      "--config x .",
      "--write .github/a.yml",
      "-w AGENTS.md",
      "--check ../a",
      "--ignore-path /x .",
      "--parser ./x a",
      "--cache-location=/x ."
    ]
  ),
  oxlint: lines(
    ["", "--deny-warnings src test", "--fix src", "-D correctness ."],
    ["-c x", "--config=x .", "--fix .claude", "/x", "--lsp", "--tsconfig /x"]
  ),
  oxfmt: lines(["src", "--check ."], ["-c x", ".github", "AGENTS.md", "--migrate=x", "../a"]),
  "biome check": lines(
    ["src", "--write src", "--changed"],
    ["--config-path=x .", "--write .vscode", "--use-server .", "--reporter-file=x .", "--log-file=x .", "/x"]
  )
}

const build: { readonly [name: string]: Lines } = {
  python: lines(["x.py", "-u x.py"], ["$X", "../x.py"]),
  "python -m": lines(["http.server"], ["$X", "x /etc"]),
  "python -m pytest": lines(["-x tests"], ["-p evil", "--rootdir=/"]),
  "python -m unittest": lines(["-v tests.test_a"], ["$X", "-x"]),
  "python -m unittest discover": lines(["-s tests", "-v"], ["-s /", "-t .."]),
  "python -m json.tool": lines(["a.json", "--indent 2 a"], ["a b", "/etc/x", ".env"]),
  "python -m mypy": lines(["src"], ["--config-file x"]),
  pip: lines(["install x"], ["$X", "install ../x"]),
  "pip list": lines(["--format=json"], ["--outdated", "-i https://x", "-o"]),
  "pip show": lines(["pytest"], ["$X"]),
  "pip freeze": lines([""], ["-r /x", "--path /"]),
  "pip check": lines([""], ["x"]),
  pytest: lines(
    [
      "",
      "-k foo -x tests/a.py",
      "-xvs tests/a.py::test_b",
      "-vv --tb=short",
      "--maxfail=1",
      "-n auto",
      "--cov=src --cov-report=term-missing",
      "--lf -q",
      "-kfoo",
      "--durations=5"
    ],
    [
      "-p evil",
      "-pevil",
      "-xp evil",
      "-c ../x.ini",
      "--rootdir=/ x",
      "../other",
      "--junitxml=/tmp/x",
      "@x",
      "-o x=y",
      "--pastebin=all",
      "--basetemp=x",
      "--cov-report=html:/x",
      "--cov-config=x",
      "--ignore=/x",
      "--pdb",
      "--rootd=/",
      "--override-ini=x",
      "-W error::x.Y",
      "/x",
      "$X"
    ]
  ),
  mypy: lines(
    ["--strict src", "-p pkg", "."],
    [
      "--config-file x src",
      "--python-executable ./x src",
      "--html-report x .",
      "--install-types",
      "../a",
      "@x",
      "-c x",
      "--shadow-file a b"
    ]
  ),
  "ruff check": lines(
    ["", "src", "--select E,F --fix .", "--diff .", "--output-format=json ."],
    ["--config x .", "-o x .", "--fix .github", "../a", "@x", "--cache-dir=x", "--config=x"]
  ),
  "ruff format": lines(["src", "--check .", "--diff ."], ["--config x .", ".claude", "/x"]),
  black: lines([".", "--check src", "-l 100 src"], ["--config x .", "-c x", "../a", ".git/x"]),
  "cargo test": lines(
    [
      "",
      "--release -q",
      "name -- --nocapture",
      "-p pkg --lib",
      "--workspace --all-features",
      "-- --test-threads=1",
      "-j4",
      "--test a"
    ],
    [
      "--config x",
      "--config=x",
      "-p ../x",
      "--manifest-path /x",
      "--target-dir=x",
      "-- --logfile x",
      "-Zx",
      "-qZ x",
      "$X"
    ]
  ),
  "cargo bench": lines(["--no-run"], ["--config x", "-- --save-baseline x"]),
  "cargo build": lines(
    ["--release", "--bin a", "--locked"],
    ["--config x", "--artifact-dir=x", "--target-dir x", "-Z x", "--manifest-path ../x", "-p /x"]
  ),
  "cargo run": lines(["", "--bin a", "-- a"], ["-- --x", "--config x", "-- /etc/x", "-- ../x"]),
  "cargo clippy": lines(
    ["", "--all-targets -- -D warnings"],
    ["--fix", "--allow-dirty", "--config x", "-- -C linker=x", "-- --cap-lints=x"]
  ),
  "cargo doc": lines(["--no-deps"], ["--open", "--config x"]),
  "cargo fmt": lines(
    ["", "--all --check", "-- --check"],
    ["--manifest-path x", "-- --config-path x", "-- --config=x", "x"]
  ),
  "cargo metadata": lines(["--format-version=1 --no-deps"], ["--config x", "--manifest-path /x"]),
  "go test": lines(
    [
      "./...",
      "-run Foo -v ./pkg",
      "-run=Foo -count=1 -race ./...",
      ". -short",
      "-cover -coverpkg=./... ./...",
      "-timeout 30s ./..."
    ],
    [
      "-exec ./x ./...",
      "-toolexec ./x ./...",
      "-o /x ./...",
      "-o a.test ./...",
      "-c ./...",
      "-fuzz=. ./...",
      "-trace a ./...",
      "-coverprofile=cover.out ./...",
      "-coverpkg=example.org/x ./...",
      "example.org/x@latest",
      "-coverprofile=/x ./...",
      "./... -args x",
      "../x",
      "-ldflags=x ./...",
      "-overlay x",
      "-vet=x ./...",
      "-mod=mod ./...",
      "-outputdir x",
      "-exec=./x",
      "-C / ./...",
      "$X",
      "-run $X ./..."
    ]
  ),
  "go build": lines(
    ["./...", "-v ."],
    ["-o bin/a ./cmd/a", "-o /x .", "-o .git/hooks/x .", "-toolexec x .", "-ldflags -x .", "x", "-modfile=x ."]
  ),
  "go vet": lines(["./..."], ["x", "-vettool=./x ./...", "-toolexec=x ./..."]),
  "go fmt": lines(["./..."], ["x", "../..."]),
  "go list": lines(["./...", "-f '{{.Dir}}' ./..."], ["-toolexec x", "example.org/x", "-modfile x"]),
  "go version": lines([""], ["-m x"]),
  gofmt: lines(
    ["-l .", "-w src/a.go", "-d a.go"],
    ["-cpuprofile x a", "-w /x", "-w .git/a.go", "../a", "-w *.go".replace("*.go", "*")]
  ),
  make: lines(
    ["", "test", "check -j4 -k", "-j 4 test", "-s test", "-n", "-j"],
    [
      "check install",
      "test SHELL=./x",
      "-j SHELL=./x test",
      "-j -f x",
      "-j --eval='x:;rm y'",
      "-C .. test",
      "--eval=x",
      "-f x",
      "-I x",
      "SHELL=./x",
      "--file=x",
      "-kf x",
      "-jf x",
      "$X",
      "-E x",
      "-e test",
      "--makefi=x"
    ]
  )
}

const writing: { readonly [name: string]: Lines } = {
  mkdir: lines(["-p build/out", "a b"], ["/x", "-p ../x", "-m 777 x", ".git/x", "-p .claude/commands", "$X", "~/a"]),
  touch: lines(["src/new.ts", "-c a"], ["agentd.jsonc", "-r /x a", "/x", ".github/a", "a/../.git/x", "*"]),
  rmdir: lines(["a"], ["..", ".git"]),
  cp: lines(
    ["a b", "-p a b/c", "a b dir", "-t dir a b"],
    [
      "a /x",
      "a ../b",
      "x .git/hooks/pre-commit",
      "x .claude/settings.json",
      ".env build/x",
      "-t /x a",
      "--target-directory=/x a",
      "-r x/. .",
      "x ./.GIT/config",
      "a b/../.git/config",
      "$HOME/.netrc x",
      "-a a b",
      "/etc/passwd x",
      "-s a b",
      "--target-dir=/x a",
      "-vr a b",
      "* x",
      "-t .git a"
    ]
  ),
  mv: lines(["a b", "-n a b"], ["a ../b", ".git x", "a .husky/x", "-f a b", "-t / a", ".env x", "CLAUDE.md x"]),
  tee: lines(["a", "-a a b"], [".git/hooks/x", "/x", "../x", "$X"]),
  rm: lines(["a", "-rf build", "-f a b"], ["-rf /", "-rf ..", "-rf .git", "$X", "-rf *", "--no-preserve-root a", "~"]),
  ln: lines(["-s a b"], ["-s / x", "-s a .git/x", "-sf ../a b"]),
  chmod: lines(["+x a", "644 a"], ["+x /x", "+x .git/hooks/a", "--reference=x a"])
}

export const LINES: { readonly [name: string]: Lines } = { ...reading, ...text, ...git, ...node, ...build, ...writing }
