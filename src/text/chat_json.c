/* Reads the conversation of a request, in OpenAI's or Ollama's form:
 *
 *              OpenAI                                   Ollama
 *   content    a string, or parts by type               a string, and `images` beside it
 *   thinking   reasoning, reasoning_content             thinking
 *   calls      arguments as JSON in a string            arguments as an object
 *   results    tool_call_id                             tool_name
 *
 * Content that cannot be shown to the model is an error; unknown fields without content (refusal,
 * annotations, index ...) are ignored.
 */
#include "text/chat.h"

#include <string.h>

static const char NO_MEMORY[] = "There is not enough memory to read the conversation.";

/* The message being read, for error messages. */
typedef struct reading {
    bz_arena *arena;
    bz_error *err;
    size_t message; /* counted from 1 */
} reading;

static bz_status bad_message(const reading *r, const char *what)
{
    return bz_fail(r->err, BZ_BAD_REQUEST, "Message %zu %s.", r->message, what);
}

/* Allocates a list of n items; NULL: out of memory, and *status is set. Never NULL for n = 0. */
static void *list_of(const reading *r, size_t n, size_t size, bz_status *status)
{
    void *list = bz_arena_array(r->arena, n ? n : 1, size);
    if (list) {
        memset(list, 0, n * size);
    } else {
        *status = bz_fail(r->err, BZ_OUT_OF_MEMORY, "%s", NO_MEMORY);
    }
    return list;
}

static bool is_nothing(const bz_json_node *node)
{
    return !node || node->kind == BZ_JSON_NULL;
}

static bz_str first_string(const bz_json_node *object, const char *const *keys, size_t n)
{
    bz_str s = {"", 0};
    for (size_t i = 0; i < n && s.len == 0; i++) {
        s = bz_json_string(bz_json_get(object, keys[i]));
    }
    return s;
}

#define FIRST_STRING(object, ...)                                                                  \
    first_string(object, (const char *const[]){__VA_ARGS__},                                       \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* ---- content ---------------------------------------------------------------- */

static bool part_kind(bz_str type, bz_part_kind *kind)
{
    static const struct {
        const char *type;
        bz_part_kind kind;
    } known[] = {
        {"text", BZ_PART_TEXT},   {"input_text", BZ_PART_TEXT}, {"output_text", BZ_PART_TEXT},
        {"image", BZ_PART_IMAGE}, {"image_url", BZ_PART_IMAGE}, {"input_image", BZ_PART_IMAGE},
        {"audio", BZ_PART_AUDIO}, {"audio_url", BZ_PART_AUDIO}, {"input_audio", BZ_PART_AUDIO},
        {"video", BZ_PART_VIDEO}, {"video_url", BZ_PART_VIDEO}, {"input_video", BZ_PART_VIDEO},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (bz_str_is(type, known[i].type)) {
            *kind = known[i].kind;
            return true;
        }
    }
    return false;
}

/* The source of a part's media. Clients put it under the name of the part's type, as a string or in
 * an object, or next to the type. */
static bz_str media_source(const bz_json_node *part, bz_str type)
{
    const bz_json_node *inner = NULL;
    for (const bz_json_node *item = bz_json_first(part); item; item = item->next) {
        if (item->key.len == type.len && memcmp(item->key.data, type.data, type.len) == 0) {
            inner = item;
        }
    }
    if (!inner) {
        inner = bz_json_get(part, "image_url"); /* of an input_image */
    }
    if (bz_json_is(inner, BZ_JSON_STRING)) {
        return inner->of.text;
    }
    return FIRST_STRING(bz_json_is(inner, BZ_JSON_OBJECT) ? inner : part, "url", "data", "path",
                        "base64");
}

static bz_status read_part(const reading *r, const bz_json_node *node, bz_part *part)
{
    if (bz_json_is(node, BZ_JSON_STRING)) {
        *part = (bz_part){BZ_PART_TEXT, node->of.text};
        return BZ_OK;
    }
    bz_str type = bz_json_string(bz_json_get(node, "type"));
    if (!part_kind(type, &part->kind)) {
        char shown[200];
        return bz_fail(r->err, BZ_BAD_REQUEST,
                       "Message %zu has a part of type '%s'; it must be text, image_url, "
                       "input_audio or video.",
                       r->message, bz_str_show(type, shown));
    }
    part->text = part->kind == BZ_PART_TEXT ? bz_json_string(bz_json_get(node, "text"))
                                            : media_source(node, type);
    return BZ_OK;
}

/* Ollama's images come before the text. */
static bz_status read_parts(const reading *r, const bz_json_node *content,
                            const bz_json_node *images, bz_message *m)
{
    bool list = bz_json_is(content, BZ_JSON_ARRAY);
    size_t n = (images ? images->n : 0) + (list ? content->n : 1), at = 0;
    bz_status status = BZ_OK;
    bz_part *parts = list_of(r, n, sizeof *parts, &status);
    if (!parts) {
        return status;
    }
    for (const bz_json_node *image = bz_json_first(images); image; image = image->next) {
        parts[at++] = (bz_part){BZ_PART_IMAGE, bz_json_string(image)};
    }
    if (list) {
        for (const bz_json_node *node = content->of.first; node && !status; node = node->next) {
            status = read_part(r, node, &parts[at++]);
        }
    } else {
        parts[at++] = (bz_part){BZ_PART_TEXT, bz_json_string(content)};
    }
    m->parts = parts;
    m->n_parts = at;
    return status;
}

static bz_status read_content(const reading *r, const bz_json_node *node, bz_message *m)
{
    const bz_json_node *content = bz_json_get(node, "content"),
                       *images = bz_json_get(node, "images");
    if (!is_nothing(content) && content->kind != BZ_JSON_STRING && content->kind != BZ_JSON_ARRAY) {
        return bad_message(r, "has a content that is neither a string nor a list of parts");
    }
    if (!is_nothing(images) && images->kind != BZ_JSON_ARRAY) {
        return bad_message(r, "has images that are not a list");
    }
    if (bz_json_is(content, BZ_JSON_ARRAY) || bz_json_first(images)) {
        return read_parts(r, content, is_nothing(images) ? NULL : images, m);
    }
    m->text = bz_json_string(content);
    return BZ_OK;
}

/* ---- calls ------------------------------------------------------------------ */

static bz_status read_calls(const reading *r, const bz_json_node *node, bz_message *m)
{
    const bz_json_node *list = bz_json_get(node, "tool_calls");
    bz_status status = BZ_OK;
    if (is_nothing(list)) {
        return BZ_OK;
    }
    if (list->kind != BZ_JSON_ARRAY) {
        return bad_message(r, "has tool_calls that are not a list");
    }
    bz_tool_call *calls = list_of(r, list->n, sizeof *calls, &status);
    if (!calls) {
        return status;
    }
    m->calls = calls;
    for (const bz_json_node *item = list->of.first; item; item = item->next) {
        const bz_json_node *function = bz_json_get(item, "function");
        if (!function) {
            function = item;
        }
        const bz_json_node *arguments = bz_json_get(function, "arguments");
        bz_tool_call *call = &calls[m->n_calls++];
        *call = (bz_tool_call){.id = bz_json_string(bz_json_get(item, "id")),
                               .name = bz_json_string(bz_json_get(function, "name"))};
        if (!call->name.len) {
            return bad_message(r, "has a tool call without a name");
        }
        if (bz_json_is(arguments, BZ_JSON_STRING)) {
            call->arguments_text = arguments->of.text;
        } else {
            call->arguments = arguments;
        }
    }
    return BZ_OK;
}

static bz_status read_results(const reading *r, const bz_json_node *node, bz_message *m)
{
    const bz_json_node *list = bz_json_get(node, "tool_responses");
    bz_status status = BZ_OK;
    if (is_nothing(list)) {
        return BZ_OK;
    }
    if (list->kind != BZ_JSON_ARRAY) {
        return bad_message(r, "has tool_responses that are not a list");
    }
    bz_tool_result *results = list_of(r, list->n, sizeof *results, &status);
    if (!results) {
        return status;
    }
    m->results = results;
    for (const bz_json_node *item = list->of.first; item; item = item->next) {
        results[m->n_results++] = (bz_tool_result){bz_json_string(bz_json_get(item, "name")),
                                                   bz_json_get(item, "response")};
    }
    return BZ_OK;
}

/* ---- messages --------------------------------------------------------------- */

static bool read_role(bz_str role, bz_role *out)
{
    static const struct {
        const char *name;
        bz_role role;
    } known[] = {
        {"system", BZ_ROLE_SYSTEM},       {"developer", BZ_ROLE_SYSTEM}, {"user", BZ_ROLE_USER},
        {"assistant", BZ_ROLE_ASSISTANT}, {"model", BZ_ROLE_ASSISTANT},  {"tool", BZ_ROLE_TOOL},
        {"function", BZ_ROLE_TOOL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (bz_str_is(role, known[i].name)) {
            *out = known[i].role;
            return true;
        }
    }
    return false;
}

static bz_status read_message(const reading *r, const bz_json_node *node, bz_message *m)
{
    bz_str role = bz_json_string(bz_json_get(node, "role"));
    if (!read_role(role, &m->role)) {
        char shown[200];
        return bz_fail(r->err, BZ_BAD_REQUEST,
                       "Message %zu has the role '%s'; it must be system, user, assistant or tool.",
                       r->message, bz_str_show(role, shown));
    }
    const bz_json_node *pinned = bz_json_get(node, "pinned");
    if (!is_nothing(pinned) && pinned->kind != BZ_JSON_TRUE && pinned->kind != BZ_JSON_FALSE) {
        return bad_message(r, "has a value of pinned that is neither true nor false");
    }
    m->pinned = bz_json_is(pinned, BZ_JSON_TRUE);
    bz_status status = read_content(r, node, m);
    if (!status && m->role == BZ_ROLE_ASSISTANT) {
        m->reasoning = FIRST_STRING(node, "reasoning", "reasoning_content", "thinking");
        status = read_calls(r, node, m);
        if (!status) {
            status = read_results(r, node, m);
        }
    }
    if (m->role == BZ_ROLE_TOOL) {
        m->tool_call_id = bz_json_string(bz_json_get(node, "tool_call_id"));
        m->name = FIRST_STRING(node, "name", "tool_name");
    }
    return status;
}

/* ---- the request ------------------------------------------------------------ */

/* Ollama has levels for `think`, OpenAI has reasoning_effort; for Gemma 4 all levels but "none" are
 * the same. Returns whether the value sets anything. */
static bool read_switch(const bz_json_node *node, bool *on)
{
    if (bz_json_is(node, BZ_JSON_TRUE) || bz_json_is(node, BZ_JSON_FALSE)) {
        *on = node->kind == BZ_JSON_TRUE;
        return true;
    }
    if (bz_json_is(node, BZ_JSON_STRING)) {
        *on = !bz_str_is(node->of.text, "none") && !bz_str_is(node->of.text, "false") &&
              node->of.text.len > 0;
        return true;
    }
    return false;
}

static void read_switches(bz_conversation *chat, const bz_json_node *object)
{
    static const char *const thinking[] = {"reasoning_effort", "think", "enable_thinking"};
    for (size_t i = 0; i < sizeof thinking / sizeof *thinking; i++) {
        read_switch(bz_json_get(object, thinking[i]), &chat->enable_thinking);
    }
    read_switch(bz_json_get(object, "preserve_thinking"), &chat->preserve_thinking);
    read_switch(bz_json_get(object, "add_generation_prompt"), &chat->add_generation_prompt);
    read_switch(bz_json_get(object, "continue_final_message"), &chat->continue_final);
}

bz_status bz_chat_read(bz_conversation *chat, const bz_json_node *request, bz_arena *arena,
                       bz_error *err)
{
    reading r = {arena, err, 0};
    const bz_json_node *messages = bz_json_get(request, "messages"),
                       *tools = bz_json_get(request, "tools");
    bz_status status = BZ_OK;
    *chat = (bz_conversation){.add_generation_prompt = true};
    if (!bz_json_is(messages, BZ_JSON_ARRAY)) {
        return bz_fail(err, BZ_BAD_REQUEST, "The request has no list of messages.");
    }
    if (!is_nothing(tools) && tools->kind != BZ_JSON_ARRAY) {
        return bz_fail(err, BZ_BAD_REQUEST, "The request's tools are not a list.");
    }
    const bool unwanted = bz_str_is(bz_json_string(bz_json_get(request, "tool_choice")), "none");
    chat->tools = is_nothing(tools) || unwanted ? NULL : tools;
    read_switches(chat, request);
    read_switch(bz_json_get(bz_json_get(request, "reasoning"), "effort"), &chat->enable_thinking);
    read_switch(bz_json_get(bz_json_get(request, "reasoning"), "enabled"), &chat->enable_thinking);
    read_switches(chat, bz_json_get(request, "chat_template_kwargs"));
    bz_message *list = list_of(&r, messages->n, sizeof *list, &status);
    if (!list) {
        return status;
    }
    chat->messages = list;
    for (const bz_json_node *node = messages->of.first; node && !status; node = node->next) {
        r.message++;
        status = read_message(&r, node, &list[chat->n_messages++]);
    }
    return status;
}
