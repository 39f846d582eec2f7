#!/bin/bash
# withSystemd.sh [--bind PATH]... -- COMMAND [ARG ...]
# withSystemd.sh [--bind PATH]... --hold
#
# Runs COMMAND as root on a machine with a real systemd as PID 1, including
# journald and logind: a temporary container that boots over a copy-on-write
# view of this machine's root, in the same working directory. Every write is
# discarded at the end, except below a PATH named with --bind. Never bind /tmp:
# a boot clears it. The network is private, with only a loopback interface.
# The exit status is COMMAND's, or 125 if systemd did not come up.
# With --hold no command runs: the script prints "held PID", the pid of
# systemd-nspawn, and keeps the machine until its input ends. The machine can
# boot again during that time.
#
# Needs root and Debian's packages systemd-container, dbus, dbus-user-session.
set -u

# Runs in a separate mount namespace, so that its mounts end with it.
[ "${WITH_SYSTEMD_NS:-}" = 1 ] || exec env WITH_SYSTEMD_NS=1 unshare --mount -- "$0" "$@"

binds=()
while [ $# -gt 0 ]; do
  case $1 in
    --bind) binds+=("--bind=$(realpath "$2")"); shift 2 ;;
    --hold) hold=1; shift ;;
    --) shift; break ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || [ -n "${hold:-}" ] || { sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2; }

set -e
mount --make-rprivate /
base=$(mktemp -d /var/tmp/withSystemd.XXXXXX)
mount -t tmpfs tmpfs "$base"
mkdir "$base"/{upper,work,root}
mount -t overlay overlay \
  -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$base/root"
for unit in systemd-sysctl systemd-modules-load systemd-udevd systemd-binfmt \
            systemd-timesyncd apparmor e2scrub_reap postgresql postgresql@; do
  ln -sf /dev/null "$base/root/etc/systemd/system/$unit.service"
done
# /dev/null must be writable, even if this machine's is not
echo 'z /dev/null 0666 root root' >"$base/root/etc/tmpfiles.d/null.conf"
rm -f "$base/root/etc/machine-id" && : > "$base/root/etc/machine-id"

boot() {
  systemd-nspawn --quiet --register=no --keep-unit --link-journal=no \
    -D "$base/root" --boot --private-network --console=pipe "${binds[@]}" \
    </dev/null >>"$base/boot.log" 2>&1 &
  nspawn=$!
}
boot
set +e
finish() {
  [ -n "${leader:-}" ] && kill -9 "$leader" 2>/dev/null
  kill "$nspawn" 2>/dev/null; wait "$nspawn" 2>/dev/null
  umount -l "$base/root" "$base" 2>/dev/null; rmdir "$base" 2>/dev/null
}
trap finish EXIT

if [ -n "${hold:-}" ]; then
  # systemd-nspawn ends when the machine reboots
  while kill -0 "$nspawn" 2>/dev/null || boot; do
    echo "held $nspawn"
    while kill -0 "$nspawn" 2>/dev/null; do
      read -r -t 0.2
      [ $? -gt 128 ] || { leader=$(pgrep -o -P "$nspawn"); exit; }
    done
  done
fi

inside() {
  nsenter -t "$leader" --mount --pid --uts --ipc --net --cgroup --root -- \
    sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
}
for _ in $(seq 300); do
  leader=$(pgrep -P "$nspawn" | head -n 1)
  if [ -n "$leader" ]; then
    case $(inside systemctl is-system-running 2>/dev/null) in running | degraded) up=1; break ;; esac
  fi
  kill -0 "$nspawn" 2>/dev/null || break
  sleep 0.1
done
[ -n "${up:-}" ] || { cat "$base/boot.log" >&2; echo "withSystemd: systemd did not come up" >&2; exit 125; }

inside env -u WITH_SYSTEMD_NS "$@"
