/* Shared by server.c (all connections), connection.c (one connection) and exchange.c (answers). */
#ifndef BZ_SERVER_INSIDE_H
#define BZ_SERVER_INSIDE_H

#include <stdatomic.h>

#include "server/server.h"

enum {
    IN_SIZE = HTTP_HEAD_MAX + 16384, /* a head and the start of a body */
    OUT_SIZE = 16384,
    EXTRA_SIZE = 2048
};

typedef enum phase {
    PHASE_HEAD,  /* waiting for a request */
    PHASE_BODY,  /* reading the body */
    PHASE_LATER, /* the handler will answer later */
    PHASE_SEND,  /* sending the answer */
    PHASE_LINGER /* sent; closing before the client does could discard data that it has not read */
} phase;

struct exchange {
    server *server;
    int fd;
    uint64_t client; /* as os_accept identifies it */
    phase phase;
    uint64_t since;    /* ns: start of the phase */
    uint64_t deadline; /* ns; 0: none */
    bool busy;         /* has work that does not wait for its socket */
    bool keep;         /* another request may follow */

    /* the request */
    http_head head;
    http_body body;
    const server_route *route;
    char *content; /* the body [n_content] */
    size_t n_content, room_content;
    size_t counted; /* bytes of the body when its deadline was set */

    /* the answer */
    int status;
    char extra[EXTRA_SIZE]; /* header fields set by the handler */
    size_t n_extra;
    size_t n_out, sent; /* of `out` */
    char *bytes;        /* [n_bytes] */
    size_t n_bytes, bytes_sent;
    int file; /* -1: none */
    uint64_t file_at, file_left;
    bool streaming, chunked; /* the task produces more */
    bool waiting;            /* for server_wake */
    bool has_task;
    exchange_task task;
    uint64_t total; /* bytes of the body sent, for the log */

    size_t n_in;
    char in[IN_SIZE]; /* the head, then the bytes after it */
    char out[OUT_SIZE];
};

struct server {
    server_options o;
    exchange **list; /* [max_connections] */
    os_watch *watches;
    size_t n, max;
    int alarm[2];
    atomic_bool stop;
    bool stopping;
    uint64_t stop_at;   /* ns */
    uint64_t accept_at; /* ns: when to accept again after running out of files */
};

/* ---- connection.c ---- */

void connection_enter(exchange *x, phase p, uint64_t ms); /* which may last that long */
/* Does what is possible now; false: the connection has ended. give_up: for an expired deadline. */
bool connection_turn(exchange *x);
bool connection_give_up(exchange *x);
short connection_wanted(const exchange *x);          /* events to poll its socket for */
bool connection_left(const exchange *x, short seen); /* the client disconnected during the answer */
void connection_log(const exchange *x);              /* also an incomplete answer */

/* ---- exchange.c ---- */

/* Writes the next piece of a stream to `out`; false: the connection must be cut. */
bool exchange_fill(exchange *x);
/* Releases everything of one request and its answer. */
void exchange_clear(exchange *x);

#endif
