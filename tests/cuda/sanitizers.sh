#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernels on a GPU under compute-sanitizer: accesses outside (memcheck), races in shared memory (racecheck), barriers (synccheck).
#   sanitizers.sh TEST_CUDA_DEVICE TEST_AGREE_CUDA     Without a GPU or the sanitizer it is skipped: status 77.
# Cases that take longer than EINC_SANITIZER_SECONDS fail.
set -euo pipefail
device=$1 programs=$2
export EINC_TEST_GPU=real
# Our own kernels, not those of a plug-in beside the executables: under compute-sanitizer an empty variable counted as none.
export EINC_ATTENTION_PLUGIN=none
"$device" --test-case="integers wrap" >/dev/null || {
  status=$?
  [ $status -ne 77 ] || "$device" | tail -n 1
  exit $status
}
sanitizer=$(command -v compute-sanitizer || true)
for folder in "${CUDA_HOME:-/usr/local/cuda}/bin" /usr/local/cuda/compute-sanitizer; do
  [ -n "$sanitizer" ] || [ ! -x "$folder/compute-sanitizer" ] || sanitizer=$folder/compute-sanitizer
done
if [ -z "$sanitizer" ]; then
  echo "Skipped: compute-sanitizer is not installed"
  exit 77
fi
failed=0
seconds=${EINC_SANITIZER_SECONDS:-240}  # for each tool and set of cases
check() {  # TOOL PROGRAM TEST_CASES
  local status=0
  timeout "$seconds" "$sanitizer" --tool "$1" --error-exitcode 99 "$2" --test-case="$3" >"$log" 2>&1 || status=$?
  if [ $status -eq 0 ]; then
    echo "$1, $3: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -n 1)"
  elif grep -q 'Device not supported' "$log"; then
    echo "Skipped: compute-sanitizer does not support this device"
    exit 77
  elif [ $status -eq 124 ]; then
    failed=1
    echo "$1, $3: cut after $seconds s"
  else
    failed=1
    echo "$1, $3: status $status"
    grep -v '^=========  *in ' "$log" | tail -n 40
  fi
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for tool in memcheck racecheck synccheck; do
  check $tool "$device" "*shared*,*sums*,*faults*,*tiles*,*matrices*"
  for cases in "cuda: a norm's backward gives*" "cuda: rows that start anywhere*" "cuda: a classifier's gradient*" \
    "cuda: attention, small floats*" "cuda: the examples"; do
    check $tool "$programs" "${cases//, /\\, }"
  done
done
exit $failed
