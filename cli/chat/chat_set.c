/* The chat command /set. */
#include <stdlib.h>
#include <string.h>

#include "bezel_diffusion.h"
#include "cli/chat/chat.h"
#include "cli/chat/chat_words.h"
#include "cli/show/show.h"
#include "cli/term.h"

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

void chat_print_settings(const chat *c, bool explain)
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
        fprintf(stderr, "  %-18s %s\n", "format", settings_form_name(&s));
        fprintf(stderr, "  %-18s %s\n  %-18s %s\n  %-18s %s\n  %-18s %s\n", "think",
                r->think ? "yes" : "no", "verbose", r->verbose ? "yes" : "no", "wordwrap",
                r->wrap ? "yes" : "no", "history", c->no_history ? "no" : "yes");
    }
    settings_free(&s);
}

static void set_system(chat *c, const char *rest)
{
    char *text = chat_rest(rest);
    const bool reset = text && strcmp(text, "default") == 0;
    const char *system = reset ? c->r->m.store.system : text;
    if (!text ||
        !conversation_set_system(&c->r->conversation, system && system[0] ? system : NULL)) {
        chat_say("Not enough memory.");
    } else {
        chat_say(c->r->conversation.system ? "The system prompt is set."
                                           : "The system prompt is removed.");
    }
    free(text);
}

static void set_stop(chat *c, const char *rest)
{
    settings *s = &c->r->given;
    char *text = chat_rest(rest);
    bz_error err = {0};
    if (text && strcmp(text, "default") == 0) {
        settings_clear_stops(s);
    } else if (!text || settings_add_stop(s, text, strlen(text), &err) != BZ_OK) {
        chat_say(text ? err.text : "Not enough memory.");
    }
    free(text);
}

/* "/set parameter stop A B": these instead of all others, as in Ollama. */
static void set_stop_words(chat *c, const char *rest)
{
    bz_error err = {0};
    if (rest[0] == '"' || !rest[0]) {
        set_stop(c, rest);
        return;
    }
    settings_clear_stops(&c->r->given);
    for (bz_str word = chat_next_word(&rest); word.len; word = chat_next_word(&rest)) {
        if (settings_add_stop(&c->r->given, word.data, word.len, &err) != BZ_OK) {
            chat_complain(&err);
        }
    }
}

/* "format json", "format FILE" with a JSON schema, "grammar FILE". */
static void set_form(chat *c, bool grammar, const char *rest)
{
    char *what = chat_rest_path(rest);
    bz_error err = {0};
    if (!what || !what[0]) {
        chat_say(grammar ? "Give a file, for example /set grammar rules.gbnf"
                         : "Give json or the file of a JSON schema, for example /set format json");
    } else if (strcmp(what, "default") == 0) {
        settings_clear_form(&c->r->given);
    } else if (settings_put_form(&c->r->given, grammar ? NULL : what, grammar ? what : NULL,
                                 &err) != BZ_OK) {
        chat_complain(&err);
    }
    free(what);
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
        chat_complain(&err);
    }
}

static void set_number(chat *c, setting id, const char *rest)
{
    settings *s = &c->r->given;
    const bool was_set = s->set[id];
    const double before = s->value[id];
    char *text = chat_rest(rest);
    bz_error err = {0};
    if (!text || !text[0]) {
        fprintf(stderr, "Give a value, for example /set %s %s\n", settings_name(id),
                id == SET_TEMPERATURE || id == SET_TOP_P || id == SET_MIN_P ? "0.5" : "10");
    } else if (strcmp(text, "default") == 0) {
        settings_unset(s, id);
    } else if (!setting_applies(c->r, id)) {
        /* setting_applies has printed a note */
    } else if (settings_put_text(s, id, text, &err) != BZ_OK) {
        chat_complain(&err);
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
        enum { THINK, VERBOSE, NO_HISTORY, WRAP } which;
        bool value;
    } switches[] = {
        {"think", THINK, true},          {"nothink", THINK, false},
        {"verbose", VERBOSE, true},      {"quiet", VERBOSE, false},
        {"noverbose", VERBOSE, false},   {"history", NO_HISTORY, false},
        {"nohistory", NO_HISTORY, true}, {"wordwrap", WRAP, true},
        {"nowordwrap", WRAP, false},
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (chat_word_is(name, switches[i].name)) {
            bool *field = switches[i].which == THINK     ? &c->r->think
                          : switches[i].which == VERBOSE ? &c->r->verbose
                          : switches[i].which == WRAP    ? &c->r->wrap
                                                         : &c->no_history;
            *field = switches[i].value;
            return true;
        }
    }
    return false;
}

void chat_set(chat *c, const char *rest)
{
    bz_str name = chat_next_word(&rest);
    const bool parameter = chat_word_is(name, "parameter");
    if (parameter && rest[0]) { /* as in Ollama */
        name = chat_next_word(&rest);
    }
    const int id = settings_find(name.data, name.len);
    if (name.len == 0 || chat_word_is(name, "parameter")) {
        chat_print_settings(c, true);
    } else if (chat_word_is(name, "system")) {
        set_system(c, rest);
    } else if (chat_word_is(name, "stop")) {
        (parameter ? set_stop_words : set_stop)(c, rest);
    } else if (id < SETTINGS) {
        set_number(c, (setting)id, rest);
    } else if (chat_word_is(name, "format") || chat_word_is(name, "grammar")) {
        set_form(c, chat_word_is(name, "grammar"), rest);
    } else if (chat_word_is(name, "noformat")) { /* as in Ollama */
        settings_clear_form(&c->r->given);
    } else if (!set_switch(c, name)) {
        char shown[200];
        fprintf(stderr, "There is no setting '%s'; /set lists them.\n", bz_str_show(name, shown));
    }
}
