/**
 * GitPrograms: git and its subcommands. What sends and what throws work away has no star. Options that run a program
 * which the settings or the words name (--ext-diff, --textconv, -O, --upload-pack) stand in no list.
 */
import { commitWords, fetchWords, makesRef } from "./Checks.ts"
import { tableOf } from "./ProgramTable.ts"

const HOOKS = "writes the repository and runs its hooks"

export const GIT = tableOf(
  `
# man 1 git 2.39, Debian 12
git: sub
  -C:{.} -P --no-pager --literal-pathspecs --no-optional-locks
  runs -c: --config-env: --exec-path? -p --paginate
  unknown --git-dir: --work-tree: --namespace: --super-prefix: --bare
  tells --version -v --exec-path --html-path
# man 1 git-%, 2.39, Debian 12
@diff: -p -u --patch -s --no-patch -U: --unified: --raw --minimal --patience --histogram --diff-algorithm: --stat?
  --compact-summary --numstat --shortstat --dirstat? --summary -z --name-only --name-status --color? --no-color
  --color-moved? --word-diff? --word-diff-regex:any --color-words? --no-renames --check --full-index --binary --abbrev?
  -M? --find-renames? -C? --find-copies? -D -l: --diff-filter: -S:any -G:any --pickaxe-all --pickaxe-regex -R
  --relative? --no-relative -a --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w
  --ignore-all-space --ignore-blank-lines -I:any --inter-hunk-context: -W --function-context --no-ext-diff --no-textconv
  --no-prefix
@commits: -NUM -n: --max-count: --skip: --since:any --after:any --until:any --before:any --author:any --committer:any
  --grep:any --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings -P --perl-regexp
  --merges --no-merges --first-parent --not --all --branches? --tags? --remotes? --glob: --exclude: --reflog
  --cherry-pick --left-only --right-only --cherry -g --walk-reflogs --boundary --simplify-by-decoration --full-history
  --ancestry-path? --date-order --topo-order --reverse --no-walk? --pretty?format --format:format --abbrev-commit
  --no-abbrev-commit --oneline --notes? --no-notes --relative-date --date:any --parents --children --left-right --graph
@log: @commits @diff --follow --decorate? --no-decorate --source --full-diff -L:names -m -c --cc -t
  --diff-merges:{off,none,first-parent,separate,combined,dense-combined}
@refs: --sort:format --format:format --color? --no-color -i --ignore-case --column? --no-column --contains --no-contains
  --merged --no-merged --points-at -l --list
git status: names *
  -s --short -b --branch --show-stash --porcelain? --long -v --verbose -u? --untracked-files? --ignored? -z --column?
  --no-column --ahead-behind --no-ahead-behind --renames --no-renames --ignore-submodules?
git diff: names *
  @diff --cached --staged --merge-base --exit-code --quiet --base --ours --theirs --cc -c
  secrets --no-index
git log|show|whatchanged, git reflog: names *
  @log
git blame|annotate: names *
  -L:any -l -p --porcelain --date:any -M? -C? --show-name --show-number -s -e --show-email -w
git rev-parse: names *
  --verify --short? --abbrev-ref? --symbolic-full-name --all --git-dir --git-common-dir --show-toplevel
  --is-inside-work-tree --is-bare-repository --show-prefix
git rev-list: names *
  @commits --quiet --objects --count
git ls-files: names *
  -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage --directory -u --unmerged -k -z -x:
  --exclude: -X:path --exclude-from:path --exclude-standard --error-unmatch -t -v --full-name --abbrev? --eol
git ls-tree: names *
  -d -r -l --long --name-only --name-status --format:format
git check-ignore: names *
  -q --quiet -v --verbose -n --non-matching --no-index
git for-each-ref: names *
  @refs --count:
git name-rev: names *
  --tags --refs: --all --name-only --always
git count-objects: none *
  -v --verbose -H --human-readable
git diff-tree: names *
  @diff -r -t --root -m -c --cc --no-commit-id --pretty?format --format:format
git cat-file: names *
  -t -s -e -p
git merge-base: names *
  --is-ancestor --fork-point -a --all
git describe: names *
  --dirty? --all --tags --abbrev: --exact-match --match: --always
git shortlog: names *
  -n --numbered -s --summary -e --email --format:format -c --committer --since:any --until:any --author:any --no-merges
  --all
git grep: search *
  --cached --untracked --exclude-standard -a --text -i --ignore-case -I --max-depth: -r --recursive -w --word-regexp -v
  --invert-match -h -H --full-name -E --extended-regexp -G -P --perl-regexp -F --fixed-strings -n --line-number --column
  -l --files-with-matches --name-only -L --files-without-match -z -o --only-matching -c --count --color? --no-color
  --break --heading -p --show-function -NUM -C: --context: -A: --after-context: -B: --before-context: -W -m:
  --max-count: -f:path -e:any --and --or --not --all-match -q --quiet
  by -e -f
  runs -O? --open-files-in-pager? --textconv
  secrets --no-index --no-exclude-standard
git show-ref: names *
  --head --heads --tags -d --dereference -s --hash? --verify --abbrev? -q --quiet
git branch: names *
  @refs -r --remotes -a --all --show-current -v -vv --verbose --abbrev:
  writes -d --delete -D -f --force -m --move -M -c --copy -C -u: --set-upstream-to: --unset-upstream -t --track?
  runs --edit-description
git tag: names *
  @refs -n?
  writes -a --annotate -f --force -d --delete -m: --message:
  runs -s --sign -u: --local-user: -v --verify -e --edit
  secrets -F: --file:
git remote: none *
  -v --verbose
# man 1 git-stash, git-reflog, git-remote, git-worktree, 2.39, Debian 12
git reflog show, git stash list: names *
  @log
git stash show: names *
  @diff --include-untracked --only-untracked
git remote get-url: text *
  --push --all
git worktree list: none *
  -v --porcelain
# man 1 git-%, 2.39, Debian 12
git add: names writes * = writes the repository
  -n --dry-run -v --verbose -u --update -A --all --no-all -N --intent-to-add --refresh --ignore-errors --chmod:
git commit: names runs * = ${HOOKS}
  -a --all -C: --reuse-message: --fixup: --reset-author --short --branch --porcelain -F:path --file:path
  --author:any --date:any -m:any --message:any -s --signoff --no-signoff --trailer:any --allow-empty
  --allow-empty-message --cleanup: --no-edit --amend -i --include -o --only -v --verbose -q --quiet --dry-run --status
  --no-gpg-sign -u? --untracked-files?
git switch: names runs * = ${HOOKS}
  -c: --create: -d --detach --guess --no-guess -q --quiet --no-progress -t --track --no-track
  writes -C: --force-create: -f --force --discard-changes -m --merge --orphan:
git merge: names runs * = ${HOOKS}
  --commit --no-commit --no-edit --ff --no-ff --ff-only --log? --no-log --signoff --stat -n --no-stat --squash
  --no-squash --no-gpg-sign -X: -q --quiet -v --verbose --no-progress --no-autostash -m:any -F:path
git cherry-pick|revert: names runs * = ${HOOKS}
  -x -n --no-commit -s --signoff --no-edit -m: --mainline: -X: --ff --allow-empty
git mv: write writes * = writes the repository
  -k -n --dry-run -v --verbose
git stash: any writes open = moves work out of the tree
git stash push|save|pop|apply|branch: any writes open = moves work out of the tree, or back
git stash drop|clear|create|store: any writes open = may throw work away
git reflog expire|delete|drop|write, git restore|reset|clean|rm|gc: any writes open = may throw work away
git worktree add|remove|move|prune|lock|unlock|repair: any writes open = may throw work away
git checkout: any runs open = runs the repository's hooks, and may throw work away
git rebase: any runs open = rewrites commits, and runs the repository's hooks
git apply|format-patch|archive|init: any writes open = writes files
git am: any runs open = writes files, and runs the repository's hooks
git remote add|remove|rm|rename|set-url|set-head|set-branches: any writes open = changes where git connects
@quiet: -q --quiet -v --verbose --progress --no-progress
@fetch: @quiet --all -p --prune -t --tags
git fetch: remote connects * = connects to a remote
  @fetch
  writes -f --force
git pull: remote connects = connects to a remote, and runs the repository's hooks
  @fetch -f --force -r? --rebase? --no-rebase --ff-only --ff --no-ff --no-edit --commit --no-commit --autostash --no-autostash
git push: remote connects = connects to a remote
  @quiet --all -n --dry-run --porcelain -d --delete --tags --follow-tags -f --force --force-with-lease? -u
  --set-upstream
git ls-remote: remote connects = connects to a remote
  -h --heads -t --tags --refs -q --quiet --exit-code --symref
git remote show|update|prune: remote connects = connects to a remote
git clone|submodule|request-pull|send-email|svn|lfs: any connects open = connects, and may run what comes
git config: any runs open = sets or shows what git runs, and keys
git bisect|filter-branch|difftool|mergetool: any runs open = runs the program that it is given
git help|instaweb|gui|citool: any runs open = opens a pager, a browser or a window
`,
  { "git branch": makesRef, "git tag": makesRef, "git commit": commitWords, "git fetch": fetchWords }
)
