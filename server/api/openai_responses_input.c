/* Requests to /v1/responses: their items become messages of a chat request. */
#include <stdlib.h>
#include <string.h>

#include "server/api/openai_responses.h"

static bz_status bad(bz_error *err, const char *sentence)
{
    return bz_fail(err, BZ_BAD_REQUEST, "%s", sentence);
}

/* ---- items -------------------------------------------------------------------------------------
 */

static void put_call(bz_json *j, const bz_json_node *item)
{
    bz_json_object(j);
    bz_json_put_text(j, "role", "assistant");
    bz_json_key(j, "tool_calls");
    bz_json_array(j);
    bz_json_object(j);
    bz_json_put_str(j, "id", bz_json_string(bz_json_get(item, "call_id")));
    bz_json_put_text(j, "type", "function");
    bz_json_key(j, "function");
    bz_json_object(j);
    bz_json_put_str(j, "name", bz_json_string(bz_json_get(item, "name")));
    bz_json_put_str(j, "arguments", bz_json_string(bz_json_get(item, "arguments")));
    bz_json_end(j);
    bz_json_end(j);
    bz_json_end(j);
    bz_json_end(j);
}

static void put_result(bz_json *j, const bz_json_node *item)
{
    bz_json_object(j);
    bz_json_put_text(j, "role", "tool");
    bz_json_put_str(j, "tool_call_id", bz_json_string(bz_json_get(item, "call_id")));
    bz_json_key(j, "content");
    bz_json_node_write(j, bz_json_get(item, "output"));
    bz_json_end(j);
}

static void put_message(bz_json *j, const bz_json_node *item)
{
    const bz_json_node *role = bz_json_get(item, "role");
    bz_json_object(j);
    bz_json_key(j, "role");
    bz_json_node_write(j, role);
    bz_json_key(j, "content");
    bz_json_node_write(j, bz_json_get(item, "content"));
    bz_json_end(j);
}

static bz_status put_item(bz_json *j, const bz_json_node *item, bz_error *err)
{
    const bz_str type = bz_json_string(bz_json_get(item, "type"));
    char shown[200];
    if (!bz_json_is(item, BZ_JSON_OBJECT)) {
        return bad(err, "input is a text, or a list of items, which are objects.");
    }
    if (type.len == 0 || bz_str_is(type, "message")) {
        put_message(j, item);
    } else if (bz_str_is(type, "function_call")) {
        put_call(j, item);
    } else if (bz_str_is(type, "function_call_output")) {
        put_result(j, item);
    } else if (!bz_str_is(type, "reasoning")) { /* thinking of earlier turns is not repeated */
        return bz_fail(err, BZ_BAD_REQUEST,
                       "input has an item of type '%s'; it must be message, function_call, "
                       "function_call_output or reasoning.",
                       bz_str_show(type, shown));
    }
    return BZ_OK;
}

static bz_status put_messages(bz_json *j, const bz_json_node *root, bz_error *err)
{
    const bz_json_node *input = bz_json_get(root, "input"),
                       *instructions = bz_json_get(root, "instructions");
    bz_status status = BZ_OK;
    bz_json_key(j, "messages");
    bz_json_array(j);
    if (bz_json_is(instructions, BZ_JSON_STRING)) {
        bz_json_object(j);
        bz_json_put_text(j, "role", "system");
        bz_json_put_str(j, "content", instructions->of.text);
        bz_json_end(j);
    } else if (!api_is_absent(instructions)) {
        status = bad(err, "instructions is a text.");
    }
    if (bz_json_is(input, BZ_JSON_STRING)) {
        bz_json_object(j);
        bz_json_put_text(j, "role", "user");
        bz_json_put_str(j, "content", input->of.text);
        bz_json_end(j);
    } else if (!bz_json_is(input, BZ_JSON_ARRAY)) {
        status = bad(err, "input is a text or a list of items.");
    }
    for (const bz_json_node *item = bz_json_first(input); item && status == BZ_OK;
         item = item->next) {
        status = put_item(j, item, err);
    }
    bz_json_end(j);
    return status;
}

/* ---- tools -------------------------------------------------------------------------------------
 */

/* {"type": "function", "name", "parameters"}: without the inner object of the chat API. */
static bz_status put_tools(bz_json *j, const bz_json_node *tools, bz_error *err)
{
    static const char *const skip[] = {"type", "strict", NULL};
    if (api_is_absent(tools)) {
        return BZ_OK;
    }
    bz_json_key(j, "tools");
    bz_json_array(j);
    for (const bz_json_node *t = bz_json_first(tools); t; t = t->next) {
        char shown[200];
        const bz_str type = bz_json_string(bz_json_get(t, "type"));
        if (!bz_str_is(type, "function")) {
            return bz_fail(err, BZ_BAD_REQUEST, "Tools are of type function, not '%s'.",
                           bz_str_show(type, shown));
        }
        bz_json_object(j);
        bz_json_put_text(j, "type", "function");
        bz_json_key(j, "function");
        bz_json_object(j);
        api_copy_members(j, t, skip);
        bz_json_end(j);
        bz_json_end(j);
    }
    bz_json_end(j);
    return BZ_OK;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

static bz_status check(const bz_json_node *root, bz_error *err)
{
    static const char *const refused[] = {"previous_response_id", "conversation", "prompt"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!api_is_absent(bz_json_get(root, refused[i]))) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "%s is not supported: nothing is stored here; send the whole "
                           "conversation as input.",
                           refused[i]);
        }
    }
    if (bz_json_is(bz_json_get(root, "background"), BZ_JSON_TRUE)) {
        return bad(err, "background is not supported: wait for the answer, or stream it.");
    }
    const bz_json_node *truncation = bz_json_get(root, "truncation");
    if (!api_is_absent(truncation) && !bz_str_is(bz_json_string(truncation), "disabled") &&
        !bz_str_is(bz_json_string(truncation), "auto")) {
        return bad(err, "truncation is auto or disabled.");
    }
    int64_t top = 0;
    bz_json_to_int(bz_json_get(root, "top_logprobs"), &top);
    if (top != 0) {
        return bad(err, "top_logprobs is not supported here; /v1/chat/completions has it.");
    }
    const bz_json_node *include = bz_json_get(root, "include");
    for (const bz_json_node *i = bz_json_first(include); i; i = i->next) {
        char shown[200];
        const bz_str what = bz_json_string(i);
        /* agents always ask for it; there is none, as thinking is not kept from turn to turn */
        if (!bz_str_is(what, "reasoning.encrypted_content")) {
            return bz_fail(err, BZ_BAD_REQUEST, "include cannot have '%s'.",
                           bz_str_show(what, shown));
        }
    }
    return BZ_OK;
}

bz_status responses_read(const bz_json_node *root, engine_request *r, bz_error *err)
{
    static const char *const skip[] = {"input",    "instructions", "tools", "text",
                                       "stream",   "store",        "model", "max_output_tokens",
                                       "messages", "truncation",   "n",     "include",
                                       "prompt",   "top_logprobs", NULL};
    const bz_json_node *max = bz_json_get(root, "max_output_tokens"),
                       *format = bz_json_get(bz_json_get(root, "text"), "format");
    api_json b;
    bz_status status = check(root, err);
    if (status != BZ_OK) {
        return status;
    }
    api_json_begin(&b);
    api_copy_members(&b.j, root, skip);
    if (!api_is_absent(bz_json_get(root, "truncation"))) {
        bz_json_put_bool(&b.j, "context_shift",
                         bz_str_is(bz_json_string(bz_json_get(root, "truncation")), "auto"));
    }
    if (!api_is_absent(max)) {
        bz_json_key(&b.j, "max_completion_tokens");
        bz_json_node_write(&b.j, max);
    }
    if (!api_is_absent(
            format)) { /* {"type", "name", "schema", "strict"}, without a level between */
        bz_json_key(&b.j, "response_format");
        bz_json_node_write(&b.j, format);
    }
    status = put_messages(&b.j, root, err);
    status = status == BZ_OK ? put_tools(&b.j, bz_json_get(root, "tools"), err) : status;
    if (status != BZ_OK) {
        free(b.text.text);
        return status;
    }
    return api_json_end(&b, r)
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
}
