/* An HTTP/1.1 server in one thread: connections that never block, one request at a time on each.
 *
 *   server_route routes[] = {{"/hello", HTTP_GET, 0, say_hello, NULL}};
 *   server *s = server_new(&(server_options){.listener = l, .routes = routes, .n_routes = 1, ...},
 * &err); server_run(s); server_free(s);
 *
 * A handler is called with a whole request, its body included, and answers by one of the exchange_
 * functions: at once; as a stream, piece by piece as the client takes them; or later, when some
 * other thread has found what to say. It must not wait for anything: everybody else would wait,
 * too.
 */
#ifndef BZ_SERVER_SERVER_H
#define BZ_SERVER_SERVER_H

#include "server/access.h"
#include "server/http.h"
#include "server/os.h"

typedef struct server server;
typedef struct exchange exchange; /* a request and its answer; lives until its task has `ended` */

typedef void (*server_handler)(void *user, exchange *x);

typedef struct server_route {
    const char
        *path; /* "/api/chat" is that path; "/models/" is all below it, too. The longest counts. */
    unsigned methods;   /* http_method bits; HTTP_GET brings HTTP_HEAD */
    uint64_t body_most; /* bytes; more are answered with 413 */
    server_handler handle;
    void *user;
} server_route;

typedef struct server_log {
    http_method method;
    bz_str path; /* visible ASCII only */
    int status;
    uint64_t sent; /* bytes of the body */
} server_log;

/* Zero means the default, in milliseconds where it is a time. */
typedef struct server_options {
    os_listener listener;       /* the server closes it */
    const server_route *routes; /* [n_routes] */
    size_t n_routes;
    access_rules access;
    const char *headers;       /* fields of every answer, line ends included; may be NULL */
    unsigned most_connections; /* 512, fewer where fewer files may be open */
    unsigned head_ms;          /* 10,000: for a request's head, once it has begun */
    unsigned body_ms;          /* 20,000: for every 4 KB of a body */
    unsigned idle_ms;          /* 60,000: between two requests */
    unsigned send_ms; /* 120,000: the client takes nothing. A page may be busy with what it has. */
    unsigned stop_ms; /* 400: for answers under way when the server is to end */
    int interrupt;    /* > 0: when it can be read, `stop` is asked */
    bool (*stop)(void *user);
    void (*log)(void *user, const server_log *line); /* may be NULL */
    void *user;
} server_options;

/* NULL: *err says why; the listener is closed. What the options point to must outlive the server.
 */
server *server_new(const server_options *options, bz_error *err);
void server_run(server *s); /* until it is stopped */
void server_free(server *s);

/* From any thread. */
void server_wake(server *s); /* calls `resume` and `fill` of all that wait */
void server_stop(server *s);

/* ---- for handlers ---------------------------------------------------------------------- */

const http_head *exchange_head(const exchange *x);
bz_str exchange_body(const exchange *x); /* of the request */

/* One more field, before the answer. A value must not come from a client unless it is visible
 * ASCII. */
void exchange_header(exchange *x, const char *name, const char *format, ...) BZ_PRINTF(3, 4);

/* Answers; the first one counts. */
void exchange_text(exchange *x, int status, const char *sentence); /* for people */
void exchange_bytes(exchange *x, int status, const char *type, const void *bytes,
                    size_t n); /* copied */
void exchange_file(exchange *x, int status, const char *type, int file, uint64_t from,
                   uint64_t n);               /* closed here */
void exchange_empty(exchange *x, int status); /* 204, 304: without a body */

typedef enum stream_state {
    STREAM_MORE, /* call again, at once; nothing put: others come first */
    STREAM_WAIT, /* call again after server_wake */
    STREAM_END,
    STREAM_FAILED /* the connection is cut, so that nobody takes what came for all */
} stream_state;

typedef struct exchange_task {
    void (*resume)(void *user,
                   exchange *x); /* of exchange_later: may answer; at once, after server_wake */
    stream_state (*fill)(void *user, char *room, size_t n, size_t *put); /* of exchange_stream */
    void (*ended)(void *user); /* once, whatever happened: all is sent, or the client has left. May
                                  be NULL. */
    void *user;
} exchange_task;

void exchange_stream(exchange *x, int status, const char *type, exchange_task task);
/* The answer comes from task.resume, which may also begin a stream, with the same task. */
void exchange_later(exchange *x, exchange_task task);

#endif
