# find-node: sourced by the sh scripts in this folder. `find_node ROOT` sets $node to the first Node that runs on this
# machine and is new enough, or fails.
#
# The order: the Node that agentd's lock file pins (next to agentd if npm hoisted it), then `node` on PATH. Each must
# print its version (4 ms): on musl and on NixOS the pinned one is installed, but does not run.

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

# `note_node ROOT` stores the path of $node in dist/node, so that the launcher need not check it again. Only a Node of
# the packages is stored: `node` on PATH can change to one that is too old. A folder that cannot be written is no error:
# then each start checks the Node. `npm ci` and `npm run bundle` do not remove the file; if the Node is gone, the
# launcher searches again.
note_node() {
  case $node in */*) ;; *) return 0 ;; esac
  if [ ! -d "$1/dist" ] || [ ! -w "$1/dist" ]; then return 0; fi
  # one write, so that a launcher that reads at the same time finds no path or the whole path
  printf '%s\n' "$node" 2>/dev/null >"$1/dist/node" || :
}
