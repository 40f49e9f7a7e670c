#include "cli/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "server/os.h"

enum { MAX_ANSWER = 16 << 20, PATIENCE_S = 60 };

static const char *host_of(const cli_options *o)
{
    return o->host ? o->host : "127.0.0.1";
}

static int port_of(const cli_options *o)
{
    return o->port > 0 ? o->port : CLIENT_PORT;
}

static int connect_to(const cli_options *o, bz_error *err)
{
    const int fd = os_connect(host_of(o), (uint16_t)port_of(o), PATIENCE_S);
    if (fd < 0) {
        bz_fail(err, BZ_NETWORK,
                "No server answers at %s port %d; start one with 'bezel serve', or give its --host "
                "and --port.",
                host_of(o), port_of(o));
    }
    return fd;
}

static bool send_all(int fd, const char *text, size_t n)
{
    while (n) {
        const long k = os_send(fd, text, n, false);
        if (k <= 0) {
            return false;
        }
        text += k;
        n -= (size_t)k;
    }
    return true;
}

/* Until the server closes the connection. */
static bool receive_all(int fd, bz_json_buffer *out)
{
    char piece[4096];
    long n;
    while ((n = os_receive(fd, piece, sizeof piece)) > 0) {
        if (out->n > MAX_ANSWER || !bz_json_to_buffer(out, piece, (size_t)n)) {
            return false;
        }
    }
    return n == 0 && out->n > 0;
}

/* The server sends these answers with their length and closes the connection after them. */
static bool split(const bz_json_buffer *all, client_answer *answer)
{
    const char *body = strstr(all->text, "\r\n\r\n");
    if (sscanf(all->text, "HTTP/1.1 %3d ", &answer->status) != 1 || !body) {
        return false;
    }
    body += 4;
    answer->n = all->n - (size_t)(body - all->text);
    answer->text = malloc(answer->n + 1);
    if (answer->text) {
        memcpy(answer->text, body, answer->n);
        answer->text[answer->n] = 0;
    }
    return answer->text != NULL;
}

bz_status client_request(const cli_options *o, const char *path, const char *body,
                         client_answer *answer, bz_error *err)
{
    char head[1024];
    bz_json_buffer all = {0};
    *answer = (client_answer){0};
    const int n = snprintf(head, sizeof head,
                           "%s %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n%s%s%s"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                           body ? "POST" : "GET", path, host_of(o), port_of(o),
                           o->api_key ? "Authorization: Bearer " : "", o->api_key ? o->api_key : "",
                           o->api_key ? "\r\n" : "", body ? strlen(body) : 0);
    if (n < 0 || n >= (int)sizeof head) {
        return bz_fail(err, BZ_BAD_REQUEST, "The host name or the key is too long.");
    }
    const int fd = connect_to(o, err);
    if (fd < 0) {
        return BZ_NETWORK;
    }
    const bool ok = send_all(fd, head, (size_t)n) && (!body || send_all(fd, body, strlen(body))) &&
                    receive_all(fd, &all) && split(&all, answer);
    os_close(fd);
    free(all.text);
    return ok ? BZ_OK
              : bz_fail(err, BZ_NETWORK, "What answers at %s port %d is not a Bezel server.",
                        host_of(o), port_of(o));
}

int client_error(const client_answer *answer)
{
    bz_arena arena = {0};
    const bz_json_node *root = NULL;
    bz_error err = {0};
    char shown[200];
    bz_json_read(&root, answer->text, answer->n, &arena, NULL);
    const bz_str text = bz_json_string(bz_json_get(root, "error"));
    bz_fail(&err, answer->status == 404 ? BZ_NOT_FOUND : BZ_NETWORK, "The server says: %s",
            text.len ? bz_str_show(text, shown) : "(no reason)");
    bz_arena_free(&arena);
    return cli_error(&err);
}
