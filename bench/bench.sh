#!/bin/sh
# make bench: kernels, tokenizer and a model. With PEER also a comparison with llama.cpp on the same file: of speed,
# if PEER is the folder of llama-bench; of logits, if it is bench/peer_logits.c linked against libllama.
set -eu
model=${1:-}
peer=${2:-}
[ -n "$model" ] || model=build/models/tiny-e-q4_k_m.gguf
echo "== kernels"
build/bench/bench_kernels
echo
echo "== tokenizer ($model)"
build/bench/bench_tokenizer "$model" docs/DESIGN.md
echo
echo "== model ($model)"
build/bezel bench "$model"
if [ -d "$peer" ]; then
    echo
    echo "== speed compared with llama.cpp ($model)"
    /usr/bin/python3 bench/compare_speed.py "$model" --peer "$peer"
elif [ -n "$peer" ]; then
    echo
    echo "== compared with llama.cpp ($model)"
    /usr/bin/python3 bench/compare_peer.py "$model" --peer "$peer" --fast
fi
