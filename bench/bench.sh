#!/bin/sh
# make bench: kernels, tokenizer and a model. With PEER (bench/peer_logits.c linked against libllama) also a
# comparison of logits on the same file.
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
if [ -n "$peer" ]; then
    echo
    echo "== compared with llama.cpp ($model)"
    /usr/bin/python3 bench/compare_peer.py "$model" --peer "$peer" --fast
fi
