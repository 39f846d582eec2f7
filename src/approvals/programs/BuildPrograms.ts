/**
 * BuildPrograms: test runners, checkers and builders of projects in Python, Rust, Go, and with make. Settings, plug-ins
 * and tools that the words name stand in no list: they are code.
 */
import { cargoTarget, makeWords } from "./Checks.ts"
import { tableOf } from "./ProgramTable.ts"

const FORMATS = "formats files of the work tree"

const PYTHON = tableOf(`
# help of python 3.11
python|python3: any open runs = runs a program
  tells -V --version -h --help
python|python3 -m: any open runs = runs a module
# help of pytest 9.0, docs of pytest-cov and pytest-xdist
pytest|py.test, python|python3 -m pytest: project runs *
  -k: -m: --markers -x --exitfirst --maxfail: --strict-config --strict-markers --fixtures --capture: -s --runxfail --lf
  --last-failed --ff --failed-first --nf --new-first --cache-clear --sw --stepwise --durations: -v --verbose --no-header
  --no-summary -q --quiet -r: --disable-warnings -l --showlocals --tb: --show-capture: --full-trace --color:
  --collect-only --co --ignore:path --ignore-glob: --deselect: --doctest-modules --setup-show --log-level:
  --log-cli-level: --cov? --cov-report:{term,term-missing} -n: --numprocesses: -V --version -h --help
# help of python 3.11 -m unittest, unittest discover and json.tool
python|python3 -m unittest: project runs *
  -v --verbose -q --quiet --locals -f --failfast -c --catch -b --buffer -k: -h --help
python|python3 -m unittest discover: project runs *
  -v --verbose -q --quiet -f --failfast -b --buffer -k: -s:path --start-directory:path -p: --pattern: -t:path
python|python3 -m json.tool: project 1 runs *
  --sort-keys --no-ensure-ascii --indent: --compact
# man 1 mypy 1.0, Debian 12
mypy, python|python3 -m mypy: project runs *
  -m: --module: -p: --package: -v --verbose --ignore-missing-imports --python-version: --disallow-untyped-defs
  --check-untyped-defs --strict --show-column-numbers --pretty --no-color-output
# help of pip 23.2
pip|pip3: any open connects = fetches packages and runs their scripts
  tells -V --version
pip|pip3 list|freeze: none *
  -e --editable -l --local --user --format: --not-required --exclude-editable --exclude: --all
pip|pip3 show: text *
  -f --files
pip|pip3 check: none *
python|python3 -m pip|venv|ensurepip: any open connects = fetches packages and runs their scripts
# docs of ruff, configuration.md
@ruff: --target-version: --preview --no-preview --exclude: -n --no-cache --isolated --diff -v --verbose -q --quiet -s
ruff: sub
  -q --quiet -v --verbose -s --silent
  tells -V --version
ruff check: project *
  @ruff --show-fixes --output-format: --statistics --show-files --show-settings --select: --ignore: --extend-select:
  --per-file-ignores: --fixable: --unfixable: --extend-exclude: -e --exit-zero --exit-non-zero-on-fix
  edits --fix --unsafe-fixes --fix-only --add-noqa
ruff format: project writes * = ${FORMATS}
  @ruff --check --line-length:
  edits
# man 1 black 23.1, Debian 12
black: project writes * = ${FORMATS}
  -l: --line-length: -t: --target-version: --check --diff --color --exclude: -q --quiet -v --verbose
  edits
# man 1 flake8 5.0, Debian 12
`)

const RUST = tableOf(
  `
# help of cargo 1.95
@cargo: -v -vv --verbose -q --quiet --color: --message-format: -p: --package: --workspace --all --exclude: --lib --bins
  --bin? --examples --example? --tests --test? --benches --bench? --all-targets -F: --features: --all-features
  --no-default-features -j: --jobs: -r --release --profile: --target: --keep-going --locked --offline --frozen --timings
  -h --help
cargo: sub
  -v --verbose -q --quiet --color: --locked --offline --frozen
  tells -V --version --list
cargo test|t|bench: project runs *
  @cargo --no-run --no-fail-fast --doc
  behind --nocapture --show-output --exact --ignored --include-ignored --list --skip: --test-threads: -q --quiet --color:
cargo build|b|check|c: project runs *
  @cargo
cargo run|r: project runs *
  @cargo
  behind
cargo clippy: project runs *
  @cargo --no-deps
  behind -W: --warn: -A: --allow: -D: --deny: -F: --forbid:
cargo doc|d: project runs *
  @cargo --no-deps --document-private-items
cargo metadata|tree: text connects = may fetch the index of packages
  @cargo --no-deps --format-version: -i: --depth:
cargo add|remove|rm|update|fetch|search|vendor: any open connects = fetches packages
cargo install|uninstall|publish|login|logout|owner|yank: any open connects = installs or publishes packages
cargo clean|new|init|fix: any open writes = writes the work tree, or removes what was built
# help of cargo fmt, rustfmt 1.9
cargo fmt: none writes * = ${FORMATS}
  -q --quiet -v --verbose -p: --package: --message-format: --all --check
  behind --check -l --files-with-diff --color: --edition:
rustc: any open runs = compiles, and runs macros
  tells -V --version
`,
  {
    "cargo test|t|bench": cargoTarget,
    "cargo build|b|check|c": cargoTarget,
    "cargo run|r": cargoTarget,
    "cargo clippy": cargoTarget,
    "cargo doc|d": cargoTarget
  }
)

const GO = tableOf(`
# go help of go 1.19, Debian 12
@go: -a -n -p: -race -msan -asan -v -x -buildvcs: -mod:{readonly,vendor} -tags: -trimpath
go: sub words
go test: packages words runs *
  @go -bench: -benchtime: -benchmem -count: -cover -covermode: -coverpkg:{./...} -cpu: -failfast -json -list: -parallel:
  -run: -short -shuffle: -timeout: -vet:{off}
  writes -o:out -c -fuzz: -blockprofile:out -coverprofile:out -cpuprofile:out -memprofile:out -mutexprofile:out
  writes -trace:out
go build: packages words runs *
  @go
  writes -o:out
go vet: packages words runs *
  -n -x -v -tags: -race -mod:{readonly,vendor} -json
go fmt: packages words writes * = ${FORMATS}
  -n -x -mod:{readonly,vendor}
go list: packages words connects = may fetch modules
  -f:any -json -deps -m -tags: -mod:{readonly,vendor}
go version: none words *
go env: any open secrets = reads or writes settings
go run|generate|tool|doc: any open runs = runs a program
go get|install|mod|work|clean: any open connects = fetches modules, or changes what is fetched
# help of gofmt 1.19
gofmt: read words *
  -d -e -l -r:any -s
  edits -w
`)

const OTHERS = tableOf(
  `
# man 1 make, Debian 12
make|gmake: project may 0 runs *
  -B --always-make -d -i --ignore-errors -j# --jobs# -k --keep-going -l# --load-average# -n --just-print --dry-run -O?
  --output-sync? -q --question -r --no-builtin-rules -R -s --silent --quiet -S -t --touch --trace -v --version -w
  --print-directory --no-print-directory --warn-undefined-variables
cmake|ctest|ninja|meson|bazel|gradle|mvn|ant|sbt|dotnet|swift|xcodebuild: any open runs
rake|rspec|rubocop|bundle|composer|phpunit|mix|cabal|stack|dune|zig|tox|nox|just|task: any open runs
isort|pylint|pyright|poetry|hatch|pdm|playwright|cypress|webpack|vite|rollup|esbuild|next|tsx|ts-node: any open runs
gcc|cc|clang|g++|clang++|ld: any open writes = writes what it compiles, and may load plug-ins
`,
  { "make|gmake": makeWords }
)

export const BUILD = { ...PYTHON, ...RUST, ...GO, ...OTHERS }
