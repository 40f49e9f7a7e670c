/* cli/os.h on Linux and macOS. */
#include "cli/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/interrupt.h"

void cli_os_begin(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    signal(SIGPIPE, SIG_DFL); /* a closed pipe ends the program quietly */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is an error like a full disk */
}

bool cli_os_is_terminal(int fd)
{
    return isatty(fd) != 0;
}

bool cli_os_draws(void)
{
    const char *kind = getenv("TERM");
    return kind && kind[0] && strcmp(kind, "dumb") != 0;
}

bool cli_os_window(int fd, int *columns, int *rows)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return false;
    }
    *columns = size.ws_col;
    *rows = size.ws_row;
    return true;
}

bool cli_os_has_text(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

cli_os_line cli_os_read_line(char **text, size_t *capacity, size_t *n)
{
    if (!interrupt_wait_input(CLI_STDIN)) {
        return CLI_OS_SIGNAL;
    }
    const ssize_t got = getline(text, capacity, stdin);
    *n = got > 0 ? (size_t)got : 0;
    return got < 0 ? CLI_OS_END : CLI_OS_LINE;
}

int cli_os_silence(void)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int before = nowhere >= 0 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    fflush(stderr);
    if (before >= 0) {
        dup2(nowhere, STDERR_FILENO);
    }
    if (nowhere >= 0) {
        close(nowhere);
    }
    return before;
}

void cli_os_restore(int before)
{
    fflush(stderr);
    if (before >= 0) {
        dup2(before, STDERR_FILENO);
        close(before);
    }
}

bool cli_os_unpack(const char *archive, const char *folder, const char *member)
{
    extern char **environ;
    char name[] = "tar", extract[] = "-xzf", into[] = "-C", strip[] = "--strip-components=1";
    char *argv[] = {name,           extract, strdup(archive), into,
                    strdup(folder), strip,   strdup(member),  NULL};
    pid_t child;
    int status = 1;
    if (argv[2] && argv[4] && argv[6] &&
        posix_spawnp(&child, name, NULL, NULL, argv, environ) == 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    free(argv[2]);
    free(argv[4]);
    free(argv[6]);
    return status == 0;
}
