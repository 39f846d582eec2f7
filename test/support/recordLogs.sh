#!/bin/sh
# recordLogs.sh [NAME …]: runs recordLogs.ts in separate namespaces, where home is /home/dev,
# the user is dev, the host is `dev`, and every port is free. Needs root.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
exec unshare --mount --uts --net sh -eu -c '
  root=$1; shift
  hostname dev
  ip link set lo up
  mkdir -p /run/recordLogs
  mount -t tmpfs tmpfs /run/recordLogs
  sed "s|^root:[^:]*:0:0:[^:]*:[^:]*|dev:x:0:0:dev:/home/dev|" /etc/passwd >/run/recordLogs/passwd
  mount --bind /run/recordLogs/passwd /etc/passwd
  mount -t tmpfs tmpfs /home
  mkdir -p /home/dev/agentd
  mount --bind "$root" /home/dev/agentd
  cd /home/dev/agentd
  exec env -i PATH=/home/dev/agentd/node_modules/.bin:/usr/local/bin:/usr/bin:/bin HOME=/home/dev USER=dev \
    LANG=C.UTF-8 TMPDIR=/home/dev GIT_CONFIG_NOSYSTEM=1 node test/support/recordLogs.ts "$@"
' sh "$root" "$@"
