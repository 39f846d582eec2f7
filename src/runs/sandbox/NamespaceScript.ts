/**
 * NamespaceScript: the sandbox for machines without bubblewrap. A POSIX shell script that runs as the first process of
 * new namespaces, in which it has root rights only over mounts.
 *
 * Arguments: $1 is the size of private folders, $2 the working directory, $3 and $4 the user id and group id. $5 to $7
 * are perl, the number of prctl and the system call filter in hex; they are empty if there is no filter. After that
 * come the mounts, each as kind, source and target, then `--`, and then the command.
 *
 * The script creates an empty folder in /dev/shm, which contains no mount source. It makes the listed mounts in that
 * folder, makes the folder the root, and gives up the old root and all privileges. It starts the command in a second
 * user namespace, in which the command has its original user and owns no mount.
 *
 * Guarantees: A step that fails ends the script before the command starts. The old root cannot be reached. The
 * command can neither gain a privilege nor create namespaces to get one. Needs util-linux (mount, umount, pivot_root,
 * unshare, setpriv). The loopback interface of its own network is up if ip or perl is installed.
 */
export const NAMESPACE_SCRIPT = String.raw`
set -eu
# the first process of a namespace hears no signal that it has not asked for
trap 'exit 143' TERM
size=$1 cwd=$2 user=$3 group=$4 perl=$5 prctl=$6 filter=$7 new=/dev/shm/agentd path=$PATH
PATH=$PATH:/usr/sbin:/sbin
shift 7
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
private 755 $new
mkdir $new/dev $new/proc
private 755 $new/dev
for name in null zero full random urandom tty; do
  : > $new/dev/$name
  mount --bind /dev/$name $new/dev/$name
done
ln -s /proc/self/fd $new/dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${"$"}{stream%:*}" "$new/dev/${"$"}{stream#*:}"; done
mkdir $new/dev/shm $new/dev/pts $new/dev/old
private 1777 $new/dev/shm
mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=0666,mode=0620 devpts $new/dev/pts
ln -s pts/ptmx $new/dev/ptmx
mount -t proc -o nosuid,nodev,noexec proc $new/proc
hostname agent
# the loopback of a network of its own is down; by ip, or by SIOCSIFFLAGS with IFF_UP. The machine's own is up
ip link set lo up 2> /dev/null || [ -z "$perl" ] ||
  "$perl" -e 'socket(my $s, 2, 2, 0) && ioctl($s, 0x8914, pack("a16 s x22", "lo", 1))' 2> /dev/null || :
# the second one, below, and none after it
echo 1 > $new/proc/sys/user/max_user_namespaces

while [ "$1" != -- ]; do
  kind=$1 source=$2 target=$new$3
  shift 3
  case $kind in
    empty)
      mkdir -p "$target"
      private 755 "$target"
      continue ;;
    link)
      mkdir -p "${"$"}{target%/*}"
      ln -s "$source" "$target"
      continue ;;
    text)
      mkdir -p "${"$"}{target%/*}"
      printf %s "$source" > "$target"
      chmod 444 "$target"
      source=$target ;;
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
mount -o remount,bind,ro,nosuid,nodev /
cd "$cwd"
set -- /bin/sh -c 'trap "exit 143" TERM; "$@"; exit $?' agentd-init "$@"
if [ -n "$filter" ]; then
  # struct sock_fprog, and PR_SET_SECCOMP with SECCOMP_MODE_FILTER
  set -- "$perl" -e '
    my $code = pack("H*", shift);
    my $call = shift;
    my $program = pack("S x![Q] P", length($code) / 8, $code);
    syscall($call + 0, 22, 2, $program, 0, 0) == 0 or die "no filter of system calls: $!\n";
    exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\n";
  ' "$filter" "$prctl" "$@"
fi
# /proc is still to be written until the ids are mapped; its settings are the whole system's, and a daemon that is
# root could write them. For any other user they are read-only anyway, and mount serves root alone
exec unshare --user --mount --map-user="$user" --map-group="$group" -- /bin/sh -euc '
  [ "$(id -u)" != 0 ] || mount -o remount,bind,ro,nosuid,nodev,noexec /proc
  PATH=$1
  shift
  exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
' agentd-sandbox "$path" "$@"
`
