/* What /show prints of a model, as in Ollama: its Modelfile, template and license. */
#include <string.h>

#include "base/error.h"
#include "bezel_debug.h"
#include "cli/chat/chat.h"
#include "cli/chat/chat_words.h"
#include "cli/os.h"
#include "cli/term.h"

static void put_text(const char *before, const char *text, const char *after)
{
    fputs(before, stderr);
    term_write_model_text(CLI_STDERR, text, strlen(text));
    fputs(after, stderr);
}

static void put_parameters(const settings *s)
{
    char value[SETTING_TEXT];
    for (int id = 0; id < SETTINGS; id++) {
        if (s->set[id]) {
            fprintf(stderr, "PARAMETER %s %s\n", settings_name((setting)id),
                    settings_show(s, (setting)id, value));
        }
    }
    for (size_t i = 0; i < s->n_stop; i++) {
        put_text("PARAMETER stop \"", s->stop[i], "\"\n");
    }
}

static void put_messages(const conversation *t)
{
    for (size_t i = 0; i < t->n_pinned; i++) {
        bz_arena arena = {0};
        bz_str role, text;
        if (conversation_message(t, i, &arena, &role, &text)) {
            fprintf(stderr, "MESSAGE %.*s \"\"\"", (int)role.len, role.data);
            term_write_model_text(CLI_STDERR, text.data, text.len);
            fputs("\"\"\"\n", stderr);
        }
        bz_arena_free(&arena);
    }
}

void chat_show_modelfile(const chat *c)
{
    const run_state *r = c->r;
    const bz_store_model *m = &r->m.store;
    put_text("# Modelfile of ", r->name, "\n");
    put_text("FROM ", m->path, "\n");
    for (size_t i = 0; i < m->n_projectors; i++) {
        put_text("FROM ", m->projectors[i], "\n");
    }
    put_parameters(&r->made);
    if (m->system) {
        put_text("SYSTEM \"\"\"", m->system, "\"\"\"\n");
    }
    put_messages(&r->conversation);
}

/* Prints the text of a key of the model's file; false: it has none. */
static bool put_key(const chat *c, const char *name)
{
    bz_debug_files *files;
    size_t key;
    bool there = false;
    bz_error err = {0};
    if (bz_debug_files_open(&files, c->r->m.store.path, NULL, &err) != BZ_OK) {
        chat_complain(&err);
        return true;
    }
    const size_t main = bz_debug_files_set(files).main;
    if (bz_debug_files_find(files, main, name, &key) &&
        !bz_debug_files_key(files, main, key).is_array) {
        const bz_debug_value v = bz_debug_files_value(files, main, key, 0);
        there = v.kind == BZ_DEBUG_TEXT && v.text.len;
        if (there) {
            term_write_model_text(CLI_STDERR, v.text.data, v.text.len);
            fputc('\n', stderr);
        }
    }
    bz_debug_files_free(files);
    return there;
}

void chat_show_template(const chat *c)
{
    if (put_key(c, "tokenizer.chat_template")) {
        chat_say("(The template in the file is not used: Bezel has that of Gemma 4 built in.)");
    } else {
        chat_say("The file has no template; Bezel has that of Gemma 4 built in.");
    }
}

void chat_show_license(const chat *c)
{
    if (!put_key(c, "general.license")) {
        chat_say("The file names no license.");
    }
}
