/* Files of server/os.h on Windows: descriptors of the C library over handles of ours. */
#include "base/os_windows.h"
#include "server/os.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shellapi.h>

enum { LONGEST = 32768 }; /* characters of a path */

const char os_browser_starter[] = "a default browser";

void os_close_file(int file)
{
    if (file >= 0) {
        _close(file);
    }
}

/* Takes ownership of the handle. Describes what is open; false, and closes it, if it is neither a
 * regular file nor a folder. */
static bool look(HANDLE h, os_file *file)
{
    BY_HANDLE_FILE_INFORMATION f;
    if (GetFileType(h) != FILE_TYPE_DISK || !GetFileInformationByHandle(h, &f)) {
        CloseHandle(h);
        return false;
    }
    const int fd = _open_osfhandle((intptr_t)h, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
    if (fd < 0) {
        CloseHandle(h);
        return false;
    }
    const uint64_t ticks =
        (uint64_t)f.ftLastWriteTime.dwHighDateTime << 32 | f.ftLastWriteTime.dwLowDateTime;
    *file = (os_file){fd, (f.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
                      (uint64_t)f.nFileSizeHigh << 32 | f.nFileSizeLow,
                      bz_os_from_filetime(f.ftLastWriteTime), (uint32_t)(ticks % 10000000u * 100u)};
    return true;
}

static bz_status fail_errno(bz_error *err)
{
    return bz_fail(err,
                   errno == EMFILE   ? BZ_OUT_OF_MEMORY
                   : errno == ENOENT ? BZ_NOT_FOUND
                                     : BZ_BAD_FILE,
                   "%s", strerror(errno));
}

bz_status os_open_folder(const char *path, int *fd, bz_error *err)
{
    os_file file;
    HANDLE h = bz_os_open_handle(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    *fd = -1;
    if (h == INVALID_HANDLE_VALUE) {
        return fail_errno(err);
    }
    if (!look(h, &file) || !file.folder) {
        return bz_fail(err, BZ_BAD_FILE, "It is not a folder");
    }
    *fd = file.fd;
    return BZ_OK;
}

bz_status os_open_file(const char *path, os_file *file, bz_error *err)
{
    HANDLE h = bz_os_open_handle(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (h == INVALID_HANDLE_VALUE) {
        return fail_errno(err);
    }
    if (!look(h, file)) {
        return bz_fail(err, BZ_BAD_FILE, "It is not a regular file");
    }
    if (file->folder) {
        os_close_file(file->fd);
        return bz_fail(err, BZ_BAD_FILE, "It is a folder");
    }
    return BZ_OK;
}

/* The path of an open file, as the file system has it. */
static bool path_of(HANDLE h, wchar_t *out)
{
    const DWORD n = GetFinalPathNameByHandleW(h, out, LONGEST, FILE_NAME_NORMALIZED);
    return n > 0 && n < LONGEST;
}

/* Opens folder\\path and checks by the path that it then has that it is what was named: neither a
 * link, nor a short or another name of the same file. */
static HANDLE open_named(HANDLE folder, const char *path)
{
    wchar_t *named = malloc(LONGEST * sizeof *named), *found = malloc(LONGEST * sizeof *found);
    wchar_t *wide = bz_os_wide(path);
    HANDLE h = INVALID_HANDLE_VALUE;
    for (wchar_t *p = wide; p && *p; p++) {
        *p = *p == L'/' ? L'\\' : *p;
    }
    if (named && found && wide && path_of(folder, named) &&
        wcslen(named) + wcslen(wide) + 2 < LONGEST) {
        if (wide[0]) {
            wcscat(named, L"\\");
            wcscat(named, wide);
        }
        h = CreateFileW(named, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                        NULL, OPEN_EXISTING,
                        FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
        BY_HANDLE_FILE_INFORMATION f;
        if (h == INVALID_HANDLE_VALUE) {
            bz_os_set_errno();
        } else if (!path_of(h, found) ||
                   CompareStringOrdinal(named, -1, found, -1, TRUE) != CSTR_EQUAL ||
                   !GetFileInformationByHandle(h, &f) ||
                   (f.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)) {
            CloseHandle(h);
            h = INVALID_HANDLE_VALUE;
            errno = ENOENT;
        }
    }
    free(named);
    free(found);
    free(wide);
    return h;
}

os_found os_open_below(int folder, const char *path, os_file *file)
{
    errno = ENOENT;
    if (strpbrk(path, ":\\")) { /* streams of files, and separators */
        return OS_NOTHING;
    }
    HANDLE h = open_named((HANDLE)_get_osfhandle(folder), path);
    if (h == INVALID_HANDLE_VALUE) {
        return errno == EMFILE ? OS_TOO_MANY : OS_NOTHING;
    }
    return look(h, file) ? OS_FOUND : OS_NOTHING;
}

long os_send_file(int fd, int file, uint64_t from, size_t n)
{
    char piece[16384];
    OVERLAPPED at = {0};
    DWORD got = 0;
    at.Offset = (DWORD)from;
    at.OffsetHigh = (DWORD)(from >> 32);
    if (!ReadFile((HANDLE)_get_osfhandle(file), piece, (DWORD)(n < sizeof piece ? n : sizeof piece),
                  &got, &at) ||
        got == 0) {
        return n == 0 ? 0 : OS_GONE;
    }
    return os_send(fd, piece, got, false); /* what it does not take is read again */
}

bool os_open_browser(const char *url)
{
    wchar_t *wide = bz_os_wide(url);
    const bool ok =
        wide && (intptr_t)ShellExecuteW(NULL, L"open", wide, NULL, NULL, SW_SHOWNORMAL) > 32;
    free(wide);
    return ok;
}
