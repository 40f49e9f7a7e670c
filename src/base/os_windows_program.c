/* os_program.h on Windows. Open files are descriptors of the C library over handles of ours. */
#include "base/os_program.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_windows.h"
#include <bcrypt.h>

static HANDLE handle_of(int file)
{
    return (HANDLE)_get_osfhandle(file);
}

static bool ok_or_errno(bool ok)
{
    if (!ok) {
        bz_os_set_errno();
    }
    return ok;
}

/* ---- open files -------------------------------------------------------------------------------
 */

/* BZ_OS_PRIVATE needs nothing: files below the user's folder are the user's. */
int bz_os_open(const char *path, unsigned how)
{
    const DWORD access = (how & BZ_OS_READ ? GENERIC_READ : 0) |
                         (how & BZ_OS_APPEND  ? FILE_APPEND_DATA | SYNCHRONIZE | DELETE
                          : how & BZ_OS_WRITE ? GENERIC_WRITE | DELETE
                                              : 0);
    const DWORD creation = how & BZ_OS_NEW                               ? CREATE_NEW
                           : (how & BZ_OS_CREATE) && (how & BZ_OS_EMPTY) ? CREATE_ALWAYS
                           : how & BZ_OS_CREATE                          ? OPEN_ALWAYS
                           : how & BZ_OS_EMPTY                           ? TRUNCATE_EXISTING
                                                                         : OPEN_EXISTING;
    if ((how & BZ_OS_NO_LINK) && bz_os_is_link(path)) {
        errno = ELOOP;
        return -1;
    }
    /* A file that is cut, as a journal is, needs more than the right to append. */
    const DWORD full = (how & BZ_OS_APPEND) && (how & BZ_OS_READ) ? GENERIC_WRITE : 0;
    HANDLE h = bz_os_open_handle(path, access | full, creation, FILE_ATTRIBUTE_NORMAL);
    if (h == INVALID_HANDLE_VALUE) {
        return -1;
    }
    const int file = _open_osfhandle((intptr_t)h, _O_BINARY | _O_NOINHERIT |
                                                      (how & BZ_OS_APPEND ? _O_APPEND : 0) |
                                                      (how & BZ_OS_WRITE ? 0 : _O_RDONLY));
    if (file < 0) {
        CloseHandle(h);
    }
    return file;
}

bool bz_os_close(int file)
{
    return file < 0 || _close(file) == 0;
}

FILE *bz_os_stream(const char *path, const char *mode)
{
    const unsigned how = mode[0] == 'r'   ? BZ_OS_READ
                         : mode[0] == 'w' ? BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_EMPTY
                                          : BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_APPEND;
    const int file = bz_os_open(path, how);
    FILE *stream = file < 0 ? NULL : _fdopen(file, mode);
    if (file >= 0 && !stream) {
        _close(file);
    }
    return stream;
}

FILE *bz_os_stream_of(int file, const char *mode)
{
    return _fdopen(file, mode);
}

int bz_os_file_of(FILE *stream)
{
    return _fileno(stream);
}

enum { PIECE = 1 << 30 };

long bz_os_read(int file, void *bytes, size_t n)
{
    return _read(file, bytes, (unsigned)(n < PIECE ? n : PIECE));
}

static OVERLAPPED offset_of(uint64_t at)
{
    OVERLAPPED o = {0};
    o.Offset = (DWORD)at;
    o.OffsetHigh = (DWORD)(at >> 32);
    return o;
}

long bz_os_read_at(int file, void *bytes, size_t n, uint64_t at)
{
    OVERLAPPED o = offset_of(at);
    DWORD k = 0;
    if (!ReadFile(handle_of(file), bytes, (DWORD)(n < PIECE ? n : PIECE), &k, &o) &&
        GetLastError() != ERROR_HANDLE_EOF) {
        bz_os_set_errno();
        return -1;
    }
    return (long)k;
}

bool bz_os_write_all(int file, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        const int k = _write(file, p, (unsigned)(n < PIECE ? n : PIECE));
        if (k <= 0) {
            errno = k == 0 ? EIO : errno;
            return false;
        }
        p += k;
        n -= (size_t)k;
    }
    return true;
}

bool bz_os_write_at(int file, const void *bytes, size_t n, uint64_t at)
{
    const char *p = bytes;
    while (n) {
        OVERLAPPED o = offset_of(at);
        DWORD k = 0;
        if (!WriteFile(handle_of(file), p, (DWORD)(n < PIECE ? n : PIECE), &k, &o) || k == 0) {
            bz_os_set_errno();
            return false;
        }
        p += k;
        n -= k;
        at += k;
    }
    return true;
}

bool bz_os_cut(int file, uint64_t size)
{
    const int why = _chsize_s(file, (int64_t)size);
    if (why) {
        errno = why;
        return false;
    }
    return _lseeki64(file, (int64_t)size, SEEK_SET) >= 0;
}

bool bz_os_reserve(int file, uint64_t size)
{
    FILE_ALLOCATION_INFO all = {.AllocationSize = {.QuadPart = (LONGLONG)size}};
    FILE_END_OF_FILE_INFO end = {.EndOfFile = {.QuadPart = (LONGLONG)size}};
    if (!SetFileInformationByHandle(handle_of(file), FileAllocationInfo, &all, sizeof all) &&
        GetLastError() == ERROR_DISK_FULL) {
        return ok_or_errno(false);
    }
    return ok_or_errno(
        SetFileInformationByHandle(handle_of(file), FileEndOfFileInfo, &end, sizeof end));
}

bool bz_os_sync(int file)
{
    return ok_or_errno(FlushFileBuffers(handle_of(file)));
}

bool bz_os_stat_file(int file, bz_os_info *info)
{
    BY_HANDLE_FILE_INFORMATION f;
    HANDLE h = handle_of(file);
    if (GetFileType(h) != FILE_TYPE_DISK || !GetFileInformationByHandle(h, &f)) {
        return false;
    }
    *info = (bz_os_info){(f.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
                         (uint64_t)f.nFileSizeHigh << 32 | f.nFileSizeLow,
                         bz_os_from_filetime(f.ftLastWriteTime), false};
    return true;
}

bool bz_os_same_file(int file, const char *path)
{
    BY_HANDLE_FILE_INFORMATION opened, named;
    HANDLE h = bz_os_open_handle(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, 0);
    const bool same = h != INVALID_HANDLE_VALUE && GetFileInformationByHandle(h, &named) &&
                      GetFileInformationByHandle(handle_of(file), &opened) &&
                      opened.nFileIndexLow == named.nFileIndexLow &&
                      opened.nFileIndexHigh == named.nFileIndexHigh &&
                      opened.dwVolumeSerialNumber == named.dwVolumeSerialNumber;
    if (h != INVALID_HANDLE_VALUE) {
        CloseHandle(h);
    }
    return same;
}

/* Locks keep others from reading and writing the range that they cover. This byte is past every
 * file's end, so that only those are kept away who ask for the same lock. */
static const uint64_t locked_byte = (uint64_t)1 << 62;

static bool lock_handle(HANDLE h, DWORD flags)
{
    OVERLAPPED o = offset_of(locked_byte);
    return LockFileEx(h, LOCKFILE_EXCLUSIVE_LOCK | flags, 0, 1, 0, &o);
}

bz_os_locking bz_os_lock(int file)
{
    if (lock_handle(handle_of(file), LOCKFILE_FAIL_IMMEDIATELY)) {
        return BZ_OS_LOCKED;
    }
    const DWORD why = GetLastError();
    bz_os_set_errno();
    return why == ERROR_LOCK_VIOLATION || why == ERROR_IO_PENDING ? BZ_OS_BUSY : BZ_OS_NO_LOCK;
}

/* Folders cannot be locked; a file in them is, which goes with its last user. */
int bz_os_lock_folder(const char *folder)
{
    static const char name[] = "/.bezel-lock";
    const size_t room = strlen(folder) + sizeof name;
    char *path = malloc(room);
    if (!path) {
        return -1;
    }
    snprintf(path, room, "%s%s", folder, name);
    HANDLE h = bz_os_open_handle(path, GENERIC_READ | GENERIC_WRITE | DELETE, OPEN_ALWAYS,
                                 FILE_ATTRIBUTE_HIDDEN | FILE_FLAG_DELETE_ON_CLOSE);
    free(path);
    if (h != INVALID_HANDLE_VALUE && !lock_handle(h, 0)) {
        CloseHandle(h);
        return -1;
    }
    return h == INVALID_HANDLE_VALUE ? -1 : _open_osfhandle((intptr_t)h, _O_BINARY | _O_NOINHERIT);
}

/* ---- paths ------------------------------------------------------------------------------------
 */

bool bz_os_remove(const char *file)
{
    wchar_t *wide = bz_os_wide_path(file);
    const bool ok = wide && ok_or_errno(DeleteFileW(wide));
    free(wide);
    return ok;
}

bool bz_os_remove_folder(const char *folder)
{
    wchar_t *wide = bz_os_wide_path(folder);
    const bool ok = wide && ok_or_errno(RemoveDirectoryW(wide));
    free(wide);
    return ok;
}

bool bz_os_replace(const char *from, const char *to)
{
    wchar_t *a = bz_os_wide_path(from), *b = bz_os_wide_path(to);
    const bool ok =
        a && b &&
        ok_or_errno(MoveFileExW(a, b, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH));
    free(a);
    free(b);
    return ok;
}

bool bz_os_make_folder(const char *path, bool for_owner)
{
    wchar_t *wide = bz_os_wide_path(path);
    const bool ok = wide && ok_or_errno(CreateDirectoryW(wide, NULL));
    bz_os_info info;
    (void)for_owner; /* as its parent */
    free(wide);
    if (!ok && bz_os_stat(path, &info, NULL) == BZ_OK && info.folder) {
        errno = EEXIST; /* also of "C:", where the error is another one */
    }
    return ok;
}

/* Renaming writes through. */
bool bz_os_sync_folder(const char *folder)
{
    (void)folder;
    return true;
}

/* What the attribute says; lists of rights are found out by writing. */
bool bz_os_may_write(const char *path)
{
    wchar_t *wide = bz_os_wide_path(path);
    const DWORD a = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    return a != INVALID_FILE_ATTRIBUTES &&
           ((a & FILE_ATTRIBUTE_DIRECTORY) || !(a & FILE_ATTRIBUTE_READONLY));
}

bool bz_os_is_link(const char *path)
{
    wchar_t *wide = bz_os_wide_path(path);
    const DWORD a = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    return a != INVALID_FILE_ATTRIBUTES && (a & FILE_ATTRIBUTE_REPARSE_POINT);
}

/* With / between its parts, as the rest of the program writes them. */
bool bz_os_real_path(const char *path, char *out, size_t room)
{
    enum { MOST = 32768 };
    wchar_t *wide = malloc(MOST * sizeof *wide);
    HANDLE h = wide ? bz_os_open_handle(path, 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS)
                    : INVALID_HANDLE_VALUE;
    bool ok = false;
    if (h != INVALID_HANDLE_VALUE) {
        const DWORD n = GetFinalPathNameByHandleW(h, wide, MOST, FILE_NAME_NORMALIZED);
        const wchar_t *from = wide;
        if (n > 0 && n < MOST) {
            from +=
                wcsncmp(from, L"\\\\?\\", 4) == 0 && wcsncmp(from, L"\\\\?\\UNC", 7) != 0 ? 4 : 0;
            char *narrow = bz_os_narrow(from);
            ok = narrow && strlen(narrow) < room;
            if (ok) {
                memcpy(out, narrow, strlen(narrow) + 1);
                for (char *p = out; *p; p++) {
                    *p = *p == '\\' ? '/' : *p;
                }
            }
            free(narrow);
        }
        CloseHandle(h);
    }
    free(wide);
    return ok;
}

uint64_t bz_os_free_space(const char *path)
{
    wchar_t *wide = bz_os_wide_path(path);
    ULARGE_INTEGER bytes = {.QuadPart = UINT64_MAX};
    if (!wide || !GetDiskFreeSpaceExW(wide, &bytes, NULL, NULL)) {
        bytes.QuadPart = UINT64_MAX;
    }
    free(wide);
    return bytes.QuadPart;
}

uint64_t bz_os_allocated(const char *path)
{
    wchar_t *wide = bz_os_wide_path(path);
    DWORD high = 0;
    SetLastError(NO_ERROR);
    const DWORD low = wide ? GetCompressedFileSizeW(wide, &high) : INVALID_FILE_SIZE;
    const bool ok = low != INVALID_FILE_SIZE || (wide && GetLastError() == NO_ERROR);
    free(wide);
    return ok ? (uint64_t)high << 32 | low : 0;
}

bool bz_os_disk_is_full(void)
{
    return errno == ENOSPC;
}

const char *bz_os_home(void)
{
    const char *home = bz_os_env("USERPROFILE");
    return home && home[0] ? home : NULL;
}

/* ---- time, numbers ----------------------------------------------------------------------------
 */

/* The C library here has no dates before 1970. Years are counted from March, so that a leap day is
 * the last of its year, in periods of 400 years, which all have the same number of days. */
enum { PERIOD_DAYS = 146097, FROM_YEAR_0 = 719468, DAY_SECONDS = 86400 };

/* Days from 1970-01-01 to the date; month: 0 is January. */
static int64_t days_of(int64_t year, int month, int day)
{
    const int64_t from_march = (month + 10) % 12, y = year - (month < 2);
    const int64_t period = (y >= 0 ? y : y - 399) / 400, in_period = y - period * 400;
    const int64_t in_year = (153 * from_march + 2) / 5 + day - 1;
    return period * PERIOD_DAYS + in_period * 365 + in_period / 4 - in_period / 100 + in_year -
           FROM_YEAR_0;
}

bool bz_os_date(int64_t seconds, struct tm *date)
{
    const int64_t most = (int64_t)1 << 40; /* 34,000 years */
    if (seconds > most || seconds < -most) {
        return false;
    }
    int64_t days = seconds / DAY_SECONDS - (seconds % DAY_SECONDS < 0);
    const int rest = (int)(seconds - days * DAY_SECONDS);
    const int64_t shifted = days + FROM_YEAR_0;
    const int64_t period = (shifted >= 0 ? shifted : shifted - (PERIOD_DAYS - 1)) / PERIOD_DAYS;
    const int64_t day = shifted - period * PERIOD_DAYS;
    const int64_t year = (day - day / 1460 + day / 36524 - day / (PERIOD_DAYS - 1)) / 365;
    const int in_year = (int)(day - (365 * year + year / 4 - year / 100));
    const int from_march = (5 * in_year + 2) / 153;
    *date = (struct tm){.tm_sec = rest % 60,
                        .tm_min = rest / 60 % 60,
                        .tm_hour = rest / 3600,
                        .tm_mday = in_year - (153 * from_march + 2) / 5 + 1,
                        .tm_mon = (from_march + 2) % 12,
                        .tm_wday = (int)(((days + 4) % 7 + 7) % 7)};
    const int64_t whole = period * 400 + year + (date->tm_mon < 2);
    date->tm_year = (int)whole - 1900;
    date->tm_yday = (int)(days - days_of(whole, 0, 1));
    return true;
}

int64_t bz_os_seconds(struct tm *date)
{
    return days_of((int64_t)date->tm_year + 1900, date->tm_mon, date->tm_mday) * DAY_SECONDS +
           date->tm_hour * 3600 + date->tm_min * 60 + date->tm_sec;
}

bool bz_os_random(void *bytes, size_t n)
{
    return BCryptGenRandom(NULL, bytes, (ULONG)n, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}

long bz_os_process_id(void)
{
    return (long)GetCurrentProcessId();
}

uint64_t bz_os_memory_total(void)
{
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    return GlobalMemoryStatusEx(&m) ? m.ullTotalPhys : 0;
}

void bz_os_wait_for(atomic_uint *word, unsigned expected, uint64_t nanoseconds)
{
    WaitOnAddress(word, &expected, sizeof expected, (DWORD)((nanoseconds + 999999) / 1000000));
}
