/* Answers: their heads, and the sources of their bodies. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/internal.h"

const http_head *exchange_head(const exchange *x)
{
    return &x->head;
}

bz_str exchange_body(const exchange *x)
{
    return (bz_str){x->content ? x->content : "", x->n_content};
}

uint64_t exchange_client(const exchange *x)
{
    return x->client;
}

uint64_t exchange_program(const exchange *x)
{
    static const char *const fields[] = {"Authorization", "User-Agent", "Origin"};
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const bz_str value = http_field(&x->head, fields[i]);
        for (size_t k = 0; k <= value.len; k++) { /* with a byte between fields */
            const unsigned char byte = k < value.len ? (unsigned char)value.data[k] : 0;
            hash = (hash ^ byte) * 1099511628211u;
        }
    }
    return hash;
}

void exchange_header(exchange *x, const char *name, const char *format, ...)
{
    const size_t room = EXTRA_SIZE - x->n_extra;
    char value[1024];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(value, sizeof value, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof value || strpbrk(value, "\r\n")) {
        return; /* a truncated field would have another meaning */
    }
    const int n = snprintf(x->extra + x->n_extra, room, "%s: %s\r\n", name, value);
    if (n > 0 && (size_t)n < room) {
        x->n_extra += (size_t)n;
    }
}

/* ---- heads --------------------------------------------------------------------------------- */

typedef enum framing { NO_BODY, SIZED, STREAMED } framing;

/* Writes the head to `out`; false: there is an answer already. */
static bool begin_answer(exchange *x, int status, const char *type, framing framed, uint64_t length)
{
    char date[HTTP_DATE_SIZE], line[160] = "";
    if (x->phase == PHASE_SEND) {
        return false;
    }
    if (framed == SIZED) {
        snprintf(line, sizeof line, "Content-Type: %.80s\r\nContent-Length: %llu\r\n", type,
                 (unsigned long long)length);
    } else if (framed == STREAMED) {
        x->chunked = !x->head.old;
        x->keep = x->keep && x->chunked; /* else closing the connection ends the body */
        snprintf(line, sizeof line, "Content-Type: %.80s\r\n%s", type,
                 x->chunked ? "Transfer-Encoding: chunked\r\n" : "");
    }
    const char *fixed = x->server->o.headers ? x->server->o.headers : "";
    const int n = snprintf(x->out, OUT_SIZE, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%.*s%s\r\n", status,
                           http_reason(status), http_date_write(os_clock(), date), line, fixed,
                           (int)x->n_extra, x->extra,
                           !x->keep      ? "Connection: close\r\n"
                           : x->head.old ? "Connection: keep-alive\r\n"
                                         : "");
    x->n_out = n > 0 && n < OUT_SIZE ? (size_t)n : 0; /* the fields always fit */
    x->sent = 0;
    x->status = status;
    x->phase = PHASE_SEND;
    x->waiting = false;
    return true;
}

/* An answer to HEAD has the head of the answer to GET and no body. */
static bool wants_body(const exchange *x)
{
    return x->head.method != HTTP_HEAD;
}

void exchange_bytes(exchange *x, int status, const char *type, const void *bytes, size_t n)
{
    if (!begin_answer(x, status, type, SIZED, n) || !wants_body(x) || n == 0) {
        return;
    }
    x->total = n;
    if (n <= OUT_SIZE - x->n_out) { /* one packet instead of two */
        memcpy(x->out + x->n_out, bytes, n);
        x->n_out += n;
        return;
    }
    x->bytes = malloc(n);
    if (!x->bytes) {
        x->keep = false;
        x->n_out = 0; /* too late for another answer: the connection is cut */
        return;
    }
    memcpy(x->bytes, bytes, n);
    x->n_bytes = n;
}

void exchange_text(exchange *x, int status, const char *sentence)
{
    char line[512];
    const int n = snprintf(line, sizeof line, "%s\n", sentence);
    exchange_bytes(x, status, "text/plain; charset=utf-8", line,
                   n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

void exchange_empty(exchange *x, int status)
{
    begin_answer(x, status, NULL, NO_BODY, 0);
}

void exchange_file(exchange *x, int status, const char *type, int file, uint64_t from, uint64_t n)
{
    if (!begin_answer(x, status, type, SIZED, n) || !wants_body(x) || n == 0) {
        os_close_file(file);
        return;
    }
    x->file = file;
    x->file_at = from;
    x->file_left = x->total = n;
}

/* ---- tasks ------------------------------------------------------------------------------------
 */

void exchange_later(exchange *x, exchange_task task)
{
    x->task = task;
    x->has_task = true;
    x->waiting = true;
    x->phase = PHASE_LATER;
    x->deadline = 0; /* no limit for the handler */
}

void exchange_stream(exchange *x, int status, const char *type, exchange_task task)
{
    const bool begun = begin_answer(x, status, type, STREAMED, 0);
    if (begun) {
        x->task = task;
        x->has_task = true;
        x->streaming = wants_body(x);
    }
}

/* Every chunk has "1A2B\r\n" before it and "\r\n" after it; "0\r\n\r\n" ends the body. */
enum { CHUNK_BEFORE = 6, CHUNK_AFTER = 2, CHUNK_LAST = 5 };

bool exchange_fill(exchange *x)
{
    const size_t before = x->chunked ? CHUNK_BEFORE : 0,
                 room = OUT_SIZE - CHUNK_BEFORE - CHUNK_AFTER - CHUNK_LAST;
    size_t put = 0;
    const stream_state state = x->task.fill(x->task.user, x->out + before, room, &put);
    if (state == STREAM_FAILED || put > room) {
        return false;
    }
    x->sent = 0;
    x->n_out = put ? before + put : 0;
    x->total += put;
    if (put && x->chunked) {
        char size[CHUNK_BEFORE + 1];
        snprintf(size, sizeof size, "%04X\r\n", (unsigned)put & 0xFFFF);
        memcpy(x->out, size, CHUNK_BEFORE);
        memcpy(x->out + x->n_out, "\r\n", CHUNK_AFTER);
        x->n_out += CHUNK_AFTER;
    }
    if (state == STREAM_END) {
        x->streaming = false;
        if (x->chunked) {
            memcpy(x->out + x->n_out, "0\r\n\r\n", CHUNK_LAST);
            x->n_out += CHUNK_LAST;
        }
    }
    x->waiting = state == STREAM_WAIT;
    x->busy = state == STREAM_MORE && put == 0;
    return true;
}

void exchange_clear(exchange *x)
{
    if (x->has_task && x->task.ended) {
        x->task.ended(x->task.user);
    }
    os_close_file(x->file);
    free(x->bytes);
    free(x->content);
    x->has_task = x->streaming = x->chunked = x->waiting = x->busy = false;
    x->file = -1;
    x->file_left = x->total = 0;
    x->bytes = x->content = NULL;
    x->n_bytes = x->bytes_sent = x->n_content = x->room_content = 0;
    x->n_extra = x->n_out = x->sent = 0;
    x->route = NULL;
    x->status = 0;
    x->head = (http_head){0};
}
