/**
 * NodePrograms: package managers, test runners and checkers of JavaScript projects. Settings, plug-ins, reporters and
 * formatters that the words name stand in no list: they are code.
 */
import { scriptName, scriptWords } from "./Checks.ts"
import { tableOf } from "./ProgramTable.ts"

const INSTALLS = "fetches packages and runs their scripts"

const MANAGERS = tableOf(
  `
# help of npm 11.19
@behind: -t: -g: -i -v -u --grep: --testNamePattern: --test-name-pattern: --watch:{false} --watchAll:{false} --no-watch
  --run --coverage --verbose --silent --bail? --ci --runInBand --fix --check --passWithNoTests --noEmit --no-color
  --quiet --maxWorkers: --max-warnings: --reporter:{default,verbose,dot,json,junit,tap,spec,list,min,stylish}
@npm: -s --silent --loglevel:{silent,error,warn,notice,http,info,verbose,silly}
@spaces: -w:path --workspace:path --workspaces -ws --include-workspace-root
npm: sub words
  @npm
  tells -v --version
npm run|run-script: project words named runs *
  @npm @spaces --if-present --ignore-scripts --foreground-scripts
  behind @behind
npm test|t|tst|start|stop|restart: project words runs *
  @npm @spaces --if-present --ignore-scripts --foreground-scripts
  behind @behind
npm ls|list|ll|la: text words *
  @spaces -a --all --json -l --long -p --parseable --depth: --omit: --include: --link --package-lock-only
npm why|explain, npm pkg get: text words *
  @spaces --json
npm root|prefix: none words *
npm version: none words *
  --json
npm ci|install|i|add|uninstall|remove|rm|update|up|dedupe|prune|rebuild, npm audit fix: text words connects = ${INSTALLS}
  @npm @spaces -S --save --no-save -D --save-dev -E --save-exact --omit: --include: --ignore-scripts --no-audit
  --no-fund --dry-run --package-lock-only --prefer-offline --offline --legacy-peer-deps
npm view|info|show|v|outdated|search|ping: text words connects = asks the registry
  @spaces --json -a --all -l --long
npm audit: none words connects = asks the registry
  --json --audit-level: --omit: --include: --package-lock-only
npm pkg set|delete|fix: any open writes = writes package.json
npm exec|x, pnpm exec, yarn exec|node: any open runs = runs a program, fetched if it is not there
npm init|create, pnpm dlx|create, yarn dlx|create, bun x|create|init: any open runs = fetches and runs a package
npm publish|unpublish|deprecate|access|owner|dist-tag, pnpm|yarn|bun publish: any open connects = changes the registry
npm config|get|set|login|logout|token|whoami, pnpm|yarn config: any open secrets = reads or writes settings with keys
npm link|pack|cache|edit: any open writes = writes outside the work tree, or runs scripts
# help of pnpm 10.34
@pnpm: -r --recursive --filter:any -F:any -w --workspace-root --color --no-color --silent --stream
pnpm: sub words
  @pnpm
  tells -v --version
pnpm run|run-script: project words named passes runs *
  @pnpm --if-present --no-bail --parallel --sequential
  behind @behind
pnpm test|t|start: project words passes runs *
  @pnpm --if-present --no-bail
  behind @behind
pnpm list|ls|la|ll|why: text words *
  @pnpm --depth: -D --dev -P --prod --no-optional --json --long --parseable --lockfile-only
pnpm install|i|add|update|up|remove|rm: text words connects = ${INSTALLS}
  @pnpm --frozen-lockfile --no-frozen-lockfile -D --dev --ignore-scripts --offline --prefer-offline --lockfile-only
pnpm outdated: text words connects = asks the registry
  @pnpm -D --dev -P --prod --long
# help of yarn 1.22
@yarn: -s --silent --verbose --json --no-progress --non-interactive --offline --prefer-offline
yarn: sub words
  @yarn
  tells -v --version
yarn run: project words named fixed passes runs *
  @yarn
  behind @behind
yarn test|start: project words passes runs *
  @yarn
  behind @behind
yarn list|why: text words *
  @yarn --depth: --pattern:
yarn install|add|remove|upgrade: text words connects = ${INSTALLS}
  @yarn --frozen-lockfile --ignore-scripts --prod --check-files
# help of bun 1.4
bun: any open runs = runs a program
  tells --version -v
bun test: project words runs *
  --timeout: -u --update-snapshots --retry: --only --coverage --bail? -t: --test-name-pattern:
bun run: project words named fixed passes runs = runs a script, a file or any program
  --silent --if-present -F:any --filter:any
  behind @behind
bun install|i|add|remove|update|outdated: any open connects = ${INSTALLS}
`,
  {
    "npm run|run-script": scriptName,
    "npm test|t|tst|start|stop|restart": scriptWords,
    "pnpm run|run-script": scriptName,
    "pnpm test|t|start": scriptWords,
    "yarn run": scriptName
  }
)

const TOOLS = tableOf(`
# help of vitest 4.1
vitest, vitest run|related|list: project words runs *
  -t: --testNamePattern: --dir:path --silent? --hideSkippedTests --coverage --no-coverage --isolate --no-isolate
  --globals --pool:{forks,threads,vmForks,vmThreads} --no-file-parallelism --maxWorkers: --passWithNoTests
  --logHeapUsage --allowOnly --shard: --changed? --testTimeout: --hookTimeout: --bail: --retry: --exclude: --typecheck
  --project: --run --no-color --watch:{false} --no-watch -u --update -h --help -v --version
  --reporter:{default,agent,minimal,verbose,dot,json,tap,tap-flat,junit,tree,github-actions}
# help of jest 30.5
jest: project words runs *
  -b --bail --ci --coverage --detectOpenHandles --findRelatedTests --forceExit --json --listTests -w: --maxWorkers: -o
  --onlyChanged --passWithNoTests -i --runInBand --runTestsByPath --silent -t: --testNamePattern: --testPathPatterns:
  --testTimeout: -u --updateSnapshot --verbose --watchAll:{false} --version
# help of mocha 12.0
# help of node 20.20
node: any open runs = runs a program
  tells -v --version -h --help
node --test: project words runs *
  --test-name-pattern: --test-only --test-concurrency: --test-timeout: --test-shard: --test-force-exit
  --experimental-test-coverage --test-reporter:{spec,tap,dot,junit,lcov}
node -c|--check: read words 1 *
# help of tsc 5.9
tsc: project words runs *
  --noEmit -b --build -p:path --project:path --pretty --incremental --skipLibCheck --strict --listFiles --listFilesOnly
  --showConfig --explainFiles --diagnostics --extendedDiagnostics --traceResolution --noEmitOnError --allowJs --checkJs
  --esModuleInterop --resolveJsonModule --isolatedModules --noUnusedLocals --noUnusedParameters --noImplicitAny
  --target: -t: --module: -m: --moduleResolution: --jsx: --lib: -f --force --dry --verbose -v --version -h --help
  edits
# help of eslint 9.39
eslint: project words runs *
  --ext: --ignore-pattern: --quiet --max-warnings: -f:{stylish,json,html} --format:{stylish,json,html} --no-color
  --report-unused-disable-directives --cache --no-error-on-unmatched-pattern
  edits --fix
# help of prettier 3.10
prettier: project words runs *
  -c --check -l --list-different --ignore-path:path --cache --no-color -u --ignore-unknown
  --no-error-on-unmatched-pattern --log-level:
  edits -w --write
# help of oxlint 1.94
oxlint: project words runs *
  --tsconfig:path -A: --allow: -W: --warn: -D: --deny: --ignore-pattern: --quiet --deny-warnings --max-warnings: -f:
  --format: --no-error-on-unmatched-pattern --type-aware --type-check
  edits --fix --fix-suggestions --fix-dangerously
# help of oxfmt 0.79
oxfmt: project words runs *
  --write --check --list-different --disable-nested-config --no-error-on-unmatched-pattern --threads: -h --help -V
  edits
# help of biome 2.6
biome check|lint|format|ci: project words runs *
  --max-diagnostics: --error-on-warnings --staged --changed
  edits --write --fix --unsafe
`)

export const NODE = { ...MANAGERS, ...TOOLS }
