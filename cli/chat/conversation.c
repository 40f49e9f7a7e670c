#include "cli/chat/conversation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"

enum { MAX_SAVED_BYTES = 256 << 20 }; /* of a file to load */

void conversation_free(conversation *t)
{
    conversation_truncate(t, 0);
    free(t->messages);
    free(t->system);
    *t = (conversation){0};
}

void conversation_truncate(conversation *t, size_t n)
{
    while (t->n > n) {
        free(t->messages[--t->n]);
    }
    t->n_pinned = t->n_pinned < t->n ? t->n_pinned : t->n;
    t->n_left_out = t->n_left_out < t->n - t->n_pinned ? t->n_left_out : t->n - t->n_pinned;
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
    if (!more) {
        free(b->text);
        return false;
    }
    t->messages = more;
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

bool conversation_add_user_files(conversation *t, const attached_file *files, size_t n,
                                 const char *text, size_t len)
{
    bz_json_buffer b = {0};
    bool ok = put(&b, "{\"role\":\"user\",\"content\":[");
    for (size_t i = 0; i < n; i++) {
        ok = ok &&
             put(&b, files[i].sound ? "{\"type\":\"audio\",\"audio\":"
                                    : "{\"type\":\"image\",\"image\":") &&
             put_quoted(&b, (bz_str){files[i].path, strlen(files[i].path)}) && put(&b, "},");
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

/* all: also those that requests leave out */
static bool put_messages(const conversation *t, bool all, bz_json_buffer *b)
{
    bool first = true;
    bool ok = put(b, "\"messages\":[");
    if (t->system) {
        ok = ok && put(b, "{\"role\":\"system\",\"content\":") &&
             put_quoted(b, (bz_str){t->system, strlen(t->system)}) && put(b, "}");
        first = false;
    }
    for (size_t i = 0; i < t->n; i++) {
        if (all || i < t->n_pinned || i >= t->n_pinned + t->n_left_out) {
            ok = ok && put(b, first ? "" : ",") && put(b, t->messages[i]);
            first = false;
        }
    }
    return ok && put(b, "]");
}

bool conversation_request(const conversation *t, bool think, const settings *s, bz_json_buffer *b)
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
    return ok && put_messages(t, false, b) && put(b, "}");
}

/* ---- files ------------------------------------------------------------------------ */

/* Does not overwrite a file that is not a saved chat. */
static bz_status check_target(const char *path, bz_error *err)
{
    conversation old = {0};
    if (access(path, F_OK) != 0) {
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
    const size_t room = strlen(path) + 8;
    char *beside = malloc(room);
    if (!beside) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    }
    snprintf(beside, room, "%s.new", path);
    /* A file of a crashed save, or a link that another user put there, is not followed. */
    unlink(beside);
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool ok = f && fwrite(b->text, 1, b->n, f) == b->n && fflush(f) == 0 && fsync(fileno(f)) == 0;
    if (f) {
        ok = fclose(f) == 0 && ok;
    }
    ok = ok && rename(beside, path) == 0;
    bz_status status = BZ_OK;
    if (!ok) {
        status = bz_fail(err, BZ_BAD_REQUEST, "Cannot write %s: %s.", path, strerror(errno));
        if (f) {
            unlink(beside);
        }
    }
    free(beside);
    return status;
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
          put_pinned(&b, t) && put(&b, ",\n ") && put_messages(t, true, &b) && put(&b, "}\n"))) {
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
        t->system = strndup(content->of.text.data, content->of.text.len);
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
        const bz_str image = bz_json_string(bz_json_get(part, "image")),
                     sound = bz_json_string(bz_json_get(part, "audio"));
        const bz_str file = image.len ? image : sound;
        if (file.len) {
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
            const bz_str image = bz_json_string(bz_json_get(part, "image")),
                         sound = bz_json_string(bz_json_get(part, "audio"));
            if (image.len || sound.len) {
                file(user, sound.len != 0, sound.len ? sound : image);
            }
        }
    }
    bz_arena_free(&arena);
}

static bool is_users(const conversation *t, size_t i)
{
    bz_arena arena = {0};
    bz_str role = {0}, text;
    const bool is = conversation_message(t, i, &arena, &role, &text) && bz_str_is(role, "user");
    bz_arena_free(&arena);
    return is;
}

bool conversation_leave_out_turn(conversation *t, conversation_file file, void *user)
{
    const size_t first = t->n_pinned + t->n_left_out;
    size_t next = first + 1;
    while (next < t->n && !is_users(t, next)) {
        next++;
    }
    if (next >= t->n) {
        return false;
    }
    for (size_t i = first; i < next; i++) {
        report_files(t, i, file, user);
    }
    t->n_left_out = next - t->n_pinned;
    return true;
}
