/**
 * `agentd completions SHELL`: prints the script that completes verbs, flags and names.
 *
 * Verbs and flags are part of the script, so completing them starts no process. For names of agents, goals, calls and
 * so on, the script runs `agentd complete` (`Complete`), which answers within half a second or prints nothing. The
 * scripts for bash, zsh and fish use the same table and the same method: they read the words up to the cursor, and
 * offer completions for the word at the cursor.
 */
import { Console, Effect } from "effect"
import { type Command, Completions } from "effect/cli"
import { KINDS, type NameKind } from "./Complete.ts"
import { modesOf } from "./Renamed.ts"
import { quoted } from "../../config/ShellWord.ts"

export type Shell = "bash" | "zsh" | "fish"

/** Completions for an argument or flag: names of a kind, files, fixed words (`=a,b`), or none (`-`: any text). */
type Offer = NameKind | "files" | "-" | `=${string}`

interface Flag {
  readonly names: ReadonlyArray<string>
  readonly is: string
  /** Completions for the flag's value; undefined if the flag has no value. */
  readonly takes: Offer | undefined
}

/** A command, with everything that can be completed after it. */
interface Entry {
  /** The words of the command, separated by spaces. */
  readonly path: string
  readonly verbs: ReadonlyArray<{ readonly name: string; readonly is: string }>
  readonly flags: ReadonlyArray<Flag>
  readonly args: ReadonlyArray<Offer>
  /** True if the last argument can be repeated. */
  readonly repeats: boolean
}

const BY_NAME: { readonly [name: string]: Offer } = {
  AGENT: "agent",
  NAME: "name",
  PROJECT: "project",
  conversation: "project",
  parent: "agent",
  plate: "session",
  file: "files",
  what: "project"
}
/** Exceptions from `BY_NAME`: arguments that name a new item, or that have another meaning. */
const APART: { readonly [place: string]: Offer } = {
  "channel new channel": "-",
  "project rename name": "-",
  "spawn name": "-",
  "start name": "-"
}

type Modes = ReadonlyArray<Completions.CommandDescriptor>

const isKind = (name: string): name is NameKind => KINDS.some((kind) => kind === name)

const offerOf = (
  path: string,
  { name, type }: { readonly name: string; readonly type: Completions.FlagType | Completions.ArgumentType }
): Offer => {
  if (type._tag === "Choice") return `=${type.values.join(",")}`
  if (type._tag === "Path") return "files"
  return APART[`${path} ${name}`] ?? BY_NAME[name] ?? (isKind(name) ? name : "-")
}

/** The entries of a command and its subcommands. A verb with modes has the flags of all its modes. */
const entriesOf = (command: Completions.CommandDescriptor, above: string, modes: Modes): ReadonlyArray<Entry> => {
  const of = (name: string) => (above === "" ? name : `${above} ${name}`)
  const all = [command, ...modes.filter(({ name }) => modesOf(above).includes(name))].flatMap(({ flags }) => flags)
  const own = [...new Map(all.toReversed().map((flag) => [flag.name, flag])).values()].toReversed()
  const flags = own.map((flag): Flag => ({
    names: [`--${flag.name}`, ...flag.aliases.map((alias) => (alias.startsWith("-") ? alias : `-${alias}`))],
    is: flag.description ?? "",
    takes: flag.type._tag === "Boolean" ? undefined : offerOf(above, flag)
  }))
  const here: Entry = {
    path: above,
    verbs: command.subcommands.map(({ description = "", name }) => ({ name, is: description })),
    flags,
    args: command.arguments.map((argument) => offerOf(above, argument)),
    repeats: command.arguments.at(-1)?.variadic ?? false
  }
  return [here, ...command.subcommands.flatMap((below) => entriesOf(below, of(below.name), modes))]
}

const GLOBAL: ReadonlyArray<Flag> = [
  { names: ["--help", "-h"], is: "Show help", takes: undefined },
  { names: ["--json"], is: "Print JSON", takes: undefined },
  { names: ["--state"], is: "Use this state directory", takes: "files" }
]

const fishQuoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

const namesOf = (flags: ReadonlyArray<Flag>): ReadonlyArray<string> => flags.flatMap(({ names }) => names)
const takesOf = (flags: ReadonlyArray<Flag>) =>
  flags.flatMap(({ names, takes }) => (takes === undefined ? [] : names.map((name) => ({ name, takes }))))

const BASH_WALK = `_agentd_taken() { # the offer for the value of a flag
  local one
  for one in $takes; do [[ $one == "$1":* ]] && taken=\${one#*:} && return 0; done
  return 1
}
_agentd_offer() {
  local one
  case $1 in
    -|'') ;;
    files) compopt -o filenames 2>/dev/null
      while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -f -- "$cur") ;;
    =*) local IFS=,
      for one in \${1#=}; do [[ $one == "$cur"* ]] && COMPREPLY+=("$one"); done ;;
    *) while IFS=$'\\t' read -r one _; do [[ $one == "$cur"* ]] && COMPREPLY+=("$one"); done \\
      < <("\${COMP_WORDS[0]/#\\~/$HOME}" "\${state[@]}" complete "$1" 2>/dev/null </dev/null) ;;
  esac
  return 0
}
_agentd() {
  local cur=\${COMP_WORDS[COMP_CWORD]} path= at=0 i word one taken verbs flags takes args repeats
  local -a state=() places=()
  COMPREPLY=()
  _agentd_of ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    taken=
    if [[ $word == -* ]]; then
      _agentd_taken "$word" || continue
      [[ \${COMP_WORDS[i + 1]} == = ]] && ((i++))
      if ((++i < COMP_CWORD)); then
        [[ $word == --state ]] && state=(--state "\${COMP_WORDS[i]/#\\~/$HOME}")
        continue
      fi
      [[ $cur == = ]] && cur=
      _agentd_offer "$taken"
      return
    fi
    if ((at == 0)) && [[ " $verbs " == *" $word "* ]]; then
      path="$path\${path:+ }$word"
      _agentd_of "$path"
    else
      ((at++))
    fi
  done
  if [[ $cur == -* ]]; then
    for one in $flags; do [[ $one == "$cur"* ]] && COMPREPLY+=("$one"); done
    return
  fi
  if ((at == 0)); then
    for one in $verbs; do [[ $one == "$cur"* ]] && COMPREPLY+=("$one"); done
  fi
  places=($args)
  ((at >= \${#places[@]} && \${#places[@]} > 0)) && [[ -n $repeats ]] && at=$((\${#places[@]} - 1))
  _agentd_offer "\${places[at]}"
}
complete -F _agentd agentd
`

const bash = (entries: ReadonlyArray<Entry>): string => {
  const cases = entries.map(({ args, flags, path, repeats, verbs }) => {
    const all = [...flags, ...GLOBAL]
    return `    ${quoted(path)}) verbs=${quoted(verbs.map(({ name }) => name).join(" "))} flags=${quoted(namesOf(all).join(" "))} takes=${quoted(
      takesOf(all)
        .map(({ name, takes }) => `${name}:${takes}`)
        .join(" ")
    )} args=${quoted(args.join(" "))} repeats=${repeats ? 1 : ""} ;;`
  })
  return `# Completions of agentd for bash. For this shell: eval "$(agentd completions bash)"
_agentd_of() {
  case $1 in
${cases.join("\n")}
    *) return 1 ;;
  esac
}
${BASH_WALK}`
}

const ZSH_WALK = `_agentd_offer() {
  local -a names
  case $1 in
    (-|'') ;;
    (files) _files ;;
    ('='*) names=(\${(s:,:)\${1#=}}); _describe 'word' names ;;
    (*) names=(\${(f)"$(\${~words[1]} $state complete $1 2>/dev/null </dev/null)"})
      names=("\${(@)names//:/\\\\:}")
      names=("\${(@)names/$'\\t'/:}")
      _describe "$1" names ;;
  esac
}
_agentd() {
  local cur=$words[CURRENT] place= word repeats
  local -i at=0 i
  local -a verbs flags args state
  local -A takes
  _agentd_of ''
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ $word == -* ]]; then
      (( \${+takes[$word]} )) || continue
      if (( ++i < CURRENT )); then
        [[ $word == --state ]] && state=(--state \${~words[i]})
        continue
      fi
      _agentd_offer $takes[$word]
      return
    fi
    if (( at == 0 )) && (( \${verbs[(I)$word:*]} )); then
      place="$place\${place:+ }$word"
      _agentd_of $place
    else
      (( at += 1 ))
    fi
  done
  if [[ $cur == -* ]]; then
    _describe -o 'flag' flags
    return
  fi
  (( at == 0 && \${#verbs} )) && _describe 'verb' verbs
  (( \${#args} && at >= \${#args} )) && [[ -n $repeats ]] && at=$(( \${#args} - 1 ))
  (( at < \${#args} )) && _agentd_offer $args[at+1]
}
if [[ $funcstack[1] == _agentd ]]; then _agentd "$@"; else compdef _agentd agentd; fi
`

const zsh = (entries: ReadonlyArray<Entry>): string => {
  const described = (name: string, is: string) => quoted(`${name.replaceAll(":", "\\:")}:${is}`)
  const cases = entries.map(({ args, flags, path, repeats, verbs }) => {
    const all = [...flags, ...GLOBAL]
    const list = (items: ReadonlyArray<string>) => `(${items.join(" ")})`
    return `    (${quoted(path)}) verbs=${list(verbs.map(({ is, name }) => described(name, is)))} flags=${list(all.flatMap(({ is, names }) => names.map((name) => described(name, is))))} takes=${list(takesOf(all).flatMap(({ name, takes }) => [name, quoted(takes)]))} args=${list(args.map(quoted))} repeats=${repeats ? 1 : "''"} ;;`
  })
  return `#compdef agentd
# Completions of agentd for zsh. Put it into a folder of $fpath as _agentd, or: source <(agentd completions zsh)
_agentd_of() {
  case $1 in
${cases.join("\n")}
  esac
}
${ZSH_WALK}`
}

const FISH_WALK = `function __agentd_offer
    set -l state $argv[2..]
    switch "$argv[1]"
        case - ''
        case files
            __fish_complete_path (commandline -ct)
        case '=*'
            string split , (string sub -s 2 -- $argv[1])
        case '*'
            set -l words (commandline -opc)
            eval (string escape -- $words[1]) (string escape -- $state) complete (string escape -- $argv[1]) 2>/dev/null </dev/null
    end
end
function __agentd
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l path
    set -l state
    set -l at 0
    set -l i 2
    __agentd_of ''
    while test $i -le (count $words)
        set -l word $words[$i]
        set i (math $i + 1)
        if string match -q -- '-*' $word
            set -l taken (string match -- "$word:*" $__agentd_takes | string replace -- "$word:" '')
            test -n "$taken"; or continue
            if test $i -le (count $words)
                test $word = --state; and set state --state $words[$i]
                set i (math $i + 1)
                continue
            end
            __agentd_offer $taken $state
            return
        end
        if test $at -eq 0; and contains -- $word (string replace -r '\\t.*' '' -- $__agentd_verbs)
            set -a path $word
            __agentd_of "$path"
        else
            set at (math $at + 1)
        end
    end
    if string match -q -- '-*' $cur
        printf '%s\\n' $__agentd_flags
        return
    end
    test $at -eq 0; and printf '%s\\n' $__agentd_verbs
    set -l places (count $__agentd_args)
    test $places -gt 0; and test $at -ge $places; and test -n "$__agentd_repeats"; and set at (math $places - 1)
    test $at -lt $places; and __agentd_offer $__agentd_args[(math $at + 1)] $state
end
complete -c agentd -f -a '(__agentd)'
`

const fish = (entries: ReadonlyArray<Entry>): string => {
  const cases = entries.map(({ args, flags, path, repeats, verbs }) => {
    const all = [...flags, ...GLOBAL]
    const set = (name: string, items: ReadonlyArray<string>) => `set -g __agentd_${name} ${items.join(" ")}`.trimEnd()
    return [
      `        case ${fishQuoted(path)}`,
      `            ${set(
        "verbs",
        verbs.map(({ is, name }) => fishQuoted(`${name}\t${is}`))
      )}`,
      `            ${set(
        "flags",
        all.flatMap(({ is, names }) => names.map((name) => fishQuoted(`${name}\t${is}`)))
      )}`,
      `            ${set(
        "takes",
        takesOf(all).map(({ name, takes }) => fishQuoted(`${name}:${takes}`))
      )}`,
      `            ${set("args", args.map(fishQuoted))}`,
      `            ${set("repeats", repeats ? ["1"] : [])}`
    ].join("\n")
  })
  return `# Completions of agentd for fish: agentd completions fish > ~/.config/fish/completions/agentd.fish
function __agentd_of
    switch "$argv[1]"
${cases.join("\n")}
    end
end
${FISH_WALK}`
}

const SCRIPTS = { bash, zsh, fish }

/**
 * The commands to complete. `root`: the command with all subcommands; `modes`: verbs with a mode, which `root` does not
 * list.
 */
export interface Whole {
  readonly root: Command.Command.Any
  readonly modes: ReadonlyArray<Command.Command.Any>
}

export const script = ({ modes, root }: Whole, shell: Shell): string =>
  SCRIPTS[shell](
    entriesOf(
      Completions.fromCommand(root),
      "",
      modes.map((mode) => Completions.fromCommand(mode))
    )
  )

export const run = ({ shell, ...whole }: Whole & { readonly shell: Shell }) =>
  Effect.suspend(() => Console.log(script(whole, shell)))
