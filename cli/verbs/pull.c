/* bezel pull: downloads a model into Ollama's store. */
#include "store/pull.h"

#include <string.h>

#include "base/os.h"
#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/term.h"

static const uint64_t LINE_NS = 5000000000u, RATE_NS = 500000000u, SECOND_NS = 1000000000u;

typedef struct display {
    const cli_options *o;
    char status[80];
    uint64_t since, first;    /* when this status began, and the bytes it began with */
    uint64_t measured, bytes; /* last measurement of the rate */
    double rate;              /* bytes per second, smoothed; 0: not known yet */
    uint64_t printed;         /* when the last line was printed, without a terminal */
    bool drawn;
} display;

/* ---- one line ------------------------------------------------------------------------------ */

static void measure(display *d, uint64_t completed, uint64_t now)
{
    if (now - d->measured < RATE_NS) {
        return;
    }
    const double seconds = (double)(now - d->measured) / (double)SECOND_NS;
    const double rate = completed > d->bytes ? (double)(completed - d->bytes) / seconds : 0;
    d->rate = d->rate > 0 ? 0.7 * d->rate + 0.3 * rate : rate;
    d->measured = now;
    d->bytes = completed;
}

static const char *duration(double seconds, char out[32])
{
    const unsigned long s = seconds < 360000 ? (unsigned long)(seconds + 0.5) : 360000;
    if (s >= 3600) {
        snprintf(out, 32, "%lu h %02lu min", s / 3600, s / 60 % 60);
    } else if (s >= 60) {
        snprintf(out, 32, "%lu min %02lu s", s / 60, s % 60);
    } else {
        snprintf(out, 32, "%lu s", s);
    }
    return out;
}

/* "pulling 0123456789ab: 45%, 1.2 GB of 2.7 GB, 35 MB/s, 42 s left" */
static void line_text(const display *d, const bz_pull_progress *p, char *out, size_t cap)
{
    char done[BZ_UNITS_MAX], all[BZ_UNITS_MAX], rate[BZ_UNITS_MAX], left[32];
    size_t n = (size_t)snprintf(out, cap, "%s", p->status);
    if (p->total && n < cap) {
        n += (size_t)snprintf(out + n, cap - n, ": %u%%, %s of %s",
                              (unsigned)((double)p->completed / (double)p->total * 100.0),
                              bz_bytes_text(p->completed, done), bz_bytes_text(p->total, all));
    }
    if (p->total && p->completed < p->total && d->rate >= 1 && n < cap) {
        snprintf(out + n, cap - n, ", %s/s, %s left", bz_bytes_text((uint64_t)d->rate, rate),
                 duration((double)(p->total - p->completed) / d->rate, left));
    }
}

static void end_line(display *d)
{
    if (d->drawn) {
        fputc('\n', stderr);
        d->drawn = false;
    }
}

static void draw(display *d, const char *line)
{
    fprintf(stderr, "\r\033[K%.*s", term_width() - 1, line); /* the last column would wrap */
    fflush(stderr);
    d->drawn = true;
}

static void print_json(const bz_pull_progress *p)
{
    bz_json j;
    cli_json_begin(&j);
    bz_pull_progress_json(&j, p);
    cli_json_end(&j);
}

static void on_progress(void *user, const bz_pull_progress *p)
{
    display *d = user;
    const uint64_t now = bz_os_now();
    char line[200];
    const bool new_status = strcmp(d->status, p->status) != 0;
    if (new_status) {
        if (term_has_lines()) {
            end_line(d);
        }
        snprintf(d->status, sizeof d->status, "%s", p->status);
        d->since = d->measured = now;
        d->first = d->bytes = p->completed;
        d->rate = 0;
    }
    measure(d, p->completed, now);
    if (d->o->json) {
        print_json(p);
        return;
    }
    line_text(d, p, line, sizeof line);
    if (d->o->quiet) {
        return;
    }
    if (term_has_lines()) {
        draw(d, line);
        return;
    }
    const bool end = p->total && p->completed == p->total && d->first < p->total;
    if (new_status || end || now - d->printed >= LINE_NS) {
        fprintf(stderr, "%s\n", line);
        d->first = end ? p->total : d->first; /* the end is printed once */
        d->printed = now;
    }
}

static bool is_cancelled(void *user)
{
    (void)user;
    return interrupt_stop();
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    cli_options o = {.model = ""};
    int code = cli_parse(&cli_pull_verb, argc, argv, "Ijq", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.model[0]) {
        return cli_usage_error("pull",
                               "no name given, such as gemma4:e2b or hf.co/org/repo:Q4_K_M.");
    }
    display d = {.o = &o};
    bz_error err = {0};
    interrupt_catch(true);
    const bz_status status = bz_store_pull(&(bz_pull_options){.name = o.model,
                                                              .insecure = o.insecure,
                                                              .connections = o.connections,
                                                              .retries = o.retries,
                                                              .on_progress = on_progress,
                                                              .is_cancelled = is_cancelled,
                                                              .user = &d},
                                           &err);
    end_line(&d);
    return status == BZ_OK ? EXIT_OK : cli_error(&err);
}

const cli_verb cli_pull_verb = {
    "pull", run, "download a model into Ollama's store",
    "Usage: bezel pull NAME [options]\n\n"
    "  bezel pull gemma4:e2b\n"
    "  bezel pull hf.co/org/repo:Q4_K_M      from Hugging Face\n"
    "  bezel pull localhost:5000/ns/model    from another registry\n\n"
    "Writes to the folder OLLAMA_MODELS, else to the store that exists, else to ~/.ollama/models.\n"
    "Run it again after an interruption: it continues, and fetches only what is missing. Proxies\n"
    "come from the environment (https_proxy), passwords of registries from ~/.netrc.\n\n"
    "      --insecure       use http; without it only for this machine's own addresses\n"
    "      --connections N  download N ranges at a time (8)\n"
    "      --retries N      attempts without a new byte until a download fails (7)\n"
    "      --json           print progress as JSON lines, as Ollama's API does\n"
    "  -q, --quiet          print errors only\n"};
