/* The server with handlers of all kinds, over real sockets: bodies, streams, late responses,
 * clients that are slow or disconnect, and shutdown. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/server.h"
#include "base/os.h"
#include "support/check.h"

#define HOST "Host: localhost\r\n"

/* ---- handlers -------------------------------------------------------------------------------- */

static atomic_int ended, released,
    put_off; /* ended tasks; lines that waiting streams may send; late responses requested */
static server *running;

static void echo(void *user, exchange *x)
{
    (void)user;
    const bz_str body = exchange_body(x);
    exchange_header(x, "X-Method", "%s", http_method_name(exchange_head(x)->method));
    exchange_bytes(x, 200, "text/plain", body.data, body.len);
}

static void mute(void *user, exchange *x)
{
    (void)user;
    (void)x;
}

typedef struct story {
    int next, last;
    bool waits, fails;
} story;

static stream_state tell(void *user, char *room, size_t n, size_t *put)
{
    story *s = user;
    if (s->waits && s->next >= atomic_load(&released)) {
        return STREAM_WAIT;
    }
    if (s->next == s->last) {
        return s->fails ? STREAM_FAILED : STREAM_END;
    }
    if (s->next % 3 == 1 && n > 0) { /* every third time as much as fits */
        memset(room, 'x', n);
        *put = n;
    } else {
        *put = (size_t)snprintf(room, n, "line %d\n", s->next);
    }
    s->next++;
    return STREAM_MORE;
}

static void end_story(void *user)
{
    free(user);
    atomic_fetch_add(&ended, 1);
}

static void begin_story(exchange *x, bool waits, bool fails)
{
    story *s = malloc(sizeof *s);
    *s = (story){0, 5, waits, fails};
    exchange_stream(x, 200, "text/plain",
                    (exchange_task){.fill = tell, .ended = end_story, .user = s});
}

static void stream(void *user, exchange *x)
{
    (void)user;
    const bz_str query = http_text(exchange_head(x), exchange_head(x)->query);
    begin_story(x, bz_str_is(query, "waits"), bz_str_is(query, "fails"));
}

static void answer_late(void *user, exchange *x)
{
    (void)user;
    if (atomic_load(&released) > 100) {
        exchange_text(x, 503, "Late, but here.");
    }
}

static void count_end(void *user)
{
    (void)user;
    atomic_fetch_add(&ended, 1);
}

static void later(void *user, exchange *x)
{
    atomic_fetch_add(&put_off, 1);
    exchange_later(x, (exchange_task){.resume = answer_late, .ended = count_end, .user = user});
}

static void large(void *user, exchange *x)
{
    const size_t n = 8 << 20;
    char *bytes = malloc(n);
    (void)user;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(i * 2654435761u >> 24);
    }
    exchange_bytes(x, 200, "application/octet-stream", bytes, n);
    free(bytes);
}

static const server_route routes[] = {
    {"/echo", HTTP_POST | HTTP_PUT, 100000, echo, NULL, false},
    {"/echo", HTTP_GET, 0, echo, NULL, false},
    {"/mute", HTTP_GET, 0, mute, NULL, false},
    {"/stream", HTTP_GET, 0, stream, NULL, false},
    {"/later", HTTP_GET, 0, later, NULL, false},
    {"/large", HTTP_GET, 0, large, NULL, false},
    {"/below/", HTTP_DELETE, 0, echo, NULL, false},
};

/* ---- the server and its clients
 * ------------------------------------------------------------------ */

static uint16_t port;
static pthread_t thread;

static void *run(void *user)
{
    server_run(user);
    return NULL;
}

/* Short timeouts, for tests that wait longer than any of them. */
enum { HEAD_MS = 800, IDLE_MS = 1200, SEND_MS = 2500, STOP_MS = 1000 };

static void start_limited(unsigned connections, unsigned per_client, bool impatient)
{
    server_options o = {.routes = routes,
                        .n_routes = sizeof routes / sizeof *routes,
                        .access = {.address = "127.0.0.1"},
                        .headers = "X-Always: here\r\n",
                        .max_connections = connections,
                        .max_per_client = per_client,
                        .head_ms = impatient ? HEAD_MS : 0,
                        .body_ms = impatient ? HEAD_MS : 0,
                        .idle_ms = impatient ? IDLE_MS : 0,
                        .send_ms = impatient ? SEND_MS : 0,
                        .stop_ms = STOP_MS};
    bz_error err = {0};
    bool taken;
    CHECK(os_listen(&o.listener, "127.0.0.1", 0, &taken, &err) == BZ_OK);
    port = o.listener.port;
    running = server_new(&o, &err);
    atomic_store(&ended, 0);
    atomic_store(&released, 0);
    atomic_store(&put_off, 0);
    pthread_create(&thread, NULL, run, running);
}

static void start(unsigned connections, bool impatient)
{
    start_limited(connections, 0, impatient);
}

static double stop(void)
{
    const uint64_t before = bz_os_now();
    server_stop(running);
    pthread_join(thread, NULL);
    server_free(running);
    return (double)(bz_os_now() - before) * 1e-9;
}

static int connect_from(uint32_t address, int receive_buffer)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    CHECK(bind(fd, (const struct sockaddr *)&from, sizeof from) == 0);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (receive_buffer) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    return fd;
}

static int connect_small(int receive_buffer)
{
    return connect_from(INADDR_LOOPBACK, receive_buffer);
}

static int dial(void)
{
    return connect_small(0);
}

static void say(int fd, const char *text)
{
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

enum { HEARD = 16 << 20 };
static char heard[HEARD];

/* Receives until the server closes or `enough` bytes came. Returns their number, -1 on an error. */
static long hear(int fd, size_t enough)
{
    size_t n = 0;
    while (n < enough && n < HEARD - 1) {
        const ssize_t got = recv(fd, heard + n, (enough < HEARD - 1 ? enough : HEARD - 1) - n, 0);
        if (got <= 0) {
            heard[n] = 0;
            return got == 0 ? (long)n : -1;
        }
        n += (size_t)got;
    }
    heard[n] = 0;
    return (long)n;
}

/* One request on its own connection. */
static const char *ask(const char *request)
{
    const int fd = dial();
    say(fd, request);
    hear(fd, HEARD);
    close(fd);
    return heard;
}

static bool status_is(const char *answer, const char *status)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, status, 3) == 0;
}

static const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end ? end + 4 : "";
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = strstr(text, what); p; p = strstr(p + 1, what)) {
        n++;
    }
    return n;
}

static bool comes_true(atomic_int *value, int wanted)
{
    for (int i = 0; i < 6000 && atomic_load(value) < wanted; i++) { /* a minute on a busy machine */
        usleep(10000);
    }
    return atomic_load(value) == wanted;
}

/* ---- cases
 * ------------------------------------------------------------------------------------------ */

#define CLOSE "Connection: close\r\n\r\n"

static void test_bodies(void)
{
    start(0, false);
    begin("bodies of requests");
    const char *a = ask("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CLOSE "hello");
    CHECK(status_is(a, "200") && strcmp(body_of(a), "hello") == 0 &&
          strstr(a, "X-Method: POST\r\n") && strstr(a, "X-Always: here\r\n"));
    a = ask("PUT /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" CLOSE
            "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    CHECK(status_is(a, "200") && strcmp(body_of(a), "hello world") == 0);
    static char text[200000];
    const int n = snprintf(text, sizeof text,
                           "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 90000\r\n" CLOSE);
    memset(text + n, 'z', 90000);
    CHECK(strlen(body_of(ask(text))) == 90000);

    begin("100 Continue");
    const int fd = dial();
    say(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    hear(fd, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
    CHECK(strcmp(heard, "HTTP/1.1 100 Continue\r\n\r\n") == 0);
    say(fd, "hello");
    shutdown(fd, SHUT_WR);
    CHECK(hear(fd, HEARD) > 0 && strcmp(body_of(heard), "hello") == 0);
    close(fd);
    a = ask("POST /echo HTTP/1.1\r\n" HOST
            "Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n");
    CHECK(status_is(a, "413") && !strstr(a, "100 Continue"));
    a = ask("POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n" CLOSE
            "hi");
    CHECK(status_is(a, "200") && !strstr(a, "100 Continue"));

    begin("requests that are refused");
    CHECK(status_is(ask("POST /echo HTTP/1.1\r\n" HOST CLOSE), "411"));
    CHECK(
        status_is(ask("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100001\r\n\r\nabc"), "413"));
    CHECK(status_is(
        ask("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nFFFFF\r\n"), "413"));
    CHECK(status_is(ask("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx"),
                    "400"));
    CHECK(status_is(ask("GET /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\na"), "413"));
    a = ask("DELETE /echo HTTP/1.1\r\n" HOST CLOSE);
    CHECK(status_is(a, "405") && strstr(a, "Allow: GET, HEAD, POST, PUT, OPTIONS\r\n"));
    a = ask("OPTIONS /echo HTTP/1.1\r\n" HOST CLOSE);
    CHECK(status_is(a, "204") && strstr(a, "Allow: ") && !strstr(a, "Content-Length"));
    CHECK(status_is(ask("OPTIONS * HTTP/1.1\r\n" HOST CLOSE), "204"));
    CHECK(status_is(ask("GET /nothing HTTP/1.1\r\n" HOST CLOSE), "404"));
    CHECK(status_is(ask("GET /echoes HTTP/1.1\r\n" HOST CLOSE), "404"));
    CHECK(status_is(ask("GET /mute HTTP/1.1\r\n" HOST CLOSE), "500"));
    CHECK(status_is(ask("DELETE /below/a/b HTTP/1.1\r\n" HOST CLOSE), "200"));
    CHECK(status_is(ask("DELETE /below HTTP/1.1\r\n" HOST CLOSE), "404"));
    CHECK(status_is(ask("GARBAGE\r\n\r\n"), "400"));
    CHECK(status_is(ask("GET /echo HTTP/1.1\r\nHost: evil.com\r\n" CLOSE), "403"));
    CHECK(status_is(ask("GET http://evil.com/echo HTTP/1.1\r\n" HOST CLOSE), "403"));
    CHECK(status_is(ask("GET /echo HTTP/1.0\r\n\r\n"), "200"));

    begin("a client that is still sending receives the refusal");
    static char more[4 << 20];
    memset(more, 'm', sizeof more - 1);
    const int eager = dial();
    say(eager, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4194303\r\n\r\n");
    char first;
    CHECK(recv(eager, &first, 1, MSG_PEEK) == 1); /* the refusal has arrived */
    say(eager, more);
    usleep(50000);
    CHECK(hear(eager, 100) == 100 && status_is(heard, "413"));
    close(eager);

    begin("pages of other sites");
    CHECK(status_is(ask("POST /echo HTTP/1.1\r\n" HOST
                        "Origin: http://evil.com\r\nContent-Length: 0\r\n" CLOSE),
                    "403"));
    CHECK(status_is(
        ask("POST /echo HTTP/1.1\r\n" HOST "Origin: null\r\nContent-Length: 0\r\n" CLOSE), "403"));
    CHECK(status_is(ask("POST /echo HTTP/1.1\r\n" HOST
                        "Origin: http://localhost\r\nContent-Length: 0\r\n" CLOSE),
                    "200"));
    CHECK(status_is(ask("GET /echo HTTP/1.1\r\n" HOST "Origin: http://evil.com\r\n" CLOSE), "200"));

    begin("many requests on one connection, sent at once");
    text[0] = 0;
    for (int i = 0; i < 200; i++) {
        char one[200];
        snprintf(one, sizeof one,
                 "POST /echo HTTP/1.1\r\n" HOST
                 "Content-Length: 8\r\n\r\n<<%04d>>HEAD /echo HTTP/1.1\r\n" HOST "\r\n",
                 i);
        strcat(text, one);
    }
    strcat(text, "GET /nothing HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST CLOSE);
    a = ask(text);
    CHECK(count(a, "HTTP/1.1 200 OK") == 401 && count(a, "HTTP/1.1 404") == 1);
    const char *at = a;
    for (int i = 0; i < 200 && at; i++) {
        char one[20];
        snprintf(one, sizeof one, "<<%04d>>", i);
        at = strstr(at, one);
        CHECKF(at != NULL, "answer %d is missing or out of order", i);
    }
    stop();
}

static void test_streams(void)
{
    start(0, true);
    begin("streams");
    const char *a = ask("GET /stream HTTP/1.1\r\n" HOST CLOSE);
    CHECK(status_is(a, "200") && strstr(a, "Transfer-Encoding: chunked\r\n") &&
          strstr(a, "\r\n0007\r\nline 0\n\r\n"));
    CHECK(strcmp(a + strlen(a) - 7, "\r\n0\r\n\r\n") == 0);
    a = ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(status_is(a, "200") && !strstr(a, "chunked") &&
          strncmp(body_of(a), "line 0\nxxx", 10) == 0);
    CHECK(strstr(a, "xxline 2\nline 3\nxxx"));
    a = ask("HEAD /stream HTTP/1.1\r\n" HOST CLOSE);
    CHECK(status_is(a, "200") && body_of(a)[0] == 0);
    CHECK(comes_true(&ended, 3));
    a = ask("GET /stream?fails HTTP/1.1\r\n" HOST "\r\n");
    CHECK(status_is(a, "200") && !strstr(a, "\r\n0\r\n\r\n") && comes_true(&ended, 4));

    begin("a stream that waits for another thread");
    int fd = dial();
    say(fd, "GET /stream?waits HTTP/1.1\r\n" HOST "\r\n");
    atomic_store(&released, 1);
    server_wake(running);
    long n = 0;
    for (int i = 0; i < 100 && !strstr(heard, "line 0"); i++) {
        n = recv(fd, heard, HEARD - 1, 0);
        heard[n > 0 ? n : 0] = 0;
    }
    CHECK(strstr(heard, "line 0"));
    usleep(1000 * (SEND_MS + 300)); /* longer than any other timeout */
    atomic_store(&released, 10);
    server_wake(running);
    n = 0;
    while (n < HEARD - 1 && !(n > 5 && memcmp(heard + n - 5, "0\r\n\r\n", 5) == 0)) {
        const ssize_t got = recv(fd, heard + n, (size_t)(HEARD - 1 - n), 0);
        if (got <= 0) {
            break;
        }
        n += got;
    }
    CHECK(n > 5 && memcmp(heard + n - 5, "0\r\n\r\n", 5) == 0 && comes_true(&ended, 5));
    say(fd, "GET /echo HTTP/1.1\r\n" HOST CLOSE); /* and the connection is still usable */
    CHECK(hear(fd, HEARD) > 0 && status_is(heard, "200"));
    close(fd);

    begin("a disconnect ends the client's tasks");
    atomic_store(&released, 0);
    fd = dial();
    say(fd, "GET /stream?waits HTTP/1.1\r\n" HOST "\r\n");
    usleep(50000);
    CHECK(atomic_load(&ended) == 5);
    close(fd);
    CHECK(comes_true(&ended, 6));
    fd = dial();
    say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    CHECK(comes_true(&put_off, 1) && atomic_load(&ended) == 6);
    close(fd);
    CHECK(comes_true(&ended, 7));

    begin("late responses");
    fd = dial();
    say(fd, "GET /later HTTP/1.1\r\n" HOST CLOSE);
    usleep(1000 * (SEND_MS + 300));
    atomic_store(&released, 101);
    server_wake(running);
    CHECK(hear(fd, HEARD) > 0 && status_is(heard, "503") && strstr(heard, "Late, but here.\n") &&
          comes_true(&ended, 8));
    close(fd);
    stop();
}

/* Seconds until the server has closed; heard: the bytes it sent before. */
static double until_closed(int fd)
{
    const uint64_t before = bz_os_now();
    CHECK(hear(fd, HEARD) >= 0);
    close(fd);
    return (double)(bz_os_now() - before) * 1e-9;
}

static void test_patience(void)
{
    start(0, true);
    begin("clients that are slow");
    int fd = dial();
    double t = until_closed(fd);
    CHECKF(heard[0] == 0 && t > 0.6 && t < 5, "a client that says nothing: %.2f s", t);
    fd = dial();
    say(fd, "GET / HT");
    t = until_closed(fd);
    CHECKF(status_is(heard, "408") && t > 0.6 && t < 5, "half a head: %.2f s", t);
    fd = dial();
    for (int i = 0; i < 300; i++) { /* single bytes do not extend the timeout */
        if (send(fd, "a", 1, MSG_NOSIGNAL) != 1) {
            break;
        }
        usleep(10000);
    }
    t = until_closed(fd);
    CHECKF(t < 1.5, "bytes that drip in: %.2f s", t);
    fd = dial();
    say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
    t = until_closed(fd);
    CHECKF(status_is(heard, "408") && t > 0.6 && t < 5, "half a body: %.2f s", t);
    fd = dial();
    say(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    t = until_closed(fd);
    CHECKF(status_is(heard, "200") && t > 1 && t < 5, "nothing more to ask: %.2f s", t);

    begin("a client that reads nothing");
    fd = connect_small(4096);
    say(fd, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    CHECK(hear(fd, 1) == 1);
    usleep(1000 * (SEND_MS + 1500));
    long n = hear(fd, HEARD);
    CHECKF(n < (8 << 20), "all %ld bytes came", n);
    close(fd);

    begin("a client that reads slowly");
    fd = connect_small(1 << 16);
    say(fd, "GET /large HTTP/1.1\r\n" HOST CLOSE);
    n = 0;
    for (int i = 0; i < 1 + SEND_MS / 300; i++) {
        usleep(300000);
        n += hear(fd, 800000);
    }
    n += hear(fd, HEARD);
    CHECKF(n > (8 << 20), "%ld bytes", n);
    close(fd);
    stop();
}

static void test_crowds(void)
{
    start(8, false);
    begin("idle connections are closed for new ones");
    int idle[8];
    for (int i = 0; i < 8; i++) {
        idle[i] = dial();
    }
    for (int i = 0; i < 20; i++) {
        CHECK(status_is(ask("GET /echo HTTP/1.1\r\n" HOST CLOSE), "200"));
    }
    for (int i = 0; i < 8; i++) {
        close(idle[i]);
    }

    begin("busy connections are not: new ones wait");
    for (int i = 0; i < 8; i++) {
        idle[i] = dial();
        say(idle[i], "GET /later HTTP/1.1\r\n" HOST CLOSE);
    }
    CHECK(comes_true(&put_off, 8));
    const int ninth = dial();
    say(ninth, "GET /echo HTTP/1.1\r\n" HOST CLOSE);
    struct pollfd p = {.fd = ninth, .events = POLLIN};
    const clock_t before = clock();
    CHECK(poll(&p, 1, 500) == 0);
    const double worked = (double)(clock() - before) / CLOCKS_PER_SEC;
    CHECKF(worked < 0.02, "%.2f s of work while nothing can be done", worked);
    atomic_store(&released, 101);
    server_wake(running);
    CHECK(hear(ninth, HEARD) > 0 && status_is(heard, "200"));
    close(ninth);
    for (int i = 0; i < 8; i++) {
        CHECK(hear(idle[i], HEARD) > 0 && status_is(heard, "503"));
        close(idle[i]);
    }
    stop();
}

static void test_unfinished_heads(void)
{
    start(8, false);
    begin("heads that never end do not lock out others");
    int unfinished[24];
    for (int i = 0; i < 24; i++) {
        unfinished[i] = dial();
        say(unfinished[i], "GET /echo HTTP/1.1\r\nX: ");
    }
    const uint64_t before = bz_os_now();
    for (int i = 0; i < 20; i++) {
        CHECK(status_is(ask("GET /echo HTTP/1.1\r\n" HOST CLOSE), "200"));
    }
    const double took = (double)(bz_os_now() - before) * 1e-9;
    CHECKF(took < 5, "%.1f s", took); /* a head has 10 s */
    for (int i = 0; i < 24; i++) {
        close(unfinished[i]);
    }
    stop();
}

static void test_one_client(void)
{
    start_limited(8, 3, false);
    begin("one client has some of the connections only");
    int busy[3];
    for (int i = 0; i < 3; i++) {
        busy[i] = dial();
        say(busy[i], "GET /later HTTP/1.1\r\n" HOST CLOSE);
    }
    CHECK(comes_true(&put_off, 3));
    const int fourth = dial();
    CHECK(hear(fourth, HEARD) > 0 && status_is(heard, "503"));
    CHECKF(strcmp(body_of(heard), "This client has too many connections already.") == 0, "%s",
           heard);
    close(fourth);
    const int other = connect_from(INADDR_LOOPBACK + 1, 0);
    say(other, "GET /echo HTTP/1.1\r\n" HOST CLOSE);
    CHECK(hear(other, HEARD) > 0 && status_is(heard, "200"));
    close(other);
    atomic_store(&released, 101);
    server_wake(running);
    for (int i = 0; i < 3; i++) {
        CHECK(hear(busy[i], HEARD) > 0 && status_is(heard, "503"));
        close(busy[i]);
    }
    begin("an idle connection of a client is closed for its next one");
    int idle[3];
    for (int i = 0; i < 3; i++) {
        idle[i] = dial();
    }
    CHECK(status_is(ask("GET /echo HTTP/1.1\r\n" HOST CLOSE), "200"));
    for (int i = 0; i < 3; i++) {
        close(idle[i]);
    }
    stop();
}

static void test_end(void)
{
    begin("shutdown is fast, with requests in flight");
    start(0, false);
    CHECK(stop() < 2);
    start(0, false);
    const int fd = dial(), other = dial(), third = dial();
    say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    say(other, "GET /echo HTTP/1.1\r\n");
    say(third, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    CHECK(comes_true(&put_off, 1));
    const double t = stop();
    CHECKF(t > 0.8 && t < 5, "%.2f s", t);
    CHECKF(atomic_load(&ended) == 1, "%d tasks have ended", atomic_load(&ended));
    close(fd);
    close(other);
    close(third);

    begin("a response that is being sent is completed");
    start(0, false);
    const int late = dial();
    say(late, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    CHECK(hear(late, 10) == 10);
    server_stop(running);
    CHECK(hear(late, HEARD) > (8 << 20));
    close(late);
    pthread_join(thread, NULL);
    server_free(running);
}

int main(void)
{
    test_bodies();
    test_streams();
    test_patience();
    test_crowds();
    test_unfinished_heads();
    test_one_client();
    test_end();
    return finish();
}
