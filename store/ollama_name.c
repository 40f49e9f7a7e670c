#include "store/ollama_name.h"

#include <stdio.h>
#include <string.h>

enum { HOST, SPACE, MODEL, TAG };

static const char *const part_names[] = {"host", "namespace", "model name", "tag"};
static const char default_host[] = "registry.ollama.ai", default_space[] = "library",
                  default_tag[] = "latest";
static const char hugging_face[] = "hf:", hugging_face_host[] = "hf.co";

static char *field(bz_store_name *name, int level)
{
    return level == HOST    ? name->host
           : level == SPACE ? name->space
           : level == MODEL ? name->model
                            : name->tag;
}

/* ---- parsing --------------------------------------------------------------- */

static bool allowed(int level, size_t at, char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
        return true;
    }
    return at > 0 && (c == '-' || (c == '.' && level != SPACE) || (c == ':' && level == HOST));
}

static bz_status set_part(bz_store_name *name, int level, bz_str part, bz_error *err)
{
    const size_t most = level == HOST ? BZ_NAME_HOST : BZ_NAME_PART;
    char shown[200];
    if (part.len == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "its %s is empty", part_names[level]);
    }
    if (part.len > most) {
        return bz_fail(err, BZ_BAD_REQUEST, "its %s is longer than %zu characters",
                       part_names[level], most);
    }
    for (size_t i = 0; i < part.len; i++) {
        if (!allowed(level, i, part.data[i])) {
            return bz_fail(err, BZ_BAD_REQUEST, "its %s %s '%s'", part_names[level],
                           i ? "holds" : "begins with",
                           bz_str_show((bz_str){part.data + i, 1}, shown));
        }
    }
    char *to = field(name, level);
    memcpy(to, part.data, part.len);
    to[part.len] = 0;
    return BZ_OK;
}

bool bz_store_name_set(bz_store_name *name, int level, const char *part)
{
    return set_part(name, level, (bz_str){part, strlen(part)}, NULL) == BZ_OK;
}

/* Splits *s at the last `c`: returns what follows it and keeps what is before it. */
static bool cut_last(bz_str *s, char c, bz_str *after)
{
    for (size_t i = s->len; i-- > 0;) {
        if (s->data[i] == c) {
            *after = (bz_str){s->data + i + 1, s->len - i - 1};
            s->len = i;
            return true;
        }
    }
    return false;
}

static void drop_scheme(bz_str *host)
{
    static const char *const schemes[] = {"https://", "http://"};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);
        if (host->len >= n && memcmp(host->data, schemes[i], n) == 0) {
            *host = (bz_str){host->data + n, host->len - n};
            return;
        }
    }
}

bz_status bz_store_name_parse(bz_store_name *name, const char *text, bz_error *err)
{
    bz_status status = BZ_OK;
    memcpy(name->host, default_host, sizeof default_host);
    if (strncmp(text, hugging_face, strlen(hugging_face)) == 0 && strchr(text, '/')) {
        memcpy(name->host, hugging_face_host, sizeof hugging_face_host);
        text += strlen(hugging_face);
    }
    bz_str rest = {text, strlen(text)}, after;
    memcpy(name->space, default_space, sizeof default_space);
    memcpy(name->tag, default_tag, sizeof default_tag);

    const char *slash = strrchr(text, '/'), *colon = strrchr(text, ':');
    if (colon && (!slash || colon > slash)) { /* else it precedes a host's port */
        cut_last(&rest, ':', &after);
        status = set_part(name, TAG, after, err);
    }
    bool more = cut_last(&rest, '/', &after);
    if (status == BZ_OK) {
        status = set_part(name, MODEL, more ? after : rest, err);
    }
    if (status == BZ_OK && more) {
        more = cut_last(&rest, '/', &after);
        status = set_part(name, SPACE, more ? after : rest, err);
        if (status == BZ_OK && more) {
            drop_scheme(&rest);
            status = set_part(name, HOST, rest, err);
            /* Its name would be read as one of hf.co's when it is written and read again. */
            if (status == BZ_OK && strncmp(name->host, hugging_face, strlen(hugging_face)) == 0) {
                status = bz_fail(err, BZ_BAD_REQUEST,
                                 "its host cannot be called hf, as 'hf:' stands for hf.co");
            }
        }
    }
    return status;
}

/* ---- showing and comparing --------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

const char *bz_store_name_text(const bz_store_name *n, char out[BZ_NAME_TEXT])
{
    const bool host = !same(n->host, default_host), space = host || !same(n->space, default_space);
    snprintf(out, BZ_NAME_TEXT, "%s%s%s%s%s:%s", host ? n->host : "", host ? "/" : "",
             space ? n->space : "", space ? "/" : "", n->model, n->tag);
    return out;
}

bool bz_store_name_same(const bz_store_name *a, const bz_store_name *b)
{
    return same(a->host, b->host) && same(a->space, b->space) && same(a->model, b->model) &&
           same(a->tag, b->tag);
}

/* Edit distance. */
static unsigned edits(const char *a, const char *b)
{
    unsigned row[BZ_NAME_TEXT + 1];
    const size_t n = strlen(b);
    for (size_t i = 0; i <= n; i++) {
        row[i] = (unsigned)i;
    }
    for (size_t k = 0; a[k]; k++) {
        unsigned corner = row[0];
        row[0] = (unsigned)k + 1;
        for (size_t i = 0; i < n; i++) {
            unsigned best = corner + (a[k] != b[i]);
            best = row[i] + 1 < best ? row[i] + 1 : best;
            best = row[i + 1] + 1 < best ? row[i + 1] + 1 : best;
            corner = row[i + 1];
            row[i + 1] = best;
        }
    }
    return row[n];
}

static void to_lower(char *text)
{
    for (; *text; text++) {
        *text = lower(*text);
    }
}

unsigned bz_store_name_distance(const bz_store_name *asked, const bz_store_name *name)
{
    if (same(asked->model, name->model)) {
        return 0;
    }
    char a[BZ_NAME_TEXT], b[BZ_NAME_TEXT], model[BZ_NAME_PART + 1];
    bz_store_name_text(asked, a);
    bz_store_name_text(name, b);
    memcpy(model, asked->model, sizeof model);
    to_lower(a);
    to_lower(b);
    to_lower(model);
    if (same(asked->tag, default_tag)) { /* usually omitted */
        a[strlen(a) - strlen(asked->tag) - 1] = 0;
    }
    const unsigned n = edits(a, b), letters = (unsigned)strlen(a);
    const bool part = strlen(model) >= 3 && strstr(b, model);
    return part || n <= 2 || n <= letters / 3 ? n : BZ_NAME_FAR;
}
