/* One table of options for every verb: each names the letters it accepts. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file/ollama.h"

typedef enum option_kind { FLAG, TEXT, NUMBER } option_kind;

typedef struct option_row {
    char letter; /* the verb's `accepts` string */
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
    {'S', NULL, "--system", TEXT, AT(system)},
    {'T', NULL, "--threads", NUMBER, AT(threads)},
    {'C', NULL, "--chunk", NUMBER, AT(chunk)},
    {'c', "-c", "--ctx", NUMBER, AT(context)},
    {'n', "-n", "--max-tokens", NUMBER, AT(max_tokens)},
    {'P', "-p", "--prompt-tokens", NUMBER, AT(prompt_tokens)},
    {'r', NULL, "--repeat", NUMBER, AT(repeat)},
    {'R', NULL, "--rows", NUMBER, AT(rows)},
    {'f', NULL, "--fast", FLAG, AT(fast)},
    {'j', NULL, "--json", FLAG, AT(json)},
    {'p', NULL, "--plan", FLAG, AT(plan)},
    {'s', NULL, "--special", FLAG, AT(special)},
    {'B', NULL, "--no-bos", FLAG, AT(no_bos)},
    {'e', NULL, "--ignore-end", FLAG, AT(ignore_end)},
    {'v', "-v", "--verbose", FLAG, AT(verbose)},
    {'h', "-h", "--help", FLAG, AT(help)},
};

int cli_error(const bz_error *err)
{
    fprintf(stderr, "bezel: %s\n", err->text);
    switch (err->code) {
    case BZ_OK: return EXIT_OK;
    case BZ_NOT_FOUND: return EXIT_NO_MODEL;
    case BZ_OUT_OF_MEMORY:
    case BZ_UNSUPPORTED_MODEL: return EXIT_CANNOT;
    case BZ_BAD_REQUEST: return EXIT_USAGE;
    default: return EXIT_FAILED;
    }
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

int cli_parse(const cli_verb *verb, int argc, char **argv, const char *accepts, int max_positional, cli_options *o)
{
    const char **positional[] = {&o->model, &o->prompt};
    int n_positional = 0;
    bool only_positional = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_positional || a[0] != '-' || a[1] == 0) {
            if (n_positional == max_positional) {
                return cli_usage_error(verb->name, "'%s' is one argument too many.", a);
            }
            *positional[n_positional++] = a;
            continue;
        }
        if (strcmp(a, "--") == 0) {
            only_positional = true;
            continue;
        }
        const option_row *r = find_option(a, accepts);
        if (!r) {
            return cli_usage_error(verb->name, "there is no option '%s'.", a);
        }
        const char *value = a[1] == '-' ? strchr(a, '=') : NULL;
        value = value ? value + 1 : NULL;
        char *field = (char *)o + r->offset;
        if (r->kind == FLAG) {
            if (value) {
                return cli_usage_error(verb->name, "'%s' takes no value.", r->full);
            }
            *(bool *)(void *)field = true;
            continue;
        }
        if (!value) {
            if (++i == argc) {
                return cli_usage_error(verb->name, "'%s' needs a value.", a);
            }
            value = argv[i];
        }
        if (r->kind == TEXT) {
            *(const char **)(void *)field = value;
        } else if (!parse_number(value, (unsigned *)(void *)field)) {
            return cli_usage_error(verb->name, "'%s' needs a whole number, not '%s'.", r->full, value);
        }
    }
    if (o->help) {
        fputs(verb->usage, stdout);
    } else if (!o->model) {
        return cli_usage_error(verb->name, "which model? Give the path of a GGUF file.");
    }
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
    text[n] = 0;
    *len = n;
    return text;
}

int32_t *cli_token_list(const char *verb, const char *text, size_t *n)
{
    char *file = NULL;
    if (text[0] == '@') {
        FILE *f = fopen(text + 1, "rb");
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

bool cli_check_device(const cli_options *o, int *exit_code)
{
    if (!o->device || strcmp(o->device, "cpu") == 0) {
        return true;
    }
    if (strcmp(o->device, "gpu") == 0) {
        bz_error err;
        err.code = BZ_NO_WEBGPU;
        snprintf(err.text, sizeof err.text, "This build has no GPU back end yet; use --device cpu.");
        *exit_code = cli_error(&err);
        *exit_code = EXIT_CANNOT;
    } else {
        fprintf(stderr, "bezel: there is no device '%s'; use cpu or gpu.\n", o->device);
        *exit_code = EXIT_USAGE;
    }
    return false;
}

bool cli_open(const cli_options *o, bz_model **model, int *exit_code)
{
    bz_error err = {0};
    if (!cli_check_device(o, exit_code)) {
        return false;
    }
    bz_store_model found;
    bz_status status = bz_store_resolve(o->model, &found, &err);
    if (status == BZ_OK) {
        const char *mmproj = o->mmproj ? o->mmproj : found.n_projectors ? found.projectors[0] : NULL;
        status = bz_model_open_file(model, found.path, mmproj, &err);
        if (status != BZ_OK && found.name) { /* the path of a blob would tell nobody which model it is */
            bz_error why = err;
            bz_fail(&err, status, "%s: %s", found.name, why.text);
        }
        bz_store_model_free(&found);
    }
    if (status != BZ_OK) {
        *exit_code = cli_error(&err);
    }
    return status == BZ_OK;
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
