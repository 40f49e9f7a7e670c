/* One connection: reads a request, calls the handler of its route, sends the answer. */
#include "server/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum {
    STEPS = 32,           /* before other connections are served */
    FILE_PIECE = 1 << 20, /* bytes of a file per step */
    BODY_PIECE = 4096,    /* bytes of a body that extend its deadline */
    LINGER_MS = 1000      /* for a client to read the end of the answer */
};

typedef enum step { STEP_AGAIN, STEP_WAIT, STEP_CLOSE } step;

static uint64_t in_ms(uint64_t ms)
{
    return bz_os_now() + ms * 1000000;
}

void connection_enter(exchange *x, phase p, uint64_t ms)
{
    x->phase = p;
    x->since = bz_os_now();
    x->deadline = x->since + ms * 1000000;
}

/* ---- routes ---------------------------------------------------------------------------------- */

static bool leads_to(const server_route *r, bz_str path)
{
    const size_t n = strlen(r->path);
    return path.len >= n && memcmp(path.data, r->path, n) == 0 &&
           (path.len == n || r->path[n - 1] == '/');
}

static unsigned methods_of(const server_route *r)
{
    return r->methods | (r->methods & HTTP_GET ? HTTP_HEAD : 0);
}

/* The route with the longest matching path and this method; *all: the methods of all matching
 * routes. */
static const server_route *find_route(const server *s, bz_str path, http_method method,
                                      unsigned *all)
{
    const server_route *found = NULL;
    size_t longest = 0;
    *all = 0;
    for (size_t i = 0; i < s->o.n_routes; i++) {
        const server_route *r = &s->o.routes[i];
        const size_t n = strlen(r->path);
        if (!leads_to(r, path) || n < longest) {
            continue;
        }
        if (n > longest) {
            longest = n;
            *all = 0;
            found = NULL;
        }
        *all |= methods_of(r);
        found = methods_of(r) & method ? r : found;
    }
    return found;
}

static void tell_methods(exchange *x, unsigned all)
{
    char text[80] = "";
    for (unsigned bit = 1; bit <= HTTP_PATCH; bit <<= 1) {
        if ((all | HTTP_OPTIONS) & bit) {
            const size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
                     http_method_name((http_method)bit));
        }
    }
    exchange_header(x, "Allow", "%s", text);
}

/* ---- requests ----------------------------------------------------------------------------------
 */

/* Answers instead of the handler. The rest of the request is not read, so the connection is closed
 * afterwards. */
static step refuse(exchange *x, int status, const char *why)
{
    x->keep = x->keep && x->phase == PHASE_HEAD && !x->head.chunked && x->head.length == 0;
    if (x->server->o.refuse && x->head.size) {
        x->server->o.refuse(x, status, why);
    } else {
        exchange_text(x, status, why);
    }
    return STEP_AGAIN;
}

static step handle(exchange *x)
{
    x->route->handle(x->route->user, x);
    if (x->phase != PHASE_SEND && x->phase != PHASE_LATER) {
        exchange_text(x, 500, "The server has no answer to this request.");
    }
    if (x->phase == PHASE_SEND) {
        x->deadline = in_ms(x->server->o.send_ms);
    }
    return STEP_AGAIN;
}

static bool may_change_something(http_method m)
{
    return m != HTTP_GET && m != HTTP_HEAD && m != HTTP_OPTIONS;
}

/* A page of another origin that is allowed may read the answer. */
static void allow_origin(exchange *x, bz_str origin)
{
    if (origin.len && origin.len < 512 && access_foreign_origin(&x->server->o.access, origin)) {
        exchange_header(x, "Access-Control-Allow-Origin", "%.*s", (int)origin.len, origin.data);
        exchange_header(x, "Vary", "Origin");
    }
}

/* The answer to OPTIONS, which browsers send before a request from another origin. */
static void answer_preflight(exchange *x, bz_str origin)
{
    const bz_str headers = http_field(&x->head, "Access-Control-Request-Headers");
    if (!origin.len || !access_foreign_origin(&x->server->o.access, origin)) {
        return;
    }
    exchange_header(x, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE, OPTIONS");
    if (headers.len && headers.len < 512) {
        exchange_header(x, "Access-Control-Allow-Headers", "%.*s", (int)headers.len, headers.data);
    }
    if (http_field(&x->head, "Access-Control-Request-Private-Network").len) {
        exchange_header(x, "Access-Control-Allow-Private-Network", "true");
    }
    exchange_header(x, "Access-Control-Max-Age", "3600");
}

/* After the head: checks access, finds the route, prepares for a body. */
static step begin_request(exchange *x)
{
    server *s = x->server;
    const http_head *h = &x->head;
    const bz_str authority = http_text(h, h->authority), origin = http_field(h, "Origin");
    unsigned all;
    x->keep = !h->close && !s->stopping;
    x->deadline = in_ms(s->o.send_ms);
    /* HTTP/1.0 without Host: not sent by a browser. */
    if (authority.len && !access_host(&s->o.access, authority)) {
        return refuse(
            x, 403,
            "This host name is not allowed; start the server with --allow-host NAME to allow it.");
    }
    if (origin.data && may_change_something(h->method) &&
        !access_origin(&s->o.access, origin, authority)) {
        return refuse(x, 403,
                      "Pages of this origin are not allowed; start the server with --origins "
                      "ORIGIN to allow them.");
    }
    allow_origin(x, origin);
    x->route = find_route(s, http_text(h, h->path), h->method, &all);
    if (h->method == HTTP_OPTIONS && !x->route) {
        tell_methods(x, all);
        answer_preflight(x, origin);
        x->keep = x->keep && !h->chunked && h->length == 0;
        exchange_empty(x, 204);
        return STEP_AGAIN;
    }
    if (!x->route) {
        if (all) {
            tell_methods(x, all);
        }
        return all ? refuse(x, 405, "This address does not support the method.")
                   : refuse(x, 404, "Not found.");
    }
    if (!x->route->open && !access_key(&s->o.access, http_field(h, "Authorization"))) {
        exchange_header(x, "WWW-Authenticate", "Bearer");
        return refuse(x, 401,
                      "This server needs a key: send the header 'Authorization: Bearer KEY'.");
    }
    const bool needs_length =
        h->method == HTTP_POST || h->method == HTTP_PUT || h->method == HTTP_PATCH;
    if (needs_length && !h->sized && !h->chunked) {
        return refuse(x, 411, "The request has no Content-Length.");
    }
    switch (http_body_begin(&x->body, h, x->route->body_max)) {
    case HTTP_BAD: return refuse(x, x->body.refusal.status, x->body.refusal.why);
    case HTTP_DONE: return handle(x);
    case HTTP_MORE: break;
    }
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const long n = sizeof go_on - 1;
    if (h->expects_continue && x->n_in == h->size && os_send(x->fd, go_on, (size_t)n, false) != n) {
        return STEP_CLOSE; /* nothing else is being sent, so this fails only if the client
                              is gone */
    }
    x->counted = 0;
    connection_enter(x, PHASE_BODY, s->o.body_ms);
    return STEP_AGAIN;
}

/* Reads more bytes into the buffer. */
static step receive(exchange *x)
{
    const long n = os_receive(x->fd, x->in + x->n_in, IN_SIZE - x->n_in);
    if (n == OS_WAIT) {
        return STEP_WAIT;
    }
    if (n <= 0) {
        return STEP_CLOSE;
    }
    if (x->phase == PHASE_HEAD && x->n_in == 0) {
        connection_enter(x, PHASE_HEAD, x->server->o.head_ms);
    }
    x->n_in += (size_t)n;
    return STEP_AGAIN;
}

static step read_head(exchange *x)
{
    switch (x->n_in ? http_head_read(&x->head, x->in, x->n_in) : HTTP_MORE) {
    case HTTP_MORE: return receive(x);
    case HTTP_DONE: return begin_request(x);
    default:
        x->keep = false;
        x->deadline = in_ms(x->server->o.send_ms);
        return refuse(x, x->head.refusal.status, x->head.refusal.why);
    }
}

/* Grows with the bytes received, never with the length announced. */
static bool keep_content(exchange *x, const char *bytes, size_t n)
{
    if (x->n_content + n > x->room_content) {
        const size_t room =
            2 * x->room_content > x->n_content + n ? 2 * x->room_content : x->n_content + n;
        char *more = realloc(x->content, room);
        if (!more) {
            return false;
        }
        x->content = more;
        x->room_content = room;
    }
    memcpy(x->content + x->n_content, bytes, n);
    x->n_content += n;
    return true;
}

static step read_body(exchange *x)
{
    char *raw = x->in + x->head.size;
    const size_t n = x->n_in - x->head.size;
    size_t used, put;
    if (n == 0) {
        return receive(x);
    }
    const http_answer a = http_body_read(&x->body, raw, n, &used, raw, &put);
    if (a == HTTP_BAD) {
        return refuse(x, x->body.refusal.status, x->body.refusal.why);
    }
    if (put && !keep_content(x, raw, put)) {
        return refuse(x, 503, "Not enough memory for the request.");
    }
    memmove(raw, raw + used, n - used);
    x->n_in -= used;
    if (x->n_content >= x->counted + BODY_PIECE) {
        x->counted = x->n_content;
        connection_enter(x, PHASE_BODY, x->server->o.body_ms);
    }
    return a == HTTP_DONE ? handle(x) : STEP_AGAIN;
}

/* ---- answers
 * -------------------------------------------------------------------------------------- */

void connection_log(const exchange *x)
{
    const server_options *o = &x->server->o;
    if (o->log && x->status) {
        const bz_str path =
            x->head.size && x->head.path.len ? http_text(&x->head, x->head.path) : (bz_str){"-", 1};
        o->log(o->user, &(server_log){x->head.method, path, x->status, x->total - x->file_left});
    }
}

static step end_answer(exchange *x)
{
    connection_log(x);
    const size_t size = x->head.size;
    const bool keep = x->keep && !x->server->stopping;
    exchange_clear(x);
    if (!keep) {
        os_finish_sending(x->fd);
        connection_enter(x, PHASE_LINGER, LINGER_MS);
        return STEP_AGAIN;
    }
    memmove(x->in, x->in + size, x->n_in - size);
    x->n_in -= size;
    connection_enter(x, PHASE_HEAD, x->n_in ? x->server->o.head_ms : x->server->o.idle_ms);
    return STEP_AGAIN;
}

/* After os_send or os_send_file. */
static step moved(exchange *x, long n)
{
    if (n < 0) {
        return n == OS_WAIT ? STEP_WAIT : STEP_CLOSE;
    }
    x->deadline = in_ms(x->server->o.send_ms);
    return STEP_AGAIN;
}

static step send_answer(exchange *x)
{
    long n;
    if (x->status && x->n_out == 0 && !x->has_task) {
        return STEP_CLOSE; /* the answer could not be completed */
    }
    if (x->sent < x->n_out) {
        n = os_send(x->fd, x->out + x->sent, x->n_out - x->sent, x->n_bytes || x->file_left);
        x->sent += n > 0 ? (size_t)n : 0;
        return moved(x, n);
    }
    if (x->bytes_sent < x->n_bytes) {
        n = os_send(x->fd, x->bytes + x->bytes_sent, x->n_bytes - x->bytes_sent, false);
        x->bytes_sent += n > 0 ? (size_t)n : 0;
        return moved(x, n);
    }
    if (x->file_left) {
        n = os_send_file(x->fd, x->file, x->file_at,
                         x->file_left < FILE_PIECE ? (size_t)x->file_left : FILE_PIECE);
        x->file_at += n > 0 ? (uint64_t)n : 0;
        x->file_left -= n > 0 ? (uint64_t)n : 0;
        return moved(x, n);
    }
    if (x->streaming) {
        if (!exchange_fill(x)) {
            return STEP_CLOSE;
        }
        x->deadline = x->n_out ? in_ms(x->server->o.send_ms) : 0; /* not waiting for the client */
        return (x->waiting || x->busy) && !x->n_out ? STEP_WAIT : STEP_AGAIN;
    }
    return end_answer(x);
}

static step linger(exchange *x)
{
    const long n = os_receive(x->fd, x->in, IN_SIZE);
    return n > 0 ? STEP_AGAIN : n == OS_WAIT ? STEP_WAIT : STEP_CLOSE;
}

static step resume(exchange *x)
{
    x->task.resume(x->task.user, x);
    if (x->phase == PHASE_LATER) {
        return STEP_WAIT;
    }
    x->deadline = in_ms(x->server->o.send_ms);
    return STEP_AGAIN;
}

/* ---- one connection's turn ----------------------------------------------------------------------
 */

static step take_step(exchange *x)
{
    switch (x->phase) {
    case PHASE_HEAD: return read_head(x);
    case PHASE_BODY: return read_body(x);
    case PHASE_LATER: return resume(x);
    case PHASE_SEND: return send_answer(x);
    case PHASE_LINGER: return linger(x);
    }
    return STEP_CLOSE;
}

bool connection_turn(exchange *x)
{
    x->busy = false;
    for (int i = 0; i < STEPS; i++) {
        switch (take_step(x)) {
        case STEP_WAIT: return true;
        case STEP_CLOSE: return false;
        case STEP_AGAIN: break;
        }
    }
    x->busy = true;
    return true;
}

bool connection_give_up(exchange *x)
{
    const bool asked = (x->phase == PHASE_HEAD && x->n_in) || x->phase == PHASE_BODY;
    if (!asked) {
        return false;
    }
    x->keep = false;
    x->deadline = in_ms(x->server->o.send_ms);
    exchange_text(x, 408, "The request took too long to arrive.");
    return connection_turn(x);
}

short connection_wanted(const exchange *x)
{
    switch (x->phase) {
    case PHASE_LATER: return OS_LEFT;
    case PHASE_SEND:
        return (short)((x->streaming ? OS_LEFT : 0) |
                       (x->sent < x->n_out || !x->streaming ? OS_WRITE : 0));
    default: return OS_READ;
    }
}

bool connection_left(const exchange *x, short seen)
{
    return (seen & OS_LEFT) &&
           (x->phase == PHASE_LATER || (x->phase == PHASE_SEND && x->streaming));
}
