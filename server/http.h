/* HTTP/1.1 requests, as functions over bytes: nothing here reads a socket.
 *
 * A request arrives in pieces of any size. Both readers get all unused bytes and
 * answer "more", "done" or "bad"; how the bytes were split never changes the result. A request that
 * deviates from RFC 9112 (bare line ends, two lengths, folded fields, blanks before a colon) is
 * refused instead of repaired: two servers must never read one request differently. */
#ifndef BZ_SERVER_HTTP_H
#define BZ_SERVER_HTTP_H

#include "base/error.h"

enum {
    HTTP_LINE_MAX = 8192,  /* bytes of the request line or of one field, without its line end */
    HTTP_HEAD_MAX = 16384, /* bytes of a head, all line ends included */
    HTTP_FIELDS_MAX = 100
};

typedef enum http_answer { HTTP_MORE, HTTP_DONE, HTTP_BAD } http_answer;

/* Bits, so that a route can accept several. */
typedef enum http_method {
    HTTP_GET = 1,
    HTTP_HEAD = 2,
    HTTP_POST = 4,
    HTTP_PUT = 8,
    HTTP_DELETE = 16,
    HTTP_OPTIONS = 32,
    HTTP_PATCH = 64
} http_method;

const char *http_method_name(http_method method);

/* A range of the head, as offsets: the bytes may move. */
typedef struct http_span {
    uint32_t at, len;
} http_span;

/* Why a request is refused: the status to answer with, and a sentence. */
typedef struct http_refusal {
    int status;
    const char *why;
} http_refusal;

/* ---- the head ------------------------------------------------------------------- */

/* Zero-initialize for every request. */
typedef struct http_head {
    http_method method;
    bool old;              /* HTTP/1.0 */
    http_span path, query; /* as they were sent, the path from its '/'; "*" for OPTIONS * */
    http_span
        authority; /* "localhost:11435", from the target or from Host; empty: HTTP/1.0 without it */
    http_span field_name[HTTP_FIELDS_MAX], field_value[HTTP_FIELDS_MAX];
    unsigned n_fields;
    bool close;            /* close the connection after the answer */
    bool expects_continue; /* the client waits for "100 Continue" before it sends the body */
    bool chunked, sized;   /* how the body is sent; neither: there is none */
    uint64_t length;       /* if sized */
    uint32_t size;         /* when done: bytes of the head; the body follows them */
    http_refusal refusal;  /* when bad */
    /* private */
    const char *bytes;      /* of the last call */
    uint32_t line, scanned; /* start of the current line; there is no line end before `scanned` */
    bool begun;             /* the request line has been read */
} http_head;

/* bytes [0, n): the request from its first byte on. After "done" or "bad" it must not be called
 * again. */
http_answer http_head_read(http_head *h, const char *bytes, size_t n);

/* These hold pointers into the bytes of the last call. */
bz_str http_text(const http_head *h, http_span s);
bz_str http_field(const http_head *h,
                  const char *name); /* the first of that name; data NULL: none */
/* All fields of that name in turn: start with *i = 0; data NULL: no more. */
bz_str http_next_field(const http_head *h, const char *name, unsigned *i);
/* Whether a comma-separated list in any field of that name has `word`, ignoring case. */
bool http_list_has(const http_head *h, const char *name, const char *word);

/* ---- the body -------------------------------------------------------------------- */

typedef struct http_body {
    uint64_t max;         /* bytes it may have */
    uint64_t got;         /* so far */
    http_refusal refusal; /* when bad: 400, or 413 for more than `max` */
    /* private */
    int state;
    uint64_t left;   /* of the body or of the chunk */
    unsigned digits; /* of a chunk's size */
    size_t extra;    /* bytes of extensions and trailers, which are ignored */
} http_body;

/* "bad" if the head announces too much, "done" if there is no body. */
http_answer http_body_begin(http_body *b, const http_head *h, uint64_t max);
/* Takes *used of n bytes and writes *put <= *used bytes of the body to `out`, which may be `in`.
 * Bytes after the body are not used: they are the next request. */
http_answer http_body_read(http_body *b, const char *in, size_t n, size_t *used, char *out,
                           size_t *put);

/* ---- parts of answers ------------------------------------------------------------- */

enum { HTTP_DATE_SIZE = 32 };

const char *http_reason(int status); /* "Not Found" */
/* "Sun, 06 Nov 1994 08:49:37 GMT"; returns out. */
const char *http_date_write(int64_t seconds, char out[HTTP_DATE_SIZE]);
/* Only that form. RFC 9110 has two obsolete ones, which no current client sends; an unreadable date
 * makes a request unconditional, which is safe. */
bool http_date_read(bz_str text, int64_t *seconds);

/* Helpers for values: equal ignoring case; without blanks at both ends; the part before the next
 * comma, which is removed from *rest (data NULL: there is none). */
bool http_same(bz_str s, const char *text);
bz_str http_trim(bz_str s);
bz_str http_next_item(bz_str *rest);

#endif
