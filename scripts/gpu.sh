#!/usr/bin/env bash
# Measures Gradus on the GPU of this machine beside JAX on the same plugin, and prints the section that BENCHMARKS.md has of it.
#   scripts/gpu.sh            builds the benchmark first
#   scripts/gpu.sh BINARY     takes one that was built elsewhere: such machines may have no Rust and no network
# Python with JAX and its CUDA plugin is `python3`, or what GRADUS_BENCH_PYTHON says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
binary=${1:-}
if [ -z "$binary" ]; then
  cargo build --release -p gradus-bench
  binary=target/release/gradus-bench
fi
export GRADUS_BENCH_PYTHON=${GRADUS_BENCH_PYTHON:-python3} GRADUS_BENCH_PEERS=${GRADUS_BENCH_PEERS:-$PWD/crates/gradus-bench/peers}
exec "$binary" device cuda
