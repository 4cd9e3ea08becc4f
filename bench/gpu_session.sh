#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, in one go: tests, sanitizers, all builds of all samples, the sweep, CTE's policies, graph
# algorithms. Tables come last.
#
#   bash bench/gpu_session.sh [FOLDER]     FOLDER takes the JSON results, the figures and the logs (default: a new one)
#
# PYTHON names an interpreter that has cccopt's dependencies, PyCUDA and pytest (default: python3), STEPS what to do (default:
# all of them), SAMPLES the samples (default: all of CCC's), CTE the workloads of CTE and GRAPHS the graph algorithms (default: all
# of them), CTE_OPTIONS and GRAPHS_OPTIONS what else `cccopt bench cte` and `bench graphs` are told, such as inputs, LIMIT the
# seconds that a step may take. Exit status 1 if any step failed; the later ones run all the same.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
export python=${PYTHON:-python3}
export results=${1:-$(mktemp -d)}
steps=${STEPS:-tests once sanitizers ccc sensitivity cte_sanitizers cte graphs_sanitizers graphs}
samples=${SAMPLES:-$("$python" -c 'from cccopt.harness.suite import samples_of_ccc; print(*samples_of_ccc())')}
cte=${CTE:-$("$python" -c 'from cccopt.harness.cte.workload import names; print(*names())')}
graphs=${GRAPHS:-$("$python" -c 'from cccopt.harness.graphs.workload import names; print(*names())')}
mkdir -p "$results/cubins" "$results/passed" "$results/failed" "$results/none"

step() {  # step NAME COMMAND...: runs it with a time limit, keeps its log, and tells what did not pass in a few lines
  local name=$1 start=$SECONDS status outcome=passed
  shift
  timeout "${LIMIT:-420}" "$@" >"$results/$name.log" 2>&1
  status=$?
  if grep -aq 'no such build' "$results/$name.log"; then outcome=none; elif [ "$status" -ne 0 ]; then outcome=failed; fi
  echo "$((SECONDS - start)) s" >"$results/$outcome/$name"
  case $outcome in
    none) printf 'none    %s\n' "$(grep -am 1 'no such build' "$results/$name.log" | cut -c 1-140)" ;;
    failed)
      printf 'FAILED  %s: status %s after %s s\n%s\n' "$name" "$status" $((SECONDS - start)) \
        "$(grep -av '^ *$' "$results/$name.log" | tail -n 3 | cut -c 1-140 | sed 's/^/        /')"
      ;;
  esac
}
once() {  # once SAMPLE BUILD...: the builds run once at size small, results checked
  local sample=$1
  shift
  "$python" -m cccopt.harness.once "$sample" "$@" --cubins "$results/cubins"
}
once_cte() {  # once_cte WORKLOAD: all its builds run once on its first input at size small, results checked
  "$python" -m cccopt.harness.once "$1" --input "$(first_input "$1")" --cubins "$results/cubins"
}
first_input() {
  "$python" -c 'import sys; from cccopt.harness.cte.workload import load; print(load(sys.argv[1]).module.INPUTS[0])' "$1"
}
sanitize() {  # sanitize TOOL NAME ARGUMENTS...
  under "$1" "$2" "$python" -m cccopt.harness.once "${@:3}" --cubins "$results/cubins"
}
under() {  # under TOOL NAME COMMAND...: hazards within a warp are warnings to racecheck, and failures to us
  local log="$results/$1-$2.txt"
  compute-sanitizer --tool "$1" --target-processes all --error-exitcode 9 --print-limit 5 "${@:3}" >"$log" 2>&1
  local status=$?
  cat "$log"
  if grep -aE 'SUMMARY: .*[1-9][0-9]* (error|warning|hazard)' "$log"; then return 9; fi
  return "$status"
}
sanitize_cte() { sanitize "$1" "cte-$2" "$2" --input "$(first_input "$2")"; }
sanitize_graphs() {  # sanitize_graphs TOOL ALGORITHM: all of its forms on two graphs at size small
  under "$1" "graphs-$2" "$python" -c "$main" bench graphs "$2" --on gpu --size small --input rmat --input road
}
export main='import sys; from cccopt.cli.main import main; sys.exit(main())'
export -f step once once_cte first_input sanitize under sanitize_cte sanitize_graphs
run() { step "$1" bash -c "${*:2}"; }  # timeout starts programs, not functions
export -f run
side_by_side() { xargs -P "$1" -I{} bash -c '{}'; }  # commands from standard input, so many at a time
group() {  # group NAME PATTERN: how many of the steps passed
  local passed failed
  passed=$(find "$results/passed" -name "$2" | wc -l) failed=$(find "$results/failed" -name "$2" | wc -l)
  echo "$1: $passed passed, $failed failed, after $SECONDS s"
}
wanted() { [[ " $steps " == *" $1 "* ]]; }

cccopt() { "$python" -c "$main" "$@"; }
export -f cccopt

# What is not timed shares the machine.
if wanted tests; then run tests '"$python" -m pytest -q -m gpu' & fi
if wanted once || wanted sanitizers; then
  # This also makes the builds that the sanitizers look at. A build that is refused ends its own line only.
  for sample in $samples sensitivity; do
    for build in always auto handwritten marked; do echo "run once-$sample-$build once $sample $build"; done
  done | side_by_side 8
  group 'builds run once' 'once-*'
fi
if wanted sanitizers; then
  for tool in memcheck racecheck synccheck; do
    for sample in $samples sensitivity; do echo "run $tool-$sample sanitize $tool $sample $sample always"; done
  done | side_by_side 6
  group 'sanitizers' '*check-*'
fi
if wanted cte_sanitizers; then
  # As above, the first runs make the builds.
  for workload in $cte; do echo "run once-cte-$workload once_cte $workload"; done | side_by_side 8
  group "CTE's workloads run once" 'once-cte-*'
  for tool in memcheck racecheck synccheck; do
    for workload in $cte; do echo "run $tool-cte-$workload sanitize_cte $tool $workload"; done
  done | side_by_side 6
  group "CTE's sanitizers" '*check-cte-*'
fi
if wanted graphs_sanitizers; then
  for tool in memcheck racecheck synccheck; do
    for algorithm in $graphs; do echo "run $tool-graphs-$algorithm sanitize_graphs $tool $algorithm"; done
  done | side_by_side 6
  group "graph algorithms' sanitizers" '*check-graphs-*'
fi
wait
if wanted tests; then
  group 'tests' tests
  tail -n 1 "$results/tests.log"
fi

# shellcheck disable=SC2086
if wanted ccc; then run ccc "cccopt bench ccc $samples --on gpu --json $results/ccc.json"; fi
figures=
if "$python" -c 'import matplotlib' 2>/dev/null; then figures="--figures $results"; fi
if wanted sensitivity; then
  run sensitivity "cccopt bench sensitivity --on gpu --json $results/sensitivity.json $figures"
fi
if wanted cte; then
  # shellcheck disable=SC2086
  run cte "cccopt bench cte $cte --on gpu --json $results/cte.json $figures ${CTE_OPTIONS:-}"
fi
if wanted graphs; then
  # shellcheck disable=SC2086
  run graphs "cccopt bench graphs $graphs --on gpu --json $results/graphs.json ${GRAPHS_OPTIONS:-}"
fi
for table in ccc sensitivity cte graphs; do
  if wanted "$table"; then
    echo
    sed 's/ *$//' "$results/$table.log"
  fi
done
echo "results: $results; took $SECONDS s"
failed=$(ls "$results/failed")
if [ -n "$failed" ]; then
  echo "failed:" $failed
  exit 1
fi
