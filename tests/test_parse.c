/* The parser of model output: the forms and tolerances of the specification, repairs, and every
 * split of the stream. Run from the repository's root. */
#include "support/check.h"
#include "support/golden.h"
#include "support/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define Q "<|\"|>"

/* Parses it whole, split in two at every offset, byte by byte and at random: always the same
 * result. */
static void says_how(const char *text, const char *want, how h)
{
    size_t n = strlen(text);
    char *got = say_cut(text, n, h, 0, 0);
    CHECKF(strcmp(got, want) == 0, "%s\n  gave  %s\n  not   %s", text, got, want);
    for (size_t i = 1; i < n + 8; i++) {
        char *other = say_cut(text, n, h, i < n ? i : 0, i < n ? 0 : (uint32_t)(i - n + 1));
        CHECKF(strcmp(got, other) == 0, "%s\n  gave  %s\n  cut   %s (%zu)", text, got, other, i);
        free(other);
    }
    free(got);
}

static void says(const char *text, const char *want)
{
    says_how(text, want, (how){0});
}

/* A call's text and its parsed arguments. */
static void calls(const char *arguments, const char *json)
{
    char text[1000], want[1000];
    snprintf(text, sizeof text, "<|tool_call>call:f%s<tool_call|>", arguments);
    snprintf(want, sizeof want, "B(f)C(f %s)E", json);
    says(text, want);
}

static void mends_how(const char *arguments, const char *json, how h)
{
    char text[1000], want[1000];
    snprintf(text, sizeof text, "<|tool_call>call:f%s<tool_call|>", arguments);
    snprintf(want, sizeof want, json ? "B(f)R(f %s)E" : "B(f)X(fcall:f%s)E",
             json ? json : arguments);
    says_how(text, want, h);
}

static void mends(const char *arguments, const char *json)
{
    mends_how(arguments, json, (how){0});
}

/* ---- channels ---------------------------------------------------------------- */

static void channels(void)
{
    begin("answers");
    says("", "E");
    says("This is it.", "A(This is it.)E");
    says("  two words \n", "A(  two words \n)E");
    says("a < b, <|, <|channe and <tool", "A(a < b, <|, <|channe and <tool)E");
    says("caf\xC3\xA9 \xE2\x80\x89\xF0\x9F\x98\x80",
         "A(caf\xC3\xA9 \xE2\x80\x89\xF0\x9F\x98\x80)E");
    says("bad \xFF\xC3 bytes \xE2\x82",
         "A(bad \xEF\xBF\xBD\xEF\xBF\xBD bytes \xEF\xBF\xBD\xEF\xBF\xBD)E");

    begin("thoughts");
    says("<|channel>thought\nLet me think...<channel|>The answer is 42.",
         "T(Let me think...)A(The answer is 42.)E");
    says("<|channel>thought\n a\nb \n\n<channel|>\n\n c", "T( a\nb)A(c)E");
    says("before \n<|channel>thought\nx<channel|> after", "A(before)T(x)A(after)E");
    says("<|channel>thought\na<channel|><|channel>thought\nb<channel|>c", "T(ab)A(c)E");
    says("<|channel>analysis\na<channel|>b", "T(analysis\na)A(b)E");
    says("<|channel>thoughts<channel|>b", "T(thoughts)A(b)E");
    says("<|channel>thought process<channel|>b", "T(thought process)A(b)E");
    says("<|channel>thought\nnever closed \n", "T(never closed)E");
    says("<|channel>tho", "T(tho)E");
    says("<|channel>thought\n<| half <channel <channel|>x", "T(<| half <channel)A(x)E");
    says("<|channel>thought\nsay " Q "hi" Q "<channel|>x", "T(say " Q "hi" Q ")A(x)E");

    begin("thoughts: tolerances, none of which may leak into the answer");
    says("<|channel>thought\n<channel|>x", "A(x)E");
    says("x<|channel>thought\n<channel|>", "A(x)E");
    says("<|channel>thought<channel|>x", "A(x)E");
    says("<|channel>thought", "E");
    says("<|channel><channel|>x", "A(x)E");
    says("x<channel|>", "A(x)E");
    says("x <channel|>y", "A(x y)E");
    says("<channel|>x", "A(x)E");
    says("<|channel><|channel>thought\na<channel|>x", "T(a)A(x)E");
    says("<|channel>thought<|channel>thought\na<channel|>x", "T(a)A(x)E");
    says("<|channel>thought\na<|channel>thought\nb<channel|>x", "T(ab)A(x)E");
    says("x<|turn>y<|think|><bos><|image|><tool|>z", "A(xyz)E");

    begin("thoughts: open already, switched off");
    says_how("Files.\n<channel|> go.mod", "T(Files.)A(go.mod)E", (how){.open = true});
    says_how("thought\nx<channel|>y", "T(thought\nx)A(y)E", (how){.open = true});
    says_how("<channel|>y", "A(y)E", (how){.open = true});
    says_how("<|channel>thought\nx<channel|>y", "T(x)A(y)E", (how){.open = true});
    says_how("a<|channel>thought\nx<channel|>b", "A(ab)E", (how){.thinking_off = true});
    says_how("<|channel>x", "E", (how){.thinking_off = true});
    says_how("<|channel>thought\nx<channel|>"
             "<|tool_call>call:f{}<tool_call|>",
             "B(f)C(f {})E", (how){.thinking_off = true});

    begin("the end of a turn");
    says("x \n<turn|>\n<|turn>user\nno", "A(x \n)E");
    says("x<eos>no", "A(x)E");
    says("<|channel>thought\nx <turn|>no", "T(x)E");
    says("<|tool_call>call:f{}<turn|>no", "B(f)C(f {})E");
}

/* ---- calls -------------------------------------------------------------------- */

static void call_forms(void)
{
    begin("calls");
    calls("{}", "{}");
    calls("{location:" Q "Paris" Q "}", "{\"location\":\"Paris\"}");
    calls("{a:" Q "x" Q ",b:42,c:true,d:null,e:false,f:-1.50e3}",
          "{\"a\":\"x\",\"b\":42,\"c\":true,\"d\":null,\"e\":false,\"f\":-1.50e3}");
    calls("{n:12345678901234567890,m:1.0}", "{\"n\":12345678901234567890,\"m\":1.0}");
    calls("{config:{theme:" Q "dark" Q ",count:3},tags:[" Q "a" Q "]}",
          "{\"config\":{\"theme\":\"dark\",\"count\":3},\"tags\":[\"a\"]}");
    calls("{ \n a : [ 1 , " Q "b" Q " ] ,\n  c:{ } }", "{\"a\":[1,\"b\"],\"c\":{}}");
    calls("{s:" Q "say \"hi\", C:\\dir\\n {a:[1]}\nline" Q "}",
          "{\"s\":\"say \\\"hi\\\", C:\\\\dir\\\\n {a:[1]}\\nline\"}");
    calls("{s:\"with \\\"escapes\\\" \\u00e9\\n\",\"k\":1," Q "q" Q ":2}",
          "{\"s\":\"with \\\"escapes\\\" \xC3\xA9\\n\",\"k\":1,\"q\":2}");
    calls("{q:\"keep , b: text\",note:" Q "ok" Q "}", "{\"q\":\"keep , b: text\",\"note\":\"ok\"}");
    calls("{a-b.c d:1,\xC3\xA9:2}", "{\"a-b.c d\":1,\"\xC3\xA9\":2}");
    calls("{s:" Q Q "}", "{\"s\":\"\"}");
    calls("{a:" Q "<|turn> <|channel> <|image|> <tool|> <|tool_call>" Q "}",
          "{\"a\":\"<|turn> <|channel> <|image|> <tool|> <|tool_call>\"}");

    begin("calls among other text");
    says("Let me look. \n<|tool_call>call:f{}<tool_call|>", "A(Let me look.)B(f)C(f {})E");
    says("<|channel>thought\nI need f\n<channel|><|tool_call>call: f {a:1}<tool_call|>\nDone.",
         "T(I need f)B(f)C(f {\"a\":1})A(Done.)E");
    says("<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{a:2}<tool_call|><|tool_response>",
         "B(f)C(f {\"a\":1})B(g)C(g {\"a\":2})E");
    says("<|tool_call>call:f{}<tool_call|><tool_call|> \n<tool_call|><|tool_response> Done.",
         "B(f)C(f {})A(Done.)E");
    says("<|tool_call>call:f{}<tool_call|><|tool_re", "B(f)C(f {})E");
    says("<|tool_call>call:f{a:1}", "B(f)C(f {\"a\":1})E");
    says("<|tool_call>call:f{a:1}<|tool_response>", "B(f)C(f {\"a\":1})E");
    says("<|tool_call>call:f{a:1}<|tool_call>call:g{}<tool_call|>",
         "B(f)C(f {\"a\":1})B(g)C(g {})E");
    says("<|channel>thought\nLet's go. <|tool_call>call:f{}<tool_call|>",
         "T(Let's go.)B(f)C(f {})E");
    says_how("<|tool_call>call:f{}<tool_call|>", "B(f)C(f {})E", (how){.open = true});

    begin("text that is not a call");
    says("<|tool_call><tool_call|>x", "X()A(x)E");
    says("<|tool_call>hello " Q "you" Q "<tool_call|>", "X(hello " Q "you" Q ")E");
    says("<|tool_call>call:f<tool_call|>", "X(call:f)E");
    says("<|tool_call>call:{a:1}<tool_call|>", "X(call:{a:1})E");
    says("<|tool_call>f{a:1}<tool_call|>", "X(f{a:1})E");
    static const char *const broken[] = {
        "{",           "{a}",          "{a:}",   "{a:1,}",  "{a:1 b:2}", "{a:[1}",
        "{a:1}}",      "{a:1}x",       "{a:01}", "{a:+1}",  "{a:hello}", "{a:True}",
        "{a:[1,]}",    "{,a:1}",       "{a:1",   "{a:\"x}", "{a:1.}",    "{a:nul}",
        "{a:\"\\x\"}", "{a:[[[[1]]]}", "{a::1}", "{a:-}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        mends(broken[i], NULL);
    }

    begin("calls up to 64 levels deep");
    for (int n = 62; n <= 65; n++) {
        char arguments[300] = "{a:", json[300] = "{\"a\":", close[100] = "";
        for (int i = 0; i < n; i++) {
            strcat(arguments, "[");
            strcat(json, "[");
            strcat(close, "]");
        }
        strcat(close, "}");
        strcat(arguments, close);
        strcat(json, close);
        if (n <= 63) {
            calls(arguments, json);
        } else {
            mends(arguments, NULL);
        }
    }
}

static void repairs(void)
{
    begin("repairs: single quotes");
    mends("{pattern:':\\s*\\w+'}", "{\"pattern\":\":\\\\s*\\\\w+\"}");
    mends("{a:" Q "*.py" Q ",b:'abc',c:" Q "/tmp" Q "}",
          "{\"a\":\"*.py\",\"b\":\"abc\",\"c\":\"/tmp\"}");
    mends("{a:'abc'" Q "}", "{\"a\":\"abc\"}");
    mends("{a: ['x', 'y'], 'b': 1}", "{\"a\":[\"x\",\"y\"],\"b\":1}");
    mends("{a:'abc}", NULL);

    begin("repairs: a string or an object left open");
    mends("{command:" Q "ls}", "{\"command\":\"ls\"}");
    mends("{path:" Q "/tmp" Q ",command:" Q "ls}", "{\"path\":\"/tmp\",\"command\":\"ls\"}");
    mends("{command:" Q "ls", "{\"command\":\"ls\"}");
    mends("{command:'ls'", "{\"command\":\"ls\"}");
    mends("{a:{b:" Q "ls}}", "{\"a\":{\"b\":\"ls\"}}");
    mends("{a:[" Q "x" Q "," Q "y]}", "{\"a\":[\"x\",\"y\"]}");
    mends("{a:" Q "x} ", "{\"a\":\"x\"}");
    mends("{n:1", NULL); /* nothing else was wrong: it may have been cut anywhere */

    begin("repairs: bare text where the schema wants a string");
    bz_arena arena = {0};
    static const char json[] = "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
                               "\"content\":{\"type\":\"string\"},"
                               "\"mode\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":[\"integer\","
                               "\"string\"]}]},\"n\":{\"type\":"
                               "\"integer\"}}}}}]";
    const bz_json_node *tools;
    CHECK(bz_json_read(&tools, json, sizeof json - 1, &arena, NULL) == BZ_OK);
    how h = {.tools = tools};
    mends_how("{content:hello}", "{\"content\":\"hello\"}", h);
    mends_how("{content:\n\n# Title", "{\"content\":\"\\n\\n# Title\"}", h);
    mends_how("{content:hello,mode:" Q "fast" Q "}", "{\"content\":\"hello\",\"mode\":\"fast\"}",
              h);
    mends_how("{content:hello, you, n:3,mode:fast}",
              "{\"content\":\"hello, you\",\"n\":3,\"mode\":\"fast\"}", h);
    mends_how("{content:the end}", "{\"content\":\"the end\"}", h);
    mends_how("{content:2 apples,n:2}", "{\"content\":\"2 apples\",\"n\":2}", h);
    mends_how("{n:hello}", NULL, h);
    mends_how("{other:hello}", NULL, h);
    says_how("<|tool_call>call:f{content:123}<tool_call|>", "B(f)C(f {\"content\":123})E", h);

    begin("a call without its marker, if there is such a tool");
    says_how("<|channel>thought\nx\n<channel|>call:f{content:" Q "y" Q "}",
             "T(x)B(f)C(f {\"content\":\"y\"})E", h);
    says_how("<|channel>thought\nx\n<channel|>\ncall:f{n:1}<tool_call|>Done",
             "T(x)B(f)C(f {\"n\":1})A(Done)E", h);
    says_how("call:f{}", "B(f)C(f {})E", h);
    says_how("call:g{}", "A(call:g{})E", h);
    says_how("call:f", "A(call:f)E", h);
    says_how("call:ff{}", "A(call:ff{})E", h);
    says_how("cal", "A(cal)E", h);
    says_how("I call:f{}", "A(I call:f{})E", h);
    says_how("call: <|channel>thought\nx<channel|>y", "A(call:)T(x)A(y)E", h);
    says("call:f{}", "A(call:f{})E");
    bz_arena_free(&arena);
}

/* ---- tokens ---------------------------------------------------------------------- */

static void tokens(const bz_tokenizer *t)
{
    begin("markers count by their ids alone");
    const bz_special_ids *s = bz_tokenizer_special(t);
    static const char spelled[] =
        "<|channel>thought\nx<channel|><|tool_call>call:f{a:" Q "}<tool_call|><turn|>";
    char want[300];
    story st = {.last = -1};
    bz_ids ids = {0};
    bz_parser *p = parser(t, (how){0});
    CHECK(bz_tokenize_pieces(t, &(bz_piece){spelled, sizeof spelled - 1, false}, 1, &ids, NULL) ==
          BZ_OK);
    for (size_t i = 0; i < ids.n; i++) {
        CHECK(bz_parser_push(p, ids.id[i], NULL) == BZ_OK);
        drain(&st, p);
    }
    char *got = end_story(&st, p);
    snprintf(want, sizeof want, "A(%s)E", spelled);
    CHECKF(strcmp(got, want) == 0, "%s", got);
    free(got);
    ids.n = 0;

    /* the same text with real markers, a spelled quote inside the string, half a character */
    static const struct {
        const char *text;
        bool specials;
    } parts[] = {{"<|channel>thought\n", true},
                 {"x<channel|>", false},
                 {"<channel|><|tool_call>call:f{a:" Q, true},
                 {Q "<tool_call|>", false},
                 {Q "}<tool_call|>", true}};
    bz_piece pieces[5];
    for (size_t i = 0; i < 5; i++) {
        pieces[i] = (bz_piece){parts[i].text, strlen(parts[i].text), parts[i].specials};
    }
    CHECK(bz_tokenize_pieces(t, pieces, 5, &ids, NULL) == BZ_OK);
    bz_ids_push(&ids, bz_tokenizer_find(t, "<0xE2>", 6));
    bz_ids_push(&ids, bz_tokenizer_find(t, "<0x82>", 6));
    bz_ids_push(&ids, s->turn_end);
    bz_ids_push(&ids, s->channel);
    st = (story){.last = -1};
    p = parser(t, (how){0});
    for (size_t i = 0; i < ids.n; i++) {
        CHECK(bz_parser_push(p, ids.id[i], NULL) == BZ_OK);
    }
    got = end_story(&st, p);
    snprintf(want, sizeof want,
             "T(x<channel|>)B(f)C(f {\"a\":\"<|\\\"|><tool_call|>\"})A(\xEF\xBF\xBD\xEF\xBF\xBD)E");
    CHECKF(strcmp(got, want) == 0, "%s", got);
    free(got);
    bz_ids_free(&ids);

    begin("ids that are not tokens are ignored");
    st = (story){.last = -1};
    p = parser(t, (how){0});
    CHECK(bz_parser_push(p, -1, NULL) == BZ_OK && bz_parser_push(p, INT32_MAX, NULL) == BZ_OK);
    got = end_story(&st, p);
    CHECKF(strcmp(got, "E") == 0, "%s", got);
    free(got);
}

int main(void)
{
    golden g;
    bz_tokenizer *t;
    bz_error err = {0};
    channels();
    call_forms();
    repairs();
    golden_open(&g, golden_path("tokenizer/tiny.gguf"));
    if (CHECKF(bz_tokenizer_new(&t, &g.gguf, &err) == BZ_OK, "%s", err.text)) {
        tokens(t);
        bz_tokenizer_free(t);
    }
    golden_close(&g);
    return finish();
}
