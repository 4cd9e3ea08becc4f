#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, in one go: tests, sanitizers, before/after at full size. The tables come last.
#
#   bash bench/gpu_session.sh [FOLDER]     FOLDER takes the JSON results and the logs (default: a new one)
#
# PYTHON names an interpreter that has cccopt's dependencies, PyCUDA and pytest (default: python3). Exit status 1 if
# any step failed; the later ones run all the same.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
python=${PYTHON:-python3}
results=${1:-$(mktemp -d)}
mkdir -p "$results"
failed=()

step() {  # step NAME COMMAND...: runs it, shows the end of what it said, remembers whether it failed
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$results/$name.log" 2>&1; then
    echo "ok      $name ($((SECONDS - start)) s)"
  else
    echo "FAILED  $name ($((SECONDS - start)) s)"
    failed+=("$name")
    tail -n 25 "$results/$name.log" | sed 's/^/        /'
  fi
}

ccc_nvcc() { "$python" -c 'import sys; from cccopt.cli.nvcc import main; sys.exit(main())' "$@"; }
cccopt() { "$python" -c 'import sys; from cccopt.cli.main import main; sys.exit(main())' "$@"; }

step tests "$python" -m pytest -q -m gpu

for sample in bfs sensitivity; do
  step "build-$sample" ccc_nvcc --ccc=always -O3 -arch=native -lineinfo "samples/$sample/$sample.cu" -o "$results/$sample"
done
sanitize() {  # sanitize TOOL COMMAND...: hazards within a warp are warnings to racecheck, and failures to us
  compute-sanitizer --tool "$1" --error-exitcode 1 --print-limit 5 ${2:+"${@:2}"} | tee "$results/sanitizer.log"
  [ "${PIPESTATUS[0]}" -eq 0 ] && ! grep -E 'SUMMARY: .*[1-9][0-9]* (error|warning|hazard)' "$results/sanitizer.log"
}
for tool in memcheck racecheck synccheck; do
  step "$tool-bfs" sanitize "$tool" "$results/bfs" 15 8 1
  step "$tool-sensitivity" sanitize "$tool" "$results/sensitivity" 18 4
done
rm -f "$results/bfs" "$results/sensitivity"

for sample in bfs sensitivity; do
  step "bench-$sample" cccopt bench "$sample" --on gpu --size full --json "$results/$sample.json"
done
for sample in bfs sensitivity; do
  echo
  cat "$results/bench-$sample.log"
done
echo "results: $results"
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
