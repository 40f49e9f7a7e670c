#include "chat_request.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

void render_json(rendered *r, const char *json, size_t len, bool large)
{
    const bz_json_node *request;
    size_t n;
    *r = (rendered){0};
    r->status = bz_json_read(&request, json, len, &r->arena, &r->err);
    if (!r->status) {
        r->status = bz_chat_read(&r->chat, request, &r->arena, &r->err);
    }
    if (!r->status) {
        r->chat.no_ple = large;
        r->status = bz_chat_render(&r->prompt, &r->chat, &r->err);
    }
    CHECK((r->status == BZ_OK) == (r->err.text[0] == 0));
    r->text = bz_prompt_text(&r->prompt, &n);
    CHECK(r->text && strlen(r->text) == n);
}

void render(rendered *r, const char *request, bool large)
{
    char *json = strdup(request);
    for (char *c = json; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    render_json(r, json, strlen(json), large);
    free(json);
}

void drop(rendered *r)
{
    bz_prompt_free(&r->prompt);
    bz_arena_free(&r->arena);
    free(r->text);
}

void gives(bool large, const char *request, const char *want)
{
    rendered r;
    render(&r, request, large);
    CHECKF(r.status == BZ_OK && strcmp(r.text, want) == 0, "%s\n  gave  %s\n  not   %s", request,
           r.status ? r.err.text : r.text, want);
    drop(&r);
}

void gives_both(const char *request, const char *want)
{
    gives(false, request, want);
    gives(true, request, want);
}

void ends(const char *request, const char *want)
{
    rendered r;
    render(&r, request, false);
    size_t n = strlen(r.text), k = strlen(want);
    CHECKF(r.status == BZ_OK && n >= k && strcmp(r.text + n - k, want) == 0,
           "%s\n  gave  %s\n  not   ...%s", request, r.status ? r.err.text : r.text, want);
    drop(&r);
}

void holds(const char *request, const char *want)
{
    rendered r;
    render(&r, request, false);
    CHECKF(r.status == BZ_OK && strstr(r.text, want), "%s\n  gave  %s\n  without %s", request,
           r.status ? r.err.text : r.text, want);
    drop(&r);
}

void refused(const char *request, const char *why)
{
    rendered r;
    render(&r, request, false);
    CHECKF(r.status == BZ_BAD_REQUEST && strstr(r.err.text, why) && r.prompt.n == 0,
           "%s\n  gave  %s", request, r.status ? r.err.text : r.text);
    drop(&r);
}
