/* Which part of a file answers a request with conditions and ranges, given its size and time. Pure
 * functions; files.c opens the files. */
#ifndef BZ_SERVER_STATIC_H
#define BZ_SERVER_STATIC_H

#include "server/http.h"

/* Fields of every answer, with line ends: pages are isolated (WebAssembly threads need it), run
 * only their own files and WebAssembly, and may fetch models from anywhere over https. */
extern const char static_headers[];
/* In addition, the policy of the engine's worker: a browser obeys both. It parses models, and needs
 * nothing but its own scripts and the files that it reads. */
extern const char static_worker_policy[];
bool static_is_worker(const char *path);

/* The Cache-Control of a file of the page. In the folder v its address changes with its content;
 * any other file is revalidated, which is cheap, as files of two builds do not work together. */
const char *static_cache(const char *path);

typedef struct static_type {
    const char *name;  /* "text/html; charset=utf-8" */
    bool compressible; /* FILE.br and FILE.gz may be sent instead */
} static_type;

/* By the ending of a name; any other is application/octet-stream. */
const static_type *static_type_of(const char *path);

typedef struct static_file {
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
    uint32_t nanoseconds;
} static_file;

enum { STATIC_TAG_SIZE = 64, STATIC_RANGE_SIZE = 80 };

typedef struct static_plan {
    int status;                /* 200, 206, 304, 412 or 416 */
    uint64_t from, length;     /* range of the file in the body; 0 bytes except for 200 and 206 */
    char tag[STATIC_TAG_SIZE]; /* ETag, with its quotation marks */
    char modified[HTTP_DATE_SIZE]; /* "": not representable in HTTP */
    char range[STATIC_RANGE_SIZE]; /* of 206 and 416: the value of Content-Range, else "" */
} static_plan;

/* `coding`: "" or the extension of the compressed version, which has another tag. */
static_plan static_decide(const http_head *h, const static_file *f, const char *coding);

/* Whether Accept-Encoding includes this coding without q=0. */
bool static_accepts(const http_head *h, const char *coding);

#endif
