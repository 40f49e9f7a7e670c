/* Parts of the program that need no model: saved chats, printed answers, lines of files, mapped
 * files, the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "cli/batch/lines.h"
#include "cli/batch/prompts_input.h"
#include "cli/chat/width.h"
#include "cli/chat/wrap.h"
#include "base/utf8.h"
#include "cli/sandbox.h"
#include "cli/term.h"
#include "cli/verbs/run.h"
#include "support/check.h"
#include "support/random.h"

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
    run_printer p;
    run_printer_init(&p, &r);
    char *end_of_page = calloc(1, 1);
    run_print_part(&p, BZ_TURN_ANSWER, end_of_page, 0);
    CHECK(!p.open_line);
    p.open_line = true;
    run_print_part(&p, BZ_TURN_ANSWER, end_of_page, 0);
    CHECK(p.open_line);
    free(end_of_page);
}

/* A file whose only line has n bytes. */
static FILE *file_of_one_line(size_t n)
{
    FILE *f = tmpfile();
    for (size_t i = 0; f && i < n; i++) {
        putc('x', f);
    }
    if (f) {
        rewind(f);
    }
    return f;
}

static void test_lines(void)
{
    begin("lines of a limited length");
    line_buffer b = {0};
    bz_error err = {0};
    FILE *f = file_of_one_line(9000);
    CHECK(line_read(&b, f, 9000, "p", 1, &err) == BZ_OK && b.len == 9000);
    CHECK(line_read(&b, f, 9000, "p", 2, &err) == BZ_OK && b.len == 0);
    rewind(f);
    CHECK(line_read(&b, f, 8999, "p.jsonl", 3, &err) == BZ_BAD_FILE);
    CHECKF(strstr(err.text, "p.jsonl has a line of more than 8999 bytes, line 3"), "%s", err.text);
    fclose(f);
    line_free(&b);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    begin("no memory for a line is an error, not the end of the input");
    struct rlimit before, small;
    f = file_of_one_line(48 << 20);
    getrlimit(RLIMIT_AS, &before);
    small = before;
    small.rlim_cur = 40 << 20; /* less than there is: every larger allocation fails */
    setrlimit(RLIMIT_AS, &small);
    const bz_status status = line_read(&b, f, LINE_MAX_BYTES, "p.jsonl", 1, &err);
    setrlimit(RLIMIT_AS, &before);
    CHECKF(status == BZ_OUT_OF_MEMORY && strstr(err.text, "No memory for line 1"), "%d %s", status,
           err.text);
    fclose(f);
    line_free(&b);
#endif
}

/* Exit status of a child that maps a file of `size` bytes, shortens it to nothing, and reads it. */
static int read_shortened(size_t size, bool ours)
{
    const char *path = in_folder("map");
    FILE *f = fopen(path, "wb");
    for (size_t i = 0; i < size; i++) {
        putc('x', f);
    }
    fclose(f);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        bz_os_map map;
        signal(SIGBUS, SIG_DFL); /* not a sanitizer's report */
        bz_os_guard_maps();
        if (bz_os_map_file(path, &map, NULL) != BZ_OK) {
            _exit(10);
        }
        const int fd = open(path, O_RDONLY);
        const volatile uint8_t *data =
            ours ? map.data : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        const bool before = data[0] == 'x' && data[size - 1] == 'x' && !bz_os_map_cut(&map);
        const bool cut = truncate(path, 0) == 0;
        const bool zeros = data[0] == 0 && data[size - 1] == 0;
        _exit(before && cut && zeros && bz_os_map_cut(&map) == ours ? 0 : 11);
    }
    int status = -1;
    waitpid(child, &status, 0);
    unlink(path);
    return status;
}

static void test_shortened_map(void)
{
    begin("a file that shrinks reads as zeros, and is reported");
    CHECK(read_shortened(3 * 4096 + 5, true) == 0);
    begin("another mapping's bus error still ends the program");
    const int status = read_shortened(3 * 4096 + 5, false);
    CHECKF(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "status %x", (unsigned)status);
}

/* What a hole in a parser would try; each bit of the result is an attempt that succeeded. */
static unsigned break_out(const char *forbidden, const char *allowed, pid_t parent)
{
    char program[] = "/bin/true", *const arguments[] = {program, NULL};
    unsigned done = 0;
    done |= socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 1 : 0;
    done |= socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 2 : 0;
    done |= open(forbidden, O_WRONLY | O_CREAT, 0600) >= 0 ? 4 : 0;
    done |= unlink(allowed) == 0 ? 8 : 0; /* it may be written, not removed */
    done |= kill(parent, 0) == 0 ? 16 : 0;
    done |= unshare(CLONE_NEWUSER) == 0 ? 32 : 0;
    done |= ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM ? 64 : 0;
    if (fork() == 0) {
        execv(program, arguments);
        _exit(99);
    }
    int status = 0;
    wait(&status);
    done |= WEXITSTATUS(status) != 99 ? 128 : 0;
    return done;
}

static void *do_nothing(void *user)
{
    return user;
}

/* What the program itself needs; each bit is a failure. */
static unsigned use_rights(const char *allowed)
{
    pthread_t thread;
    unsigned failed = 0;
    const int fd = open(allowed, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    failed |= fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0 ? 1 : 0;
    failed |= open("/proc/self/status", O_RDONLY) < 0 ? 2 : 0;
    failed |= open("/dev/null", O_WRONLY) < 0 ? 4 : 0;
    failed |= pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL) ? 8 : 0;
    signal(SIGUSR1, SIG_IGN);
    failed |= raise(SIGUSR1) != 0 || kill(getpid(), 0) != 0 ? 16 : 0;
    return failed;
}

/* A socket that listens on a free port of the loopback address. */
static int listen_anywhere(struct sockaddr_in *address)
{
    socklen_t n = sizeof *address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)address, n) == 0 && listen(fd, 5) == 0 &&
          getsockname(fd, (struct sockaddr *)address, &n) == 0);
    return fd;
}

/* As break_out, in the sandbox of a server, or of the process that downloads for it. */
static unsigned break_out_of_server(const char *secret, const char *model, bool downloads)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    char link[220];
    unsigned done = 0;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    done |= open(secret, O_RDONLY) >= 0 || (fd >= 0 && !downloads) ? 1 : 0;
    done |= open(model, downloads ? O_RDONLY : O_WRONLY) >= 0 || unlink(model) == 0 ? 2 : 0;
    snprintf(link, sizeof link, "%s-link", model);
    done |= open(link, O_RDONLY) >= 0 ? 4 : 0; /* to the secret */
    done |= bind(fd, (const struct sockaddr *)&any, sizeof any) == 0 ? 8 : 0;
    done |= listen(fd, 5) == 0 ? 16 : 0;
    done |= socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_NETLINK, SOCK_RAW, 0) >= 0 ? 32 : 0;
    done |= open("/proc/1/cmdline", O_RDONLY) >= 0 ? 64 : 0;
    return done;
}

static unsigned use_rights_of_server(const char *model, const char *store, int listener,
                                     const struct sockaddr_in *address, bool downloads)
{
    char part[220], below[220], whole[230];
    unsigned failed = 0;
    snprintf(part, sizeof part, "%s/part", store);
    snprintf(below, sizeof below, "%s/below", store);
    snprintf(whole, sizeof whole, "%s/whole", below);
    if (downloads) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        failed |= connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 ? 1 : 0;
        failed |= open("/etc/resolv.conf", O_RDONLY) < 0 && errno != ENOENT ? 2 : 0;
    } else {
        failed |= accept(listener, NULL, NULL) < 0 ? 4 : 0;
        failed |= open(model, O_RDONLY) < 0 ? 8 : 0;
    }
    failed |= open("/proc/self/status", O_RDONLY) < 0 ? 16 : 0;
    failed |= open("/dev/null", O_WRONLY) < 0 || open("/dev/urandom", O_RDONLY) < 0 ? 32 : 0;
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL, 0600);
    failed |= fd < 0 || ftruncate(fd, 10) != 0 || mkdir(below, 0700) != 0 ? 64 : 0;
    failed |= rename(part, whole) != 0 || unlink(whole) != 0 || rmdir(below) != 0 ? 128 : 0;
    return failed;
}

/* Exit status of a child that is confined and tries. */
static int confined_server(const char *models, const char *store, bool downloads)
{
    struct sockaddr_in address;
    char secret[200], model[200];
    socklen_t n = sizeof address;
    snprintf(secret, sizeof secret, "%s/secret", folder);
    snprintf(model, sizeof model, "%s/m", models);
    const int listener = listen_anywhere(&address), client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(client, (struct sockaddr *)&address, n) == 0);
    const pid_t child = fork();
    if (child == 0) {
        int code = 0;
        sandbox_rules r = {.reads_listed = true, .connects = downloads};
        sandbox_allow_system(&r);
        sandbox_allow(&r, store, SANDBOX_CHANGE);
        if (!downloads) {
            sandbox_allow(&r, models, SANDBOX_READ);
        }
        if (!sandbox_enter_rules("on", NULL, &r, &code)) {
            _exit(code); /* this kernel has none */
        }
        const unsigned done = break_out_of_server(secret, model, downloads),
                       failed = use_rights_of_server(model, store, listener, &address, downloads);
        if (done || failed) {
            fprintf(stderr, "succeeded %x, failed %x\n", done, failed);
        }
        _exit(done ? 50 : failed ? 51 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    close(client);
    close(listener);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 52;
}

static void test_server_sandbox(void)
{
    char secret[200], models[200], store[200], model[220], link[230];
    snprintf(secret, sizeof secret, "%s/secret", folder);
    snprintf(models, sizeof models, "%s/models", folder);
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(model, sizeof model, "%s/m", models);
    snprintf(link, sizeof link, "%s-link", model);
    begin("the sandbox of a server");
    mkdir(models, 0700);
    mkdir(store, 0700);
    write_file(secret, "");
    write_file(model, "");
    CHECK(symlink(secret, link) == 0);
    int code = confined_server(models, store, false);
    CHECKF(code == 0 || code == EXIT_CANNOT, "exit code %d", code);
    begin("the sandbox of downloads");
    code = confined_server(models, store, true);
    CHECKF(code == 0 || code == EXIT_CANNOT, "exit code %d", code);
    unlink(link);
    unlink(model);
    unlink(secret);
    rmdir(models);
    rmdir(store);
}

static void test_sandbox(void)
{
    begin("the sandbox");
    const char *allowed = in_folder("out/file"), *forbidden = in_folder("forbidden");
    mkdir(in_folder("out"), 0700);
    write_file(allowed, "");
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        int code = 0;
        const cli_options o = {.sandbox = "on", .out = allowed};
        if (!sandbox_enter(&o, false, &code)) {
            _exit(code); /* this kernel has none */
        }
        const unsigned done = break_out(forbidden, allowed, parent), failed = use_rights(allowed);
        if (done || failed) {
            fprintf(stderr, "succeeded %x, failed %x\n", done, failed);
        }
        _exit(done ? 50 : failed ? 51 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECKF(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_CANNOT),
           "status %x", (unsigned)status);
    unlink(allowed);
    rmdir(in_folder("out"));

    test_server_sandbox();

    begin("values of --sandbox");
    int code = 0;
    CHECK(sandbox_enter(&(cli_options){.sandbox = "off"}, false, &code) && code == 0);
    CHECK(!sandbox_enter(&(cli_options){.sandbox = "maybe"}, false, &code) && code == EXIT_USAGE);
}

/* ---- lines of an answer ---------------------------------------------------------------- */

static int wide; /* columns of the terminal */

static int columns(void)
{
    return wide;
}

static void collect(void *user, const char *text, size_t len)
{
    bz_json_to_buffer(user, text, len);
}

/* What a terminal of these columns gets, if the text comes `step` bytes at a time, or with 0 in
 * pieces of random length. The caller frees it. */
static char *wrapped(const char *text, int width, size_t step)
{
    bz_json_buffer out = {0};
    wrap w = {.columns = columns, .write = collect, .user = &out};
    const size_t n = strlen(text);
    wide = width;
    for (size_t i = 0; i < n;) {
        size_t len = step ? step : 1 + random_below(9);
        len = len < n - i ? len : n - i;
        while (i + len < n && ((unsigned char)text[i + len] & 0xC0) == 0x80) {
            len++; /* whole characters */
        }
        wrap_text(&w, text + i, len);
        i += len;
    }
    wrap_flush(&w);
    bz_json_to_buffer(&out, "", 1);
    return out.text;
}

static void expect_wrapped(const char *title, const char *text, int width, const char *want)
{
    begin("lines: %s", title);
    char *got = wrapped(text, width, 1);
    CHECKF(strcmp(got, want) == 0, "got: %s", got);
    free(got);
}

static int width_of_line(const char *text, size_t n)
{
    int width = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += bz_utf8_decode(text + i, n - i, &cp);
        width += char_width(cp);
    }
    return width;
}

/* Whether the terminal breaks no word of a line but its first one and those longer than a line. */
static bool words_are_whole(const char *line, size_t n, int width)
{
    int column = 0;
    bool first = true;
    for (size_t i = 0; i < n;) {
        const size_t blanks = strspn(line + i, " ");
        const size_t letters = strcspn(line + i + blanks, " \n");
        const int word = width_of_line(line + i + blanks, letters);
        column += (int)blanks;
        column = column > width ? column % width : column;
        if (column + word > width && word <= width && !first) {
            return false;
        }
        column += word;
        column = column > width && column % width ? column % width
                 : column > width                 ? width
                                                  : column;
        i += blanks + letters;
        first = false;
    }
    return true;
}

/* Without blanks and newlines. */
static size_t letters_of(const char *text, char *out)
{
    size_t n = 0;
    for (; *text; text++) {
        if (!strchr(" \n", *text)) {
            out[n++] = *text;
        }
    }
    out[n] = 0;
    return n;
}

static void test_wrap_random(void)
{
    static const char *const words[] = {"a",
                                        "sky",
                                        "blue",
                                        "e\xCC\x81",
                                        "\xE5\xA4\xA9",
                                        "\n",
                                        " ",
                                        " ",
                                        "  ",
                                        "(x)",
                                        "\xE3\x80\x82",
                                        "-",
                                        "**",
                                        "1.",
                                        "sixteen7",
                                        "\xF0\x9F\x98\x80"};
    begin("lines: whatever comes, in whatever pieces");
    for (int round = 0; round < 300; round++) {
        char text[2000] = "", before[2000], after[2000];
        for (int i = 0; i < 100; i++) {
            strcat(text, words[random_below(sizeof words / sizeof *words)]);
            strcat(text, random_below(3) ? " " : "");
        }
        const int width = 10 + (int)random_below(30);
        char *one = wrapped(text, width, 1), *some = wrapped(text, width, 0);
        CHECKF(strcmp(one, some) == 0, "pieces change it: %s", text);
        letters_of(text, before);
        letters_of(one, after);
        CHECKF(strcmp(before, after) == 0, "letters are lost: %s", one);
        for (const char *line = one; *line;
             line += strcspn(line, "\n") + (strchr(line, '\n') != 0)) {
            const size_t n = strcspn(line, "\n");
            CHECKF(words_are_whole(line, n, width), "%d columns: %.*s", width, (int)n, line);
        }
        free(one);
        free(some);
    }
}

static void test_wrap(void)
{
    expect_wrapped("words", "The sky is blue today", 10, "The sky is\nblue today");
    expect_wrapped("a line that is just full", "The sky is", 10, "The sky is");
    expect_wrapped("newlines and indents stay", "a\n  b\n\nc  d \ne", 10, "a\n  b\n\nc  d \ne");
    expect_wrapped("a long word", "see https://example.org/x ok", 10,
                   "see\nhttps://example.org/x ok");
    expect_wrapped("combining marks",
                   "e\xCC\x81"
                   "e\xCC\x81"
                   "e\xCC\x81 e\xCC\x81 x",
                   5,
                   "e\xCC\x81"
                   "e\xCC\x81"
                   "e\xCC\x81 e\xCC\x81\nx");
    /* 天地玄黄、宇宙「洪荒」: a comma begins no line, an opening bracket ends none */
    expect_wrapped("wide characters",
                   "\xE5\xA4\xA9\xE5\x9C\xB0\xE7\x8E\x84\xE9\xBB\x84\xE3\x80\x81\xE5\xAE\x87", 8,
                   "\xE5\xA4\xA9\xE5\x9C\xB0\xE7\x8E\x84\n\xE9\xBB\x84\xE3\x80\x81\xE5\xAE\x87");
    expect_wrapped("brackets", "\xE5\xA4\xA9\xE5\x9C\xB0\xE3\x80\x8C\xE7\x8E\x84", 6,
                   "\xE5\xA4\xA9\xE5\x9C\xB0\n\xE3\x80\x8C\xE7\x8E\x84");
    expect_wrapped("code", "```c\nint main(void) {}\n```\nint main(void)", 10,
                   "```c\nint main(void) {}\n```\nint\nmain(void)");
    expect_wrapped("a table", "| a | b | c | d |\n", 10, "| a | b | c | d |\n");

    begin("lines: a window that changes");
    bz_json_buffer out = {0};
    wrap w = {.columns = columns, .write = collect, .user = &out};
    wide = 40;
    wrap_text(&w, "one two three four five ", 24);
    wide = 12;
    wrap_text(&w, "six seven eight ", 16); /* the terminal has broken the first line after 12 */
    wide = 40;
    wrap_text(&w, "nine\n", 5);
    static const char want[] = "one two three four five\nsix seven\neight nine\n";
    CHECKF(out.n == sizeof want - 1 && memcmp(out.text, want, out.n) == 0, "%.*s", (int)out.n,
           out.text);
    free(out.text);

    begin("lines: nothing is touched where there is no terminal");
    out = (bz_json_buffer){0};
    w = (wrap){.write = collect, .user = &out};
    wrap_text(&w, "The sky is blue today", 21);
    CHECK(out.n == 21);
    free(out.text);
}

static void test_progress(void)
{
    char text[TERM_LEFT_MAX];
    begin("progress: percent and the time that is left");
    CHECK(term_percent(0, 7) == 0 && term_percent(6, 7) == 85 && term_percent(7, 7) == 100);
    CHECK(strcmp(term_left(10, 110, 10, text), ", about 10 s left") == 0);
    CHECK(strcmp(term_left(0, 6000, 10, text), ", about 10 min left") == 0);
    CHECK(strcmp(term_left(0, 72000, 1, text), ", about 20 h left") == 0);
    CHECK(strcmp(term_left(0, 100, 0, text), "") == 0 && strcmp(term_left(9, 9, 1, text), "") == 0);
}

static void test_count(void)
{
    bz_error err = {0};
    prompts_input in = {0};
    const char *path = in_folder("prompts.jsonl");
    begin("prompts: counted before they are read");
    write_file(path, "{}\n\n \r\n{}\n{}\n{}");
    CHECK(prompts_input_shard(&in, NULL) && prompts_input_open(&in, path, &err) == BZ_OK);
    CHECK(prompts_input_count(&in) == 4);
    CHECK(prompts_input_next(&in, &err) == BZ_OK && in.line == 1);
    prompts_input_close(&in);
    CHECK(prompts_input_shard(&in, "2/2") && prompts_input_open(&in, path, &err) == BZ_OK);
    CHECK(prompts_input_count(&in) == 2); /* lines 4 and 6 */
    prompts_input_close(&in);
    unlink(path);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    test_save();
    test_empty_part();
    test_lines();
    test_shortened_map();
    test_wrap();
    test_wrap_random();
    test_progress();
    test_count();
    test_sandbox();
    rmdir(folder);
    return finish();
}
