/* Files as answers: what a request with conditions and ranges gets of a file whose size and time
 * are known. Pure: files.c opens what this decides about. */
#ifndef BZ_SERVER_STATIC_H
#define BZ_SERVER_STATIC_H

#include "server/http.h"

/* Fields of every answer, line ends included: pages are isolated (threads in WebAssembly need it),
 * run no code but their own files and WebAssembly, and may fetch models from anywhere by https. */
extern const char static_headers[];

typedef struct static_type {
    const char *name;  /* "text/html; charset=utf-8" */
    bool compressible; /* FILE.br and FILE.gz beside it may stand for it */
} static_type;

/* By the ending of a name; any other is application/octet-stream. */
const static_type *static_type_of(const char *path);

typedef struct static_file {
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
    uint32_t nanoseconds;
} static_file;

enum { STATIC_TAG_ROOM = 64, STATIC_RANGE_ROOM = 80 };

typedef struct static_plan {
    int status;                    /* 200, 206, 304, 412 or 416 */
    uint64_t from, length;         /* what of the file is the body; 0 bytes but for 200 and 206 */
    char tag[STATIC_TAG_ROOM];     /* ETag, with its quotation marks */
    char modified[HTTP_DATE_ROOM]; /* "": a time that HTTP cannot write */
    char range[STATIC_RANGE_ROOM]; /* of 206 and 416: the value of Content-Range, else "" */
} static_plan;

/* `coding`: "" or the ending of a compressed twin, which is another representation with another
 * tag. */
static_plan static_decide(const http_head *h, const static_file *f, const char *coding);

/* Whether Accept-Encoding names this coding and does not forbid it (q=0). */
bool static_accepts(const http_head *h, const char *coding);

#endif
