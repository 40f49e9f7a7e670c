/* An HTTP/1.1 server in one thread: non-blocking connections, one request at a time on each.
 *
 *   server_route routes[] = {{"/hello", HTTP_GET, 0, say_hello, NULL}};
 *   server *s = server_new(&(server_options){.listener = l, .routes = routes, .n_routes = 1, ...},
 * &err); server_run(s); server_free(s);
 *
 * A handler gets a complete request with its body and answers with one of the exchange_ functions:
 * at once; as a stream, piece by piece; or later, from another thread. It must not block, as that
 * would block all connections. */
#ifndef BZ_SERVER_SERVER_H
#define BZ_SERVER_SERVER_H

#include "server/access.h"
#include "server/http.h"
#include "server/os.h"

typedef struct server server;
typedef struct exchange exchange; /* a request and its answer; valid until its task has `ended` */

typedef void (*server_handler)(void *user, exchange *x);

typedef struct server_route {
    const char *path;  /* "/api/chat": that path; "/models/": all paths below it. The longest match
                          is used. */
    unsigned methods;  /* http_method bits; HTTP_GET includes HTTP_HEAD */
    uint64_t body_max; /* bytes; more are answered with 413 */
    server_handler handle;
    void *user;
    bool open; /* needs no key */
} server_route;

typedef struct server_log {
    http_method method;
    bz_str path; /* visible ASCII only */
    int status;
    uint64_t sent; /* bytes of the body */
} server_log;

/* Zero means the default. Times are in milliseconds. */
typedef struct server_options {
    os_listener listener;       /* the server closes it */
    const server_route *routes; /* [n_routes] */
    size_t n_routes;
    access_rules access;
    const char *headers; /* fields of every answer, line ends included; may be NULL */
    /* Writes the answer to a request that is refused before its handler is called, in the form of
     * its path's API. NULL: plain text. */
    void (*refuse)(exchange *x, int status, const char *sentence);
    unsigned max_connections; /* 512, or fewer if the limit on open files is low */
    unsigned max_per_client;  /* of them with the same client (os_accept); max_connections */
    unsigned head_ms;         /* 10,000: for a request's head, from its first byte */
    unsigned body_ms;         /* 20,000: for every 4 KB of a body */
    unsigned idle_ms;         /* 60,000: between two requests */
    unsigned send_ms;         /* 120,000: without progress; a page may be busy with data it has */
    unsigned stop_ms;         /* 400: to finish answers when the server is stopped */
    int interrupt;            /* > 0: when it becomes readable, `stop` is called */
    bool (*stop)(void *user);
    void (*log)(void *user, const server_log *line); /* may be NULL */
    void *user;
} server_options;

/* NULL: *err says why; the listener is closed. What the options point to must outlive the server.
 */
server *server_new(const server_options *options, bz_error *err);
void server_run(server *s);   /* until it is stopped */
void server_close(server *s); /* ends all connections; server_wake may still be called */
void server_free(server *s);

/* From any thread. */
void server_wake(server *s); /* calls `resume` and `fill` of all waiting tasks */
void server_stop(server *s);

/* ---- for handlers ---------------------------------------------------------------------- */

const http_head *exchange_head(const exchange *x);
bz_str exchange_body(const exchange *x);     /* of the request */
uint64_t exchange_client(const exchange *x); /* the same number for all connections of a client */
/* Tells programs of a client apart by what they send: key, User-Agent, Origin. */
uint64_t exchange_program(const exchange *x);

/* Adds a field, before answering. A value from a client must be visible ASCII. */
void exchange_header(exchange *x, const char *name, const char *format, ...) BZ_PRINTF(3, 4);

/* Answers; only the first call has an effect. */
void exchange_text(exchange *x, int status, const char *sentence); /* plain text */
void exchange_bytes(exchange *x, int status, const char *type, const void *bytes,
                    size_t n); /* copied */
void exchange_file(exchange *x, int status, const char *type, int file, uint64_t from,
                   uint64_t n);               /* closes the file */
void exchange_empty(exchange *x, int status); /* 204, 304: without a body */

typedef enum stream_state {
    STREAM_MORE, /* call again; if nothing was put, after other connections */
    STREAM_WAIT, /* call again after server_wake */
    STREAM_END,
    STREAM_FAILED /* the connection is cut, so that the client sees it is incomplete */
} stream_state;

typedef struct exchange_task {
    void (*resume)(
        void *user,
        exchange *x); /* of exchange_later: may answer; called at once and after server_wake */
    stream_state (*fill)(void *user, char *room, size_t n, size_t *put); /* of exchange_stream */
    void (*ended)(void *user); /* called once, after sending or if the client left. May
                                  be NULL. */
    void *user;
} exchange_task;

void exchange_stream(exchange *x, int status, const char *type, exchange_task task);
/* task.resume answers later; it may also start a stream with the same task. */
void exchange_later(exchange *x, exchange_task task);

#endif
