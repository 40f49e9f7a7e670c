/* One table of options for all verbs; each verb lists the letters it accepts. */
#include "bezel_media.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_program.h"
#include "base/pool.h"

typedef enum option_kind {
    FLAG,
    TEXT,
    NUMBER,
    LIST /* may be repeated; each adds a text */
} option_kind;

typedef struct option_row {
    char letter; /* in the verb's `accepts` string; related options share one */
    const char *brief, *full;
    option_kind kind;
    size_t offset; /* into cli_options */
} option_row;

#define AT(field) offsetof(cli_options, field)

static const option_row table[] = {
    {'t', "-t", "--tokens", TEXT, AT(tokens)},
    {'o', "-o", "--out", TEXT, AT(out)},
    {'m', NULL, "--mmproj", TEXT, AT(mmproj)},
    {'k', NULL, "--kernels", TEXT, AT(kernels)},
    {'d', NULL, "--device", TEXT, AT(device)},
    {'E', NULL, "--ple", TEXT, AT(ple)},
    {'3', NULL, "--kv", TEXT, AT(kv)},
    {'G', NULL, "--gpu-memory", TEXT, AT(gpu_memory)},
    {'S', NULL, "--system", TEXT, AT(system)},
    {'L', NULL, "--prompts", TEXT, AT(prompts)},
    {'i', NULL, "--shard", TEXT, AT(shard)},
    {'x', NULL, "--temp", TEXT, AT(set[SET_TEMPERATURE])},
    {'x', NULL, "--temperature", TEXT, AT(set[SET_TEMPERATURE])},
    {'x', NULL, "--top-k", TEXT, AT(set[SET_TOP_K])},
    {'x', NULL, "--top-p", TEXT, AT(set[SET_TOP_P])},
    {'x', NULL, "--min-p", TEXT, AT(set[SET_MIN_P])},
    {'x', NULL, "--repeat-penalty", TEXT, AT(set[SET_REPEAT_PENALTY])},
    {'x', NULL, "--repeat-last-n", TEXT, AT(set[SET_REPEAT_LAST_N])},
    {'x', NULL, "--presence-penalty", TEXT, AT(set[SET_PRESENCE_PENALTY])},
    {'x', NULL, "--frequency-penalty", TEXT, AT(set[SET_FREQUENCY_PENALTY])},
    {'x', NULL, "--seed", TEXT, AT(set[SET_SEED])},
    {'x', NULL, "--stop", LIST, AT(stop)},
    {'l', NULL, "--lora", LIST, AT(lora)},
    {'H', NULL, "--draft", TEXT, AT(draft)},
    {'J', NULL, "--format", TEXT, AT(format)},
    {'J', NULL, "--grammar", TEXT, AT(grammar)},
    {'g', NULL, "--image", LIST, AT(images)},
    {'g', NULL, "--audio", LIST, AT(sounds)},
    {'g', NULL, "--image-tokens", NUMBER, AT(image_tokens)},
    {'Y', NULL, "--video", LIST, AT(videos)},
    {'Y', NULL, "--video-frames", NUMBER, AT(video_frames)},
    {'Y', NULL, "--video-tokens", NUMBER, AT(video_tokens)},
    {'a', NULL, "--media", FLAG, AT(media)},
    {'V', NULL, "--features", TEXT, AT(features)},
    {'z', NULL, "--seed", TEXT, AT(set[SET_SEED])},
    {'D', NULL, "--draws", TEXT, AT(draws)},
    {'D', NULL, "--trace", TEXT, AT(trace)},
    {'D', NULL, "--entropy-bound", TEXT, AT(entropy_bound)},
    {'D', NULL, "--stability", TEXT, AT(stability)},
    {'D', NULL, "--confidence", TEXT, AT(confidence)},
    {'D', NULL, "--steps", NUMBER, AT(steps)},
    {'y', NULL, "--canvas", TEXT, AT(canvas)},
    {'y', NULL, "--self-cond", TEXT, AT(self_cond)},
    {'y', NULL, "--self-cond-temp", TEXT, AT(self_cond_temp)},
    {'A', NULL, "--no-animation", FLAG, AT(no_animation)},
    {'w', NULL, "--port", NUMBER, AT(port)},
    {'w', NULL, "--host", TEXT, AT(host)},
    {'w', NULL, "--dir", TEXT, AT(dir)},
    {'w', NULL, "--model", LIST, AT(models)},
    {'w', NULL, "--allow-host", LIST, AT(hosts)},
    {'w', NULL, "--open", FLAG, AT(open)},
    {'w', NULL, "--api-key", TEXT, AT(api_key)},
    {'w', NULL, "--origins", LIST, AT(origins)},
    {'w', NULL, "--max-memory", TEXT, AT(max_memory)},
    {'w', NULL, "--keep-alive", TEXT, AT(keep_alive)},
    {'w', NULL, "--queue", NUMBER, AT(queue)},
    {'u', NULL, "--port", NUMBER, AT(port)},
    {'u', NULL, "--host", TEXT, AT(host)},
    {'u', NULL, "--api-key", TEXT, AT(api_key)},
    {'4', NULL, "--health", FLAG, AT(health)},
    {'I', NULL, "--insecure", FLAG, AT(insecure)},
    {'I', NULL, "--connections", NUMBER, AT(connections)},
    {'I', NULL, "--retries", NUMBER, AT(retries)},
    {'5', NULL, "--registry", TEXT, AT(registry)},
    {'M', NULL, "--lines", TEXT, AT(lines)},
    {'M', NULL, "--dimensions", NUMBER, AT(dimensions)},
    {'M', NULL, "--task", TEXT, AT(task)},
    {'M', NULL, "--title", TEXT, AT(title)},
    {'M', NULL, "--truncate", FLAG, AT(truncate)},
    {'2', NULL, "--model", TEXT, AT(embedder)},
    {'2', NULL, "--index", TEXT, AT(index)},
    {'2', "-k", "--top", NUMBER, AT(top)},
    {'2', NULL, "--rebuild", FLAG, AT(rebuild)},
    {'T', NULL, "--threads", NUMBER, AT(threads)},
    {'C', NULL, "--chunk", NUMBER, AT(chunk)},
    {'c', "-c", "--ctx", NUMBER, AT(context)},
    {'n', "-n", "--max-tokens", NUMBER, AT(max_tokens)},
    {'P', "-p", "--prompt-tokens", NUMBER, AT(prompt_tokens)},
    {'r', NULL, "--repeat", NUMBER, AT(repeat)},
    {'b', NULL, "--parallel", NUMBER, AT(parallel)},
    {'Q', NULL, "--sequences", NUMBER, AT(sequences)},
    {'R', NULL, "--rows", NUMBER, AT(rows)},
    {'f', NULL, "--fast", FLAG, AT(fast)},
    {'X', NULL, "--exact", FLAG, AT(exact)},
    {'j', NULL, "--json", FLAG, AT(json)},
    {'p', NULL, "--plan", FLAG, AT(plan)},
    {'W', NULL, "--wgsl", FLAG, AT(wgsl)},
    {'s', NULL, "--special", FLAG, AT(special)},
    {'B', NULL, "--no-bos", FLAG, AT(no_bos)},
    {'e', NULL, "--ignore-end", FLAG, AT(ignore_end)},
    {'v', "-v", "--verbose", FLAG, AT(verbose)},
    {'q', "-q", "--quiet", FLAG, AT(quiet)},
    {'N', NULL, "--think", FLAG, AT(think)},
    {'N', NULL, "--no-think", FLAG, AT(no_think)},
    {'N', NULL, "--show-thinking", FLAG, AT(show_thinking)},
    {'N', NULL, "--hide-thinking", FLAG, AT(hide_thinking)},
    {'N', NULL, "--hidethinking", FLAG, AT(hide_thinking)}, /* as in Ollama */
    {'1', NULL, "--context-shift", TEXT, AT(context_shift)},
    {'K', NULL, "--session", TEXT, AT(session)},
    {'K', NULL, "--no-wrap", FLAG, AT(no_wrap)},
    {'K', NULL, "--nowordwrap", FLAG, AT(no_wrap)}, /* as in Ollama */
    {'O', NULL, "--no-color", FLAG, AT(no_color)},
    {'F', NULL, "--no-fuse", FLAG, AT(no_fuse)},
    {'Z', NULL, "--sandbox", TEXT, AT(sandbox)},
    {'h', "-h", "--help", FLAG, AT(help)},
};

/* Options of Ollama's `run` that Bezel does not have, and why. */
static const struct {
    const char *name, *reason;
} elsewhere[] = {
    {"--keepalive", "'run' loads the model itself and frees it when it ends; 'bezel serve "
                    "--keep-alive' keeps models loaded"},
    {"--insecure", "'run' downloads nothing; 'bezel pull --insecure' does so without TLS"},
    {"--truncate", "it is for models that make embeddings"},
    {"--dimensions", "it is for models that make embeddings"},
};

static int exit_code(bz_status status)
{
    switch (status) {
    case BZ_OK: return EXIT_OK;
    case BZ_NOT_FOUND: return EXIT_NO_MODEL;
    case BZ_OUT_OF_MEMORY:
    case BZ_NO_WEBGPU:
    case BZ_NO_ADAPTER:
    case BZ_UNSUPPORTED_MODEL: return EXIT_CANNOT;
    case BZ_BAD_REQUEST:
    case BZ_BAD_SCHEMA: return EXIT_USAGE;
    case BZ_ABORTED: return EXIT_INTERRUPTED;
    default: return EXIT_FAILED;
    }
}

int cli_error(const bz_error *err)
{
    fprintf(stderr, "bezel: %s\n", err->text);
    return exit_code(err->code);
}

int cli_usage_error(const char *verb, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "bezel %s: ", verb);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nTry 'bezel %s --help'.\n", verb);
    va_end(args);
    return EXIT_USAGE;
}

static const option_row *find_option(const char *argument, const char *accepts)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const option_row *r = &table[i];
        size_t n = strlen(r->full);
        bool named = strncmp(argument, r->full, n) == 0 && (argument[n] == 0 || argument[n] == '=');
        if ((named || (r->brief && strcmp(argument, r->brief) == 0)) &&
            (r->letter == 'h' || strchr(accepts, r->letter))) {
            return r;
        }
    }
    return NULL;
}

static bool parse_number(const char *text, unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || v > 0x7FFFFFFFul) {
        return false;
    }
    *out = (unsigned)v;
    return true;
}

static int add_to_list(const cli_verb *verb, const char *name, const char **list, const char *value)
{
    int n = 0;
    while (list[n]) {
        n++;
    }
    if (n == CLI_STOPS) {
        return cli_usage_error(verb->name, "'%s' can be given at most %d times.", name, CLI_STOPS);
    }
    list[n] = value;
    return EXIT_OK;
}

/* --think=false and levels, as in Ollama; with every level the model thinks. */
static int store_think(const cli_verb *verb, cli_options *o, const char *value)
{
    static const char *const on[] = {"true", "low", "medium", "high", "max"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        if (strcmp(value, on[i]) == 0) {
            o->think = true;
            return EXIT_OK;
        }
    }
    o->no_think = strcmp(value, "false") == 0;
    return o->no_think
               ? EXIT_OK
               : cli_usage_error(verb->name,
                                 "'--think' is true, false, low, medium or high, not '%s'.", value);
}

/* Numbers that are refused here, before a model is opened. */
static const struct {
    size_t offset;
    unsigned least, most;
} ranges[] = {{AT(image_tokens), 70, 1120},
              {AT(video_tokens), 70, 1120},
              {AT(video_frames), 1, BZ_VIDEO_MAX_FRAMES},
              {AT(top), 1, 1000}};

static bool is_cache_type(const char *name)
{
    return strcmp(name, "f16") == 0 || strcmp(name, "q8") == 0 || strcmp(name, "q4") == 0;
}

static int store(const cli_verb *verb, const option_row *r, cli_options *o, const char *value)
{
    void *field = (char *)o + r->offset;
    if (r->offset == AT(kv) && !is_cache_type(value)) {
        return cli_usage_error(verb->name, "'--kv' is f16, q8 or q4, not '%s'.", value);
    }
    switch (r->kind) {
    case FLAG: *(bool *)field = true; break;
    case TEXT: *(const char **)field = value; break;
    case LIST: return add_to_list(verb, r->full, field, value);
    case NUMBER:
        if (!parse_number(value, field)) {
            return cli_usage_error(verb->name, "'%s' needs a whole number, not '%s'.", r->full,
                                   value);
        }
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            const unsigned v = *(unsigned *)field;
            if (r->offset == ranges[i].offset && (v < ranges[i].least || v > ranges[i].most)) {
                return cli_usage_error(verb->name, "'%s' must be from %u to %u.", r->full,
                                       ranges[i].least, ranges[i].most);
            }
        }
        break;
    }
    return EXIT_OK;
}

static int unknown_option(const cli_verb *verb, const char *argument)
{
    for (size_t i = 0; verb == &cli_run_verb && i < sizeof elsewhere / sizeof *elsewhere; i++) {
        const size_t n = strlen(elsewhere[i].name);
        if (strncmp(argument, elsewhere[i].name, n) == 0 &&
            (argument[n] == 0 || argument[n] == '=')) {
            return cli_usage_error(verb->name, "there is no '%s': %s.", elsewhere[i].name,
                                   elsewhere[i].reason);
        }
    }
    return cli_usage_error(verb->name, "unknown option '%s'.", argument);
}

/* Reads the option argv[*i], and its value from there or from the next argument. */
static int parse_option(const cli_verb *verb, int argc, char **argv, int *i, const char *accepts,
                        cli_options *o)
{
    const char *a = argv[*i];
    const option_row *r = find_option(a, accepts);
    if (!r) {
        return unknown_option(verb, a);
    }
    const char *value = a[1] == '-' ? strchr(a, '=') : NULL;
    value = value ? value + 1 : NULL;
    if (r->offset == AT(think) && r->kind == FLAG && value) {
        return store_think(verb, o, value);
    }
    if (r->kind == FLAG && value) {
        return cli_usage_error(verb->name, "'%s' takes no value.", r->full);
    }
    if (r->kind != FLAG && !value) {
        if (++*i == argc) {
            return cli_usage_error(verb->name, "'%s' needs a value.", a);
        }
        value = argv[*i];
    }
    return store(verb, r, o, value);
}

/* The engine has the same limit; users should know. */
static void limit_threads(cli_options *o)
{
    const unsigned max = BZ_THREADS_PER_PROCESSOR * bz_os_cpu_count();
    if (o->threads > max) {
        if (!o->quiet) {
            fprintf(stderr, "bezel: using %u threads, four per processor, instead of %u.\n", max,
                    o->threads);
        }
        o->threads = max;
    }
}

int cli_parse(const cli_verb *verb, int argc, char **argv, const char *accepts, int max_positional,
              cli_options *o)
{
    const char **positional[] = {&o->model, &o->prompt};
    int n_positional = 0;
    bool only_positional = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_positional || a[0] != '-' || a[1] == 0) {
            if (max_positional == CLI_MODEL_LIST) {
                const int code = add_to_list(verb, "MODEL", o->models, a);
                if (code != EXIT_OK) {
                    return code;
                }
                continue;
            }
            if (max_positional == CLI_MODEL_TEXTS && o->model) {
                argv[1 + o->n_texts++] = argv[i]; /* a place that was read already */
                continue;
            }
            if (n_positional == max_positional) {
                return cli_usage_error(
                    verb->name, "unexpected argument '%s'.%s", a,
                    max_positional == 2 ? " Put a prompt of several words in quotes." : "");
            }
            *positional[n_positional++] = a;
        } else if (strcmp(a, "--") == 0) {
            only_positional = true;
        } else {
            int code = parse_option(verb, argc, argv, &i, accepts, o);
            if (code != EXIT_OK) {
                return code;
            }
        }
    }
    o->texts = (const char **)argv + 1;
    if (o->help) {
        fputs(verb->usage, stdout);
    } else if (!o->model && !o->wgsl) {
        return cli_usage_error(
            verb->name,
            "no model given. Give the path of a GGUF file or a name from 'bezel list'.");
    }
    limit_threads(o);
    return EXIT_OK;
}

/* ---- helpers ---------------------------------------------------------------- */

char *cli_read_stream(FILE *f, size_t *len)
{
    size_t cap = 1 << 16, n = 0;
    char *text = malloc(cap);
    while (text) {
        size_t got = fread(text + n, 1, cap - n - 1, f);
        n += got;
        if (got == 0) {
            break;
        }
        if (cap - n < 2) {
            char *more = realloc(text, cap *= 2);
            if (!more) {
                free(text);
            }
            text = more;
        }
    }
    if (!text) {
        fprintf(stderr, "bezel: no memory for the input.\n");
        return NULL;
    }
    if (ferror(f)) {
        fprintf(stderr, "bezel: cannot read the input.\n");
        free(text);
        return NULL;
    }
    text[n] = 0;
    *len = n;
    return text;
}

int32_t *cli_token_list(const char *verb, const char *text, size_t *n)
{
    char *file = NULL;
    if (text[0] == '@') {
        FILE *f = bz_os_stream(text + 1, "rb");
        size_t len;
        if (!f) {
            cli_usage_error(verb, "cannot read '%s': %s.", text + 1, strerror(errno));
            return NULL;
        }
        file = cli_read_stream(f, &len);
        fclose(f);
        if (!file) {
            return NULL;
        }
        text = file;
    }
    int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
    *n = 0;
    for (const char *p = text; ids && *p;) {
        if (strchr(", \t\r\n", *p)) {
            p++;
            continue;
        }
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno || v < 0 || v > INT32_MAX || (*end && !strchr(", \t\r\n", *end))) {
            cli_usage_error(verb, "'%.20s' is not a token id.", p);
            free(ids);
            ids = NULL;
            break;
        }
        ids[(*n)++] = (int32_t)v;
        p = end;
    }
    free(file);
    return ids;
}

double cli_seconds(void)
{
    return 1e-9 * (double)bz_os_now();
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void cli_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
}
