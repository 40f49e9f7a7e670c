/* Any line of a prompts file: must not crash; a refusal says why; what is accepted makes a request
 * that the chat template reads or refuses, and options that are in their ranges. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/batch/prompts.h"
#include "base/error.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_refusal(bz_status status, const bz_error *err)
{
    must(status == err->code && (status == BZ_BAD_REQUEST || status == BZ_OUT_OF_MEMORY));
    must(err->text[0] && memchr(err->text, 0, sizeof err->text) && !strpbrk(err->text, "\r\n\x1B"));
}

static void check_settings(const settings *s)
{
    const bz_generate_options o = settings_to_generate(s);
    must(isfinite(o.sampling.temperature) && isfinite(o.sampling.top_p) &&
         isfinite(o.sampling.min_p));
    must(isfinite(o.sampling.repetition) && isfinite(o.sampling.presence) &&
         isfinite(o.sampling.frequency));
    must(o.sampling.repetition >= 0 && o.sampling.top_p <= 1 && o.sampling.min_p >= 0 &&
         o.sampling.min_p <= 1);
    for (size_t i = 0; i < s->n_stop; i++) {
        must(s->stop[i][0] != 0);
    }
    for (int i = 0; i < SETTINGS; i++) {
        char text[SETTING_TEXT];
        must(settings_show(s, (setting)i, text)[0] != 0);
    }
}

/* The request is JSON whatever the line holds, and has a turn to answer or is refused. */
static void check_request(prompt_line *line, const settings *s)
{
    bz_json_buffer request = {0};
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_conversation chat;
    bz_prompt prompt = {0};
    bz_error err = {0};
    char first[] = "{\"role\":\"user\",\"content\":\"Hi\"}", *list[] = {first};
    if (prompt_line_request(line, "Be brief.", list, 1, true, s, &request)) {
        must(bz_json_read(&root, request.text, request.n, &arena, &err) == BZ_OK);
        must(bz_json_is(bz_json_get(root, "stop"), BZ_JSON_ARRAY));
        if (bz_chat_read(&chat, root, &arena, &err) == BZ_OK) {
            if (bz_chat_render(&prompt, &chat, &err) == BZ_OK) {
                must(prompt.n > 0 && prompt.generation <= prompt.n);
            }
            bz_prompt_free(&prompt);
        }
    }
    bz_arena_free(&arena);
    free(request.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prompt_line line = {0};
    settings s = {0}, under = {0};
    bz_error err = {0};
    const bz_status status = prompt_line_read(&line, (const char *)data, size, &err);
    if (status != BZ_OK) {
        check_refusal(status, &err);
    } else {
        must(settings_add_stop(&under, "END", 3, NULL) == BZ_OK);
        must(settings_put_number(&under, SET_TOP_K, 7, NULL) == BZ_OK);
        if (settings_fill(&s, &line.own, NULL) == BZ_OK &&
            settings_fill(&s, &under, NULL) == BZ_OK) {
            check_settings(&s);
            check_request(&line, &s);
        }
    }
    if (line.id) {
        must(line.id->kind == BZ_JSON_STRING || line.id->kind == BZ_JSON_NUMBER);
    }
    settings_free(&s);
    settings_free(&under);
    prompt_line_free(&line);
    return 0;
}
