/* bezel ps: the models that a running server has loaded. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_read.h"
#include "base/os_program.h"
#include "base/units.h"
#include "cli/client.h"
#include "cli/output.h"

enum { MAX_CELL = 64, COLUMNS = 6 };

typedef char table_row[COLUMNS][MAX_CELL];

/* "2026-11-16T15:13:36Z" -> "4 minutes from now", as Ollama writes it. */
static void until_text(bz_str when, char out[MAX_CELL])
{
    struct tm parts = {0};
    char text[MAX_CELL];
    snprintf(text, sizeof text, "%.*s", (int)(when.len < MAX_CELL ? when.len : 0), when.data);
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
               &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6) {
        snprintf(out, MAX_CELL, "-");
        return;
    }
    parts.tm_year -= 1900;
    parts.tm_mon--;
    const double left = (double)(bz_os_seconds(&parts) - (int64_t)time(NULL));
    const double years = left / 31557600;
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    if (years > 20) { /* keep_alive -1 */
        snprintf(out, MAX_CELL, "Forever");
        return;
    }
    if (left <= 0) {
        snprintf(out, MAX_CELL, "Stopping...");
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const unsigned n = (unsigned)(left / units[i].seconds);
        if (n) {
            snprintf(out, MAX_CELL, "%u %s%s from now", n, units[i].name, n == 1 ? "" : "s");
            return;
        }
    }
}

static void processor_text(int64_t size, int64_t on_gpu, char out[MAX_CELL])
{
    if (on_gpu <= 0) {
        snprintf(out, MAX_CELL, "100%% CPU");
    } else if (on_gpu >= size) {
        snprintf(out, MAX_CELL, "100%% GPU");
    } else {
        const int gpu = (int)((double)on_gpu / (double)size * 100 + 0.5);
        snprintf(out, MAX_CELL, "%d%%/%d%% CPU/GPU", 100 - gpu, gpu);
    }
}

static void read_row(const bz_json_node *m, table_row row)
{
    int64_t size = 0, on_gpu = 0, context = 0;
    char units[BZ_UNITS_MAX], shown[200];
    bz_json_to_int(bz_json_get(m, "size"), &size);
    bz_json_to_int(bz_json_get(m, "size_vram"), &on_gpu);
    bz_json_to_int(bz_json_get(m, "context_length"), &context);
    snprintf(row[0], MAX_CELL, "%.*s", MAX_CELL - 1,
             bz_str_show(bz_json_string(bz_json_get(m, "name")), shown));
    snprintf(row[1], MAX_CELL, "%.12s",
             bz_str_show(bz_json_string(bz_json_get(m, "digest")), shown));
    snprintf(row[2], MAX_CELL, "%s", bz_bytes_text(size > 0 ? (uint64_t)size : 0, units));
    processor_text(size, on_gpu, row[3]);
    snprintf(row[4], MAX_CELL, "%lld", (long long)context);
    until_text(bz_json_string(bz_json_get(m, "expires_at")), row[5]);
}

static int print_table(const bz_json_node *models)
{
    static const char *const titles[COLUMNS] = {"NAME",      "ID",      "SIZE",
                                                "PROCESSOR", "CONTEXT", "UNTIL"};
    const size_t n = models ? models->n : 0;
    table_row *rows = calloc(n + 1, sizeof *rows);
    if (!rows) {
        fprintf(stderr, "bezel: no memory for the list.\n");
        return EXIT_CANNOT;
    }
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(rows[0][c], MAX_CELL, "%s", titles[c]);
    }
    size_t r = 1;
    for (const bz_json_node *m = bz_json_first(models); m; m = m->next) {
        read_row(m, rows[r++]);
    }
    int width[COLUMNS] = {0};
    for (size_t i = 0; i < r; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            const int len = (int)strlen(rows[i][c]);
            width[c] = len > width[c] ? len : width[c];
        }
    }
    for (size_t i = 0; i < r; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            printf("%-*s%s", c + 1 < COLUMNS ? width[c] : 0, rows[i][c],
                   c + 1 < COLUMNS ? "    " : "\n");
        }
    }
    free(rows);
    return cli_flush();
}

static int run(int argc, char **argv)
{
    cli_options o = {.model = "", .port = -1};
    int code = cli_parse(&cli_ps_verb, argc, argv, "uj4", 0, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    client_answer answer;
    bz_error err = {0};
    if (client_request(&o, o.health ? "/health" : "/api/ps", NULL, &answer, &err) != BZ_OK) {
        return cli_error(&err);
    }
    bz_arena arena = {0};
    const bz_json_node *root = NULL;
    if (answer.status != 200) {
        code = client_error(&answer);
    } else if (bz_json_read(&root, answer.text, answer.n, &arena, &err) != BZ_OK) {
        code = cli_error(&err);
    } else if (o.json || o.health) {
        puts(answer.text);
        code = cli_flush();
    } else {
        code = print_table(bz_json_get(root, "models"));
    }
    bz_arena_free(&arena);
    free(answer.text);
    return code;
}

const cli_verb cli_ps_verb = {
    "ps", run, "list the models that a running server has loaded",
    "Usage: bezel ps [options]\n\n"
    "  bezel ps\n\n"
    "      --host ADDR     where 'bezel serve' listens (127.0.0.1)\n"
    "      --port N        its port (11435)\n"
    "      --api-key KEY   its key, if it has one\n"
    "      --health        only whether it answers: status 0 if so; needs no key\n"
    "      --json          print the server's answer\n"};
