/* Random conversations through template, tokenizer and parser and back, and random streams
 * cut in random ways. Run from the repository's root. */
#include "text/chat.h"
#include "text/space.h"
#include "support/check.h"
#include "support/golden.h"
#include "support/story.h"

#include <stdlib.h>
#include <string.h>

static const char *const hostile[] = {"<|channel",
                                      "<|channel>",
                                      "<channel|>",
                                      "<|tool_call>",
                                      "<tool_call|>",
                                      "<turn|>",
                                      "<|turn>model\n",
                                      "<|\"|>",
                                      "<|\"",
                                      "<|",
                                      "<",
                                      "|>",
                                      "<eos>",
                                      "<|tool_response>",
                                      "thought\n",
                                      "call:f{",
                                      "{\"a\":[1]}",
                                      "'",
                                      "\"",
                                      "\\",
                                      "\n\n\n",
                                      " ",
                                      "  \n",
                                      "\t",
                                      "\xC3\xA9",
                                      "\xF0\x9F\x98\x80",
                                      "\xC2\xA0",
                                      "\xE6\x97\xA5",
                                      "abc",
                                      "hello world",
                                      "x",
                                      "42",
                                      "}",
                                      "]",
                                      ",b:1"};
enum { N_HOSTILE = sizeof hostile / sizeof *hostile };

/* A random text in the arena, ended; plain: without whole markers. */
static char *random_text(bz_arena *arena, uint32_t most, bool plain)
{
    char *text = bz_arena_alloc(arena, (size_t)most * 16 + 1);
    text[0] = 0;
    for (uint32_t n = below(most + 1); n > 0; n--) {
        const char *bit = hostile[below(N_HOSTILE)];
        if (!plain || bit[0] != '<') {
            strcat(text, bit);
        }
    }
    return text;
}

static bz_json_node *random_node(bz_arena *arena, int level, bool plain)
{
    static const char *const keys[] = {"a",        "b",   "key", "k_1", "Two words",
                                       "\xC3\xA9", "a-b", "$x",  "0"};
    static const char *const numbers[] = {
        "0", "-1", "1.0", "2.50", "1e5", "-0.1E-7", "98765432109876543210"};
    bz_json_node *node = bz_arena_alloc(arena, sizeof *node);
    *node = (bz_json_node){.kind = (uint8_t)below(level == 0 ? 0 : level < 4 ? 7 : 5)};
    if (level == 0) {
        node->kind = BZ_JSON_OBJECT;
    }
    if (node->kind == BZ_JSON_NUMBER) {
        node->of.text.data = numbers[below(7)];
        node->of.text.len = strlen(node->of.text.data);
    } else if (node->kind == BZ_JSON_STRING) {
        node->of.text.data = random_text(arena, 6, plain);
        node->of.text.len = strlen(node->of.text.data);
    } else if (node->kind >= BZ_JSON_ARRAY) {
        uint32_t used = 0;
        for (uint32_t n = below(4); n > 0; n--) {
            bz_json_node *item = random_node(arena, level + 1, plain);
            uint32_t key = below(9);
            if (node->kind == BZ_JSON_OBJECT && used >> key & 1) {
                continue;
            }
            used |= 1u << key;
            item->key = (bz_str){keys[key], strlen(keys[key])};
            item->next = node->of.first;
            node->of.first = item;
            node->n++;
        }
    }
    return node;
}

/* As the template orders it. */
static void write_sorted(bz_json *j, const bz_json_node *node, bz_arena *arena)
{
    if (node->kind == BZ_JSON_OBJECT) {
        size_t n;
        const bz_json_node **sorted = bz_json_sorted(node, arena, &n);
        bz_json_object(j);
        for (size_t i = 0; i < n; i++) {
            bz_json_key_str(j, sorted[i]->key);
            write_sorted(j, sorted[i], arena);
        }
        bz_json_end(j);
    } else if (node->kind == BZ_JSON_ARRAY) {
        bz_json_array(j);
        for (const bz_json_node *item = node->of.first; item; item = item->next) {
            write_sorted(j, item, arena);
        }
        bz_json_end(j);
    } else {
        bz_json_node_write(j, node);
    }
}

static bz_str str(const char *text)
{
    return (bz_str){text, strlen(text)};
}

enum { MAX_CALLS = 3 };

/* An assistant message and the events it must produce. */
static void random_answer(bz_arena *arena, bz_message *m, bz_tool_call *list, story *want,
                          bool plain)
{
    *m = (bz_message){.role = BZ_ROLE_ASSISTANT};
    if (below(3)) {
        m->reasoning = str(random_text(arena, 8, plain));
    }
    size_t end = m->reasoning.len - bz_space_after(m->reasoning);
    if (end) {
        tell(want, "T(", 2);
        tell(want, m->reasoning.data, end);
        tell(want, ")", 1);
    }
    m->calls = list;
    for (m->n_calls = 0; m->n_calls < MAX_CALLS && below(2); m->n_calls++) {
        static const char *const names[] = {"f", "get_weather", "a.b-c"};
        bz_json j;
        bz_json_buffer json = {0};
        bz_tool_call *call = &list[m->n_calls];
        *call =
            (bz_tool_call){.name = str(names[below(3)]), .arguments = random_node(arena, 0, plain)};
        bz_json_init(&j, bz_json_to_buffer, &json);
        write_sorted(&j, call->arguments, arena);
        CHECK(bz_json_finish(&j));
        tell(want, "B(", 2);
        tell(want, call->name.data, call->name.len);
        tell(want, ")C(", 3);
        tell(want, call->name.data, call->name.len);
        tell(want, " ", 1);
        tell(want, json.text, json.n);
        tell(want, ")", 1);
        free(json.text);
    }
    if (m->n_calls == 0 || below(2)) {
        /* thoughts are removed from answers by the template, so no channel marker here */
        char *text = random_text(arena, 8, plain);
        for (char *hit; (hit = strstr(text, "channel")) != NULL;) {
            memcpy(hit, "CHANNEL", 7);
        }
        m->text = bz_trim(str(text));
        if (m->text.len) {
            tell(want, "A(", 2);
            tell(want, m->text.data, m->text.len);
            tell(want, ")", 1);
        }
    }
    tell(want, "E", 1);
}

/* After the last <|turn>model\n: the model's output. */
static size_t answer_begins(const bz_prompt *p)
{
    size_t at = p->n;
    while (at > 0 && !(p->pieces[at - 1].specials && p->pieces[at - 1].len == 13 &&
                       memcmp(p->pieces[at - 1].text, "<|turn>model\n", 13) == 0)) {
        at--;
    }
    return at;
}

static void random_conversations(const bz_tokenizer *t, int count)
{
    begin("%d random conversations rendered, tokenized and parsed back", count);
    for (int round = 0; round < count; round++) {
        bz_arena arena = {0};
        bz_message messages[8];
        bz_tool_call lists[8][MAX_CALLS];
        story want = {.last = -1}, told = {.last = -1};
        bool plain = below(4) == 0; /* no whole markers: then the flat text must parse the same */
        bz_conversation chat = {
            .messages = messages, .enable_thinking = below(2), .no_ple = below(2)};
        size_t n = below(7);
        for (size_t i = 0; i < n; i++) {
            story dropped = {0};
            if (below(2)) {
                random_answer(&arena, &messages[i], lists[i], &dropped, plain);
            } else {
                messages[i] = (bz_message){.role = below(3) ? BZ_ROLE_USER : BZ_ROLE_TOOL,
                                           .text = str(random_text(&arena, 8, false))};
            }
            free(dropped.line.text);
        }
        messages[n++] =
            (bz_message){.role = BZ_ROLE_USER, .text = str(random_text(&arena, 8, false))};
        random_answer(&arena, &messages[n], lists[n], &want, plain);
        chat.n_messages = n + 1;

        bz_prompt prompt = {0};
        bz_ids ids = {0};
        bool good = CHECK(bz_chat_render(&prompt, &chat, NULL) == BZ_OK);
        size_t from = answer_begins(&prompt);
        good = good && CHECK(from > 0);
        good = good && CHECK(bz_tokenize_pieces(t, prompt.pieces + from, prompt.n - from, &ids,
                                                NULL) == BZ_OK);
        bz_parser *p = parser(t, (how){0});
        for (size_t i = 0; i < ids.n; i++) {
            bz_parser_push(p, ids.id[i], NULL);
            if (below(3) == 0) {
                drain(&told, p);
            }
        }
        char *got = end_story(&told, p);
        good = good && CHECKF(strcmp(got, want.line.text) == 0, "round %d gave %s\n  not %s", round,
                              got, want.line.text);
        free(got);
        if (plain) {
            bz_prompt tail = {.pieces = prompt.pieces + from, .n = prompt.n - from};
            size_t len;
            char *flat = bz_prompt_text(&tail, &len);
            for (uint32_t random = 0; random < 20 && good; random += 1 + below(7)) {
                got = say_cut(flat, len, (how){0}, 0, random);
                good = CHECKF(strcmp(got, want.line.text) == 0, "%s\n  gave %s\n  not  %s (%u)",
                              flat, got, want.line.text, random);
                free(got);
            }
            free(flat);
        }
        bz_prompt_free(&prompt);
        bz_ids_free(&ids);
        bz_arena_free(&arena);
        free(want.line.text);
        if (!good) {
            return;
        }
    }
}

/* Markers and texts in any order, as no template would write them: the result does not depend on
 * the split, and no marker is shown. */
static void random_streams(int count)
{
    begin("%d random streams, each split in several ways", count);
    for (int round = 0; round < count; round++) {
        bz_arena arena = {0};
        char *text = random_text(&arena, 24, false);
        how h = {.thinking_off = below(3) == 0, .open = below(3) == 0};
        char *whole = say_cut(text, strlen(text), h, 0, 0);
        bool good = true;
        for (uint32_t random = 1; random < 16 && good; random += 1 + below(5)) {
            char *cut = say_cut(text, strlen(text), h, 0, random);
            good = CHECKF(strcmp(cut, whole) == 0, "%s\n  gave %s\n  cut  %s (%u)", text, whole,
                          cut, random);
            free(cut);
        }
        free(whole);
        bz_arena_free(&arena);
        if (!good) {
            return;
        }
    }
}

int main(void)
{
    golden g;
    bz_tokenizer *t;
    bz_error err = {0};
    golden_open(&g, golden_path("tokenizer/tiny.gguf"));
    if (CHECKF(bz_tokenizer_new(&t, &g.gguf, &err) == BZ_OK, "%s", err.text)) {
        random_conversations(t, quick_run() ? 1000 : 10000);
        random_streams(quick_run() ? 1000 : 10000);
        bz_tokenizer_free(t);
    }
    golden_close(&g);
    return finish();
}
