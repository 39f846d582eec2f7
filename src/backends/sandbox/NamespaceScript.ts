/**
 * NamespaceScript: the sandbox for machines without bubblewrap, as a POSIX shell script
 * that runs as the first process of new namespaces, where it is root over mounts alone.
 *
 * $1 is the size of private folders, $2 the working directory; then mounts as triples of
 * kind, source, target, up to `--`; then the command. It lays a read-only copy of the tree
 * where no source lies, below /dev/shm, mounts the list into it, makes it the root, lets go
 * of the old one and of every privilege, and starts the command.
 *
 * Guarantees: any step that fails ends it before the command; of the old root nothing is
 * left to reach; the command can take on no privilege, nor make namespaces to get some.
 * Needs util-linux (mount, umount, pivot_root, setpriv). The command takes itself for root:
 * that is the daemon's own user, who may do no more than outside.
 */
export const NAMESPACE_SCRIPT = String.raw`
set -eu
# the first process of a namespace hears no signal that it has not asked for
trap 'exit 143' TERM
size=$1 cwd=$2 new=/dev/shm/agentd path=$PATH
PATH=$PATH:/usr/sbin:/sbin
shift 2
private() { mount -t tmpfs -o "nosuid,nodev,mode=$1,size=$size" tmpfs "$2"; }

# what is mounted at $1 or below becomes read-only; the flags it has are locked and must stay
seal() {
  while read -r _ _ _ _ point options _; do
    case $point in *\\*)
      point=$(printf '%b.' "$(printf %s "$point" | sed 's/\\\([0-7][0-7][0-7]\)/\\0\1/g')")
      point=${"$"}{point%.} ;;
    esac
    case $point in "$1" | "$1"/*) ;; *) continue ;; esac
    flags=ro
    for flag in nosuid nodev noexec noatime nodiratime relatime; do
      case ,$options, in *,$flag,*) flags=$flags,$flag ;; esac
    done
    mount -o "remount,bind,$flags" "$point"
  done < /proc/self/mountinfo
}

private 755 /dev/shm
mkdir $new
mount --rbind / $new
seal $new
private 755 $new/dev
for name in null zero full random urandom tty; do
  : > $new/dev/$name
  mount --bind /dev/$name $new/dev/$name
done
ln -s /proc/self/fd $new/dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${"$"}{stream%:*}" "$new/dev/${"$"}{stream#*:}"; done
mkdir $new/dev/shm $new/dev/old
mount -t proc -o nosuid,nodev,noexec proc $new/proc
echo 0 > $new/proc/sys/user/max_user_namespaces
# its settings are the whole system's, and a daemon that is root could write them
seal $new/proc

while [ "$1" != -- ]; do
  kind=$1 source=$2 target=$new$3
  shift 3
  case $kind in
    empty)
      mkdir -p "$target"
      private 755 "$target"
      continue ;;
    blank) source=/dev/null ;;
  esac
  if [ -d "$source" ]; then
    mkdir -p "$target"
  elif [ ! -e "$target" ]; then
    mkdir -p "${"$"}{target%/*}"
    : > "$target"
  fi
  mount --rbind "$source" "$target"
  [ "$kind" = writable ] || seal "$target"
done
shift

cd $new
pivot_root . dev/old
umount -l /dev/old
rmdir /dev/old
cd "$cwd"
PATH=$path
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- /bin/sh -c 'trap "exit 143" TERM; "$@"; exit $?' agentd-init "$@"
`
