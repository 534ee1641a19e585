#!/usr/bin/env bash
# run.sh [--update] [--path DIR] FILE...: replays the commands in text files and compares what they print.
#
#   # A comment, directly above its command.
#   $ assay chips nonsense            one shell command; a backslash at the end continues it on the next line
#   error: unknown chip "nonsense"    stdout and stderr together, exactly
#   ...                               any number of lines, also none
#   [exit 1]                          if the command fails
#
# A blank line separates cases (output may have blank lines too; those at its end do not count). The commands of one
# file share a directory that is empty at first, or holds the files of NAME/ beside NAME.test. In a Markdown file only
# the blocks that open with ```console are replayed. `assay` is taken from DIR, or else from the release build;
# --update writes what the commands really print back into the files.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

update=false path=$top/build/release files=()
while (($#)); do
  case $1 in
    --update) update=true ;;
    --path) path=$(cd "$2" && pwd) || exit 2; shift ;;
    -*) echo "usage: run.sh [--update] [--path DIR] FILE..." >&2; exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 updated=0

# Commands see a plain terminal-less environment and no settings of whoever runs them.
unset NO_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS LINES CDPATH BASH_ENV ENV
for name in $(compgen -e ASSAY_) $(compgen -e XDG_); do unset "$name"; done
export PATH=$path:$PATH LC_ALL=C.UTF-8 TERM=dumb HOME=$scratch/home
mkdir "$HOME"

# Does array $1 (lines, "..." for any number of them) match array $2?
matches() {
  local -n pattern=$1 text=$2
  local p=0 t=0 star=-1 mark=0
  while ((t < ${#text[@]})); do
    if ((p < ${#pattern[@]})) && [[ ${pattern[p]} == ... ]]; then
      star=$((p++)) mark=$t
    elif ((p < ${#pattern[@]})) && [[ ${pattern[p]} == "${text[t]}" ]]; then
      p=$((p + 1)) t=$((t + 1))
    elif ((star >= 0)); then
      p=$((star + 1)) mark=$((mark + 1)) t=$mark
    else
      return 1
    fi
  done
  while ((p < ${#pattern[@]})) && [[ ${pattern[p]} == ... ]]; do p=$((p + 1)); done
  ((p == ${#pattern[@]}))
}

# Removes blank lines at the end of array $1.
trim() {
  local -n trimmed=$1
  while ((${#trimmed[@]})) && [[ -z ${trimmed[-1]} ]]; do unset 'trimmed[-1]'; done
}

print_lines() { (($# == 0)) || printf '%s\n' "$@"; }

# Does a case start at lines[$1]: a command at the start of its section, or below a blank line and perhaps comments?
starts_case() {
  local i=$1
  [[ ${lines[i]} == '$ '* ]] || return 1
  while ((--i >= first)); do
    [[ -z ${lines[i]} ]] && return 0
    [[ ${lines[i]} == '#'* ]] || return 1
  done
}

# Replays lines[first..last), a section of $file; appends what the file should hold to `kept`.
replay_section() {
  local first=$1 last=$2 i=$1 next status number command
  while ((i < last)) && ! starts_case "$i"; do kept+=("${lines[i++]}"); done
  while ((i < last)); do
    number=$((i + 1)) command=${lines[i]#'$ '}
    kept+=("${lines[i++]}")
    while [[ $command == *\\ ]] && ((i < last)); do
      command+=$'\n'${lines[i]}
      kept+=("${lines[i++]}")
    done

    # The next case starts with its comments; between the two lie the expected output and blank lines.
    next=$i
    while ((next < last)) && ! starts_case "$next"; do next=$((next + 1)); done
    if ((next < last)); then
      while ((next > i)) && [[ ${lines[next - 1]} == '#'* ]]; do next=$((next - 1)); done
    fi
    expected=("${lines[@]:i:next-i}")
    trim expected

    (cd "$directory" && exec bash -c "$command") </dev/null >"$scratch/output" 2>&1
    status=$?
    mapfile -t actual <"$scratch/output"
    trim actual
    ((status == 0)) || actual+=("[exit $status]")

    if matches expected actual; then
      passed=$((passed + 1))
      kept+=("${lines[@]:i:next-i}")
    elif $update; then
      updated=$((updated + 1))
      ((${#actual[@]} == 0)) || kept+=("${actual[@]}")
      kept+=("${lines[@]:i+${#expected[@]}:next-i-${#expected[@]}}")
    else
      failed=$((failed + 1))
      printf '%s:%d: $ %s\n' "$file" "$number" "$command"
      diff -u --label expected --label actual <(print_lines "${expected[@]}") <(print_lines "${actual[@]}")
    fi
    i=$next
    while ((i < last)) && ! starts_case "$i"; do kept+=("${lines[i++]}"); done
  done
}

for file in "${files[@]}"; do
  mapfile -t lines <"$file" || exit 2
  directory=$(mktemp -d "$scratch/run.XXXXXX")
  kept=() before=$updated
  if [[ $file == *.md ]]; then
    for ((at = 0; at < ${#lines[@]}; ++at)); do
      kept+=("${lines[at]}")
      [[ ${lines[at]} == '```console' ]] || continue
      for ((end = at + 1; end < ${#lines[@]}; ++end)); do [[ ${lines[end]} == '```' ]] && break; done
      replay_section $((at + 1)) "$end"
      at=$((end - 1))
    done
  else
    [[ ! -d ${file%.test} ]] || cp -r "${file%.test}/." "$directory"
    replay_section 0 ${#lines[@]}
  fi
  if ((updated > before)); then print_lines "${kept[@]}" >"$scratch/new" && cat "$scratch/new" >"$file"; fi
done

if $update; then
  echo "$updated updated, $passed unchanged"
else
  echo "$passed passed, $failed failed"
fi
((failed == 0))
