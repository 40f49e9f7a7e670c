/* The chat template: every example of the specification, turns, texts and tools. */
#include "base/os.h"
#include "text/space.h"
#include "support/chat_request.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the specification's examples (6.7) ---------------------------------------- */

#define PRICE_TOOL                                                                                 \
    "'tools':[{'type':'function','function':{'name':'lookup_price','description':'Find the price " \
    "of a "                                                                                        \
    "product',"                                                                                    \
    "'parameters':{'type':'object','properties':{'sku':{'type':'string','description':'Product "   \
    "code'},"                                                                                      \
    "'currency':{'type':'string','enum':['EUR','USD']},'qty':{'type':'integer','description':'"    \
    "How many'}},"                                                                                 \
    "'required':['sku']}}}]"
#define DECL                                                                                       \
    "<|tool>declaration:lookup_price{description:" Q "Find the price of a product" Q               \
    ",parameters:{properties:{"                                                                    \
    "currency:{enum:[" Q "EUR" Q "," Q "USD" Q "],type:" Q "STRING" Q "},qty:{description:" Q      \
    "How many" Q ",type:" Q "INTEGER" Q "},sku:{description:" Q "Product code" Q ",type:" Q        \
    "STRING" Q "}},required:[" Q "sku" Q "],type:" Q "OBJECT" Q "}}<tool|>"
#define ASK "{'role':'user','content':'Price of A7?'}"
#define CALL(id, sku)                                                                              \
    "{'id':'" id "','type':'function','function':{'name':'lookup_price','arguments':{'sku':'" sku  \
    "'}}}"
#define CALLED(sku)  "<|tool_call>call:lookup_price{sku:" Q sku Q "}<tool_call|>"
#define RESULT(text) "<|tool_response>response:lookup_price{value:" Q text Q "}<tool_response|>"

static void examples(void)
{
    begin("example 1: plain");
    gives(false, "{'messages':[{'role':'user','content':'Name one prime.'}]}",
          "<bos><|turn>user\nName one prime.<turn|>\n<|turn>model\n");
    gives(true, "{'messages':[{'role':'user','content':'Name one prime.'}]}",
          "<bos><|turn>user\nName one prime.<turn|>\n<|turn>model\n<|channel>thought\n<channel|>");

    begin("example 2: system and history");
    gives(false,
          "{'messages':[{'role':'system','content':'Be brief.'},{'role':'user','content':'Hi'},"
          "{'role':'assistant','content':'<|channel>thought\\nGreet.<channel|>Hello!'},{'role':'"
          "user','"
          "content':'Bye'}]}",
          "<bos><|turn>system\nBe "
          "brief.<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\nHello!<turn|>\n"
          "<|turn>user\nBye<turn|>\n<|turn>model\n");

    begin("examples 3 and 4: thinking");
    gives_both("{'enable_thinking':true,'messages':[{'role':'user','content':'2+2?'}]}",
               "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\n2+2?<turn|>\n<|turn>model\n");
    gives_both("{'think':true,'messages':[{'role':'system','content':'Be "
               "brief.'},{'role':'user','content':'2+2?'}]}",
               "<bos><|turn>system\n<|think|>\nBe "
               "brief.<turn|>\n<|turn>user\n2+2?<turn|>\n<|turn>model\n");

    begin("example 5: a tool");
    gives(false, "{" PRICE_TOOL ",'messages':[" ASK "]}",
          "<bos><|turn>system\n" DECL "<turn|>\n<|turn>user\nPrice of A7?<turn|>\n<|turn>model\n");

    begin("example 6: after the tool ran");
    gives_both(
        "{" PRICE_TOOL ",'messages':[" ASK
        ",{'role':'assistant','content':null,'tool_calls':[{'id':'1','function':"
        "{'name':'lookup_price','arguments':{'sku':'A7','qty':2,'currency':'EUR'}}}]},"
        "{'role':'tool','tool_call_id':'1','content':'{\\'price\\': 3.5}'}]}",
        "<bos><|turn>system\n" DECL "<turn|>\n<|turn>user\nPrice of A7?<turn|>\n<|turn>model\n"
        "<|tool_call>call:lookup_price{currency:" Q "EUR" Q ",qty:2,sku:" Q "A7" Q "}<tool_call|>"
        "<|tool_response>response:lookup_price{value:" Q "{\"price\": 3.5}" Q "}<tool_response|>");

    begin("example 7: the same with thinking");
    gives_both(
        "{'enable_thinking':true," PRICE_TOOL ",'messages':[" ASK
        ",{'role':'assistant','reasoning':'Need lookup.',"
        "'tool_calls':[" CALL("1", "A7") "]},{'role':'tool','tool_call_id':'1','content':'3.5'}]}",
        "<bos><|turn>system\n<|think|>\n" DECL
        "<turn|>\n<|turn>user\nPrice of A7?<turn|>\n<|turn>model\n"
        "<|channel>thought\nNeed lookup.\n<channel|>" CALLED("A7")
            RESULT("3.5") "<|channel>thought\n");

    begin("example 8: a finished round");
    gives(false,
          "{'messages':[" ASK ",{'role':'assistant','reasoning':'gone','tool_calls':[" CALL(
              "1", "A7") "]},"
                         "{'role':'tool','tool_call_id':'1','content':'3.5'},{'role':'assistant','"
                         "content':'"
                         "It costs 3.50.'},"
                         "{'role':'user','content':'Thanks'}]}",
          "<bos><|turn>user\nPrice of A7?<turn|>\n<|turn>model\n" CALLED("A7")
              RESULT("3.5") "It costs 3.50.<turn|>\n<|turn>user\nThanks<turn|>\n<|turn>model\n");

    begin("example 9: two calls at once");
    gives_both(
        "{'messages':[" ASK ",{'role':'assistant','tool_calls':[" CALL("1", "A7") "," CALL(
            "2",
            "B2") "]},"
                  "{'role':'tool','tool_call_id':'1','content':'3.5'},{'role':'tool','tool_call_"
                  "id':'2','content':'4'}]}",
        "<bos><|turn>user\nPrice of A7?<turn|>\n<|turn>model\n" CALLED("A7") CALLED("B2")
            RESULT("3.5") RESULT("4"));

    begin("example 10: media");
    gives(
        false,
        "{'messages':[{'role':'user','content':[{'type':'image_url','image_url':{'url':'data:x'}},"
        "{'type':'text','text':'What is "
        "this?'},{'type':'input_audio','input_audio':{'data':'AAAA','format':'wav'}}]}]}",
        "<bos><|turn>user\n<|image|>What is this?<|audio|><turn|>\n<|turn>model\n");

    begin("example 11: a nested schema");
    holds(
        "{'messages':[],'tools':[{'type':'function','function':{'name':'plan','description':'Make "
        "a "
        "plan','parameters':"
        "{'type':'object','properties':{'steps':{'type':'array','description':'Steps','items':{'"
        "type':'"
        "object',"
        "'properties':{'title':{'type':'string','description':'Title'},'done':{'type':'boolean'}},'"
        "required':['title']}},"
        "'opts':{'type':'object','properties':{'fast':{'type':'boolean','description':'Hurry'}},'"
        "required':"
        "['fast']}},"
        "'required':['steps']}}}]}",
        "declaration:plan{description:" Q "Make a plan" Q
        ",parameters:{properties:{opts:{properties:{fast:{description:" Q "Hurry" Q ",type:" Q
        "BOOLEAN" Q "}},required:[" Q "fast" Q "],type:" Q "OBJECT" Q "},steps:{description:" Q
        "Steps" Q ",items:{properties:{done:{type:" Q "BOOLEAN" Q "},title:{description:" Q
        "Title" Q ",type:" Q "STRING" Q "}},required:[" Q "title" Q "],type:" Q "OBJECT" Q
        "},type:" Q "ARRAY" Q "}},required:[" Q "steps" Q "],type:" Q "OBJECT" Q "}}<tool|>");

    begin("example 12: every kind of value");
    gives_both("{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'f','arguments':"
               "{'b':[1,true,null,'x'],'a':{'k':1.5}}}}],'tool_responses':[{'name':'f','response':"
               "{'s':'z','ok':true,'n':3}}]}]}",
               "<bos><|turn>model\n<|tool_call>call:f{a:{k:1.5},b:[1,true,null," Q "x" Q
               "]}<tool_call|>"
               "<|tool_response>response:f{n:3,ok:true,s:" Q "z" Q "}<tool_response|>");

    begin("example 13: a call that waits");
    gives_both("{'messages':[{'role':'assistant','content':'Wait.','tool_calls':[{'function':{'"
               "name':'f'}}]}]}",
               "<bos><|turn>model\n<|tool_call>call:f{}<tool_call|>Wait.<|tool_response>");
}

/* ---- turns ---------------------------------------------------------------------- */

static void turns(void)
{
    begin("turns: nothing, an empty system message, later system messages");
    gives(false, "{'messages':[]}", "<bos><|turn>model\n");
    gives(false, "{'messages':[],'add_generation_prompt':false}", "<bos>");
    gives(false, "{'messages':[{'role':'system','content':''}]}",
          "<bos><|turn>system\n<turn|>\n<|turn>model\n");
    gives(false,
          "{'messages':[{'role':'developer','content':' a '},{'role':'user','content':'b'},"
          "{'role':'system','content':' c '},{'role':'developer','content':'d'}]}",
          "<bos><|turn>system\na<turn|>\n<|turn>user\nb<turn|>\n<|turn>system\nc<turn|>\n<|turn>"
          "system\nd<"
          "turn|>\n"
          "<|turn>model\n");
    gives(false,
          "{'messages':[{'role':'system','content':[{'type':'text','text':' a "
          "'},{'type':'text','text':'b'}]}]}",
          "<bos><|turn>system\na b <turn|>\n<|turn>model\n");

    begin("turns: the assistant continues");
    gives(false,
          "{'messages':[{'role':'assistant','content':'a'},{'role':'assistant','content':'b'}]}",
          "<bos><|turn>model\nab<turn|>\n<|turn>model\n");
    gives(false, "{'messages':[{'role':'user','content':'u'},{'role':'user','content':'v'}]}",
          "<bos><|turn>user\nu<turn|>\n<|turn>user\nv<turn|>\n<|turn>model\n");

    begin("turns: reasoning of the last turn stays, older goes, unless it is to be preserved");
    static const char *const history =
        "'messages':[{'role':'user','content':'u'},{'role':'assistant','content':'a','thinking':'"
        "old'},"
        "{'role':'assistant','reasoning_content':'called','tool_calls':[{'function':{'name':'f'}}]}"
        ","
        "{'role':'tool','content':'r','tool_name':'f'},{'role':'user','content':'v'},"
        "{'role':'assistant','content':'b','reasoning':'new '}]}";
    char request[1000];
    snprintf(request, sizeof request, "{%s", history);
    gives(false, request,
          "<bos><|turn>user\nu<turn|>\n<|turn>model\na<|tool_call>call:f{}<tool_call|><|tool_"
          "response>"
          "response:f{value:" Q "r" Q
          "}<tool_response|><turn|>\n<|turn>user\nv<turn|>\n<|turn>model\n<|"
          "channel>thought\nnew \n<channel|>b<turn|>\n"
          "<|turn>model\n");
    snprintf(request, sizeof request, "{'preserve_thinking':true,%s", history);
    gives(false, request,
          "<bos><|turn>user\nu<turn|>\n<|turn>model\na<|channel>thought\ncalled\n<channel|><|tool_"
          "call>call:"
          "f{}<tool_call|>"
          "<|tool_response>response:f{value:" Q "r" Q
          "}<tool_response|><turn|>\n<|turn>user\nv<turn|>\n<|turn>model\n"
          "<|channel>thought\nnew \n<channel|>b<turn|>\n<|turn>model\n");

    begin("turns: results followed by an answer end the turn, but with thinking begin none");
    static const char *const answered =
        "'messages':[{'role':'assistant','content':'Done.','tool_calls':[{'"
        "id':'1','function':{'name':'f'}}]},"
        "{'role':'tool','tool_call_id':'1','content':''}]}";
    static const char *const turn =
        "<bos>%s<|turn>model\n<|tool_call>call:f{}<tool_call|><|tool_response>response:f{value:" Q Q
        "}<tool_response|>Done.<turn|>\n<|turn>model\n%s";
    char want[1000];
    snprintf(request, sizeof request, "{%s", answered);
    snprintf(want, sizeof want, turn, "", "");
    gives(false, request, want);
    snprintf(want, sizeof want, turn, "", "<|channel>thought\n<channel|>");
    gives(true, request, want);
    snprintf(request, sizeof request, "{'enable_thinking':true,%s", answered);
    snprintf(want, sizeof want, turn, "<|turn>system\n<|think|>\n<turn|>\n", "");
    want[strlen(want) - strlen("<|turn>model\n")] = 0;
    strcat(want, "<|channel>thought\n");
    gives_both(request, want);

    begin("turns: tool messages without a call are not shown");
    gives(false,
          "{'messages':[{'role':'tool','content':'x'},{'role':'user','content':'u'},{'role':'tool',"
          "'content':"
          "'y'}]}",
          "<bos><|turn>user\nu<turn|>\n<|turn>model\n");

    begin("turns: names of results");
    static const char *const one =
        "{'messages':[{'role':'assistant','tool_calls':[{'id':'1','function':{'name':'f'}},"
        "{'id':'2','function':{'name':'g'}}]},{'role':'tool','content':'r'%s}]}";
    static const char *const names[][2] = {
        {",'tool_call_id':'2'", "g"},
        {",'tool_call_id':'2','name':'h'", "g"},
        {",'tool_call_id':'3','name':'h'", "h"},
        {",'tool_call_id':'3'", "unknown"},
        {"", "unknown"},
        {",'tool_name':'t'", "t"},
        {",'tool_call_id':''", "unknown"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(request, sizeof request, one, names[i][0]);
        snprintf(want, sizeof want,
                 "<|tool_response>response:%s{value:" Q "r" Q "}<tool_response|>", names[i][1]);
        ends(request, want);
    }
}

static void texts(void)
{
    begin("texts are trimmed of what Python calls white space");
    rendered r;
    static const char padded[] = "{\"messages\":[{\"role\":\"user\",\"content\":\" "
                                 "\\t\\n\\u000b\\u001f\xC2\xA0\xE3\x80\x80\xE2\x80\xA8"
                                 "x \xE2\x80\x8By\xE2\x80\x89\\r\\n \"}]}";
    render_json(&r, padded, sizeof padded - 1, false);
    CHECKF(strcmp(r.text, "<bos><|turn>user\nx \xE2\x80\x8By<turn|>\n<|turn>model\n") == 0, "%s",
           r.text);
    drop(&r);
    CHECK(bz_trim((bz_str){"\xA0\xC2 \xC2", 4}).len == 4); /* half characters are not white space */
    CHECK(bz_space_after((bz_str){"   ", 3}) == 3 && bz_trim((bz_str){"", 0}).len == 0);

    begin("thoughts are removed from answers");
    static const char *const answers[][2] = {
        {"<|channel>thought\\nx<channel|>y", "y"},
        {"a<|channel>b<|channel>c<channel|>d<channel|>e", "ade"},
        {" a <|channel>open", "a"},
        {"a<channel|>b", "ab"},
        {"<channel|>", ""},
        {"<|channel>", ""},
        {"<|channel<|channel>x<channel|>>", "<|channel>"}, /* once, as the template does */
        {"a<channe", "a<channe"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        char request[300], want[300];
        snprintf(request, sizeof request, "{'messages':[{'role':'assistant','content':'%s'}]}",
                 answers[i][0]);
        snprintf(want, sizeof want, "<bos><|turn>model\n%s<turn|>\n<|turn>model\n", answers[i][1]);
        gives(false, request, want);
        snprintf(request, sizeof request,
                 "{'messages':[{'role':'assistant','content':[{'type':'text','text':'%s'}]}]}",
                 answers[i][0]);
        gives(false, request, want);
    }
    gives(false, "{'messages':[{'role':'user','content':'a<|channel>b<channel|>c'}]}",
          "<bos><|turn>user\na<|channel>b<channel|>c<turn|>\n<|turn>model\n");

    begin("parts are joined without a space; media of a tool follow its result");
    gives(
        false,
        "{'messages':[{'role':'user','content':[{'type':'text','text':' a '},'b ',{'type':'video'},"
        "{'type':'text','text':' c'}]}]}",
        "<bos><|turn>user\nab<|video|>c<turn|>\n<|turn>model\n");
    ends("{'messages':[{'role':'assistant','tool_calls':[{'id':'1','function':{'name':'f'}}]},{'"
         "role':'tool',"
         "'tool_call_id':"
         "'1','content':[{'type':'text','text':' a "
         "'},{'type':'image'},{'type':'text','text':'b'}]}]}",
         "<|tool_response>response:f{value:" Q " a b" Q "}<tool_response|><|image|>");
}

/* ---- tools ---------------------------------------------------------------------- */

/* One property's schema, and what becomes of it. */
static void property(const char *schema, const char *want)
{
    char request[1000], whole[1000];
    snprintf(request, sizeof request,
             "{'messages':[],'tools':[{'type':'function','function':{'name':'f','parameters':{'"
             "type':'object',"
             "'properties':{'p':%s}}}}]}",
             schema);
    snprintf(whole, sizeof whole, ",parameters:{properties:{p:{%s}},type:" Q "OBJECT" Q "}}<tool|>",
             want);
    holds(request, whole);
}

static void declaration(const char *function, const char *want)
{
    char request[1000], whole[1000];
    snprintf(request, sizeof request,
             "{'messages':[],'tools':[{'type':'function','function':{%s}}]}", function);
    snprintf(whole, sizeof whole, "<|turn>system\n<|tool>declaration:%s<tool|><turn|>\n", want);
    holds(request, whole);
}

static void tools(void)
{
    begin("declarations");
    declaration("'name':'f'", "f{description:" Q Q "}");
    declaration("'name':'f','description':' d ','parameters':{}", "f{description:" Q " d " Q "}");
    declaration("'name':'f','parameters':null", "f{description:" Q Q "}");
    declaration("'name':'f','parameters':{'type':'object','properties':{}}",
                "f{description:" Q Q ",parameters:{type:" Q "OBJECT" Q "}}");
    declaration("'name':'f','parameters':{'properties':{'a':{'type':'number'}}}",
                "f{description:" Q Q ",parameters:{properties:{a:{type:" Q "NUMBER" Q "}}}}");
    declaration("'name':'f','parameters':{'type':'object','required':['a','b']}",
                "f{description:" Q Q ",parameters:{required:[" Q "a" Q "," Q "b" Q "],type:" Q
                "OBJECT" Q "}}");
    declaration("'name':'f','response':{'type':'object','description':'r'}",
                "f{description:" Q Q ",response:{description:" Q "r" Q ",type:" Q "OBJECT" Q "}}");
    holds("{'messages':[],'tools':[{'name':'bare','description':'d'}]}",
          "<|tool>declaration:bare{description:" Q "d" Q "}<tool|>");
    holds("{'messages':[{'role':'system','content':'s'}],'tools':[{'name':'a'},{'name':'b'}]}",
          "s<|tool>declaration:a{description:" Q Q "}<tool|><|tool>declaration:b{description:" Q Q
          "}<tool|><turn|>\n");

    begin("properties");
    property("{'type':'string'}", "type:" Q "STRING" Q);
    property("{}", "type:" Q Q);
    property("true", "type:" Q Q);
    property("{'type':'string','enum':[]}", "type:" Q "STRING" Q);
    property("{'type':'string','enum':['a',1,null],'minLength':3,'description':'d','default':'x','"
             "nullable':true}",
             "description:" Q "d" Q ",enum:[" Q "a" Q ",1,null],nullable:true,type:" Q "STRING" Q);
    property("{'type':'integer','enum':[1,2],'nullable':false}", "type:" Q "INTEGER" Q);
    property("{'type':['string','null'],'enum':['a']}", "type:" Q "['STRING', 'NULL']" Q);
    property("{'type':['string']}", "type:" Q "STRING" Q);
    property("{'anyOf':[{'type':'string'},{'type':'null'}]}", "type:" Q "['STRING', 'NULL']" Q);
    property("{'anyOf':[{'type':'string'},{'type':'string'}]}", "type:" Q "STRING" Q);
    property("{'anyOf':[{'type':'string'},{'type':'null','description':'x'}]}", "type:" Q Q);
    property("{'type':'object'}", "properties:{},type:" Q "OBJECT" Q);
    property("{'type':'object','additionalProperties':false,'title':'T','extra':{'type':'string'}}",
             "properties:{additionalProperties:{type:" Q Q "},extra:{type:" Q "STRING" Q
             "},title:{type:" Q Q "}},type:" Q "OBJECT" Q);
    property("{'type':'object','properties':{'type':{'type':'string'}},'required':[]}",
             "properties:{type:{type:" Q "STRING" Q "}},type:" Q "OBJECT" Q);
    property("{'type':'array'}", "type:" Q "ARRAY" Q);
    property("{'type':'array','items':{}}", "type:" Q "ARRAY" Q);
    property("{'type':'array','items':{'type':['string','null'],'x':{'b':1,'a':'c'},'n':null,'enum'"
             ":['e']}}",
             "items:{enum:[" Q "e" Q "],type:[" Q "STRING" Q "," Q "NULL" Q "],x:{" Q "a" Q ":" Q
             "c" Q "," Q "b" Q ":1}},type:" Q "ARRAY" Q);

    begin("properties in byte order");
    declaration("'name':'f','parameters':{'properties':{'b':{},'a':{},'B':{},'a_':{}}}",
                "f{description:" Q Q ",parameters:{properties:{B:{type:" Q Q "},a:{type:" Q Q
                "},a_:{type:" Q Q "},b:{type:" Q Q "}}}}");

    begin("arguments as JSON in a string, numbers as they were written");
    ends("{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'f','arguments':"
         "'{\\u0022n\\u0022: 1.0, \\u0022m\\u0022: 12345678901234567890, \\u0022e\\u0022: "
         "1e5}'}}]}]}",
         "<|tool_call>call:f{e:1e5,m:12345678901234567890,n:1.0}<tool_call|><|tool_response>");
    static const char *const nothing[] = {"",
                                          ",'arguments':null",
                                          ",'arguments':''",
                                          ",'arguments':'  '",
                                          ",'arguments':{}",
                                          ",'arguments':'null'",
                                          ",'arguments':'{}'"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        char request[300];
        snprintf(request, sizeof request,
                 "{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'f'%s}}]}]}",
                 nothing[i]);
        ends(request, "<|tool_call>call:f{}<tool_call|><|tool_response>");
    }
    ends(
        "{'messages':[{'role':'assistant','tool_calls':[{'name':'f','arguments':{'a':1,'a':2}}]}]}",
        "<|tool_call>call:f{a:2}<tool_call|><|tool_response>");

    begin("results kept with their calls");
    static const char *const results[][2] = {{"'x'", "{value:" Q "x" Q "}"},
                                             {"null", "{value:null}"},
                                             {"[1,2]", "{value:[1,2]}"},
                                             {"{}", "{}"},
                                             {"{'b':{'c':1}}", "{b:{c:1}}"}};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        char request[300], want[300];
        snprintf(request, sizeof request,
                 "{'messages':[{'role':'assistant','tool_responses':[{'response':%s}]}]}",
                 results[i][0]);
        snprintf(want, sizeof want,
                 "<|turn>model\n<|tool_response>response:unknown%s<tool_response|>", results[i][1]);
        ends(request, want);
    }
}

/* ---- prompts of the published template ------------------------------------------------------- */

static void expect_prompt(const bz_json_node *request, const bz_json_node *want, bool large,
                          size_t line)
{
    bz_json_buffer json = {0};
    bz_json j;
    rendered r;
    bz_json_init(&j, bz_json_to_buffer, &json);
    bz_json_node_write(&j, request);
    CHECK(bz_json_finish(&j));
    render_json(&r, json.text, json.n, large);
    const bz_str text = bz_json_string(want);
    CHECKF(r.status == BZ_OK && strlen(r.text) == text.len &&
               memcmp(r.text, text.data, text.len) == 0,
           "line %zu, %s: %s\n  not %.*s", line, large ? "large" : "small", r.text, (int)text.len,
           text.data);
    drop(&r);
    free(json.text);
}

/* Random requests, picked for what they contain: see tests/golden/README.md. */
static void published(void)
{
    char *text = NULL;
    size_t n = 0, line = 0;
    bz_error err = {0};
    begin("random requests give the published template's prompts");
    if (!CHECKF(bz_os_read_small("tests/golden/template.jsonl", 1 << 20, &text, &n, &err) == BZ_OK,
                "%s", err.text)) {
        return;
    }
    for (const char *at = text; at < text + n; line++) {
        const size_t len = (size_t)((const char *)memchr(at, '\n', (size_t)(text + n - at)) - at);
        bz_arena arena = {0};
        const bz_json_node *root;
        if (CHECK(bz_json_read(&root, at, len, &arena, &err) == BZ_OK)) {
            const bz_json_node *request = bz_json_get(root, "request"),
                               *small = bz_json_get(root, "small"),
                               *large = bz_json_get(root, "large");
            expect_prompt(request, small, false, line + 1);
            expect_prompt(request, large ? large : small, true, line + 1);
        }
        bz_arena_free(&arena);
        at += len + 1;
    }
    CHECKF(line == 52, "%zu lines", line);
    free(text);
}

int main(void)
{
    published();
    examples();
    turns();
    texts();
    tools();
    return finish();
}
