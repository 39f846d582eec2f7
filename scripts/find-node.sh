# find-node: sourced by the sh scripts beside it. `find_node ROOT` sets $node to
# the first Node that runs on this machine and is new enough, or fails.
#
# In order: the one that agentd's lock file pins (beside agentd where npm hoisted
# it), then whatever `node` means on PATH. Each is asked for its version (4 ms):
# the pinned one is there and does not run on musl and on NixOS.

node_needed=24.15

find_node() {
  for node in "$1"/node_modules/.bin/node "$1"/node_modules/node-linux-*/bin/node "$1"/../node-linux-*/bin/node node; do
    node_version=$("$node" --version 2>/dev/null) || continue
    node_version=${node_version#v}
    node_minor=${node_version#*.}
    node_minor=${node_minor%%.*}
    if [ "${node_version%%.*}" -gt "${node_needed%.*}" ]; then return 0; fi
    if [ "${node_version%%.*}" -eq "${node_needed%.*}" ] && [ "$node_minor" -ge "${node_needed#*.}" ]; then return 0; fi
  done
  return 1
}

# `note_node ROOT` keeps the path of $node in dist/node, so that the launcher need not
# prove it again. Only a Node of the packages is noted: what `node` means on PATH may
# change to one that is too old. A folder that cannot be written is no error: the Node
# is proved at each start, then. `npm ci` and `npm run bundle` do not remove the note;
# a Node that is gone is looked for anew.
note_node() {
  case $node in */*) ;; *) return 0 ;; esac
  if [ ! -d "$1/dist" ] || [ ! -w "$1/dist" ]; then return 0; fi
  # one write: a launcher that reads meanwhile finds no path, or the whole of it
  printf '%s\n' "$node" 2>/dev/null >"$1/dist/node" || :
}
