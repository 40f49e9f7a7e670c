/* Any stream as a model's answer, as text and as ids. However it is cut, the same is said;
 * texts are whole characters; the arguments of a call are a JSON object; the end comes once
 * and last.
 *
 * Input: a byte of flags, then the stream.
 */
#include "text/parse.h"
#include "base/utf8.h"
#include "../support/small_vocab.h"

#include <stdlib.h>
#include <string.h>

enum { THINKING = 1, OPEN = 2, TOOLS = 4, IDS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* All events, with adjacent texts joined. */
typedef struct story {
    bz_json_buffer text;
    int last;
    bool ended;
    uint32_t calls;
} story;

static void tell(story *s, const char *text, size_t n)
{
    must(bz_json_to_buffer(&s->text, text, n));
}

static void drain(story *s, bz_parser *p)
{
    bz_parse_event said;
    while (bz_parser_next(p, &said)) {
        bool text = said.kind == BZ_PARSE_THINKING || said.kind == BZ_PARSE_ANSWER;
        must(!s->ended && bz_utf8_valid(said.text.data, said.text.len) &&
             bz_utf8_valid(said.name.data, said.name.len));
        must(!text || said.text.len > 0);
        if (!text || s->last != (int)said.kind) {
            char mark[2] = {'\xFE', (char)('0' + said.kind)};
            tell(s, mark, 2);
        }
        tell(s, said.name.data, said.name.len);
        tell(s, said.text.data, said.text.len);
        s->last = (int)said.kind;
        s->ended = said.kind == BZ_PARSE_END;
        if (said.kind == BZ_PARSE_CALL) {
            bz_arena arena = {0};
            const bz_json_node *root = NULL;
            must(said.name.len > 0 &&
                 bz_json_read(&root, said.text.data, said.text.len, &arena, NULL) == BZ_OK);
            must(root->kind == BZ_JSON_OBJECT);
            bz_arena_free(&arena);
        }
        if (said.kind == BZ_PARSE_CALL || said.kind == BZ_PARSE_BROKEN_CALL) {
            must(said.call == s->calls++);
        }
    }
}

static void push(bz_parser *p, const uint8_t *data, size_t n, bool ids)
{
    if (!ids) {
        must(bz_parser_push_text(p, (const char *)data, n, NULL) == BZ_OK);
        return;
    }
    for (size_t i = 0; i < n; i++) { /* bytes that are rare in text stand for the special tokens */
        int32_t id = data[i] < 24 && data[i] != '\n' && data[i] != '\t' ? data[i] : 24 + data[i];
        must(bz_parser_push(p, id, NULL) == BZ_OK);
    }
}

/* step 0: all at once, and looked at only in the end */
static bz_json_buffer run(const uint8_t *data, size_t size, uint8_t flags,
                          const bz_json_node *tools, size_t step)
{
    story s = {.last = -1};
    bz_parser *p;
    bz_parser_options o = {.thinking = flags & THINKING,
                           .thinking_open = flags & OPEN,
                           .tools = flags & TOOLS ? tools : NULL};
    must(bz_parser_new(&p, small_tokenizer(), &o, NULL) == BZ_OK);
    for (size_t at = 0, n; at < size; at += n) {
        n = step && step < size - at ? step : size - at;
        push(p, data + at, n, flags & IDS);
        if (step) {
            drain(&s, p);
            step = step % 7 + 1;
        }
    }
    must(bz_parser_finish(p, NULL) == BZ_OK);
    drain(&s, p);
    must(s.ended);
    bz_parser_free(p);
    return s.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char json[] =
        "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{"
        "\"type\":\"string\"},\"b\":{\"type\":"
        "[\"null\",\"string\"]},\"c\":{\"type\":\"integer\"}}}}},{\"name\":\"g\"}]";
    bz_arena arena = {0};
    const bz_json_node *tools;
    if (size == 0 || size > 1 << 16) {
        return 0;
    }
    must(bz_json_read(&tools, json, sizeof json - 1, &arena, NULL) == BZ_OK);
    bz_json_buffer whole = run(data + 1, size - 1, data[0], tools, 0);
    for (size_t step = 1; step < 8; step += 3) {
        bz_json_buffer cut = run(data + 1, size - 1, data[0], tools, step);
        must(cut.n == whole.n && memcmp(cut.text, whole.text, cut.n) == 0);
        free(cut.text);
    }
    free(whole.text);
    bz_arena_free(&arena);
    return 0;
}
