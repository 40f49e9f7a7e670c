/* All connections: accepting, polling, deadlines. */
#include "server/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum {
    SOME_FILES = 32, /* open besides those of connections */
    PAUSE_MS = 100   /* before accepting again after running out of files */
};
/* A body without 4 KB more in this time may be closed for a new connection. */
static const uint64_t STALLED_NS = 2000000000;

static uint64_t in_ms(uint64_t ms)
{
    return bz_os_now() + ms * 1000000;
}

/* ---- accepting and closing
 * ------------------------------------------------------------------------------ */

static void drop(server *s, size_t i)
{
    exchange *x = s->list[i];
    if (x->phase == PHASE_SEND) {
        connection_log(x); /* an incomplete answer */
    }
    exchange_clear(x);
    os_close(x->fd);
    free(x);
    s->list[i] = s->list[--s->n];
}

/* How readily a connection is closed for a new one: 3 if it is idle, 2 if its head is incomplete, 1
 * if its body is and did not grow lately, 0 if it must stay. */
static int expendable(const exchange *x, uint64_t now)
{
    if (x->phase == PHASE_HEAD) {
        return x->n_in ? 2 : 3;
    }
    return x->phase == PHASE_BODY && now - x->since > STALLED_NS;
}

/* The connection to close for a new one: the most expendable, of those the one that has been so for
 * longest. s->n: there is none. client: only its connections, NULL: all. */
static size_t find_idle(const server *s, const uint64_t *client)
{
    const uint64_t now = bz_os_now();
    size_t found = s->n;
    int most = 0;
    for (size_t i = 0; i < s->n; i++) {
        const exchange *x = s->list[i];
        const int value = expendable(x, now);
        if (value && (!client || x->client == *client) &&
            (value > most || (value == most && x->since < s->list[found]->since))) {
            found = i;
            most = value;
        }
    }
    return found;
}

static size_t count_client(const server *s, uint64_t client)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        n += s->list[i]->client == client;
    }
    return n;
}

/* Whether a client may have another connection; one of its idle ones is closed for it. If none is
 * idle, the new one is refused. */
static bool admit(server *s, int fd, uint64_t client)
{
    static const char refusal[] =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\n"
        "Content-Length: 45\r\n\r\nThis client has too many connections already.";
    if (count_client(s, client) < s->o.max_per_client) {
        return true;
    }
    const size_t idle = find_idle(s, &client);
    if (idle < s->n) {
        drop(s, idle);
        return true;
    }
    os_send(fd, refusal, sizeof refusal - 1, false);
    os_close(fd);
    return false;
}

static bool add(server *s, int fd, uint64_t client)
{
    exchange *x = malloc(sizeof *x);
    if (!x) {
        os_close(fd);
        return false;
    }
    memset(x, 0, offsetof(exchange, in)); /* not the buffers, which need no clearing */
    x->server = s;
    x->fd = fd;
    x->client = client;
    x->file = -1;
    connection_enter(x, PHASE_HEAD, s->o.head_ms);
    s->list[s->n++] = x;
    return true;
}

/* If all slots are in use, closes a connection that is idle or has sent a part of a head only; if
 * there is none, new ones wait. */
static void accept_all(server *s)
{
    for (;;) {
        if (s->n == s->max && find_idle(s, NULL) == s->n) {
            return;
        }
        uint64_t client;
        const int fd = os_accept(s->o.listener.fd, &client);
        if (fd < 0) {
            s->accept_at = fd == OS_FULL ? in_ms(PAUSE_MS) : s->accept_at;
            return;
        }
        if (!admit(s, fd, client)) {
            continue;
        }
        if (s->n == s->max) {
            drop(s, find_idle(s, NULL));
        }
        if (!add(s, fd, client)) {
            s->accept_at = in_ms(PAUSE_MS);
            return;
        }
    }
}

static void begin_stop(server *s)
{
    s->stop_at = s->stopping ? 0 : in_ms(s->o.stop_ms); /* a second request stops at once */
    s->stopping = true;
    os_close(s->o.listener.fd);
    s->o.listener.fd = -1;
    for (size_t i = s->n; i-- > 0;) {
        if (s->list[i]->phase == PHASE_HEAD || s->list[i]->phase == PHASE_LINGER) {
            drop(s, i);
        }
    }
}

/* ---- waiting
 * ------------------------------------------------------------------------------------- */

enum { WATCH_LISTENER, WATCH_ALARM, WATCH_INTERRUPT, WATCH_FIRST };

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

/* Fills the poll list; returns the timeout in milliseconds. */
static int plan_wait(server *s, uint64_t now)
{
    uint64_t until = UINT64_MAX;
    const bool pause = now < s->accept_at;
    bool busy = false;
    for (size_t i = 0; i < s->n; i++) {
        const exchange *x = s->list[i];
        s->watches[WATCH_FIRST + i] = (os_watch){.fd = x->fd, .wanted = connection_wanted(x)};
        until = sooner(until, x->deadline);
        busy |= x->busy;
    }
    const bool open = !pause && (s->n < s->max || find_idle(s, NULL) < s->n);
    s->watches[WATCH_LISTENER] = (os_watch){.fd = open ? s->o.listener.fd : -1, .wanted = OS_READ};
    s->watches[WATCH_ALARM] = (os_watch){.fd = s->alarm[0], .wanted = OS_READ};
    s->watches[WATCH_INTERRUPT] =
        (os_watch){.fd = s->o.interrupt > 0 ? s->o.interrupt : -1, .wanted = OS_READ};
    until = sooner(until, pause ? s->accept_at : 0);
    until = sooner(until, s->stopping ? s->stop_at : 0);
    if (busy || until <= now) {
        return 0;
    }
    const uint64_t ms = (until - now) / 1000000 + 1;
    return until == UINT64_MAX ? -1 : ms < 60000 ? (int)ms : 60000;
}

static bool turn(server *s)
{
    const size_t n = s->n;
    os_wait(s->watches, WATCH_FIRST + n, plan_wait(s, bz_os_now()));
    const uint64_t now = bz_os_now();
    const bool woken = s->watches[WATCH_ALARM].seen & OS_READ;
    if (woken) {
        os_alarm_clear(s->alarm[0]);
    }
    /* Backwards: a removed connection is replaced by the last one, which was already served. */
    for (size_t i = n; i-- > 0;) {
        exchange *x = s->list[i];
        const short seen = s->watches[WATCH_FIRST + i].seen;
        const bool on = (seen & connection_wanted(x)) || x->busy || (woken && x->waiting);
        bool over = connection_left(x, seen) || (on && !connection_turn(x));
        /* After serving: single bytes do not extend the deadline. */
        over = over || (x->deadline && x->deadline <= now && !connection_give_up(x));
        if (over) {
            drop(s, i);
        }
    }
    bool stop = atomic_exchange(&s->stop, false);
    if (s->watches[WATCH_INTERRUPT].seen) {
        os_alarm_clear(s->o.interrupt);
        stop |= s->o.stop && s->o.stop(s->o.user);
    }
    if (stop) {
        begin_stop(s);
    } else if ((s->watches[WATCH_LISTENER].seen & OS_READ) && !s->stopping) {
        accept_all(s);
    }
    return !(s->stopping && (s->n == 0 || s->stop_at <= bz_os_now()));
}

void server_run(server *s)
{
    while (turn(s)) {
    }
}

/* ---- beginning and end
 * --------------------------------------------------------------------------- */

static unsigned or_default(unsigned value, unsigned otherwise)
{
    return value ? value : otherwise;
}

server *server_new(const server_options *options, bz_error *err)
{
    server *s = calloc(1, sizeof *s);
    const uint64_t files = os_prepare();
    const uint64_t max = files > 2 * SOME_FILES
                             ? (files - SOME_FILES) / 2
                             : SOME_FILES; /* each may need a socket and a file */
    if (s) {
        server_options *o = &s->o;
        *o = *options;
        o->max_connections = or_default(o->max_connections, 512);
        s->max = o->max_connections < max ? o->max_connections : (size_t)max;
        o->max_per_client = or_default(o->max_per_client, (unsigned)s->max);
        o->head_ms = or_default(o->head_ms, 10000);
        o->body_ms = or_default(o->body_ms, 20000);
        o->idle_ms = or_default(o->idle_ms, 60000);
        o->send_ms = or_default(o->send_ms, 120000);
        o->stop_ms = or_default(o->stop_ms, 400);
        s->alarm[0] = s->alarm[1] = -1;
        s->list = calloc(s->max, sizeof *s->list);
        s->watches = calloc(WATCH_FIRST + s->max, sizeof *s->watches);
    }
    if (!s || !s->list || !s->watches || !os_alarm_open(s->alarm)) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for a server.");
        if (s) {
            server_free(s);
        } else {
            os_close(options->listener.fd);
        }
        return NULL;
    }
    return s;
}

void server_close(server *s)
{
    while (s->n) {
        drop(s, s->n - 1);
    }
}

void server_free(server *s)
{
    if (!s) {
        return;
    }
    server_close(s);
    os_close(s->o.listener.fd);
    os_close(s->alarm[0]);
    os_close(s->alarm[1]);
    free(s->list);
    free(s->watches);
    free(s);
}

void server_wake(server *s)
{
    os_alarm_ring(s->alarm[1]);
}

void server_stop(server *s)
{
    atomic_store(&s->stop, true);
    os_alarm_ring(s->alarm[1]);
}
