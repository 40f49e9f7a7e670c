/* Parts of the program that need no model: saved chats, printed answers. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/verbs/run.h"
#include "support/check.h"

static char folder[] = "/tmp/bezel-program-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][200];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool file_is(const char *path, const char *text)
{
    char got[4096];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(got, 1, sizeof got, f) : 0;
    if (f) {
        fclose(f);
    }
    return f && n == strlen(text) && memcmp(got, text, n) == 0;
}

static void test_save(void)
{
    begin("a saved chat is readable by its user only");
    conversation t = {0};
    bz_error err = {0};
    struct stat st;
    CHECK(conversation_add_user(&t, "secret", 6));
    const char *chat = in_folder("chat.json");
    const mode_t old_mask = umask(0);
    CHECKF(conversation_save(&t, chat, "m", &err) == BZ_OK, "%s", err.text);
    CHECK(stat(chat, &st) == 0 && (st.st_mode & 0777) == 0600);

    begin("saving a chat follows no link");
    const char *victim = in_folder("victim"), *link = in_folder("chat.json.new");
    write_file(victim, "mine");
    CHECK(symlink(victim, link) == 0);
    CHECKF(conversation_save(&t, chat, "m", &err) == BZ_OK, "%s", err.text);
    CHECK(file_is(victim, "mine"));
    CHECK(lstat(chat, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600);
    umask(old_mask);
    conversation_free(&t);
    unlink(chat);
    unlink(victim);
    unlink(link);
}

static void test_empty_part(void)
{
    begin("an empty part of an answer leaves the line open or closed");
    cli_options o = {0};
    run_state r = {.o = &o};
    run_printer p = {.r = &r};
    char *end_of_page = calloc(1, 1);
    run_print_part(&p, BZ_TURN_ANSWER, end_of_page, 0);
    CHECK(!p.open_line);
    p.open_line = true;
    run_print_part(&p, BZ_TURN_ANSWER, end_of_page, 0);
    CHECK(p.open_line);
    free(end_of_page);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    test_save();
    test_empty_part();
    rmdir(folder);
    return finish();
}
