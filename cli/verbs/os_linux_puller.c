/* serve_pull.h on Linux. */
#include "cli/verbs/serve_pull.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verbs/serve_sandbox.h"

/* For each pull the server makes a pair of sockets and sends one of them; then there is one request
 * one way, and reports the other way, the last with the result. The server's end is shut down to
 * cancel. Messages keep their borders (SOCK_SEQPACKET). Neither side trusts the other: one has read
 * a stranger's file, the other a stranger's responses. */

enum { MAX_NAME = 2048, CANCEL_MS = 100 };

typedef struct pull_request {
    uint8_t insecure; /* not bool, which has only two values */
    char name[MAX_NAME];
} pull_request;

typedef struct pull_report {
    uint8_t final, has_digest;
    int32_t code; /* of the last report: a bz_status */
    uint64_t total, completed;
    char status[128];
    char digest[BZ_DIGEST_TEXT];
    char text[sizeof((bz_error *)0)->text]; /* of its error */
} pull_report;

static bool send_message(int fd, const void *message, size_t n)
{
    return send(fd, message, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* ---- the process that downloads ----------------------------------------------------------------
 */

static void report_progress(void *user, const bz_pull_progress *progress)
{
    pull_report r = {.has_digest = progress->digest != NULL,
                     .total = progress->total,
                     .completed = progress->completed};
    snprintf(r.status, sizeof r.status, "%s", progress->status);
    snprintf(r.digest, sizeof r.digest, "%s", progress->digest ? progress->digest : "");
    send_message(*(const int *)user, &r, sizeof r);
}

/* The server sends nothing more: what can be read is its end. */
static bool is_cancelled(void *user)
{
    struct pollfd p = {.fd = *(const int *)user, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static void *answer(void *user)
{
    int channel = *(int *)user;
    pull_request q;
    pull_report r = {.final = true};
    bz_error err = {0};
    free(user);
    if (recv(channel, &q, sizeof q, 0) == (ssize_t)sizeof q) {
        q.name[MAX_NAME - 1] = 0;
        const bz_pull_options o = {.name = q.name,
                                   .insecure = q.insecure != 0,
                                   .on_progress = report_progress,
                                   .is_cancelled = is_cancelled,
                                   .user = &channel};
        r.code = (int32_t)bz_store_pull(&o, &err);
        memcpy(r.text, err.text, sizeof r.text);
        send_message(channel, &r, sizeof r);
    }
    close(channel);
    return NULL;
}

static void start_answer(int channel)
{
    pthread_attr_t detached;
    pthread_t thread;
    int *argument = malloc(sizeof *argument);
    bool started = false;
    if (argument && pthread_attr_init(&detached) == 0) {
        *argument = channel;
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        started = pthread_create(&thread, &detached, answer, argument) == 0;
        pthread_attr_destroy(&detached);
    }
    if (!started) { /* its server is told by the end of the channel */
        free(argument);
        close(channel);
    }
}

/* The socket of the next pull, -1 for a message without one, -2 at the end. */
static int next_channel(int control)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } extra;
    char byte;
    struct iovec text = {&byte, 1};
    struct msghdr m = {.msg_iov = &text,
                       .msg_iovlen = 1,
                       .msg_control = extra.bytes,
                       .msg_controllen = sizeof extra.bytes};
    ssize_t n;
    int channel = -1;
    while ((n = recvmsg(control, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
    }
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        memcpy(&channel, CMSG_DATA(c), sizeof channel);
    }
    return n > 0 ? channel : -2;
}

/* What is not complete is continued by the next pull of the name. */
static void serve_pulls(int control)
{
    int channel;
    while ((channel = next_channel(control)) != -2) {
        if (channel >= 0) {
            start_answer(channel);
        }
    }
    _exit(0);
}

/* ---- the server ---------------------------------------------------------------------------------
 */

int serve_puller_start(serve_puller *p, const cli_options *o, int listener)
{
    int ends[2];
    *p = (serve_puller){.control = -1};
    if (!bz_store_can_pull()) {
        return EXIT_OK;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        (p->child = fork()) < 0) {
        fprintf(stderr, "bezel: cannot start the process for downloads: %s.\n", strerror(errno));
        return EXIT_CANNOT;
    }
    if (p->child == 0) {
        close(ends[0]);
        close(listener);
        signal(SIGINT, SIG_IGN); /* it ends when the server has ended its pulls */
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        serve_confine_puller(o);
        serve_pulls(ends[1]);
    }
    close(ends[1]);
    p->control = ends[0];
    return EXIT_OK;
}

static bool send_channel(int control, int channel)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } extra = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    char byte = 0;
    struct iovec text = {&byte, 1};
    const struct msghdr m = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = extra.bytes,
                             .msg_controllen = sizeof extra.bytes};
    memcpy(CMSG_DATA(&extra.header), &channel, sizeof channel);
    return sendmsg(control, &m, MSG_NOSIGNAL) == 1;
}

/* Passes reports on until the last; false: the process ended before it. */
static bool follow(int channel, const bz_pull_options *o, pull_report *r)
{
    bool cancelled = false;
    struct pollfd p = {.fd = channel, .events = POLLIN};
    while (true) {
        if (!cancelled && o->is_cancelled && o->is_cancelled(o->user)) {
            cancelled = shutdown(channel, SHUT_WR) == 0;
        }
        if (poll(&p, 1, CANCEL_MS) <= 0) {
            continue;
        }
        if (recv(channel, r, sizeof *r, 0) != (ssize_t)sizeof *r) {
            return false;
        }
        r->status[sizeof r->status - 1] = 0;
        r->digest[sizeof r->digest - 1] = 0;
        r->text[sizeof r->text - 1] = 0;
        if (r->final) {
            return true;
        }
        const bz_pull_progress progress = {.status = r->status,
                                           .digest = r->has_digest ? r->digest : NULL,
                                           .total = r->total,
                                           .completed = r->completed};
        if (o->on_progress) {
            o->on_progress(o->user, &progress);
        }
    }
}

bz_status serve_puller_pull(void *puller, const bz_pull_options *o, bz_error *err)
{
    const serve_puller *p = puller;
    pull_request q = {.insecure = o->insecure};
    pull_report r = {.final = false};
    int ends[2];
    if (p->control < 0) {
        return bz_store_pull(o, err); /* says what is missing */
    }
    if (strlen(o->name) >= sizeof q.name) {
        return bz_fail(err, BZ_BAD_REQUEST, "The name of a model is not longer than %d bytes.",
                       MAX_NAME - 1);
    }
    snprintf(q.name, sizeof q.name, "%s", o->name);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No socket for a download: %s.", strerror(errno));
    }
    const bool sent = send_channel(p->control, ends[1]);
    close(ends[1]);
    const bool answered = sent && send_message(ends[0], &q, sizeof q) && follow(ends[0], o, &r);
    close(ends[0]);
    if (!answered) {
        return bz_fail(err, BZ_NETWORK,
                       "The server's process for downloads has ended; start the server again.");
    }
    return r.code ? bz_fail(err, r.code > 0 ? (bz_status)r.code : BZ_NETWORK, "%s", r.text) : BZ_OK;
}

void serve_puller_end(serve_puller *p)
{
    if (p->control < 0) {
        return;
    }
    close(p->control);
    while (waitpid((pid_t)p->child, NULL, 0) < 0 && errno == EINTR) {
    }
    p->control = -1;
}
