/* cli/os.h on Windows. */
#include "cli/os.h"

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_windows.h"
#include <shellapi.h>

#include "cli/interrupt.h"

/* ---- the console ------------------------------------------------------------------------------
 */

static struct {
    UINT input, output; /* code pages that were set before; 0: none */
    bool draws;         /* obeys escape sequences */
} console;

static HANDLE stream(int fd)
{
    return GetStdHandle(fd == CLI_STDIN    ? STD_INPUT_HANDLE
                        : fd == CLI_STDOUT ? STD_OUTPUT_HANDLE
                                           : STD_ERROR_HANDLE);
}

static void restore_console(void)
{
    if (console.output) {
        SetConsoleOutputCP(console.output);
        SetConsoleCP(console.input);
    }
}

/* Text in UTF-8 and escape sequences, on the console of this program and those that started it;
 * code pages are given back at the end. */
static void prepare_console(void)
{
    for (int fd = CLI_STDOUT; fd <= CLI_STDERR; fd++) {
        DWORD mode;
        if (GetConsoleMode(stream(fd), &mode)) {
            console.draws |= SetConsoleMode(stream(fd), mode | ENABLE_PROCESSED_OUTPUT |
                                                            ENABLE_VIRTUAL_TERMINAL_PROCESSING);
            console.output = console.output ? console.output : GetConsoleOutputCP();
        }
    }
    if (console.output) {
        console.input = GetConsoleCP();
        SetConsoleOutputCP(CP_UTF8);
        SetConsoleCP(CP_UTF8);
        atexit(restore_console);
    }
}

/* The command line as Windows has it: UTF-16, with wildcards as they were typed. */
static void read_command_line(int *argc, char ***argv)
{
    int n = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    char **list = wide && n > 0 ? calloc((size_t)n + 1, sizeof *list) : NULL;
    bool ok = list != NULL;
    for (int i = 0; ok && i < n; i++) {
        list[i] = bz_os_narrow(wide[i]);
        ok = list[i] != NULL;
    }
    LocalFree(wide);
    if (ok) {
        *argc = n; /* kept until the program ends */
        *argv = list;
    }
}

void cli_os_begin(int *argc, char ***argv)
{
    for (int fd = CLI_STDIN; fd <= CLI_STDERR; fd++) {
        _setmode(fd, _O_BINARY);
    }
    prepare_console();
    read_command_line(argc, argv);
}

bool cli_os_is_terminal(int fd)
{
    DWORD mode;
    return GetConsoleMode(stream(fd), &mode) != 0;
}

bool cli_os_draws(void)
{
    const char *kind = bz_os_env("TERM"); /* of other shells */
    return console.draws && !(kind && strcmp(kind, "dumb") == 0);
}

bool cli_os_window(int fd, int *columns, int *rows)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo(stream(fd), &info)) {
        return false;
    }
    *columns = info.srWindow.Right - info.srWindow.Left + 1;
    *rows = info.srWindow.Bottom - info.srWindow.Top + 1;
    return *columns > 0;
}

bool cli_os_has_text(int fd)
{
    const DWORD type = GetFileType(stream(fd));
    return type == FILE_TYPE_DISK || type == FILE_TYPE_PIPE;
}

/* ---- lines ------------------------------------------------------------------------------------
 */

static bool append(char **text, size_t *capacity, size_t *n, const char *bytes, size_t more)
{
    if (*n + more + 1 > *capacity) {
        const size_t room = 2 * (*n + more + 1);
        char *larger = realloc(*text, room);
        if (!larger) {
            return false;
        }
        *text = larger;
        *capacity = room;
    }
    memcpy(*text + *n, bytes, more);
    *n += more;
    (*text)[*n] = 0;
    return true;
}

/* Ctrl-C ends a read at once; the handler, on its own thread, may run only after that. */
static cli_os_line interrupted_read(void)
{
    for (int i = 0; i < 100 && !interrupt_stop(); i++) {
        Sleep(10);
    }
    return interrupt_stop() ? CLI_OS_SIGNAL : CLI_OS_END;
}

/* The console edits the line, with its own keys and history. Bytes read from it in UTF-8 would lose
 * all but ASCII, so they are read as UTF-16. */
static cli_os_line read_console(char **text, size_t *capacity, size_t *n)
{
    enum { PIECE = 1024 };
    wchar_t piece[PIECE + 1];
    bool whole = false;
    while (!whole) {
        DWORD got = 0;
        SetLastError(NO_ERROR);
        if (!ReadConsoleW(stream(CLI_STDIN), piece, PIECE, &got, NULL) || got == 0) {
            return GetLastError() == ERROR_OPERATION_ABORTED || interrupt_stop()
                       ? interrupted_read()
                       : CLI_OS_END;
        }
        piece[got] = 0;
        if (*n == 0 && piece[0] == 0x1A) { /* Ctrl-Z at the start of a line */
            return CLI_OS_END;
        }
        whole = piece[got - 1] == L'\n';
        char *bytes = bz_os_narrow(piece);
        const bool ok = bytes && append(text, capacity, n, bytes, strlen(bytes));
        free(bytes);
        if (!ok) {
            return CLI_OS_END;
        }
    }
    return CLI_OS_LINE;
}

cli_os_line cli_os_read_line(char **text, size_t *capacity, size_t *n)
{
    *n = 0;
    if (interrupt_stop()) {
        return CLI_OS_SIGNAL;
    }
    if (cli_os_is_terminal(CLI_STDIN)) {
        return read_console(text, capacity, n);
    }
    for (int c; (c = getc(stdin)) != EOF;) {
        const char byte = (char)c;
        if (!append(text, capacity, n, &byte, 1)) {
            return CLI_OS_END;
        }
        if (c == '\n') {
            break;
        }
    }
    return *n ? CLI_OS_LINE : interrupt_stop() ? CLI_OS_SIGNAL : CLI_OS_END;
}

/* ---- streams ----------------------------------------------------------------------------------
 */

int cli_os_silence(void)
{
    const int nowhere = _open("NUL", _O_WRONLY | _O_BINARY);
    const int before = nowhere >= 0 ? _dup(CLI_STDERR) : -1;
    fflush(stderr);
    if (before >= 0) {
        _dup2(nowhere, CLI_STDERR);
    }
    if (nowhere >= 0) {
        _close(nowhere);
    }
    return before;
}

void cli_os_restore(int before)
{
    fflush(stderr);
    if (before >= 0) {
        _dup2(before, CLI_STDERR);
        _close(before);
    }
}

/* ---- the machine ------------------------------------------------------------------------------
 */

void cli_os_processor(char *out, size_t room)
{
    static const wchar_t key[] = L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0";
    wchar_t name[128] = L"";
    DWORD n = sizeof name;
    out[0] = 0;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, key, L"ProcessorNameString", RRF_RT_REG_SZ, NULL, name,
                     &n) == ERROR_SUCCESS) {
        char *text = bz_os_narrow(name);
        snprintf(out, room, "%s", text ? text : "");
        free(text);
    }
    for (size_t len = strlen(out); len && out[len - 1] == ' '; len--) {
        out[len - 1] = 0;
    }
}

/* A job, as containers are here, may limit what all its processes commit. */
uint64_t cli_os_memory_limit(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION job = {0};
    return QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &job, sizeof job,
                                     NULL) &&
                   (job.BasicLimitInformation.LimitFlags & JOB_OBJECT_LIMIT_JOB_MEMORY)
               ? job.JobMemoryLimit
               : 0;
}

/* Windows 10 and later have a tar. By its whole path: a name would be looked for in the current
 * folder before, where someone else's file may be. */
bool cli_os_unpack(const char *archive, const char *folder, const char *member)
{
    wchar_t wide_system[MAX_PATH];
    const UINT n = GetSystemDirectoryW(wide_system, MAX_PATH);
    char *system = n > 0 && n < MAX_PATH ? bz_os_narrow(wide_system) : NULL;
    const size_t room =
        system ? strlen(system) + strlen(archive) + strlen(folder) + strlen(member) + 64 : 0;
    char *line = room ? malloc(room) : NULL;
    if (line) {
        snprintf(line, room, "\"%s\\tar.exe\" -xzf \"%s\" -C \"%s\" --strip-components=1 %s",
                 system, archive, folder, member);
    }
    wchar_t *wide = line ? bz_os_wide(line) : NULL;
    STARTUPINFOW how = {.cb = sizeof how};
    PROCESS_INFORMATION child;
    DWORD code = 1;
    if (wide && CreateProcessW(NULL, wide, NULL, NULL, TRUE, 0, NULL, NULL, &how, &child)) {
        WaitForSingleObject(child.hProcess, INFINITE);
        GetExitCodeProcess(child.hProcess, &code);
        CloseHandle(child.hProcess);
        CloseHandle(child.hThread);
    }
    free(wide);
    free(line);
    free(system);
    return code == 0;
}
