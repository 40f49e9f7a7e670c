#include "cli/batch/prompts_input.h"

#include <errno.h>
#include <string.h>

#include "base/os_program.h"
#include "cli/interrupt.h"

bool prompts_input_shard(prompts_input *in, const char *text)
{
    unsigned shard = 1, of = 1;
    char rest;
    if (text && (sscanf(text, "%9u/%9u%c", &shard, &of, &rest) != 2 || of < 1 || shard > of)) {
        return false;
    }
    in->shard = shard ? shard : of;
    in->of = of;
    return true;
}

bz_status prompts_input_open(prompts_input *in, const char *path, bz_error *err)
{
    in->path = path;
    in->file = strcmp(path, "-") == 0 ? stdin : bz_os_stream(path, "rb");
    if (!in->file && interrupt_stop()) { /* while a pipe had no writer */
        return bz_fail(err, BZ_ABORTED, "Interrupted.");
    }
    if (!in->file) {
        return bz_fail(err, errno == ENOENT ? BZ_BAD_REQUEST : BZ_BAD_FILE, "Cannot read %s: %s.",
                       path, strerror(errno));
    }
    return BZ_OK;
}

void prompts_input_close(prompts_input *in)
{
    if (in->file && in->file != stdin) {
        fclose(in->file);
    }
    line_free(&in->buffer);
    *in = (prompts_input){0};
}

static bool blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!strchr(" \t\r\n", text[i]) || text[i] == 0) {
            return false;
        }
    }
    return true;
}

bz_status prompts_input_next(prompts_input *in, bz_error *err)
{
    for (;;) {
        const bz_status status =
            line_read(&in->buffer, in->file, LINE_MAX_BYTES,
                      in->file == stdin ? "standard input" : in->path, in->line + 1, err);
        if (status != BZ_OK || in->buffer.len == 0 || interrupt_stop()) {
            in->ended = true;
            return interrupt_stop() ? BZ_OK : status;
        }
        in->line++;
        in->text = in->buffer.text;
        in->len = in->buffer.len;
        if (blank(in->text, in->len) || in->line < in->shard ||
            (in->line - in->shard) % in->of != 0) {
            continue;
        }
        while (in->len && (in->text[in->len - 1] == '\n' || in->text[in->len - 1] == '\r')) {
            in->len--;
        }
        return BZ_OK;
    }
}

/* By another descriptor, so that reading is not disturbed. */
uint64_t prompts_input_count(const prompts_input *in)
{
    bz_os_info info;
    FILE *f = in->file != stdin && bz_os_stat_file(bz_os_file_of(in->file), &info) && !info.folder
                  ? bz_os_stream(in->path, "rb")
                  : NULL;
    uint64_t line = 1, n = 0;
    bool text = false;
    for (int c = 0; f && c != EOF && !interrupt_stop();) {
        c = getc(f);
        if (c != '\n' && c != EOF) {
            text = text || !memchr(" \t\r", c, 3);
            continue;
        }
        n += text && line >= in->shard && (line - in->shard) % in->of == 0;
        text = false;
        line++;
    }
    if (f) {
        fclose(f);
    }
    return n;
}

uint64_t prompts_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * 0x100000001B3u;
    }
    return hash;
}

uint64_t prompts_seed(uint64_t seed, uint64_t line)
{
    uint64_t x = seed + line * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (x ^ (x >> 31)) >> 32;
}
