# A shell that waits to become a program: slot.sh FOLDER CGROUP SECONDS (keeper.mjs describes the whole).
# If the keeper dies before it has opened the pipes, standard input ends. Later the shell waits for a writer of `spec`.
cd "$1" && mkfifo -m 600 spec in out err bye || exit 97
[ -z "$2" ] || { mkdir "$2" && echo 0 >"$2/cgroup.procs"; }
echo; read go || exit
exec 3<>in 4<>out 5<>err
# The anchor holds the pipes open. If no keeper connects for SECONDS, it ends its whole process group. The group's
# number cannot be reused while the anchor lives.
anchor=$( (
  trap '' HUP INT TERM; exec >/dev/null
  timer=
  while exec 6<bye; do
    [ -z "$timer" ] || kill -9 $timer
    while read word <&6; do
      case $word in
        (taken) rm -f handed.* ;;
        (close) exec 3>&- ;;
        (end) (exec 3>&- 4>&- 5>&-; kill -TERM 0; kill -CONT 0; sleep 5; kill -KILL 0) & ;;
        (bye) exit ;;
      esac
    done
    exec 6<&-
    (exec 3>&- 4>&- 5>&-; sleep $3; kill -TERM 0; sleep 5; kill -KILL 0) & timer=$!
  done
) & echo $!)
exec 0<in 3>&- 4>&- 5>&-
echo $anchor; unset anchor; exec >/dev/null
. ./spec
exit 97
