/**
 * Lines that try to get past the table of programs: options in other spellings, words that are options to one program
 * and files to another, paths in disguise. Each must have an effect that no rule with a star covers.
 */
export const ATTACKS = String.raw`
rg -f=/etc/passwd x
cargo test -p=/x
cp x/AGENTS.md .
cp x/agentd.jsonc .
cp x/* .
cp --parents .git/config out
cp x/.mcp.json src
touch HEAD
mv a evil/HEAD
sha256sum -c list
ps aux
pgrep -fa x
[ 'a[$(rm x)]' -eq 0 ]
[ "$x" -eq 1 ]
[ 1 -eq a ]
printf %d 'a[$(rm x)]'
printf '%*d' 'a[$(rm x)]' 1
exit 'a[$(rm x)]'
return $X
cd +1
git reflog drop --all
git reflog write x
npm query ':outdated()'
npm run env
yarn run env
bun run rm a
vitest run --changed=--output=x
jest --changedSince=--output=x
biome check --since=--output=x
pytest --pyargs evil
pytest -k=@x -k @x
npm run build -- --watch=false /etc
npm test -- -t=../x
npm test -- --grep=/x
npm test a=../../b
npm test -- a:../b
npm run test:e2e -- --reporter=dot ~/x
npm run x -w=../y
npm run x --workspace=/y
npm ci ../x
npm install file:../x
pnpm run build --filter /x
pnpm test -- --config=x
pnpm test src --config=x
yarn test src --config=x
yarn run -s env
yarn run build -- --fix --out=/x
vitest run --reporter=json --reporter=./x
vitest --dir=/x
vitest run --dir ../x
vitest run src/../../x
vitest run --testNamePattern=@x
vitest related /etc/x
vitest list --json=/tmp/x
jest --testPathPatterns ../x
jest --findRelatedTests /x
jest -w=1 --maxWorkers=/x
tsc -p tsconfig.json --outDir=x
tsc -p=../x
tsc --project=/x
tsc a.ts ../b.ts
tsc --noEmit -p ../x
eslint --ext=.ts ../x
eslint --ignore-pattern=../x .
eslint --fix agentd.jsonc
eslint --cache --cache-location=/x .
prettier --write agentd.json
prettier -w .vscode/settings.json
prettier --ignore-path=/x .
prettier --write --check CLAUDE.md
oxlint --fix .codex
pytest tests/../../x
pytest --ignore=../x
pytest --cov=../x
pytest --cov=/x
pytest --cov-report=html
pytest --color=yes --log-level=../x
pytest -k"@x"
mypy --python-version=../x .
mypy -p../x
mypy -p=/x
ruff check --select=@x
ruff check --exclude=/x --fix ../y
ruff format AGENTS.md
black --line-length=100 .github
cargo test --color=../x
cargo build --target=/x.json
cargo build --target ../x.json
cargo test -F=../x
cargo run -- --config
cargo run -- @x
cargo clippy -- -D=../x
cargo fmt -- src/../../x.rs
cargo -q --config=x test
go test ./... /etc/x
go build -o=/x .
go build -o=.git/x .
go vet ./../../x
go test -coverprofile=.git/hooks/x ./...
gofmt -w .git/x.go
gofmt -l /etc
make -j4 -C..
make test -f../x
make -kC .. test
make --directory=.. test
make -j4 test CC=./x
make test -- CC=./x
make -nf x
git -C .ssh log
git -C a -C ../.. status
git blame -L1,2 ../../x
git blame -L 1,2 -- /etc/passwd
git grep -e x -f/etc/passwd
git grep -f ../x
git show HEAD:.ssh/config
git show :.env
git show stash@{0}:.env
git diff HEAD:.env a
git ls-files -X/etc/x
git commit -F/etc/passwd
git commit --file=/etc/passwd
git commit -m x -- ../../y
git commit -m x .env
git add .envrc
git add -A ../..
git add src/.npmrc
git mv a ../../b
git mv AGENTS.md b
git switch -c x /etc/passwd
git merge ../x
git branch --format=x y
git branch --list -D x
git branch -la x -m y
git tag -l -d x
git remote -v update
git reflog show --output=x
git stash list --output=x
git stash show --output=x
git rev-parse --sq-quote x
git cat-file blob .env
git cat-file -p :.env
git worktree list --porcelain -z
git log --no-index /etc/passwd
git status /etc
git fetch -- ext::x
git fetch origin ext::x
cat -- -n /etc/passwd
head -n5 -- .env
head --lines=5 ../x
tail -n+1 /etc/passwd
ls -I.env ~
find -L .. -name x
find . -path ./x -o -delete
find . -name x -fprint0 y
find . '(' -exec x ')'
find -- -delete
find . -newermt x -newerXX y
rg --pre=x y
rg y --pre x
rg -zez .
rg -e x -f ../y
rg --glob=.env x
rg --iglob=.ENV x
rg --type-add=x y
rg -g '*.pem' x
rg x .e*
fd -x rm
fd -Hx rm
fd . /
fd --exec-batch=rm
tree -do x
tree -L 2 -o=x
tree --fromfile=x
sort -uT/ a
sort -no/x a
sort -k1 -o b a
sort --output b a
sed -n -- 'w x' a
sed --expression='w x' a
sed --quiet --in-place p a
sed -nE -i p a
sed -sf x a
sed 's/a/b/;s/c/d/w x' a
sed 'y/a/b/;w x' a
sed '/a/ e' a
sed '1,/x/w y' a
sed '$w y' a
sed '1!w y' a
sed '/a;b/w x' a
sed 's,a,b,w x' a
sed 's|a|b|e' a
sed 's#a#b#we' a
jq -r --rawfile a /etc/passwd . b
jq '.a|env' b
jq '.x|input_filename,$ENV' b
jq -L/x . b
jq --from-file x b
jq -f x
jq . -- /etc/passwd
date -s
date --set=x
date +%s 0101
date -f/etc/passwd
date -r /etc/passwd +%s
date -u -- 01010000
xxd -r a
xxd -p a b
xxd -s 1 a b
diff --from-file=/etc/passwd a
diff -r . ..
cmp -- a /etc/passwd
stat ~/.ssh
du ..
df .ssh
realpath --relative-to=/ a
column -t /etc/passwd
base64 -w0 .env
cut -d: -f1 /etc/passwd
comm a .env
md5sum ../x
mkdir -p src/.git/hooks
mkdir -vp .cursor
touch -d x .github/y
touch -r .env x
touch --reference=/etc/x y
cp -T a .git
cp -ut .git a
cp --target-directory=.claude a
cp a b .github
cp .npmrc x
cp a/.envrc .
cp agentd.json x
cp -- a .git/config
mv -t.git a
mv a -t .git
mv --target-directory=.. a
mv .vscode x
mv x .mcp.json
tee -a AGENTS.md
tee .npmrc
rmdir .husky
cd -P ..
cd -e /
cd -- /
cd ./..
cd src/../..
cd '~'
cd ~root
cd .github/workflows
cd .GIT
cd src/.claude
test -e a -o -v b
[ -R x ]
[ ! -v x ]
[ a -gt b ]
printf -v x y
printf -vx y
printf %d x
printf '%s%d' a b
set -o allexport
set -a
set x
command -v -p x
exit x
wait -n -p x
find . -- -delete
find -P -- -delete
xxd a -ps
uniq a -c
tail -n 5 --follow=name ../x
head -qn5 ~/x
grep -rn --include '*.pem' x .
grep --include=id_rsa -r x .
grep -rf../x .
grep -hie x -- ../y
ls '-la' ..
cat './../x'
cat 'src/../../x'
cat "a/./../../b"
cat .//.env
cat src//.env/
cat .Env.Production
cat config/.npmrc
cat *.p12
cat certs/*.k?y
cat id_[r]sa
cat .[e]nv
cat .en*
cat .??v
cat ../*
ls ..*
ls .*
cp .* x
mv .g* x
touch .g?t/x
mkdir .[g]it
touch ag*md
touch CLAUD?.md
touch a[g]entd.json
touch .CLAUDE/x
tee .Git/config
cp a sub/HEAD
touch x/head
mv config x/HEAD
git add .e*
git commit -m a -F ../b
git commit -aF.env
git log -- ':(top).env'
git show 'HEAD:.env'
git diff -- .env.local
git grep x -- ../..
git grep -e x .env
git blame .npmrc
git ls-files ../../..
git switch ../../x
npm test -- -t -x
npm test -- --reporter=../x
npm test -- --out=x
npm run b -- -c x
npm run b $X
npm run "$X"
npm run b*
npm -C x run b
npm exec x
npm x y
npx x
pnpm x
pnpm build
yarn build
yarn x
bun x.ts
node x.js
node --test --require=./x
node --test=x
node -c x -r y
vitest -c x run
vitest run -c=x
vitest --config=x
vitest bench x -c y
vitest run --reporter
vitest run --globals=x
eslint -f ./x .
eslint --format=./x .
prettier --plugin x .
tsc --watch
tsc --init
pytest -p x
pytest -c x
pytest -qc x
pytest --pdb
pytest -o a=b
python -m pytest -p x
python -m http.server
python -m x
python x.py
python -c x
python -m unittest /x
python -m json.tool a b
pip install x
pip list -o
mypy --config-file=x .
ruff check --config=x
ruff --config x check .
cargo test --config=x
cargo +nightly test
cargo -Zx test
cargo run -- ../x
cargo install x
cargo clippy -- -Clinker=x
cargo fmt -- --config-path=x
go run .
go test -exec=x ./...
go generate ./...
go build -toolexec=x .
go vet -vettool=x .
make -f x
make CC=x
make a b
make -C x
docker ps
kubectl get x
gh pr list
curl x
wget x
ssh x ls
env
printenv
export A=b
source x
. x
eval ls
exec ls
sudo ls
xargs ls
timeout 5 ls
rm a
rm -rf x
chmod +x a
ln -s a b
tar xf a
dd if=a of=b
awk -f a a
awk -v a=b 1 a
awk -i inplace 1 a
awk 1 ../a
awk 1 .env
sed -i p a
perl -e 1
less a
vim a
kill 1
git push
git pull
git clone x
git checkout x
git restore x
git reset x
git clean -n
git stash
git rebase x
git config x
git -c a=b log
git --exec-path=x log
git --git-dir=x log
git --work-tree=x status
git -p log
git bisect run x
git x
unknown
./cat a
/bin/cat a
`
