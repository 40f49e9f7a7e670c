/* bezel embed: vectors of texts, as JSON lines or as a NumPy array. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "bezel_embed.h"
#include "cli/batch/lines.h"
#include "cli/device.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/term.h"

/* Texts are computed this many, or this many bytes, at a time, so that a file of any length fits in
 * memory. */
enum { BLOCK_TEXTS = 1024, BLOCK_BYTES = 4 << 20 };

/* Texts that are computed together. */
typedef struct block {
    bz_embed_input texts[BLOCK_TEXTS];
    size_t n;
    char *bytes; /* the memory of those from a file */
    size_t used, cap;
} block;

typedef struct output {
    const char *path; /* NULL: stdout */
    FILE *f;          /* opened when there is something to write */
    bool npy;
    uint32_t d;
    uint64_t n; /* vectors written */
    uint64_t tokens;
} output;

typedef struct source {
    const cli_options *o;
    FILE *lines; /* NULL: the texts of the command line */
    line_buffer line;
    uint64_t number;
    size_t next;      /* of the command line */
    char *stdin_text; /* in place of "-" */
} source;

/* ---- texts ------------------------------------------------------------------------------ */

static bool keep(block *b, const char *text, size_t len)
{
    if (b->cap - b->used < len) {
        const size_t cap = 2 * b->cap + len + 4096;
        char *more = realloc(b->bytes, cap);
        if (!more) {
            return false;
        }
        for (size_t i = 0; i < b->n; i++) { /* they moved */
            b->texts[i].text = more + (b->texts[i].text - b->bytes);
        }
        b->bytes = more;
        b->cap = cap;
    }
    if (len) {
        memcpy(b->bytes + b->used, text, len);
    }
    b->texts[b->n++] = (bz_embed_input){.text = b->bytes + b->used, .len = len};
    b->used += len;
    return true;
}

static bz_status next_lines(source *s, block *b, bz_error *err)
{
    while (b->n < BLOCK_TEXTS && b->used < BLOCK_BYTES && !interrupt_stop()) {
        const bz_status status =
            line_read(&s->line, s->lines, LINE_MAX_BYTES, s->o->lines, s->number + 1, err);
        size_t len = s->line.len;
        if (status != BZ_OK || len == 0) {
            return status;
        }
        s->number++;
        len -= s->line.text[len - 1] == '\n';
        len -= len && s->line.text[len - 1] == '\r';
        if (!b->bytes && !(b->bytes = malloc(b->cap = 4096))) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the texts.");
        }
        if (!keep(b, s->line.text, len)) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the texts.");
        }
    }
    return BZ_OK;
}

/* The next texts; none: there are no more. */
static bz_status next_block(source *s, block *b, bz_error *err)
{
    b->n = b->used = 0;
    if (s->lines) {
        return next_lines(s, b, err);
    }
    while (b->n < BLOCK_TEXTS && s->next < s->o->n_texts) {
        const char *text = s->o->texts[s->next++];
        size_t len = strlen(text);
        if (strcmp(text, "-") == 0 && !s->stdin_text) {
            s->stdin_text = cli_read_stream(stdin, &len);
            if (!s->stdin_text) {
                return bz_fail(err, BZ_ABORTED, "Standard input cannot be read.");
            }
            text = s->stdin_text;
        }
        b->texts[b->n++] = (bz_embed_input){.text = text, .len = len};
    }
    return BZ_OK;
}

/* ---- output ----------------------------------------------------------------------------- */

/* The header of a NumPy file of format 1.0, always 128 bytes long, so that the number of rows can
 * be written again at the end. */
static bool write_npy_header(FILE *f, uint64_t rows, uint32_t cols)
{
    enum { HEADER = 128, FIXED = 10 };
    char header[HEADER + 1];
    memset(header, ' ', HEADER);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = HEADER - FIXED;
    header[9] = 0;
    const int n = snprintf(header + FIXED, HEADER - FIXED,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
                           (unsigned long long)rows, cols);
    header[FIXED + n] = ' ';
    header[HEADER - 1] = '\n';
    return fwrite(header, 1, HEADER, f) == HEADER;
}

static int cannot_write(const output *out)
{
    fprintf(stderr, "bezel: cannot write %s: %s.\n", out->path ? out->path : "standard output",
            strerror(errno));
    return EXIT_FAILED;
}

static bool write_json(output *out, const float *v, uint32_t tokens)
{
    bool good = fprintf(out->f, "{\"index\":%llu,\"tokens\":%u,\"embedding\":[",
                        (unsigned long long)out->n, tokens) > 0;
    for (uint32_t i = 0; i < out->d && good; i++) {
        good = fprintf(out->f, "%s%.9g", i ? "," : "", (double)v[i]) > 0;
    }
    return good && fputs("]}\n", out->f) != EOF;
}

/* The file is opened after the first block has been computed: a refused text or a missing model
 * overwrites nothing. */
static int write_vectors(output *out, bz_job *job)
{
    size_t n;
    const float *v = bz_job_vectors(job, &n, &out->d);
    const uint32_t *tokens = bz_job_vector_tokens(job, &n);
    if (!out->f) {
        out->f = out->path ? bz_os_stream(out->path, "wb") : stdout;
        if (!out->f || (out->npy && !write_npy_header(out->f, 0, out->d))) {
            return cannot_write(out);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const float *row = v + i * out->d;
        if (out->npy ? fwrite(row, sizeof *row, out->d, out->f) != out->d
                     : !write_json(out, row, tokens[i])) {
            return out->path ? cannot_write(out) : cli_flush();
        }
        out->n++;
        out->tokens += tokens[i];
    }
    return EXIT_OK;
}

static int finish_output(output *out, int code)
{
    if (out->f && out->npy) {
        const bool good =
            fseek(out->f, 0, SEEK_SET) == 0 && write_npy_header(out->f, out->n, out->d);
        code = good || code != EXIT_OK ? code : cannot_write(out);
    }
    if (out->f && out->path) {
        if (fclose(out->f) != 0 && code == EXIT_OK) {
            code = cannot_write(out);
        }
        if (code != EXIT_OK) {
            fprintf(stderr, "bezel: %s has the vectors of the first %llu texts only.\n", out->path,
                    (unsigned long long)out->n);
        }
    } else if (code == EXIT_OK) {
        code = cli_flush();
    }
    return code;
}

/* ---- the verb --------------------------------------------------------------------------- */

static int on_event(void *user, const bz_event *e)
{
    const output *out = user;
    if (e->kind == BZ_EVENT_PROGRESS) {
        term_progress(out->n + e->done, 0, "texts");
    }
    return interrupt_stop();
}

static int embed_all(const cli_options *o, const bz_model *model, source *s, output *out)
{
    const bz_embedder_options eo = {.size = sizeof eo,
                                    .threads = o->threads,
                                    .kernels = o->kernels,
                                    .no_fuse = o->no_fuse,
                                    .exact = o->exact};
    const bz_embed_options vo = {.size = sizeof vo,
                                 .dimensions = o->dimensions,
                                 .truncate = o->truncate,
                                 .task = o->task,
                                 .title = o->title};
    const bz_host host = {.size = sizeof host, .event = on_event, .user = out};
    bz_embedder *e = NULL;
    block *b = calloc(1, sizeof *b);
    bz_error err = {0};
    int code = EXIT_OK;
    if (!b || bz_embedder_new(&e, model, &eo, &err) != BZ_OK) {
        code = b ? cli_error(&err) : EXIT_FAILED;
        free(b);
        return code;
    }
    if (!o->quiet && bz_embedder_notice(e)) {
        fprintf(stderr, "bezel: %s\n", bz_embedder_notice(e));
    }
    term_busy("computing vectors");
    while (code == EXIT_OK) {
        bz_job *job = NULL;
        const bz_status read = next_block(s, b, &err);
        if (read != BZ_OK || b->n == 0) {
            code = read != BZ_OK ? cli_error(&err) : interrupt_stop() ? EXIT_INTERRUPTED : code;
            break;
        }
        if (bz_embed_texts(e, b->texts, b->n, &vo, &job, &err) != BZ_OK ||
            bz_job_run(job, &host, &err) != BZ_OK) {
            if (s->lines && s->number > b->n) { /* the message counts within the block */
                fprintf(stderr, "bezel: lines %llu to %llu:\n",
                        (unsigned long long)(s->number - b->n + 1), (unsigned long long)s->number);
            }
            code = cli_error(&err);
        } else {
            code = write_vectors(out, job);
        }
        bz_job_free(job);
    }
    term_idle();
    free(b->bytes);
    free(b);
    bz_embedder_free(e);
    return code;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static int check_usage(const cli_options *o)
{
    if (!o->n_texts == !o->lines) {
        return cli_usage_error("embed", "%s",
                               o->lines ? "give texts or '--lines FILE', not both."
                                        : "no text given; give texts, '-' or '--lines FILE'.");
    }
    if (o->out && !ends_with(o->out, ".npy") && !ends_with(o->out, ".jsonl")) {
        return cli_usage_error("embed", "'%s' must end in .npy or .jsonl.", o->out);
    }
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_embed_verb, argc, argv, "oMkTqdXFZ", CLI_MODEL_TEXTS, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    o.device = device_default(&o);
    code = check_usage(&o);
    if (code != EXIT_OK) {
        return code;
    }
    source s = {.o = &o};
    if (o.lines) {
        s.lines = strcmp(o.lines, "-") == 0 ? stdin : bz_os_stream(o.lines, "rb");
        if (!s.lines) {
            return cli_usage_error("embed", "cannot read '%s': %s.", o.lines, strerror(errno));
        }
    }
    output out = {.path = o.out, .npy = o.out && ends_with(o.out, ".npy")};
    bz_model *model = NULL;
    term_setup(false, o.quiet);
    interrupt_catch(true);
    if (cli_open(&o, &model, &code)) {
        const double start = cli_seconds();
        code = finish_output(&out, embed_all(&o, model, &s, &out));
        const double seconds = cli_seconds() - start;
        if (code == EXIT_OK && !o.quiet) {
            fprintf(stderr, "%llu vectors of %u numbers; %llu tokens; %.2f s\n",
                    (unsigned long long)out.n, out.d, (unsigned long long)out.tokens, seconds);
        }
    }
    bz_model_free(model);
    if (s.lines && s.lines != stdin) {
        fclose(s.lines);
    }
    line_free(&s.line);
    free(s.stdin_text);
    return interrupt_finish(code);
}

const cli_verb cli_embed_verb = {
    "embed", run, "compute vectors of texts with an EmbeddingGemma model",
    "Usage: bezel embed MODEL TEXT... [options]\n"
    "       bezel embed MODEL --lines FILE [options]\n\n"
    "  bezel embed embeddinggemma \"a cat\" \"a dog\"\n"
    "  bezel embed embeddinggemma --lines docs.txt --task document -o docs.npy\n\n"
    "Prints a line of JSON for each text, with its vector of length 1. '-' as a text is standard\n"
    "input.\n\n"
    "      --lines FILE      one text per line; '-' is standard input\n"
    "  -o, --out FILE        write to FILE.jsonl, or float32 [texts][numbers] to FILE.npy\n"
    "      --dimensions N    the first N numbers of each vector; the model is trained for 768, "
    "512,\n"
    "                        256 and 128\n"
    "      --task NAME       put the model's words for a task before every text: query, document,\n"
    "                        question-answering, fact-checking, classification, clustering,\n"
    "                        similarity, code-retrieval, summarization\n"
    "      --title TEXT      title of the documents\n"
    "      --truncate        use the beginning of texts that are too long; otherwise they are "
    "refused\n"
    "      --exact           no rounding of activations\n"
    "      --threads N       threads (does not change the result)\n"
    "      --kernels NAME    amx, avx512bf16, avx512, avxvnni, avx2, i8mm, dotprod, neon or plain\n"
    "      --device NAME     auto (default: the GPU, where there is one), cpu or gpu\n"
    "      --no-fuse         gpu: one kernel per step\n"
    "  -q, --quiet           no progress, no summary\n"
    "      --sandbox MODE    auto, on or off: confine the program to its files\n"};
