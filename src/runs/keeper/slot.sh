# A shell that waits to become a program: slot.sh FOLDER CGROUP SECONDS (keeper.mjs has the whole of it).
# Its standard input ends where the keeper dies before it has opened the pipes; then `spec` waits for one who writes it.
cd "$1" && mkfifo -m 600 spec in out err bye || exit 97
[ -z "$2" ] || { mkdir "$2" && echo 0 >"$2/cgroup.procs"; }
echo; read go || exit
exec 3<>in 4<>out 5<>err
# The anchor holds the pipes open. Where no keeper has come for that long it ends its whole group, whose number is not
# used again while it is there.
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
