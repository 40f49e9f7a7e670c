/* The commands of a chat, such as /set temperature 0.5. They print to stderr; stdout is for
 * answers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bezel_diffusion.h"
#include "cli/chat/chat.h"
#include "cli/interrupt.h"
#include "cli/show/show.h"
#include "cli/term.h"
#include "cli/chat/typed_path.h"

/* ---- words ------------------------------------------------------------------------- */

/* Removes the next word from *rest; len 0: there is none. */
static bz_str next_word(const char **rest)
{
    const char *p = *rest + strspn(*rest, " \t\n");
    bz_str word = {p, strcspn(p, " \t\n")};
    p += word.len;
    *rest = p + strspn(p, " \t\n");
    return word;
}

static bool is(bz_str word, const char *text)
{
    return bz_str_is(word, text);
}

/* Length without trailing white space. */
static size_t trimmed(const char *rest)
{
    size_t n = strlen(rest);
    while (n && strchr(" \t\n", rest[n - 1])) {
        n--;
    }
    return n;
}

/* The rest without enclosing quotation marks; the caller frees it. */
static char *rest_text(const char *rest)
{
    size_t n = trimmed(rest);
    if (n >= 2 && rest[0] == '"' && rest[n - 1] == '"') {
        rest++;
        n -= 2;
    }
    return strndup(rest, n);
}

/* The rest as a path; the caller frees it. */
static char *rest_path(const char *rest)
{
    return typed_path(rest, trimmed(rest));
}

static void say(const char *text)
{
    fprintf(stderr, "%s\n", text);
}

static void complain(const bz_error *err)
{
    say(err->text);
}

/* ---- /help ----------------------------------------------------------------------- */

static void help(chat *c, const char *rest)
{
    (void)c;
    (void)rest;
    fputs("  /set                 list all settings\n"
          "  /set NAME VALUE      for example /set temperature 0.5, /set system You are a poet.\n"
          "  /set NAME default    back to the model's own value\n"
          "  /set think, nothink  turn thinking on or off\n"
          "  /set verbose, quiet  turn timings after each answer on or off\n"
          "  /image FILE          attach an image to the next message\n"
          "  /audio FILE          attach an audio file\n"
          "  /show                the model, the conversation, the settings\n"
          "  /show system, messages\n"
          "  /clear               start a new conversation\n"
          "  /save FILE           save the conversation to a file\n"
          "  /load FILE           continue a saved conversation\n"
          "  /bye                 end the chat (also Ctrl-D)\n\n"
          "For several lines begin and end with \"\"\", or end each line but the last with \\.\n"
          "Ctrl-C interrupts an answer; the arrow keys recall earlier lines.\n",
          stderr);
}

/* ---- /set --------------------------------------------------------------------------- */

static void print_stops(const settings *s)
{
    fprintf(stderr, "  %-18s ", "stop");
    for (size_t i = 0; i < s->n_stop; i++) {
        fputs(i ? " " : "", stderr);
        char safe[SHOW_SAFE_MAX];
        fprintf(stderr, "\"%s\"", show_safe((bz_str){s->stop[i], strlen(s->stop[i])}, 60, safe));
    }
    fputs(s->n_stop ? "\n" : "none\n", stderr);
}

static void print_settings(const chat *c, bool explain)
{
    const run_state *r = c->r;
    settings s = {0};
    char text[SETTING_TEXT];
    if (settings_fill(&s, &r->given, NULL) == BZ_OK && settings_fill(&s, &r->made, NULL) == BZ_OK) {
        for (int i = 0; i < SETTINGS; i++) {
            if (settings_draws((setting)i) && bz_model_canvas(r->m.model)) {
                continue; /* not set */
            }
            const char *value = settings_show(&s, (setting)i, text);
            if (explain) {
                fprintf(stderr, "  %-18s %-20s %s%s%s\n", settings_name((setting)i), value,
                        term_dim(), settings_about((setting)i), term_plain());
            } else {
                fprintf(stderr, "  %-18s %s\n", settings_name((setting)i), value);
            }
        }
        print_stops(&s);
        fprintf(stderr, "  %-18s %s\n  %-18s %s\n  %-18s %s\n", "think", r->think ? "yes" : "no",
                "verbose", r->verbose ? "yes" : "no", "history", c->no_history ? "no" : "yes");
    }
    settings_free(&s);
}

static void set_system(chat *c, const char *rest)
{
    char *text = rest_text(rest);
    const bool reset = text && strcmp(text, "default") == 0;
    const char *system = reset ? c->r->m.store.system : text;
    if (!text ||
        !conversation_set_system(&c->r->conversation, system && system[0] ? system : NULL)) {
        say("Not enough memory.");
    } else {
        say(c->r->conversation.system ? "The system prompt is set."
                                      : "The system prompt is removed.");
    }
    free(text);
}

static void set_stop(chat *c, const char *rest)
{
    settings *s = &c->r->given;
    char *text = rest_text(rest);
    bz_error err = {0};
    if (text && strcmp(text, "default") == 0) {
        settings_clear_stops(s);
    } else if (!text || settings_add_stop(s, text, strlen(text), &err) != BZ_OK) {
        say(text ? err.text : "Not enough memory.");
    }
    free(text);
}

/* The context size belongs to the session: makes a new one, which reads the conversation again. */
static void new_context(chat *c, double before, bool was_set)
{
    bz_error err = {0};
    run_state *r = c->r;
    const uint32_t limit = bz_model_context(r->m.model);
    bz_status status = BZ_OK;
    if (r->given.set[SET_NUM_CTX] && r->given.value[SET_NUM_CTX] > limit) {
        status = bz_fail(&err, BZ_BAD_REQUEST, "This model's largest context is %u.", limit);
    } else if (r->o->context) {
        status = bz_fail(&err, BZ_BAD_REQUEST,
                         "The context was set with '-c'; start the chat again without it.");
    } else {
        status = run_session(r, &err);
    }
    if (status != BZ_OK) {
        r->given.set[SET_NUM_CTX] = was_set;
        r->given.value[SET_NUM_CTX] = before;
        complain(&err);
    }
}

static void set_number(chat *c, setting id, const char *rest)
{
    settings *s = &c->r->given;
    const bool was_set = s->set[id];
    const double before = s->value[id];
    char *text = rest_text(rest);
    bz_error err = {0};
    if (!text || !text[0]) {
        fprintf(stderr, "Give a value, for example /set %s %s\n", settings_name(id),
                id == SET_TEMPERATURE || id == SET_TOP_P || id == SET_MIN_P ? "0.5" : "10");
    } else if (strcmp(text, "default") == 0) {
        settings_unset(s, id);
    } else if (!setting_applies(c->r, id)) {
        /* setting_applies has printed a note */
    } else if (settings_put_text(s, id, text, &err) != BZ_OK) {
        complain(&err);
    }
    if (id == SET_NUM_CTX && (s->set[id] != was_set || s->value[id] != before)) {
        new_context(c, before, was_set);
    }
    free(text);
}

static bool set_switch(chat *c, bz_str name)
{
    static const struct {
        const char *name;
        enum { THINK, VERBOSE, NO_HISTORY } which;
        bool value;
    } switches[] = {
        {"think", THINK, true},          {"nothink", THINK, false},
        {"verbose", VERBOSE, true},      {"quiet", VERBOSE, false},
        {"noverbose", VERBOSE, false},   {"history", NO_HISTORY, false},
        {"nohistory", NO_HISTORY, true},
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (is(name, switches[i].name)) {
            bool *field = switches[i].which == THINK     ? &c->r->think
                          : switches[i].which == VERBOSE ? &c->r->verbose
                                                         : &c->no_history;
            *field = switches[i].value;
            return true;
        }
    }
    return false;
}

static void set(chat *c, const char *rest)
{
    bz_str name = next_word(&rest);
    if (is(name, "parameter") && rest[0]) { /* as in Ollama */
        name = next_word(&rest);
    }
    const int id = settings_find(name.data, name.len);
    if (name.len == 0) {
        print_settings(c, true);
    } else if (is(name, "system")) {
        set_system(c, rest);
    } else if (is(name, "stop")) {
        set_stop(c, rest);
    } else if (id < SETTINGS) {
        set_number(c, (setting)id, rest);
    } else if (!set_switch(c, name)) {
        char shown[200];
        fprintf(stderr, "There is no setting '%s'; /set lists them.\n", bz_str_show(name, shown));
    }
}

/* ---- /show ---------------------------------------------------------------------------- */

static void show_messages(const chat *c)
{
    const conversation *t = &c->r->conversation;
    for (size_t i = 0; i < t->n; i++) {
        bz_arena arena = {0};
        bz_str role, text;
        if (conversation_message(t, i, &arena, &role, &text)) {
            char who[SHOW_SAFE_MAX], what[SHOW_SAFE_MAX];
            const int room = term_width() - 13;
            fprintf(stderr, "  %-9s  %s\n", show_safe(role, 20, who),
                    show_safe(text,
                              room < 20    ? 20
                              : room > 250 ? 250
                                           : (unsigned)room,
                              what));
        }
        bz_arena_free(&arena);
    }
    if (t->n == 0) {
        say("The conversation is empty.");
    }
}

static void show_system(const chat *c)
{
    const char *system = c->r->conversation.system;
    if (system) {
        term_write_model_text(2, system, strlen(system)); /* may come from a model file */
        fputc('\n', stderr);
    } else {
        say("There is no system prompt.");
    }
}

static void show(chat *c, const char *rest)
{
    const run_state *r = c->r;
    bz_str what = next_word(&rest);
    if (is(what, "system")) {
        show_system(c);
    } else if (is(what, "messages") || is(what, "history")) {
        show_messages(c);
    } else if (is(what, "parameters")) {
        print_settings(c, false);
    } else if (what.len == 0 || is(what, "info")) {
        settings s = {0};
        bz_session_stats stats = bz_session_get_stats(r->session);
        settings_fill(&s, &r->given, NULL);
        settings_fill(&s, &r->made, NULL);
        fprintf(stderr, "  %-18s %s\n", "model", r->name);
        fprintf(stderr, "  %-18s %u of %u tokens\n", "context",
                r->conversation.n ? stats.position : 0, run_context(r, &s));
        fprintf(stderr, "  %-18s %zu\n", "messages", r->conversation.n);
        for (size_t i = 0; i < r->n_files; i++) {
            char path[SHOW_SAFE_MAX];
            fprintf(stderr, "  %-18s %s\n", i ? "" : "attached",
                    show_safe((bz_str){r->files[i].path, strlen(r->files[i].path)}, 100, path));
        }
        fprintf(stderr, "  %-18s %s\n", "system prompt",
                r->conversation.system ? "yes, see /show system" : "none");
        print_settings(c, false);
        settings_free(&s);
    } else {
        say("Use /show, /show system, /show messages or /show parameters.");
    }
}

/* ---- the conversation -------------------------------------------------------------------- */

static void clear(chat *c, const char *rest)
{
    (void)rest;
    const bool waiting = c->r->n_files > 0;
    conversation_truncate(&c->r->conversation, 0);
    run_detach(c->r);
    media_cache_clear(&c->r->cache);
    say(waiting ? "A new conversation; attached images and audio are dropped."
                : "A new conversation.");
}

static void save(chat *c, const char *rest)
{
    char *path = rest_path(rest);
    bz_error err = {0};
    if (!path || !path[0]) {
        say("Give a file, for example /save chat.json");
    } else if (conversation_save(&c->r->conversation, path, c->r->name, &err) != BZ_OK) {
        complain(&err);
    } else {
        fprintf(stderr, "Saved %zu messages to %s.\n", c->r->conversation.n, path);
    }
    free(path);
}

static void load(chat *c, const char *rest)
{
    char *path = rest_path(rest);
    bz_error err = {0};
    if (!path || !path[0]) {
        say("Give a file, for example /load chat.json");
    } else if (conversation_load(&c->r->conversation, path, &err) != BZ_OK) {
        complain(&err);
    } else {
        media_cache_clear(
            &c->r->cache); /* belongs to the old conversation; attached files are read again */
        fprintf(stderr, "Loaded %zu messages from %s.\n", c->r->conversation.n, path);
    }
    free(path);
}

static void attach(chat *c, bz_media_kind kind, const char *rest)
{
    char *path = rest_path(rest);
    bz_error err = {0};
    uint32_t tokens;
    if (!path || !path[0]) {
        say(kind == BZ_MEDIA_IMAGE ? "Give a file, for example /image cat.jpg"
                                   : "Give a file, for example /audio voice.wav");
    } else if (run_attach(c->r, kind, path, &tokens, &err) != BZ_OK) {
        complain(&err);
    } else {
        fprintf(stderr, "%s is attached to the next message (%u tokens).\n", path, tokens);
    }
    interrupt_asked = 0;
    free(path);
}

static void image(chat *c, const char *rest)
{
    attach(c, BZ_MEDIA_IMAGE, rest);
}

static void audio(chat *c, const char *rest)
{
    attach(c, BZ_MEDIA_AUDIO, rest);
}

static void bye(chat *c, const char *rest)
{
    (void)rest;
    c->leave = true;
}

bool chat_command(chat *c, const char *line)
{
    static const struct {
        const char *name;
        void (*run)(chat *c, const char *rest);
    } commands[] = {
        {"/help", help},   {"/?", help},    {"/set", set},     {"/show", show},
        {"/clear", clear}, {"/save", save}, {"/load", load},   {"/bye", bye},
        {"/exit", bye},    {"/quit", bye},  {"/image", image}, {"/audio", audio},
    };
    const char *rest = line;
    const bz_str word = next_word(&rest);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (is(word, commands[i].name)) {
            commands[i].run(c, rest);
            return true;
        }
    }
    if (memchr(word.data + 1, '/', word.len - 1)) {
        return false; /* a path, not a command */
    }
    char shown[200];
    fprintf(stderr, "There is no command '%s'; /help lists them.\n", bz_str_show(word, shown));
    return true;
}
