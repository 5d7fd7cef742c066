# shellcheck shell=bash
# Sourced by ./dev: runs the steps of a tier one after the other.
#
#     step "build" ninja -C build      # "✓ build  12 s", with progress while it runs
#     need_steps                       # stop here if a step failed: the next ones build on it
#     finish_steps                     # the logs of failed steps, then the summary
#
# A step that fails does not stop the tier. Everything it prints goes to build/logs/NAME.log.

bold='' red='' green='' dim='' plain=''
if [ -t 2 ]; then bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' dim=$'\e[2m' plain=$'\e[0m'; fi

steps_passed=0
steps_failed=()
step_group=''  # the process group of the step that is running

step_log() { printf 'build/logs/%s.log' "${1//[^a-z0-9-]/-}"; }

# The last thing a log says, short enough for one line of a terminal.
last_words() {
  tail -c 2000 "$1" | tr '\r' '\n' | sed -e 's/\x1b\[[0-9;]*m//g' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c 1-70
}

# Shows how far a step is: every second on a terminal, else every half minute.
show_progress() {  # name log start process
  local name=$1 log=$2 start=$3 process=$4 every=30 shown=0 seconds
  [ -t 2 ] && every=1
  while kill -0 "$process" 2>/dev/null; do
    sleep 0.2
    seconds=$((SECONDS - start))
    if [ $((seconds - shown)) -lt "$every" ]; then continue; fi
    shown=$seconds
    if [ -t 2 ]; then
      printf '\r\e[K  %s  %s%d s  %s%s' "$name" "$dim" "$seconds" "$(last_words "$log")" "$plain" >&2
    else
      printf '  ... %s, %d s: %s\n' "$name" "$seconds" "$(last_words "$log")" >&2
    fi
  done
  if [ -t 2 ]; then printf '\r\e[K' >&2; fi
}

step() {  # name command...
  local name=$1 start=$SECONDS status=0 log
  log=$(step_log "$1")
  shift
  mkdir -p build/logs
  # Job control gives the step a process group of its own, which stop_step can end as a whole.
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  step_group=$!
  set +m
  show_progress "$name" "$log" "$start" "$step_group"
  wait "$step_group" || status=$?
  step_group=''
  if [ "$status" = 0 ]; then
    steps_passed=$((steps_passed + 1))
    printf '%s✓%s %-28s %4d s  %s\n' "$green" "$plain" "$name" $((SECONDS - start)) \
      "$dim$(grep -E '^(Ran [0-9]+ tests|100% tests passed|summary: )' "$log" | tail -n 1)$plain" >&2
  else
    steps_failed+=("$name")
    printf '%s✗ %-28s %4d s  FAILED%s\n' "$red" "$name" $((SECONDS - start)) "$plain" >&2
  fi
}

need_steps() { [ ${#steps_failed[@]} = 0 ] || finish_steps; }

finish_steps() {
  local name
  for name in "${steps_failed[@]}"; do
    printf '\n%s== %s failed; the end of %s:%s\n' "$bold" "$name" "$(step_log "$name")" "$plain" >&2
    tail -n 80 "$(step_log "$name")" >&2
  done
  printf '\n%d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60))
  printf '%d passed, %d failed\n' "$steps_passed" ${#steps_failed[@]}
  [ ${#steps_failed[@]} = 0 ]
  exit
}

# An interrupted tier ends the running step, waits until it has cleaned up, and leaves.
stop_step() {
  trap '' INT TERM HUP
  if [ -n "$step_group" ]; then
    kill -TERM -- "-$step_group" 2>/dev/null
    wait "$step_group" 2>/dev/null
  fi
  printf '\n%sinterrupted%s\n' "$red" "$plain" >&2
  exit 130
}
trap stop_step INT TERM HUP
