/**
 * NeverPrograms: programs that run, connect or show what they are told. None has a star, and none of their words is
 * read as an option, but one that prints the version. Wrappers stand here for their use alone.
 */
import { tableOf } from "./ProgramTable.ts"

export const NEVER = tableOf(`
perl|ruby|php|lua|Rscript|julia|deno|osascript: any open runs = runs a program
  tells --version
sh|bash|dash|zsh|ksh|ash|fish|pwsh|csh|tcsh: any open runs = runs what the shell reads
npx|bunx|pnpx|uvx|pipx: any open runs = runs a package, fetched if it is not there
uv|conda|mamba: any open connects = fetches packages, and runs programs
  tells --version
sqlite3|psql|mysql|mariadb|mongosh|redis-cli: any open runs = runs what it is told, also in a shell
  tells --version
alias|unalias|eval|source|.|trap|enable|hash|export|declare|typeset|local|readonly: any open runs = changes the shell
unset|shopt|let|mapfile|readarray|complete|compgen|compopt|bind|history|fc: any open runs = changes the shell
disown|fg|bg|ulimit|umask|getopts|pushd|popd|dirs|logout|suspend|caller|shift|times: any open runs = changes the shell
xargs|parallel|nice|ionice|nohup|timeout|time|stdbuf|setsid|exec|builtin|watch: any open runs = runs a program
strace|ltrace|gdb|lldb|flock|script|unbuffer|chrt|taskset: any open runs = runs a program
sudo|doas|su|chroot|unshare|nsenter|pkexec|runuser|setpriv|capsh: any open runs = runs with other rights
env|printenv: any open secrets = shows the environment
ps|pgrep|top|htop|lsof|ss|netstat|w|who|last: any open secrets = shows what others run
less|more|most|man|info|view: any open runs = a pager may run a shell
vi|vim|nvim|ex|emacs|nano|pico|code|open|xdg-open: any open runs = an editor may run commands
screen|tmux|expect|busybox: any open runs = types into shells, or is many programs
curl|wget|http|https|aria2c: any open connects = connects to what it is told, and may write
  tells --version
ssh|scp|sftp|rclone|telnet|nc|ncat|socat|ftp|mosh: any open connects = connects to what it is told
ping|dig|nslookup|host|traceroute|whois: any open connects = sends names out
gh|glab|hub: any open connects = talks to the forge with the person's key
  tells --version
aws|gcloud|az|kubectl|helm|terraform|ansible|vercel|netlify|fly: any open connects = changes what runs elsewhere
docker|podman|docker-compose|nerdctl: any open runs = has the rights of its daemon
  tells --version
gpg|openssl|ssh-keygen|ssh-add|ssh-agent|pass|security|keyctl: any open secrets = uses keys
kill|pkill|killall: any open runs = ends processes
systemctl|service|launchctl|crontab|at|batch|journalctl: any open runs = changes services, or runs later
apt|apt-get|dpkg|brew|yum|dnf|apk|pacman|snap|gem: any open connects = installs programs
mount|umount|useradd|usermod|passwd|reboot|shutdown: any open runs = changes the machine
`)
