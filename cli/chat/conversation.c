#include "cli/chat/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/text.h"

enum { MAX_SAVED_BYTES = 256 << 20 }; /* of a file to load */

void conversation_free(conversation *t)
{
    conversation_truncate(t, 0);
    free(t->messages);
    free(t->left_out);
    free(t->system);
    *t = (conversation){0};
}

void conversation_truncate(conversation *t, size_t n)
{
    while (t->n > n) {
        free(t->messages[--t->n]);
    }
    t->n_pinned = t->n_pinned < t->n ? t->n_pinned : t->n;
}

bool conversation_set_system(conversation *t, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) {
        return false;
    }
    free(t->system);
    t->system = copy;
    return true;
}

/* ---- JSON ------------------------------------------------------------------------- */

static bool put(bz_json_buffer *b, const char *text)
{
    return bz_json_to_buffer(b, text, strlen(text));
}

static bool put_quoted(bz_json_buffer *b, bz_str text)
{
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, b);
    bz_json_str(&j, text);
    return bz_json_finish(&j);
}

/* Takes ownership of the buffer's text. */
static bool add(conversation *t, bz_json_buffer *b, bool ok)
{
    char **more = ok ? realloc(t->messages, (t->n + 1) * sizeof *more) : NULL;
    t->messages = more ? more : t->messages;
    bool *flags = more ? realloc(t->left_out, (t->n + 1) * sizeof *flags) : NULL;
    if (!flags) {
        free(b->text);
        return false;
    }
    t->left_out = flags;
    t->left_out[t->n] = false;
    t->messages[t->n++] = b->text;
    return true;
}

bool conversation_pin(conversation *t, const char *json)
{
    bz_json_buffer b = {0};
    const bool ok = add(t, &b, put(&b, json));
    t->n_pinned += ok;
    return ok;
}

bool conversation_add_user(conversation *t, const char *text, size_t len)
{
    bz_json_buffer b = {0};
    bool ok = put(&b, "{\"role\":\"user\",\"content\":") && put_quoted(&b, (bz_str){text, len}) &&
              put(&b, "}");
    return add(t, &b, ok);
}

/* Types of the parts with files, by bz_media_kind. */
static const char *const kind_names[] = {"image", "audio", "video"};

/* The file of a part; false: it has none. */
static bool part_file(const bz_json_node *part, bz_media_kind *kind, bz_str *path)
{
    for (size_t k = 0; k < sizeof kind_names / sizeof *kind_names; k++) {
        *kind = (bz_media_kind)k;
        *path = bz_json_string(bz_json_get(part, kind_names[k]));
        if (path->len) {
            return true;
        }
    }
    return false;
}

bool conversation_add_user_files(conversation *t, const attached_file *files, size_t n,
                                 const char *text, size_t len)
{
    bz_json_buffer b = {0};
    bool ok = put(&b, "{\"role\":\"user\",\"content\":[");
    for (size_t i = 0; i < n; i++) {
        const char *name = kind_names[files[i].kind];
        ok = ok && put(&b, "{\"type\":\"") && put(&b, name) && put(&b, "\",\"") && put(&b, name) &&
             put(&b, "\":") && put_quoted(&b, (bz_str){files[i].path, strlen(files[i].path)}) &&
             put(&b, "},");
    }
    ok = ok && put(&b, "{\"type\":\"text\",\"text\":") && put_quoted(&b, (bz_str){text, len}) &&
         put(&b, "}]}");
    return add(t, &b, ok);
}

bool conversation_add_answer(conversation *t, bz_str text, bz_str thinking, bz_str calls)
{
    bz_json_buffer b = {0};
    bool ok = put(&b, "{\"role\":\"assistant\",\"content\":") && put_quoted(&b, text);
    if (thinking.len) {
        ok = ok && put(&b, ",\"thinking\":") && put_quoted(&b, thinking);
    }
    if (calls.len) {
        ok = ok && put(&b, ",\"tool_calls\":") && bz_json_to_buffer(&b, calls.data, calls.len);
    }
    return add(t, &b, ok && put(&b, "}"));
}

/* A message that stays when a request is shortened; every message has members already. */
static bool put_pinned_message(bz_json_buffer *b, const char *json)
{
    return put(b, "{\"pinned\":true,") && put(b, strchr(json, '{') + 1);
}

/* For a request; else for a file: all of them. */
static bool put_messages(const conversation *t, bool request, bz_json_buffer *b)
{
    bool first = true;
    bool ok = put(b, "\"messages\":[");
    if (t->system) {
        ok = ok && put(b, "{\"role\":\"system\",\"content\":") &&
             put_quoted(b, (bz_str){t->system, strlen(t->system)}) && put(b, "}");
        first = false;
    }
    for (size_t i = 0; i < t->n; i++) {
        if (!request || !t->left_out[i]) {
            ok = ok && put(b, first ? "" : ",") &&
                 (request && i < t->n_pinned ? put_pinned_message(b, t->messages[i])
                                             : put(b, t->messages[i]));
            first = false;
        }
    }
    return ok && put(b, "]");
}

/* The longest answer, for which room is kept. */
static bool put_longest(bz_json_buffer *b, const settings *s)
{
    char text[40];
    const double n = s->set[SET_NUM_PREDICT] ? s->value[SET_NUM_PREDICT] : 0;
    snprintf(text, sizeof text, "\"num_predict\":%.0f,", n);
    return n <= 0 || put(b, text);
}

bool conversation_request(const conversation *t, bool think, bool shift, const settings *s,
                          bz_json_buffer *b)
{
    b->n = 0;
    bool ok = put(b, think ? "{\"think\":true,\"stop\":[" : "{\"think\":false,\"stop\":[");
    for (size_t i = 0; i < s->n_stop; i++) {
        ok = ok && put(b, i ? "," : "") && put_quoted(b, (bz_str){s->stop[i], strlen(s->stop[i])});
    }
    ok = ok && put(b, "],");
    if (s->form) {
        ok = ok && put(b, s->form) && put(b, ",");
    }
    ok = ok && put(b, shift ? "" : "\"context_shift\":false,") && put_longest(b, s);
    return ok && put_messages(t, true, b) && put(b, "}");
}

/* ---- files ------------------------------------------------------------------------ */

/* Does not overwrite a file that is not a saved chat. */
static bz_status check_target(const char *path, bz_error *err)
{
    conversation old = {0};
    if (!bz_os_file_exists(path)) {
        return BZ_OK;
    }
    bz_status status = conversation_load(&old, path, NULL);
    conversation_free(&old);
    return status == BZ_OK
               ? BZ_OK
               : bz_fail(err, BZ_BAD_REQUEST,
                         "%s exists and is not a saved chat; choose another name.", path);
}

/* Only the user can read the file: it is private text. */
static bz_status write_whole(const char *path, const bz_json_buffer *b, bz_error *err)
{
    bz_os_writer *w = NULL;
    const bz_status status = bz_os_writer_open(&w, path, err);
    if (status != BZ_OK) {
        return status;
    }
    return bz_os_writer_close(w, bz_os_writer_put(w, b->text, b->n), err);
}

/* How many of the saved messages stay when others are dropped, the system prompt included. */
static bool put_pinned(bz_json_buffer *b, const conversation *t)
{
    char text[40];
    snprintf(text, sizeof text, ",\"pinned\":%zu", t->n_pinned + (t->system != NULL));
    return t->n_pinned == 0 || put(b, text);
}

bz_status conversation_save(const conversation *t, const char *path, const char *model,
                            bz_error *err)
{
    bz_json_buffer b = {0};
    bz_status status = check_target(path, err);
    if (status == BZ_OK &&
        !(put(&b, "{\"model\":") && put_quoted(&b, (bz_str){model, strlen(model)}) &&
          put_pinned(&b, t) && put(&b, ",\n ") && put_messages(t, false, &b) && put(&b, "}\n"))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to save the chat.");
    }
    if (status == BZ_OK) {
        status = write_whole(path, &b, err);
    }
    free(b.text);
    return status;
}

static bool is_role(const bz_json_node *message, const char *role)
{
    return bz_str_is(bz_json_string(bz_json_get(message, "role")), role);
}

/* The leading system message becomes the system prompt, where /set system finds it. */
static bool take(conversation *t, const bz_json_node *message)
{
    const bz_json_node *content = bz_json_get(message, "content");
    if (t->n == 0 && !t->system && is_role(message, "system") &&
        bz_json_is(content, BZ_JSON_STRING)) {
        t->system = bz_text_copy(content->of.text.data, content->of.text.len);
        return t->system != NULL;
    }
    bz_json_buffer b = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &b);
    bz_json_node_write(&j, message);
    return add(t, &b, bz_json_finish(&j));
}

static bz_status read_conversation(conversation *t, const char *path, const bz_json_node *root,
                                   bz_error *err)
{
    const bz_json_node *messages = bz_json_get(root, "messages");
    if (!bz_json_is(messages, BZ_JSON_ARRAY)) {
        return bz_fail(err, BZ_BAD_FILE, "%s is not a saved chat: it has no list of messages.",
                       path);
    }
    for (const bz_json_node *m = messages->of.first; m; m = m->next) {
        if (!is_role(m, "system") && !is_role(m, "user") && !is_role(m, "assistant") &&
            !is_role(m, "tool")) {
            return bz_fail(err, BZ_BAD_FILE,
                           "%s is not a saved chat: message %zu has an unknown role.", path,
                           t->n + 1);
        }
        if (!take(t, m)) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the chat.");
        }
    }
    double pinned = 0;
    if (bz_json_to_double(bz_json_get(root, "pinned"), &pinned)) {
        pinned -= t->system != NULL;
        t->n_pinned = pinned <= 0 ? 0 : pinned < (double)t->n ? (size_t)pinned : t->n;
    }
    return BZ_OK;
}

bz_status conversation_load(conversation *t, const char *path, bz_error *err)
{
    char *text = NULL;
    size_t len;
    bz_error why = {0};
    bz_status status = bz_os_read_small(path, MAX_SAVED_BYTES, &text, &len, &why);
    if (status != BZ_OK) {
        return bz_fail(err, status, "Cannot read %s: %s.", path, why.text);
    }
    bz_arena arena = {0};
    const bz_json_node *root;
    conversation fresh = {0};
    status = bz_json_read(&root, text, len, &arena, &why);
    if (status != BZ_OK) {
        bz_fail(err, status, "%s is not a saved chat: %s", path, why.text);
    } else {
        status = read_conversation(&fresh, path, root, err);
    }
    bz_arena_free(&arena);
    free(text);
    if (status != BZ_OK) {
        conversation_free(&fresh);
        return status;
    }
    conversation_free(t);
    *t = fresh;
    return BZ_OK;
}

/* The text of a message's list of parts; files in parentheses. */
static bz_str parts_text(const bz_json_node *content, bz_arena *arena)
{
    bz_json_buffer b = {0};
    bool ok = true;
    for (const bz_json_node *part = bz_json_first(content); part && ok; part = part->next) {
        bz_str text = bz_json_string(bz_json_get(part, "text"));
        bz_media_kind kind;
        bz_str file;
        if (part_file(part, &kind, &file)) {
            ok = put(&b, "(") && bz_json_to_buffer(&b, file.data, file.len) && put(&b, ") ");
        } else if (text.len) {
            ok = bz_json_to_buffer(&b, text.data, text.len);
        }
    }
    char *copy = ok && b.n ? bz_arena_alloc(arena, b.n) : NULL;
    if (copy) {
        memcpy(copy, b.text, b.n);
    }
    const bz_str made = {copy ? copy : "", copy ? b.n : 0};
    free(b.text);
    return made;
}

bool conversation_message(const conversation *t, size_t i, bz_arena *arena, bz_str *role,
                          bz_str *text)
{
    const bz_json_node *root;
    if (bz_json_read(&root, t->messages[i], strlen(t->messages[i]), arena, NULL) != BZ_OK) {
        return false;
    }
    const bz_json_node *content = bz_json_get(root, "content");
    *role = bz_json_string(bz_json_get(root, "role"));
    *text =
        bz_json_is(content, BZ_JSON_ARRAY) ? parts_text(content, arena) : bz_json_string(content);
    return true;
}

static void report_files(const conversation *t, size_t i, conversation_file file, void *user)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    if (bz_json_read(&root, t->messages[i], strlen(t->messages[i]), &arena, NULL) == BZ_OK) {
        const bz_json_node *content = bz_json_get(root, "content");
        const bool list = bz_json_is(content, BZ_JSON_ARRAY);
        for (const bz_json_node *part = list ? bz_json_first(content) : NULL; part;
             part = part->next) {
            bz_media_kind kind;
            bz_str path;
            if (part_file(part, &kind, &path)) {
                file(user, kind, path);
            }
        }
    }
    bz_arena_free(&arena);
}

void conversation_leave_out(conversation *t, const bz_turn *turn, conversation_file file,
                            void *user)
{
    size_t at = t->system != NULL; /* of the request */
    for (size_t i = 0; i < t->n; i++) {
        if (!t->left_out[i] && bz_turn_leaves_out(turn, at++)) {
            t->left_out[i] = true;
            report_files(t, i, file, user);
        }
    }
}

void conversation_see_all(conversation *t)
{
    for (size_t i = 0; i < t->n; i++) {
        t->left_out[i] = false;
    }
}

size_t conversation_left_out(const conversation *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->left_out[i];
    }
    return n;
}
