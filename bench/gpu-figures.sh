#!/bin/sh
# Measures the GPU figures of docs/SPEED.md on synthetic models, which it generates (python3 with numpy; up to 60 GB of disk).
#
#   bench/gpu-figures.sh OUT [PART...]     PART: text prompts media diffusion products adapters kv drafts structured embeddings; default: all
#
# The full output of each run is written to OUT. Environment: BEZEL, the command of the program (build/bezel; with a
# bundle "sh gpu-bundle/run.sh bezel"); BENCH and MEAN, likewise for bench_gpu_kernels and bench_gpu_mean; MODELS, the
# folder of the models (/tmp).
set -eu
cd "$(dirname "$0")/.."
out=$1
shift
bezel=${BEZEL:-build/bezel}
bench=${BENCH:-build/bench/bench_gpu_kernels}
mean=${MEAN:-build/bench/bench_gpu_mean}
models=${MODELS:-/tmp}
mkdir -p "$out"

made() { # made FILE PROGRAM ARGUMENT...: generates the file unless it exists
    file=$models/$1
    shift
    [ -e "$file" ] || python3 "$@" > "$out/made.txt" 2>&1 || { cat "$out/made.txt"; exit 1; }
}

report() { # report NAME COMMAND...: goes on after a failure
    name=$1
    shift
    echo "== $name: $*"
    timeout 120 "$@" > "$out/$name.txt" 2>&1 || echo "ended with status $?"
    head -n 40 "$out/$name.txt"
}

for part in ${*:-text prompts media diffusion products adapters kv drafts structured embeddings}; do
    case $part in
    text)
        for shape in e2b e4b 12b 26b-a4b; do
            made $shape.gguf tools/gemma4_synth.py $shape "$models/$shape.gguf" --type q4_k_m --quiet
            for tokens in 16 512 2048; do
                report text-$shape-$tokens $bezel bench "$models/$shape.gguf" -p $tokens -n 128 --repeat 3 --device gpu
            done
        done
        for tokens in 4096 32768; do
            report text-e2b-$tokens $bezel bench "$models/e2b.gguf" -p $tokens -n 64 --repeat 2 --device gpu
        done
        report text-e2b-file $bezel bench "$models/e2b.gguf" -p 512 -n 128 --repeat 3 --device gpu --ple file
        report text-e2b-exact $bezel bench "$models/e2b.gguf" -p 16 -n 128 --repeat 3 --device gpu --exact
        ;;
    prompts) # docs/SCALE.md
        made e2b.gguf tools/gemma4_synth.py e2b "$models/e2b.gguf" --type q4_k_m --quiet
        report prompts-short python3 bench/bench_prompts.py "$models/e2b.gguf" --bezel "$bezel" --device gpu --count 1024 --parallel 64
        report prompts-long python3 bench/bench_prompts.py "$models/e2b.gguf" --bezel "$bezel" --device gpu --count 256 --parallel 64 --words 400 --tokens 200 --ctx 1024
        ;;
    media)
        made small.gguf tools/gemma4_synth.py tiny-e "$models/small.gguf" --type q4_k_m --quiet
        made e2b-both.gguf tools/gemma4_mmproj_synth.py e2b-both "$models/e2b-both.gguf" --type f16 --text-embd 256
        made large.gguf tools/gemma4_mmproj_synth.py large "$models/large.gguf" --type f16 --text-embd 256
        report media-e2b $bezel bench "$models/small.gguf" --mmproj "$models/e2b-both.gguf" --media --device gpu --repeat 20
        report media-large $bezel bench "$models/small.gguf" --mmproj "$models/large.gguf" --media --device gpu --repeat 20
        ;;
    diffusion)
        made d.gguf tools/gemma4_synth.py diffusion-26b "$models/d.gguf" --type q4_k_m --quiet
        made ds.gguf tools/gemma4_synth.py diffusion-26b "$models/ds.gguf" --type q4_k_m --sharp --quiet
        report diffusion-8-bit $bezel bench "$models/d.gguf" --device gpu
        report diffusion-float $bezel bench "$models/d.gguf" --device gpu --exact
        report diffusion-sharp-8-bit $bezel bench "$models/ds.gguf" --device gpu
        report diffusion-sharp-float $bezel bench "$models/ds.gguf" --device gpu --exact
        report diffusion-streamed $bezel bench "$models/ds.gguf" --device gpu -p 256 --repeat 1 --gpu-memory 8GB
        report diffusion-mean $mean
        ;;
    products)
        report products $bench
        ;;
    adapters) # with and without one on every projection, in turns
        made e2b.gguf tools/gemma4_synth.py e2b "$models/e2b.gguf" --type q4_k_m --quiet
        made e2b-r16.gguf tools/lora_synth.py "$models/e2b.gguf" "$models/e2b-r16.gguf" --rank 16
        for turn in 1 2; do
            report adapters-without-$turn $bezel bench "$models/e2b.gguf" -p 512 -n 128 --repeat 3 --device gpu
            report adapters-with-$turn $bezel bench "$models/e2b.gguf" -p 512 -n 128 --repeat 3 --device gpu --lora "$models/e2b-r16.gguf"
        done
        ;;
    kv) # decoding at depth with each type of cache, in turns
        made e2b.gguf tools/gemma4_synth.py e2b "$models/e2b.gguf" --type q4_k_m --quiet
        for turn in 1 2; do
            for type in f16 q8 q4; do
                report kv-$type-$turn $bezel bench "$models/e2b.gguf" -p 16384 -n 64 --repeat 1 --device gpu --kv $type
            done
        done
        ;;
    drafts) # rounds of 1 to 7 drafts; drafters with random weights, whose drafts are right by chance
        for shape in e2b e4b 26b-a4b; do
            made $shape.gguf tools/gemma4_synth.py $shape "$models/$shape.gguf" --type q4_k_m --quiet
            wide=
            [ $shape = 26b-a4b ] && wide="--width 1024 --ffn 8192 --heads 16"
            made $shape-drafter.gguf tools/assistant_synth.py "$models/$shape.gguf" "$models/$shape-drafter.gguf" $wide
            report drafts-$shape $bezel bench "$models/$shape.gguf" --draft "$models/$shape-drafter.gguf" -n 64 --repeat 3 --device gpu
        done
        report drafts-pebble $bezel bench models/pebble.gguf --draft models/pebble-drafter.gguf -n 256 --repeat 5 --device gpu
        ;;
    structured) # a free answer, JSON whose texts are free, and prescribed texts
        made e2b.gguf tools/gemma4_synth.py e2b "$models/e2b.gguf" --type q4_k_m --quiet
        echo '{"type": "array", "items": {"type": "string", "minLength": 40}, "minItems": 100}' > "$out/texts.json"
        echo '{"type": "array", "items": {"enum": ["a rather long text that is prescribed", "another one"]}, "minItems": 100}' > "$out/enums.json"
        for turn in 1 2; do
            report structured-free-$turn $bezel run "$models/e2b.gguf" Write. -n 256 --ignore-end --no-think --seed 1 -v --device gpu
            for form in texts enums; do
                report structured-$form-$turn $bezel run "$models/e2b.gguf" Write. -n 256 --no-think --seed 1 -v --device gpu --format "$out/$form.json"
            done
        done
        ;;
    embeddings) # 256 texts of 100 words; the first run compiles the kernels
        made eg.gguf tools/embedding_synth.py embeddinggemma-300m "$models/eg.gguf" --type q8_0
        awk 'BEGIN { for (i = 0; i < 256; i++) { for (k = 0; k < 100; k++) printf "word%d ", (i * 31 + k * 7) % 997; print "" } }' > "$out/lines.txt"
        for turn in 1 2 3; do
            report embeddings-gpu-$turn sh -c "time -p $bezel embed '$models/eg.gguf' --lines '$out/lines.txt' -o '$out/vectors.npy' --device gpu"
        done
        ;;
    *)
        echo "gpu-figures.sh: there is no part $part" >&2
        exit 1
        ;;
    esac
done
