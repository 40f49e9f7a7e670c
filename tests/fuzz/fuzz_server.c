/* libFuzzer target: the states of one connection. The input alternates bytes of requests with what
 * a client does: it reads or not, leaves, or is slow. Whatever comes, a response is a status line,
 * and every task that begins ends once.
 *
 * Of each byte of the input the two upper bits select: 0: send as many of the bytes that follow,
 * 1: read that many, 2: time passes, 3: another event. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* ---- handlers -------------------------------------------------------------------------- */

static int begun, ended, released;

static void echo(void *user, exchange *x)
{
    (void)user;
    const bz_str body = exchange_body(x);
    exchange_header(x, "X-Method", "%s", http_method_name(exchange_head(x)->method));
    exchange_bytes(x, 200, "text/plain", body.data, body.len);
}

static stream_state fill_lines(void *user, char *room, size_t n, size_t *put)
{
    (void)user;
    if (released < 3) {
        return STREAM_WAIT;
    }
    memset(room, 'x', n < 5000 ? n : 5000);
    *put = n < 5000 ? n : 5000;
    return released++ < 6 ? STREAM_MORE : released % 2 ? STREAM_END : STREAM_FAILED;
}

static void count_end(void *user)
{
    (void)user;
    ended++;
}

static void stream(void *user, exchange *x)
{
    begun++;
    exchange_stream(x, 200, "text/plain",
                    (exchange_task){.fill = fill_lines, .ended = count_end, .user = user});
}

static void answer_late(void *user, exchange *x)
{
    (void)user;
    if (released >= 2) {
        exchange_text(x, 503, "Late.");
    }
}

static void later(void *user, exchange *x)
{
    begun++;
    exchange_later(x, (exchange_task){.resume = answer_late, .ended = count_end, .user = user});
}

static void send_file(void *user, exchange *x)
{
    const int fd = memfd_create("file", MFD_CLOEXEC);
    (void)user;
    must(fd >= 0 && ftruncate(fd, 100000) == 0);
    exchange_file(x, 206, "application/octet-stream", fd, 10, 100000 - (released ? 5 : 10));
}

static const server_route routes[] = {
    {"/e", HTTP_POST | HTTP_PUT | HTTP_GET, 5000, echo, NULL, false},
    {"/s", HTTP_GET, 0, stream, NULL, false},
    {"/l", HTTP_GET, 0, later, NULL, false},
    {"/f/", HTTP_GET, 0, send_file, NULL, false},
    {"/d", HTTP_DELETE, 0, echo, NULL, false},
};

/* ---- a connection ------------------------------------------------------------------------ */

typedef struct client {
    int fd;
    size_t heard;
} client;

static void hear(client *c, size_t n)
{
    char bytes[4096];
    const ssize_t got = recv(c->fd, bytes, n < sizeof bytes ? n : sizeof bytes, MSG_DONTWAIT);
    for (ssize_t i = 0; i < got; i++, c->heard++) {
        if (c->heard < 9) {
            must(bytes[i] == "HTTP/1.1 "[c->heard]);
        } else if (c->heard < 12) {
            must(bytes[i] >= '0' && bytes[i] <= '9');
        }
    }
}

static exchange *new_exchange(server *s, int fd)
{
    exchange *x = malloc(sizeof *x);
    must(x != NULL);
    memset(x, 0, offsetof(exchange, in));
    x->server = s;
    x->fd = fd;
    x->file = -1;
    connection_enter(x, PHASE_HEAD, s->o.head_ms);
    return x;
}

/* One action of the client, then a turn of the connection; false: it has ended. */
static bool act(exchange *x, client *c, const uint8_t *data, size_t size, size_t *at)
{
    const uint8_t op = data[(*at)++];
    const size_t n = op & 63u;
    switch (op >> 6) {
    case 0: {
        const size_t some = 8 * n < size - *at ? 8 * n : size - *at;
        if (some && send(c->fd, data + *at, some, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            /* the buffer is full, or the server has closed it */
        }
        *at += some;
        break;
    }
    case 1: hear(c, 64 * n); break;
    case 2:
        if (x->deadline && !connection_give_up(x)) {
            return false;
        }
        break;
    default:
        released += (int)(n & 1);
        if (n == 2 && connection_left(x, OS_LEFT)) {
            return false;
        }
        if (n == 4) {
            shutdown(c->fd, SHUT_WR);
        }
    }
    const short wanted = connection_wanted(x);
    must(wanted >= 0 && wanted < 8);
    return connection_turn(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static server *s;
    bz_error err = {0};
    int ends[2];
    if (!s) {
        const server_options o = {.listener = {.fd = -1},
                                  .routes = routes,
                                  .n_routes = sizeof routes / sizeof *routes,
                                  .access = {.address = "127.0.0.1"},
                                  .headers = "X-Always: here\r\n"};
        s = server_new(&o, &err);
        must(s != NULL);
    }
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    begun = ended = released = 0;
    client c = {.fd = ends[1]};
    exchange *x = new_exchange(s, ends[0]);
    size_t at = 0;
    while (at < size && act(x, &c, data, size, &at)) {
    }
    must(x->n_in <= IN_SIZE && x->n_content <= 5000 + IN_SIZE);
    exchange_clear(x);
    must(begun == ended);
    hear(&c, 4096);
    close(ends[0]);
    close(ends[1]);
    free(x);
    return 0;
}
