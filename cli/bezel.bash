# bash completion for bezel. Options come from the program's own help, models from GGUF files and
# from Ollama's store.

_bezel_words() { # WORDS, the word being typed: fills COMPREPLY
    COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_bezel_files() { # SUFFIX, the word being typed
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -- "$2"; compgen -f -X "!*$1" -- "$2"))
}

_bezel_folders() { # the word being typed
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -- "$1"))
}

_bezel_models() { # the word being typed
    _bezel_files .gguf "$1"
    _bezel_names "$1"
}

_bezel_names() { # the word being typed: adds names of Ollama's store
    local names
    names=$("$_bezel_program" list 2>/dev/null | sed -n '/^$/q; 2,$s/ .*//p')
    COMPREPLY+=($(compgen -W "$names" -- "$1"))
    # Readline breaks words at ':' and completes only what follows it.
    if [[ $1 == *:* && $COMP_WORDBREAKS == *:* ]]; then
        local head=${1%"${1##*:}"} i
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]=${COMPREPLY[i]#"$head"}
        done
    fi
}

_bezel() {
    # The words of the line as the shell will see them, not broken at ':' and '='.
    local line=${COMP_LINE:0:COMP_POINT} words word before verb
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local n=${#words[@]} _bezel_program=${words[0]}
    word=${words[n - 1]} before=${words[n - 2]} verb=${words[1]}
    COMPREPLY=()
    if ((n == 2)); then
        _bezel_words "run serve ps stop pull list show cp rm bench doctor verify tokenize logits diffuse encode embed search setup-gpu --help --version" "$word"
        return
    fi
    case $before in
    --device) _bezel_words "auto cpu gpu" "$word" ;;
    --sandbox) _bezel_words "auto on off" "$word" ;;
    --context-shift) _bezel_words "on off" "$word" ;;
    --kernels) _bezel_words "amx avx512bf16 avx512 avxvnni avx2 i8mm dotprod neon plain" "$word" ;;
    --wgsl) _bezel_words "$("$_bezel_program" show --wgsl 2>/dev/null | cut -d ' ' -f 1)" "$word" ;;
    --mmproj | --lora) _bezel_files .gguf "$word" ;;
    --model) _bezel_models "$word" ;;
    --dir) _bezel_folders "$word" ;;
    --format) _bezel_files .json "$word" ;;
    --kv) _bezel_words "f16 q8 q4" "$word" ;;
    --draft)
        _bezel_files .gguf "$word"
        _bezel_words "lookup off" "$word"
        ;;
    --grammar) _bezel_files .gbnf "$word" ;;
    --prompts) _bezel_files .jsonl "$word" ;;
    --task) _bezel_words "query document question-answering fact-checking classification clustering similarity code-retrieval summarization" "$word" ;;
    -o | --out | --session | -t | --tokens | --draws | --trace | --canvas | --self-cond | --image | --audio | --video | --features | --lines | --index) _bezel_files "" "$word" ;;
    -n | -c | -p | --max-tokens | --ctx | --prompt-tokens | --threads | --chunk | --repeat | --rows | --image-tokens | --video-frames | --video-tokens | --steps | --entropy-bound | --stability | --confidence | --self-cond-temp | --gpu-memory | --parallel | --sequences | --shard | --dimensions | --title | -k | --top | --port | --host | --allow-host | --api-key | --origins | --max-memory | --keep-alive | --queue | --connections | --retries | --registry | \
        --system | --temp | --temperature | --top-k | --top-p | --min-p | --seed | --stop | --*-penalty | --repeat-last-n) ;;
    *)
        if [[ $word == -* ]]; then
            _bezel_words "$("$_bezel_program" "$verb" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)" "$word"
        elif [[ $verb == rm ]] || { [[ $verb == stop ]] && ((n == 3)); } || { [[ $verb == cp ]] && ((n <= 4)); }; then
            _bezel_names "$word"
        elif [[ $verb == search ]] && ((n == 3)); then
            _bezel_folders "$word"
        elif [[ $verb == setup-gpu ]]; then
            _bezel_files .tgz "$word"
        elif [[ $verb == serve ]] || { ((n == 3)) && [[ $verb != pull && $verb != ps && $verb != list && $verb != ls && $verb != doctor ]]; }; then
            _bezel_models "$word"
        fi
        ;;
    esac
}

complete -F _bezel bezel
