/**
 * Planted: the ways in which a repository can make git execute a command, each as a shell
 * script that plants it in an agent's checkout, whose git folder the agent can write.
 *
 * `$C` is a program that leaves a file behind (the canary), `$E` an empty folder beside the
 * checkout, `$HTTP` a server that asks for a password.
 */
export interface Vector {
  readonly name: string
  readonly plant: string
  /** The checkout is a linked worktree of the person's repository. */
  readonly linked?: boolean
  /** The folder below the checkout in which git runs. */
  readonly below?: string
  /** Of a kind of which another is planted in `npm test`. */
  readonly more?: true
  /** Needs a program that may be absent. */
  readonly needs?: "git-lfs"
}

/** Same size, other time, other content: git has to ask the filter. */
const TOUCH = "printf '2\\n' > f; touch -d 2001-01-01 f"
const DRIVER =
  "printf '* filter=x diff=x merge=x\\n' > .gitattributes; git add .gitattributes; git commit -qm attributes"
const INFO = "mkdir -p .git/info; printf '* filter=x diff=x merge=x\\n' > .git/info/attributes"

/** A repository inside the checkout, recorded as a gitlink. */
const EMBED = `
git init -q sub; (cd sub; printf '1\\n' > f; git add f; git commit -qm s)
git add sub 2>/dev/null; git commit -qm sub
mkdir -p sub/.git/info; printf '* filter=x diff=x\\n' > sub/.git/info/attributes
printf '2\\n' > sub/f; touch -d 2001-01-01 sub/f`

const HOOKS = `pre-commit post-commit prepare-commit-msg commit-msg post-checkout post-merge pre-merge-commit
post-index-change reference-transaction post-rewrite pre-auto-gc pre-push fsmonitor-watchman sendemail-validate push-to-checkout`
const hooksIn = (folder: string) =>
  `mkdir -p ${folder}; for h in ${HOOKS.replace(/\s+/g, " ")}; do printf '#!/bin/sh\\n%s\\n' "$C" > ${folder}/$h; chmod +x ${folder}/$h; done`

const EVIL = `
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = %s\\n[filter "x"]\\n\\tclean = %s cat\\n\\tsmudge = %s cat\\n[diff "x"]\\n\\ttextconv = %s\\n' "$C" "$C" "$C" "$C"`

export const VECTORS: ReadonlyArray<Vector> = [
  { name: "core.fsmonitor", plant: `git config core.fsmonitor "$C"; ${TOUCH}` },
  { name: "core.hooksPath", more: true, plant: `${hooksIn("evil")}; git config core.hooksPath evil; ${TOUCH}` },
  { name: "hooks of the git folder", plant: `${hooksIn(".git/hooks")}; ${TOUCH}` },
  {
    name: "hook.NAME.command (2.54+)",
    more: true,
    plant: `for h in ${HOOKS.replace(/\s+/g, " ")}; do git config "hook.$h-x.command" "$C"; git config "hook.$h-x.event" $h; done; ${TOUCH}`
  },
  { name: "filter.clean", plant: `${DRIVER}; git config filter.x.clean "$C cat"; ${TOUCH}` },
  { name: "filter.smudge", plant: `${DRIVER}; git config filter.x.smudge "$C cat"; ${TOUCH}` },
  { name: "filter.process", more: true, plant: `${DRIVER}; git config filter.x.process "$C"; ${TOUCH}` },
  {
    name: "filter named by info/attributes",
    plant: `${INFO}; git config filter.x.clean "$C cat"; git config filter.x.smudge "$C cat"; ${TOUCH}`
  },
  {
    name: "filter named by core.attributesFile",
    more: true,
    plant: `printf '* filter=x\\n' > a; git config core.attributesFile "$PWD/a"; git config filter.x.clean "$C cat"; ${TOUCH}`
  },
  {
    name: "filter in a nested .gitattributes",
    more: true,
    plant: `mkdir -p d; printf '1\\n' > d/f; printf '* filter=x\\n' > d/.gitattributes; git add d; git commit -qm d; git config filter.x.clean "$C cat"; printf '2\\n' > d/f`
  },
  {
    name: "diff.textconv",
    plant: `${DRIVER}; git config diff.x.textconv "$C"; printf 'longer\\n' > f`
  },
  {
    name: "diff.NAME.command",
    more: true,
    plant: `${DRIVER}; git config diff.x.command "$C"; printf 'longer\\n' > f`
  },
  { name: "diff.external", more: true, plant: `git config diff.external "$C"; printf 'longer\\n' > f` },
  {
    name: "merge driver",
    plant: `${DRIVER}; git config merge.x.driver "$C"; git config merge.x.name x`
  },
  { name: "merge.default driver", more: true, plant: `git config merge.default x; git config merge.x.driver "$C"` },
  {
    name: "gitlink, filter in sub/.git",
    plant: `${EMBED}; git -C sub config filter.x.clean "$C cat"`
  },
  {
    name: "gitlink, fsmonitor in sub/.git",
    more: true,
    plant: `${EMBED}; git -C sub config core.fsmonitor "$C"`
  },
  {
    name: "gitlink, .gitmodules says ignore = none",
    more: true,
    plant: `${EMBED}; printf '[submodule "s"]\\n\\tpath = sub\\n\\turl = ./sub\\n\\tignore = none\\n' > .gitmodules; git add .gitmodules; git commit -qm m; git -C sub config filter.x.clean "$C cat"`
  },
  {
    name: "gitlink, diff.submodule = diff",
    more: true,
    plant: `${EMBED}; git config diff.submodule diff; git -C sub config filter.x.clean "$C cat"; git -C sub config diff.external "$C"`
  },
  {
    name: "gitlink, submodule.recurse",
    plant: `${EMBED}; git -C sub checkout -q f; printf '[submodule "s"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules; git add .gitmodules; git commit -qm m; git config submodule.s.active true; git config submodule.recurse true; git -C sub config filter.x.smudge "$C cat"; git -C sub config filter.x.clean "$C cat"; git -C sub config core.fsmonitor "$C"`
  },
  {
    name: "gitlink, sub/.git is a file",
    more: true,
    plant: `${EMBED}; mv sub/.git "$E/subgit"; printf 'gitdir: %s\\n' "$E/subgit" > sub/.git; git -C sub config filter.x.clean "$C cat"`
  },
  {
    name: "submodule.NAME.update = !command",
    more: true,
    plant: `${EMBED}; git config submodule.s.update "!$C"; git config submodule.recurse true`
  },
  {
    name: "commondir in the git folder",
    plant: `mkdir -p .git/e/info; for n in objects refs logs packed-refs; do ln -sfn ../$n .git/e/$n; done; (${EVIL}) > .git/e/config; printf '* filter=x diff=x\\n' > .git/e/info/attributes; printf 'e\\n' > .git/commondir; ${TOUCH}`
  },
  {
    name: ".git file of a linked worktree, turned",
    linked: true,
    plant: `cp -r "$(git rev-parse --git-common-dir)" "$E/g"; cp "$(git rev-parse --git-dir)/index" "$E/g/index"; (${EVIL}) > "$E/g/config"; mkdir -p "$E/g/info"; printf '* filter=x diff=x\\n' > "$E/g/info/attributes"; printf 'gitdir: %s\\n' "$E/g" > .git; ${TOUCH}`
  },
  {
    name: ".git file made a folder",
    more: true,
    linked: true,
    plant: `cp -r "$(git rev-parse --git-common-dir)" "$E/g"; cp "$(git rev-parse --git-dir)/index" "$E/g/index"; rm .git; mv "$E/g" .git; (${EVIL}) > .git/config; mkdir -p .git/info; printf '* filter=x diff=x\\n' > .git/info/attributes; ${TOUCH}`
  },
  {
    name: "commondir of a linked worktree, turned",
    more: true,
    linked: true,
    plant: `d=$(git rev-parse --git-dir); cp -r "$(git rev-parse --git-common-dir)" "$E/g"; (${EVIL}) > "$E/g/config"; mkdir -p "$E/g/info"; printf '* filter=x diff=x\\n' > "$E/g/info/attributes"; printf '%s\\n' "$E/g" > "$d/commondir"; ${TOUCH}`
  },
  {
    name: "config.worktree",
    plant: `git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$C"; ${TOUCH}`
  },
  {
    name: "include.path",
    plant: `printf '[core]\\n\\tfsmonitor = %s\\n' "$C" > inc; git config include.path "$PWD/inc"; ${TOUCH}`
  },
  {
    name: "includeIf onbranch",
    more: true,
    plant: `printf '[core]\\n\\tfsmonitor = %s\\n' "$C" > inc; git config "includeIf.onbranch:**.path" "$PWD/inc"; ${TOUCH}`
  },
  {
    name: "includeIf hasconfig",
    more: true,
    plant: `printf '[core]\\n\\tfsmonitor = %s\\n' "$C" > inc; git config remote.o.url x; git config "includeIf.hasconfig:remote.*.url:**.path" "$PWD/inc"; ${TOUCH}`
  },
  {
    name: "bare repository in a folder of the tree",
    below: "pkg",
    plant: `mkdir -p pkg; cp -r .git/HEAD .git/objects .git/refs .git/index pkg/; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = %s\\n\\tfsmonitor = %s\\n' "$PWD" "$C" > pkg/config; ${TOUCH}`
  },
  {
    name: "log.showSignature and gpg.program",
    plant: `git config log.showSignature true; git config gpg.program "$C"; t=$(git rev-parse HEAD^{tree}); c=$(printf 'tree %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' $t | git hash-object -t commit -w --stdin); git reset -q --soft $c`
  },
  {
    name: "commit.gpgSign and gpg.program",
    more: true,
    plant: `git config commit.gpgSign true; git config gpg.program "$C"; ${TOUCH}`
  },
  {
    name: "gpg.ssh.defaultKeyCommand",
    more: true,
    plant: `git config commit.gpgSign true; git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand "$C"; ${TOUCH}`
  },
  {
    name: "merge.verifySignatures",
    more: true,
    plant: `git config merge.verifySignatures true; git config gpg.program "$C"; t=$(git rev-parse $SIDE^{tree}); c=$(printf 'tree %s\\nparent %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' $t $(git rev-parse $SIDE) | git hash-object -t commit -w --stdin); git update-ref refs/heads/side $c`
  },
  {
    name: "core.sshCommand",
    plant: `git remote add origin ssh://nobody@127.0.0.1:9/x; git config core.sshCommand "$C"`
  },
  {
    name: "remote.NAME.uploadpack",
    more: true,
    plant: `git clone -q --bare . "$E/r"; git remote add origin "$E/r"; git config remote.origin.uploadpack "$C;git-upload-pack"`
  },
  {
    name: "ext:: transport",
    plant: `git config protocol.ext.allow always; git remote add origin "ext::$C"`
  },
  {
    name: "url.insteadOf to ext::",
    more: true,
    plant: `git config protocol.ext.allow always; git remote add origin "$E/nowhere"; git config "url.ext::$C .insteadOf" "$E/"`
  },
  {
    name: "core.gitProxy",
    more: true,
    plant: `git remote add origin git://127.0.0.1:9/x; git config core.gitProxy "$C"`
  },
  {
    name: "credential.helper",
    plant: `git remote add origin "$HTTP/x"; git config credential.helper "!$C"`
  },
  {
    name: "core.askPass",
    more: true,
    plant: `git remote add origin "$HTTP/x"; git config core.askPass "$C"`
  },
  {
    name: "lazy fetch of a promised object",
    plant: `git clone -q --bare . "$E/r"; git remote add origin "$E/r"; git config remote.origin.promisor true; git config extensions.partialClone origin; git config core.repositoryformatversion 1; git config remote.origin.uploadpack "$C;git-upload-pack"; b=$(git rev-parse HEAD:f); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-); touch -d 2001-01-01 f; printf 'longer\\n' > f`
  },
  {
    name: "core.alternateRefsCommand",
    plant: `git clone -q --bare . "$E/r"; printf '%s\\n' "$E/r/objects" > .git/objects/info/alternates; git config core.alternateRefsCommand "$C"; git clone -q --bare . "$E/r2"; (cd "$E/r2"; t=$(git rev-parse HEAD^{tree}); git update-ref refs/heads/new $(git commit-tree $t -m new)); git remote add origin "$E/r2"`
  },
  {
    name: "gc.recentObjectsHook, gc.auto = 1",
    plant: `git config gc.auto 1; git config gc.autoDetach false; git config maintenance.autoDetach false; git config gc.recentObjectsHook "$C"; git config gc.cruftPacks true; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do for j in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do printf '%s' $i.$j > o$i.$j; done; done; git hash-object -w o*.* > /dev/null; rm -f o*.*; ${TOUCH}`
  },
  {
    name: "pre-auto-gc hook, gc.auto = 1",
    more: true,
    plant: `git config gc.auto 1; git config gc.autoDetach false; git config maintenance.autoDetach false; for j in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do printf 'p%s' $i.$j > o$i.$j; done; done; git hash-object -w o*.* > /dev/null; rm -f o*.*; mkdir -p .git/hooks; printf '#!/bin/sh\\n%s\\n' "$C" > .git/hooks/pre-auto-gc; chmod +x .git/hooks/pre-auto-gc; ${TOUCH}`
  },
  {
    name: "uploadpack.packObjectsHook",
    more: true,
    plant: `git config uploadpack.packObjectsHook "$C"; git remote add origin .`
  },
  {
    name: "Git LFS, lfs.extension of the repository",
    needs: "git-lfs",
    plant: `git lfs install --local >/dev/null; printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' > .gitattributes; printf '1\\n' > a.bin; git add .gitattributes a.bin; git commit -qm lfs; git config lfs.extension.x.clean "$C cat"; git config lfs.extension.x.smudge "$C cat"; git config lfs.extension.x.priority 0; printf '2\\n' > a.bin; touch -d 2001-01-01 a.bin`
  },
  {
    name: "core.editor, sequence.editor",
    plant: `git config core.editor "$C"; git config sequence.editor "$C"; ${TOUCH}`
  },
  {
    name: "core.pager, pager.NAME",
    more: true,
    plant: `git config core.pager "$C"; for n in log diff show status; do git config pager.$n "$C"; done; ${TOUCH}`
  },
  {
    name: "alias over a command's name",
    plant: `for n in status log diff merge fetch; do git config alias.$n "!$C"; done; ${TOUCH}`
  },
  {
    name: "core.worktree elsewhere (writes there)",
    plant: `mkdir -p "$E/victim"; git config core.worktree "$E/victim"`
  }
]
