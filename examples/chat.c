/* chat: a conversation on a terminal.
 *
 *   chat model.gguf
 *
 * Every line of stdin is a message. The request with all messages so far goes to bz_chat, which
 * calls back with the answer as it comes; the session keeps what it has computed, so that only the
 * new message is read.
 */
#define _POSIX_C_SOURCE 200809L /* getline, open_memstream */
#include <bezel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_json_text(FILE *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == '"' || text[i] == '\\') {
            fprintf(to, "\\u%04x", (unsigned)text[i]);
        } else {
            fputc(text[i], to);
        }
    }
}

static void add_message(FILE *messages, const char *role, const char *text, size_t len)
{
    fprintf(messages, "%s{\"role\": \"%s\", \"content\": \"", ftell(messages) ? ", " : "", role);
    write_json_text(messages, text, len);
    fprintf(messages, "\"}");
    fflush(messages);
}

/* Shows the answer and keeps it for the next request. Non-zero would cancel. */
static int on_part(void *user, bz_turn_part part, const char *text, size_t len)
{
    FILE *answer = user;
    if (part == BZ_TURN_ANSWER) {
        fwrite(text, 1, len, stdout);
        fflush(stdout);
        fwrite(text, 1, len, answer);
    }
    return ferror(stdout);
}

/* One turn; the messages grow by the answer. */
static void ask(const bz_model *model, bz_session *session, FILE *messages, char *const *list,
                bz_error *err)
{
    char *request = NULL, *answer = NULL, *json = NULL;
    size_t request_len = 0, answer_len = 0;
    FILE *out = open_memstream(&answer, &answer_len), *in = open_memstream(&request, &request_len);
    if (!in || !out) {
        *err = (bz_error){BZ_OUT_OF_MEMORY, "No memory for the conversation."};
    } else {
        const bz_chat_options options = {
            .size = sizeof options, .session = session, .part = on_part, .user = out};
        fprintf(in, "{\"temperature\": 0, \"messages\": [%s]}", *list);
        fflush(in);
        bz_chat(model, request, request_len, &options, &json, err);
        fflush(out);
        add_message(messages, "assistant", answer, answer_len);
        putchar('\n');
    }
    if (in) {
        fclose(in);
    }
    if (out) {
        fclose(out);
    }
    bz_free(json); /* the whole answer with its figures; this program has no use for them */
    free(request);
    free(answer);
}

int main(int argc, char **argv)
{
    bz_model *model = NULL;
    bz_session *session = NULL;
    bz_error err = {0};
    char *line = NULL, *list = NULL;
    size_t cap = 0, list_len = 0;
    ssize_t n;
    if (argc != 2) {
        fprintf(stderr, "usage: chat model.gguf\n");
        return 2;
    }
    FILE *messages = open_memstream(&list, &list_len);
    if (messages && bz_model_open_file(&model, argv[1], NULL, NULL, &err) == BZ_OK &&
        bz_session_new(&session, model, NULL, &err) == BZ_OK) {
        while (err.code == BZ_OK && (n = getline(&line, &cap, stdin)) > 0) {
            add_message(messages, "user", line, strcspn(line, "\n"));
            ask(model, session, messages, &list, &err);
        }
    }
    if (err.code != BZ_OK) {
        fprintf(stderr, "chat: %s (%s)\n", err.text, bz_status_name(err.code));
    }
    if (messages) {
        fclose(messages);
    }
    free(list);
    free(line);
    bz_session_free(session); /* sessions before their model; NULL is fine */
    bz_model_free(model);
    return err.code != BZ_OK;
}
