#!/usr/bin/env bash
# run.sh [--update] [--marked] [--path DIR] FILE...: replays the commands in text files and compares what they print.
#
#   # A comment, directly above its command.
#   $ assay chips nonsense            one shell command; a backslash at the end continues it on the next line
#   error: unknown chip "nonsense"    stdout and stderr together, exactly
#   step time  {*}  (ideal 7 ms)      {*} is any text in a line, at least one character; for numbers that a fit moves
#   ...                               any number of lines, also none
#   [exit 1]                          if the command fails
#
# Where the expected text has {*}, runs of blanks count as one, because columns grow with their numbers. A blank line
# separates cases (output may have blank lines too; those at its end do not count). The commands of one file share a
# directory that is empty at first, or holds the files of NAME/ beside NAME.test or NAME.md. In a Markdown file only the blocks that
# open with ```console are replayed. `assay` is taken from DIR, or else from the release build.
#
# --update writes what the commands really print back into the files; lines, {*} and ... that still match stay.
# --marked replays only the cases with a line "# sanitize" in their comment: few, and between them they reach every verb,
# format, reader and search. The sanitizer build runs these. What they need from earlier commands, they do themselves.
shopt -s extglob
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

update=false marked=false path=$top/build/release files=()
while (($#)); do
  case $1 in
    --update) update=true ;;
    --marked) marked=true ;;
    --path) path=$(cd "$2" && pwd) || exit 2; shift ;;
    -*) echo "usage: run.sh [--update] [--marked] [--path DIR] FILE..." >&2; exit 2 ;;
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

# Does the line $1, perhaps with {*}, match the line $2? $patterns says whether the expected text has {*}.
line_matches() {
  [[ $1 == "$2" ]] && return 0
  $patterns || return 1
  local pattern=$1 rest=$2 part
  while [[ $pattern == *'  '* ]]; do pattern=${pattern//'  '/ }; done
  while [[ $rest == *'  '* ]]; do rest=${rest//'  '/ }; done
  if [[ $pattern != *'{*}'* ]]; then [[ $pattern == "$rest" ]]; return; fi
  part=${pattern%%'{*}'*}
  [[ $rest == "$part"?* ]] || return 1
  rest=${rest#"$part"?} pattern=${pattern#*'{*}'}
  while [[ $pattern == *'{*}'* ]]; do
    part=${pattern%%'{*}'*}
    [[ $rest == *"$part"?* ]] || return 1
    rest=${rest#*"$part"?} pattern=${pattern#*'{*}'}
  done
  [[ $rest == *"$pattern" ]]
}

# Does array $1 (lines, "..." for any number of them) match array $2?
matches() {
  local -n pattern_lines=$1 text=$2
  local p=0 t=0 star=-1 mark=0 end=${#pattern_lines[@]}
  while ((t < ${#text[@]})); do
    if ((p < end)) && [[ ${pattern_lines[p]} == ... ]]; then
      star=$((p++)) mark=$t
    elif ((p < end)) && line_matches "${pattern_lines[p]}" "${text[t]}"; then
      p=$((p + 1)) t=$((t + 1))
    elif ((star >= 0)); then
      p=$((star + 1)) mark=$((mark + 1)) t=$mark
    else
      return 1
    fi
  done
  while ((p < end)) && [[ ${pattern_lines[p]} == ... ]]; do p=$((p + 1)); done
  ((p == end))
}

# Sets `merged` to `actual` with the lines of `expected` that still match and with its "...". Lines stand for each other
# that begin alike up to their first number or {*}.
merge() {
  local e=0 a=0 line key pattern change old=() new=() old_keys=("${expected[@]%%@([0-9]|'{*}')*}") new_keys=()
  local -A known=()
  for key in "${old_keys[@]}"; do known[.$key]=1; done
  for line in "${actual[@]}"; do
    key=${line%%[0-9]*}
    if [[ -z ${known[.$key]-} ]]; then
      for pattern in "${expected[@]}"; do
        if line_matches "$pattern" "$line"; then key=${pattern%%@([0-9]|'{*}')*}; break; fi
      done
    fi
    new_keys+=("$key")
  done
  merged=()
  while read -r change; do
    case $change in
      old) old+=("${expected[e++]}") ;;
      new) new+=("${actual[a++]}") ;;
      both)
        merge_differing
        if line_matches "${expected[e]}" "${actual[a]}"; then merged+=("${expected[e]}"); else merged+=("${actual[a]}"); fi
        e=$((e + 1)) a=$((a + 1))
        ;;
    esac
  done < <(diff -d --old-line-format=$'old\n' --new-line-format=$'new\n' --unchanged-line-format=$'both\n' \
    <(print_lines "${old_keys[@]}") <(print_lines "${new_keys[@]}"))
  merge_differing
  matches merged actual || merged=("${actual[@]}")
}

# Of the lines `old` that became `new`, "..." stays, with as many lines before and behind it as it had.
merge_differing() {
  local before=${#new[@]} after=0 last=-1 i
  for i in "${!old[@]}"; do
    [[ ${old[i]} == ... ]] || continue
    ((last >= 0)) || before=$i
    last=$i
  done
  if ((last < 0)); then
    merged+=("${new[@]}")
  else
    after=$((${#old[@]} - 1 - last))
    ((before + after <= ${#new[@]})) || before=${#new[@]} after=0
    merged+=("${new[@]:0:before}" ... "${new[@]:${#new[@]}-after:after}")
  fi
  old=() new=()
}

# Removes blank lines at the end of array $1.
trim() {
  local -n trimmed=$1
  while ((${#trimmed[@]})) && [[ -z ${trimmed[-1]} ]]; do unset 'trimmed[-1]'; done
}

print_lines() { (($# == 0)) || printf '%s\n' "$@"; }

# Replays lines[first..last), a section of $file; appends what the file should hold to `kept`.
replay_section() {
  local first=$1 last=$2 i c next status command comment=$1 fresh=true begins=() commands=()

  # A case begins at the start of the section or below a blank line, with comments or with its command.
  for ((i = first; i < last; ++i)); do
    case ${lines[i]} in
      '') fresh=true comment=$((i + 1)) ;;
      '#'*) ;;
      '$ '*) if $fresh; then begins+=("$comment") commands+=("$i") fresh=false; fi ;;
      *) fresh=false ;;
    esac
  done
  begins+=("$last")

  kept+=("${lines[@]:first:begins[0]-first}")
  for c in "${!commands[@]}"; do
    next=${begins[c + 1]}
    if $marked && ! is_marked "${begins[c]}" "${commands[c]}"; then
      kept+=("${lines[@]:begins[c]:next-begins[c]}")
      continue
    fi
    i=${commands[c]} command=${lines[commands[c]]#'$ '}
    while [[ $command == *\\ ]] && ((i + 1 < next)); do command+=$'\n'${lines[++i]}; done
    i=$((i + 1))
    kept+=("${lines[@]:begins[c]:i-begins[c]}")
    expected=("${lines[@]:i:next-i}")
    trim expected
    patterns=false
    [[ ${expected[*]} != *'{*}'* ]] || patterns=true

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
      merge
      kept+=("${merged[@]}" "${lines[@]:i+${#expected[@]}:next-i-${#expected[@]}}")
    else
      failed=$((failed + 1))
      printf '%s:%d: $ %s\n' "$file" $((commands[c] + 1)) "$command"
      merge
      diff -u --label expected --label actual <(print_lines "${expected[@]}") <(print_lines "${merged[@]}")
    fi
  done
}

# Is there a mark among the comments lines[$1..$2)?
is_marked() {
  local i
  for ((i = $1; i < $2; ++i)); do
    [[ ${lines[i]} != '# sanitize' ]] || return 0
  done
  return 1
}

for file in "${files[@]}"; do
  mapfile -t lines <"$file" || exit 2
  directory=$(mktemp -d "$scratch/run.XXXXXX")
  kept=() before=$updated
  [[ ! -d ${file%.*} ]] || cp -rL "${file%.*}/." "$directory"
  if [[ $file == *.md ]]; then
    for ((at = 0; at < ${#lines[@]}; ++at)); do
      kept+=("${lines[at]}")
      [[ ${lines[at]} == '```console' ]] || continue
      for ((end = at + 1; end < ${#lines[@]}; ++end)); do [[ ${lines[end]} == '```' ]] && break; done
      replay_section $((at + 1)) "$end"
      at=$((end - 1))
    done
  else
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
