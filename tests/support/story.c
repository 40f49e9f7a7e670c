#include "story.h"
#include "base/utf8.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

static uint32_t random_state = 1;

uint32_t below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 8) * n >> 24);
}

void tell(story *s, const char *text, size_t n)
{
    bz_json_to_buffer(&s->line, text, n);
}

void drain(story *s, bz_parser *p)
{
    bz_parse_event said;
    while (bz_parser_next(p, &said)) {
        bool text = said.kind == BZ_PARSE_THINKING || said.kind == BZ_PARSE_ANSWER;
        CHECK(bz_utf8_valid(said.text.data, said.text.len) && (!text || said.text.len > 0));
        if (text && s->last == (int)said.kind) {
            s->line.n--; /* goes on: reopen the bracket */
        } else {
            static const char letters[] = "TABCXE";
            tell(s, said.kind == BZ_PARSE_CALL && said.repaired ? "R" : &letters[said.kind], 1);
            tell(s, "(", said.kind != BZ_PARSE_END);
        }
        tell(s, said.name.data, said.name.len);
        tell(s, " ", said.kind == BZ_PARSE_CALL);
        tell(s, said.text.data, said.text.len);
        tell(s, ")", said.kind != BZ_PARSE_END);
        s->last = (int)said.kind;
        if (said.kind == BZ_PARSE_CALL || said.kind == BZ_PARSE_BROKEN_CALL) {
            CHECK(said.call == s->calls++);
        }
    }
}

bz_parser *parser(const bz_tokenizer *t, how h)
{
    bz_parser *p;
    bz_parser_options o = {.thinking = !h.thinking_off, .thinking_open = h.open, .tools = h.tools};
    CHECK(bz_parser_new(&p, t, &o, NULL) == BZ_OK);
    return p;
}

char *end_story(story *s, bz_parser *p)
{
    CHECK(bz_parser_finish(p, NULL) == BZ_OK);
    drain(s, p);
    CHECK(bz_parser_finish(p, NULL) == BZ_OK && bz_parser_push_text(p, "late", 4, NULL) == BZ_OK);
    drain(s, p);
    bz_parser_free(p);
    return s->line.text;
}

char *say_cut(const char *text, size_t n, how h, size_t one, uint32_t random)
{
    story s = {.last = -1};
    bz_parser *p = parser(NULL, h);
    for (size_t at = 0, end; at < n; at = end) {
        end = random ? at + 1 + below(random) : one ? (at < one ? one : n) : n;
        end = end > n ? n : end;
        char *part = malloc(end - at);
        memcpy(part, text + at, end - at);
        CHECK(bz_parser_push_text(p, part, end - at, NULL) == BZ_OK);
        free(part);
        if (!random || below(2)) {
            drain(&s, p);
        }
    }
    return end_story(&s, p);
}
