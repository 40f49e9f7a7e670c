/* The commands of a chat, such as /set temperature 0.5. They print to stderr; stdout is for
 * answers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/chat/chat.h"
#include "cli/chat/chat_words.h"
#include "cli/interrupt.h"
#include "cli/show/show.h"
#include "cli/term.h"

/* ---- /help ----------------------------------------------------------------------- */

static void help(chat *c, const char *rest)
{
    const bz_str about = chat_next_word(&rest);
    const char *name = about.len && about.data[0] == '/' ? about.data + 1 : about.data;
    if (strncmp(name, "set", 3) == 0) { /* "/? set" and "/? /set", as in Ollama */
        chat_print_settings(c, true);
        return;
    }
    fputs("  /set                 list all settings\n"
          "  /set NAME VALUE      for example /set temperature 0.5, /set system You are a poet.\n"
          "  /set NAME default    back to the model's own value\n"
          "  /set think, nothink  turn thinking on or off\n"
          "  /set format json     answer with JSON; with a FILE: as its JSON schema says\n"
          "  /set grammar FILE    answer as the GBNF grammar in FILE says\n"
          "  /set noformat        answer freely again\n"
          "  /set verbose, quiet  turn timings after each answer on or off\n"
          "  /set history, nohistory, wordwrap, nowordwrap\n"
          "  /image FILE          attach an image to the next message\n"
          "  /audio FILE          attach an audio file\n"
          "  /video FILE          attach a video, without its sound\n"
          "  /show                the model, the conversation, the settings\n"
          "  /show messages, system, parameters, modelfile, template, license\n"
          "  /clear               start a new conversation\n"
          "  /save FILE           save the conversation to a file\n"
          "  /load FILE           continue a saved conversation\n"
          "  /bye                 end the chat (also Ctrl-D)\n\n"
          "For several lines begin and end with \"\"\", or end each line but the last with \\.\n"
          "Ctrl-C interrupts an answer; the arrow keys recall earlier lines.\n",
          stderr);
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
        chat_say("The conversation is empty.");
    }
}

static void show_system(const chat *c)
{
    const char *system = c->r->conversation.system;
    if (system) {
        term_write_model_text(2, system, strlen(system)); /* may come from a model file */
        fputc('\n', stderr);
    } else {
        chat_say("There is no system prompt.");
    }
}

static void show(chat *c, const char *rest)
{
    const run_state *r = c->r;
    bz_str what = chat_next_word(&rest);
    if (chat_word_is(what, "system")) {
        show_system(c);
    } else if (chat_word_is(what, "messages") || chat_word_is(what, "history")) {
        show_messages(c);
    } else if (chat_word_is(what, "parameters")) {
        chat_print_settings(c, false);
    } else if (chat_word_is(what, "modelfile")) {
        chat_show_modelfile(c);
    } else if (chat_word_is(what, "template")) {
        chat_show_template(c);
    } else if (chat_word_is(what, "license")) {
        chat_show_license(c);
    } else if (what.len == 0 || chat_word_is(what, "info")) {
        settings s = {0};
        bz_session_stats stats = bz_session_get_stats(r->session);
        settings_fill(&s, &r->given, NULL);
        settings_fill(&s, &r->made, NULL);
        fprintf(stderr, "  %-18s %s\n", "model", r->name);
        fprintf(stderr, "  %-18s %u of %u tokens\n", "context",
                r->conversation.n ? stats.position : 0, r->context);
        fprintf(stderr, "  %-18s %zu", "messages", r->conversation.n);
        const size_t left_out = conversation_left_out(&r->conversation);
        if (left_out) {
            fprintf(stderr, ", of which the model no longer sees %zu", left_out);
        }
        fputc('\n', stderr);
        for (size_t i = 0; i < r->n_files; i++) {
            char path[SHOW_SAFE_MAX];
            fprintf(stderr, "  %-18s %s\n", i ? "" : "attached",
                    show_safe((bz_str){r->files[i].path, strlen(r->files[i].path)}, 100, path));
        }
        fprintf(stderr, "  %-18s %s\n", "system prompt",
                r->conversation.system ? "yes, see /show system" : "none");
        chat_print_settings(c, false);
        settings_free(&s);
    } else {
        chat_say("Use /show, or /show messages, system, parameters, modelfile, template or "
                 "license.");
    }
}

/* ---- the conversation -------------------------------------------------------------------- */

static void clear(chat *c, const char *rest)
{
    (void)rest;
    const bool waiting = c->r->n_files > 0;
    conversation_truncate(&c->r->conversation, c->r->conversation.n_pinned);
    run_detach(c->r);
    media_cache_clear(&c->r->cache);
    chat_say(waiting ? "A new conversation; attached files are dropped." : "A new conversation.");
}

static void save(chat *c, const char *rest)
{
    char *path = chat_rest_path(rest);
    bz_error err = {0};
    if (!path || !path[0]) {
        chat_say("Give a file, for example /save chat.json");
    } else if (run_save(c->r, path, &err) != BZ_OK) {
        chat_complain(&err);
    } else {
        fprintf(stderr, "Saved %zu messages to %s.\n", c->r->conversation.n, path);
    }
    free(path);
}

static void load(chat *c, const char *rest)
{
    char *path = chat_rest_path(rest);
    bz_error err = {0};
    if (!path || !path[0]) {
        chat_say("Give a file, for example /load chat.json");
    } else if (run_load(c->r, path, &err) != BZ_OK) {
        chat_complain(&err);
    } else {
        fprintf(stderr, "Loaded %zu messages from %s.\n", c->r->conversation.n, path);
    }
    free(path);
}

static void attach(chat *c, bz_media_kind kind, const char *rest)
{
    char *path = chat_rest_path(rest);
    bz_error err = {0};
    uint32_t tokens;
    if (!path || !path[0]) {
        static const char *const examples[] = {"/image cat.jpg", "/audio voice.wav",
                                               "/video clip.mp4"};
        fprintf(stderr, "Give a file, for example %s\n", examples[kind]);
    } else if (run_attach(c->r, kind, path, &tokens, &err) != BZ_OK) {
        chat_complain(&err);
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

static void video(chat *c, const char *rest)
{
    attach(c, BZ_MEDIA_VIDEO, rest);
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
        {"/help", help},   {"/?", help},    {"/set", chat_set}, {"/show", show},
        {"/clear", clear}, {"/save", save}, {"/load", load},    {"/bye", bye},
        {"/exit", bye},    {"/quit", bye},  {"/image", image},  {"/audio", audio},
        {"/video", video},
    };
    const char *rest = line;
    const bz_str word = chat_next_word(&rest);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (chat_word_is(word, commands[i].name)) {
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
