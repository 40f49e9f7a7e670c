/* What server.c (all connections), connection.c (one of them) and exchange.c (answers) share. */
#ifndef BZ_SERVER_INSIDE_H
#define BZ_SERVER_INSIDE_H

#include <stdatomic.h>

#include "server/server.h"

enum {
    IN_ROOM = HTTP_HEAD_MOST + 16384, /* a head, and bytes of a body behind it */
    OUT_ROOM = 16384,
    EXTRA_ROOM = 2048
};

typedef enum phase {
    PHASE_HEAD,  /* waits for a request */
    PHASE_BODY,  /* has its head */
    PHASE_LATER, /* has it; the handler owes the answer */
    PHASE_SEND,  /* sends the answer */
    PHASE_LINGER /* all is said. To close before the client does could destroy what it has not read
                    yet. */
} phase;

struct exchange {
    server *server;
    int fd;
    phase phase;
    uint64_t since;    /* ns, of the phase */
    uint64_t deadline; /* ns; 0: none */
    bool busy;         /* has more to do, whatever its socket says */
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
    char extra[EXTRA_ROOM]; /* fields of the handler's */
    size_t n_extra;
    size_t n_out, sent; /* of `out` */
    char *bytes;        /* [n_bytes] */
    size_t n_bytes, bytes_sent;
    int file; /* -1: none */
    uint64_t file_at, file_left;
    bool streaming, chunked; /* the task has more to say */
    bool waiting;            /* for server_wake */
    bool has_task;
    exchange_task task;
    uint64_t total; /* bytes of the body sent, for the log */

    size_t n_in;
    char in[IN_ROOM]; /* the head, then what came behind it */
    char out[OUT_ROOM];
};

struct server {
    server_options o;
    exchange **list; /* [most] */
    os_watch *watches;
    size_t n, most;
    int alarm[2];
    atomic_bool stop;
    bool stopping;
    uint64_t stop_at;   /* ns */
    uint64_t accept_at; /* ns: no file was left for a connection; try again then */
};

/* ---- connection.c ---- */

void connection_enter(exchange *x, phase p, uint64_t ms); /* which may last so long */
/* Does what can be done now; false: the connection is over. give_up: the same when its time is
 * over. */
bool connection_turn(exchange *x);
bool connection_give_up(exchange *x);
short connection_wanted(const exchange *x); /* what to watch its socket for */
bool connection_left(const exchange *x,
                     short seen);       /* the client has gone while it was being answered */
void connection_log(const exchange *x); /* the answer, as far as it went */

/* ---- exchange.c ---- */

/* The next piece of a stream into `out`; false: the connection must be cut. */
bool exchange_fill(exchange *x);
/* Lets go of everything that belongs to one request and its answer. */
void exchange_clear(exchange *x);

#endif
