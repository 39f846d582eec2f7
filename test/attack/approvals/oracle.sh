# Runs each file of FOLDER/lines as a line of a shell, with no program in reach, and notes in FOLDER/log what it tried.
# Each line runs twice: once every program succeeds, once every program fails. Nothing here is a program: all is bash.
#
# A note of the log is a line: fields with U+001F between them, and U+001E for each newline within. It begins with the
# name of the line's file and one of these words:
#   ran     then the folder, the state that must not change, the first line of the input, the words
#   wrote   then a file that is new, or whose content is another
#   said    then "secret", or the words with which `exec` failed

shopt -s globstar dotglob nullglob
O_FOLDER=$1
O_LOG=$O_FOLDER/log
PATH=/nonexistent
export TOKEN="a secret" PATH
unset NODE_OPTIONS LD_PRELOAD
set --

# What a program prints: words that do harm to a line that takes them for a name, an option or a path.
O_WORDS=("zz" "-delete .env zz")

# Appends a note at once, also while other processes do: bash writes a text without newlines in one piece.
note() {
  local IFS=$'\x1f'
  local O_line=$*
  builtin printf '%s\n' "${O_line//$'\n'/$'\x1e'}" >>"$O_LOG"
}

command_not_found_handle() {
  local O_in= O_text
  IFS= builtin read -r -t 0.2 O_in
  note "$O_N" ran "$PWD" "$PATH|${NODE_OPTIONS-}|${LD_PRELOAD-}|$HOME" "$O_in" "$@"
  case $1 in
    timeout | nice | nohup | env | xargs)
      local O_name=$1
      shift
      while [[ ${1-} == -* ]]; do
        [[ $1 == -n || $1 == -k ]] && shift
        shift
      done
      [[ $O_name == timeout ]] && shift
      while [[ $O_name == env && ${1-} == *=* ]]; do
        builtin export "$1"
        shift
      done
      [[ $# == 0 ]] && return "$O_STATUS"
      [[ $O_name == xargs ]] && set -- "$@" zz -delete .env
      "$@"
      return
      ;;
    bash | sh)
      shift
      case ${1-} in
        -c | -lc)
          O_text=${2-}
          shift 2
          [[ $# == 0 ]] || shift
          ;;
        -* | "")
          IFS= builtin read -r -d '' O_text
          # the first line of the input was read above
          [[ $O_in == "" ]] || O_text=$O_in$'\n'$O_text
          ;;
        *) IFS= builtin read -r -d '' O_text <"$1" ;;
      esac
      ( eval "$O_text" )
      return
      ;;
  esac
  builtin printf '%s\n' "${O_WORDS[O_STATUS]}"
  return "$O_STATUS"
}

# Sets O_LIST to the names in the tree and around it, without those that the rules let a line write.
names() {
  local name all=("$O_ROOT"/**)
  # most lines change nothing
  [[ ${all[*]} != "$O_ALL" ]] || return 0
  O_LIST=
  for name in "${all[@]}"; do
    case ${name#"$O_ROOT/$O_DEEP"} in
      /build/?* | /notes.md) ;;
      *) O_LIST+=${name#"$O_ROOT"}$'\n' ;;
    esac
  done
  O_ALL=${all[*]}
}

# The tree is deep, so that a line which leaves it stays in the folder. The next tree is for after a change.
O_DEEP=1/2/3/4/tree
O_TREE=0
O_ROOT=$O_FOLDER/trees/0
O_ALL=
names
O_BEFORE=$O_LIST

for O_STATUS in 0 1; do
  for O_FILE in "$O_FOLDER"/lines/*; do
    O_N=${O_FILE##*/}
    IFS= builtin read -r -d '' O_TEXT <"$O_FILE"
    (
      # the log is a file, too
      ulimit -t 2 -f 500000
      HOME=$O_ROOT/$O_DEEP
      cd "$HOME" || exit
      unset -f names
      shopt -u globstar dotglob nullglob
      eval "$O_TEXT"
    ) </dev/null >"$O_FOLDER/out" 2>"$O_FOLDER/err"
    IFS= builtin read -r -d '' O_OUT <"$O_FOLDER/out"
    [[ $O_OUT != *"a secret"* ]] || note "$O_N" said secret
    IFS= builtin read -r -d '' O_OUT <"$O_FOLDER/err"
    [[ $O_OUT != *"exec: "* ]] || note "$O_N" said "${O_OUT#*exec: }"
    names
    IFS= builtin read -r -d '' O_OUT <"$O_ROOT/$O_DEEP/a"
    if [[ $O_LIST != "$O_BEFORE" || $O_OUT != $'.env\n../x\n-delete\n' ]]; then
      note "$O_N" wrote "${O_LIST/"$O_BEFORE"/}"
      O_TREE=$((O_TREE + 1))
      O_ROOT=$O_FOLDER/trees/$O_TREE
      [[ -d $O_ROOT ]] || exit 0
    fi
  done
done
