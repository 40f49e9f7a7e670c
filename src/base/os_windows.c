/* os.h on Windows, without a C library for threads: a thread is one call, and WaitOnAddress is what
 * a futex is on Linux. */
#include "base/os_windows.h"

#include <errno.h>
#include <io.h>
#include <limits.h>
#include <malloc.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- texts and errors -------------------------------------------------------------------------
 */

wchar_t *bz_os_wide(const char *text)
{
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = n > 0 ? malloc((size_t)n * sizeof *wide) : NULL;
    if (wide) {
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n);
    } else {
        errno = n > 0 ? ENOMEM : EILSEQ;
    }
    return wide;
}

char *bz_os_narrow(const wchar_t *text)
{
    const int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = n > 0 ? malloc((size_t)n) : NULL;
    if (narrow) {
        WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, n, NULL, NULL);
    }
    return narrow;
}

/* The whole path with its prefix; frees the argument. */
static wchar_t *without_limit(wchar_t *path)
{
    static const wchar_t prefix[] = L"\\\\?\\";
    enum { PREFIX = sizeof prefix / sizeof *prefix - 1 };
    const DWORD n = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *whole = n ? malloc((n + PREFIX) * sizeof *whole) : NULL;
    if (!whole || GetFullPathNameW(path, n, whole + PREFIX, NULL) >= n) {
        free(whole);
        return path;
    }
    memcpy(whole, prefix, PREFIX * sizeof *whole);
    if (whole[PREFIX] == L'\\') { /* a path of the network, or one that has a prefix */
        free(whole);
        return path;
    }
    free(path);
    return whole;
}

wchar_t *bz_os_wide_path(const char *path)
{
    enum { LONG_PATH = 240 }; /* folders have a lower limit than files */
    wchar_t *wide = bz_os_wide(path);
    for (wchar_t *p = wide; p && *p; p++) {
        *p = *p == L'/' ? L'\\' : *p;
    }
    return wide && wcslen(wide) >= LONG_PATH ? without_limit(wide) : wide;
}

int bz_os_set_errno(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_PATHNAME: errno = ENOENT; break;
    case ERROR_TOO_MANY_OPEN_FILES: errno = EMFILE; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_WRITE_PROTECT:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
    case ERROR_CURRENT_DIRECTORY: errno = EACCES; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_DIR_NOT_EMPTY: errno = ENOTEMPTY; break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT: errno = ENOMEM; break;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA: errno = EPIPE; break;
    case ERROR_INVALID_HANDLE: errno = EBADF; break;
    case ERROR_DIRECTORY: errno = ENOTDIR; break;
    case ERROR_FILENAME_EXCED_RANGE: errno = ENAMETOOLONG; break;
    case ERROR_INVALID_PARAMETER: errno = EINVAL; break;
    default: errno = EIO;
    }
    return errno;
}

HANDLE bz_os_open_handle(const char *path, DWORD access, DWORD creation, DWORD flags)
{
    wchar_t *wide = bz_os_wide_path(path);
    HANDLE h = INVALID_HANDLE_VALUE;
    if (wide) {
        h = CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                        creation, flags, NULL);
        if (h == INVALID_HANDLE_VALUE) {
            bz_os_set_errno();
        }
    }
    free(wide);
    return h;
}

int64_t bz_os_from_filetime(FILETIME t)
{
    const uint64_t ticks = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime; /* since 1601 */
    return (int64_t)(ticks / 10000000u) - 11644473600;
}

static bz_status fail_errno(bz_error *err)
{
    return bz_fail(err, errno == ENOENT || errno == ENOTDIR ? BZ_NOT_FOUND : BZ_BAD_FILE, "%s",
                   strerror(errno));
}

/* ---- files ------------------------------------------------------------------------------------
 */

uint64_t bz_os_now(void)
{
    LARGE_INTEGER now, per_second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&per_second);
    const uint64_t n = (uint64_t)now.QuadPart, f = (uint64_t)per_second.QuadPart;
    return n / f * 1000000000u + n % f * 1000000000u / f;
}

/* Other programs cannot shorten a file while it is mapped: Windows refuses it. */
void bz_os_guard_maps(void)
{
}

bool bz_os_map_cut(const bz_os_map *map)
{
    (void)map;
    return false;
}

/* A regular file's handle; a folder or a device is an error. */
static bz_status open_regular(const char *path, HANDLE *file, uint64_t *size, bz_error *err)
{
    LARGE_INTEGER n;
    bz_os_info info;
    bz_status status = bz_os_stat(path, &info, err);
    if (status == BZ_OK && info.folder) {
        return bz_fail(err, BZ_BAD_FILE, "not a regular file");
    }
    *file = status == BZ_OK
                ? bz_os_open_handle(path, GENERIC_READ, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL)
                : INVALID_HANDLE_VALUE;
    if (status == BZ_OK && *file == INVALID_HANDLE_VALUE) {
        status = fail_errno(err);
    } else if (status == BZ_OK &&
               (GetFileType(*file) != FILE_TYPE_DISK || !GetFileSizeEx(*file, &n))) {
        CloseHandle(*file);
        status = bz_fail(err, BZ_BAD_FILE, "not a regular file");
    } else if (status == BZ_OK) {
        *size = (uint64_t)n.QuadPart;
    }
    return status;
}

bz_status bz_os_map_file(const char *path, bz_os_map *map, bz_error *err)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    uint64_t size = 0;
    bz_error why = {0};
    *map = (bz_os_map){0};
    const bz_status status = open_regular(path, &file, &size, &why);
    if (status != BZ_OK) {
        return strcmp(why.text, "not a regular file") == 0
                   ? bz_fail(err, status, "%s is not a regular file.", path)
                   : bz_fail(err, status, "%s: %s.", path, why.text);
    }
    HANDLE section = size ? CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL) : NULL;
    const void *data = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0) : NULL;
    const int reason = size && !data ? bz_os_set_errno() : 0;
    if (section) {
        CloseHandle(section); /* the view keeps both open */
    }
    CloseHandle(file);
    if (reason) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "%s: cannot map the file: %s.", path,
                       strerror(reason));
    }
    map->data = data;
    map->size = size;
    return BZ_OK;
}

void bz_os_unmap(bz_os_map *map)
{
    if (map->data) {
        UnmapViewOfFile(map->data);
    }
    *map = (bz_os_map){0};
}

bool bz_os_file_exists(const char *path)
{
    bz_os_info info;
    return bz_os_stat(path, &info, NULL) == BZ_OK;
}

bz_status bz_os_stat(const char *path, bz_os_info *info, bz_error *err)
{
    WIN32_FILE_ATTRIBUTE_DATA d;
    wchar_t *wide = bz_os_wide_path(path);
    const bool found = wide && GetFileAttributesExW(wide, GetFileExInfoStandard, &d);
    if (wide && !found) {
        bz_os_set_errno();
    }
    free(wide);
    if (!found) {
        return fail_errno(err);
    }
    if (d.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) { /* a link: what it leads to */
        BY_HANDLE_FILE_INFORMATION f;
        HANDLE h = bz_os_open_handle(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                                     FILE_FLAG_BACKUP_SEMANTICS);
        if (h == INVALID_HANDLE_VALUE) {
            return fail_errno(err);
        }
        if (GetFileInformationByHandle(h, &f)) {
            d.dwFileAttributes = f.dwFileAttributes;
            d.ftLastWriteTime = f.ftLastWriteTime;
            d.nFileSizeHigh = f.nFileSizeHigh;
            d.nFileSizeLow = f.nFileSizeLow;
        }
        CloseHandle(h);
    }
    *info = (bz_os_info){(d.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
                         (uint64_t)d.nFileSizeHigh << 32 | d.nFileSizeLow,
                         bz_os_from_filetime(d.ftLastWriteTime), false};
    return BZ_OK;
}

bz_status bz_os_read_small(const char *path, size_t max, char **text, size_t *n, bz_error *err)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    uint64_t size = 0;
    bz_status status = open_regular(path, &file, &size, err);
    if (status != BZ_OK) {
        return status;
    }
    char *buf = NULL;
    size_t got = 0;
    if (size > max) {
        status = bz_fail(err, BZ_BAD_FILE, "larger than %zu bytes", max);
    } else if (!(buf = malloc((size_t)size + 1))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "no memory for %zu bytes", (size_t)size);
    }
    while (status == BZ_OK && got < size) {
        DWORD k = 0;
        const uint64_t want = size - got < 1 << 30 ? size - got : 1 << 30;
        if (!ReadFile(file, buf + got, (DWORD)want, &k, NULL)) {
            bz_os_set_errno();
            status = fail_errno(err);
        } else if (k == 0) {
            break; /* the file was truncated meanwhile: return what there is */
        }
        got += k;
    }
    CloseHandle(file);
    if (status != BZ_OK) {
        free(buf);
        return status;
    }
    buf[got] = 0;
    *text = buf;
    *n = got;
    return BZ_OK;
}

bz_status bz_os_list(const char *folder, bool (*each)(void *user, const char *name), void *user,
                     bz_error *err)
{
    const size_t room = strlen(folder) + 3;
    char *pattern = malloc(room);
    if (!pattern) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "no memory for a path");
    }
    snprintf(pattern, room, "%s/*", folder);
    wchar_t *wide = bz_os_wide_path(pattern);
    free(pattern);
    WIN32_FIND_DATAW entry;
    HANDLE h = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
    if (wide && h == INVALID_HANDLE_VALUE) {
        bz_os_set_errno();
    }
    free(wide);
    if (h == INVALID_HANDLE_VALUE) {
        return fail_errno(err);
    }
    bz_status status = BZ_OK;
    bool more = true;
    do {
        char *name = bz_os_narrow(entry.cFileName);
        if (!name) {
            status = bz_fail(err, BZ_OUT_OF_MEMORY, "no memory for a name");
            break;
        }
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            more = each(user, name);
        }
        free(name);
    } while (more && FindNextFileW(h, &entry));
    FindClose(h);
    return status;
}

/* ---- the environment: its texts as UTF-8 stay here until they change --------------------------
 */

typedef struct variable {
    struct variable *next;
    char *name, *value;
} variable;

static SRWLOCK variables_lock = SRWLOCK_INIT;
static variable *variables;

/* The variable's entry, with the value in it; takes ownership of the value. */
static const char *remember(const char *name, char *value)
{
    variable *v = variables;
    while (v && strcmp(v->name, name) != 0) {
        v = v->next;
    }
    if (v && v->value && strcmp(v->value, value) == 0) {
        free(value);
        return v->value;
    }
    if (!v) {
        v = calloc(1, sizeof *v);
        if (!v || !(v->name = strdup(name))) {
            free(v);
            free(value);
            return NULL;
        }
        v->next = variables;
        variables = v;
    }
    free(v->value);
    v->value = value;
    return value;
}

const char *bz_os_env(const char *name)
{
    wchar_t *wide_name = bz_os_wide(name), *wide = NULL;
    const char *found = NULL;
    const DWORD n = wide_name ? GetEnvironmentVariableW(wide_name, NULL, 0) : 0;
    if (n && (wide = malloc(n * sizeof *wide)) != NULL) {
        wide[0] = 0;
        if (GetEnvironmentVariableW(wide_name, wide, n) < n) {
            char *value = bz_os_narrow(wide);
            AcquireSRWLockExclusive(&variables_lock);
            found = value ? remember(name, value) : NULL;
            ReleaseSRWLockExclusive(&variables_lock);
        }
    }
    free(wide);
    free(wide_name);
    return found;
}

/* ---- the machine ------------------------------------------------------------------------------
 */

/* Of this process's group only, as its threads are: a group has up to 64. */
unsigned bz_os_cpu_count(void)
{
    DWORD_PTR ours = 0, all = 0;
    unsigned n = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)) {
        for (; ours; ours &= ours - 1) {
            n++;
        }
    }
    return n ? n : 1;
}

uint64_t bz_os_memory_available(void)
{
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    return GlobalMemoryStatusEx(&m) ? m.ullAvailPhys : 0;
}

void *bz_os_aligned_alloc(size_t alignment, size_t n)
{
    return _aligned_malloc(n, alignment);
}

void bz_os_aligned_free(void *p)
{
    _aligned_free(p);
}

#if defined(__x86_64__)

static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

/* Leaf 7, subleaf 1: EAX bit 4. Leaf 7 says in EAX which subleaf is the last. */
static bool has_avxvnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) != 0;
}

bool bz_os_cpu_has(const char *feature)
{
    const struct {
        const char *name;
        bool there;
    } features[] = {{"avx2", __builtin_cpu_supports("avx2")},
                    {"fma", __builtin_cpu_supports("fma")},
                    {"f16c", __builtin_cpu_supports("avx") && has_f16c()},
                    {"avxvnni", __builtin_cpu_supports("avx2") && has_avxvnni()},
                    {"avx512f", __builtin_cpu_supports("avx512f")},
                    {"avx512bw", __builtin_cpu_supports("avx512bw")},
                    {"avx512vl", __builtin_cpu_supports("avx512vl")},
                    {"avx512dq", __builtin_cpu_supports("avx512dq")},
                    {"avx512vnni", __builtin_cpu_supports("avx512vnni")},
                    {"avx512bf16", __builtin_cpu_supports("avx512bf16")}};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        if (strcmp(feature, features[i].name) == 0) {
            return features[i].there;
        }
    }
    return false;
}

#else

bool bz_os_cpu_has(const char *feature)
{
    enum {
        DOT_PRODUCT = 43, /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
        INT8_MATRIX = 66  /* PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE */
    };
    return strcmp(feature, "neon") == 0 ||
           (strcmp(feature, "dotprod") == 0 && IsProcessorFeaturePresent(DOT_PRODUCT)) ||
           (strcmp(feature, "i8mm") == 0 && IsProcessorFeaturePresent(INT8_MATRIX));
}

#endif

void bz_os_sleep(uint64_t nanoseconds)
{
    Sleep((DWORD)((nanoseconds + 999999) / 1000000));
}

enum { LONGEST_PATH = 32768 }; /* in characters */

bool bz_os_program_path(char *out, size_t room)
{
    wchar_t *wide = malloc(LONGEST_PATH * sizeof *wide);
    const DWORD n = wide ? GetModuleFileNameW(NULL, wide, LONGEST_PATH) : 0;
    char *narrow = n > 0 && n < LONGEST_PATH ? bz_os_narrow(wide) : NULL;
    const bool ok = narrow && strlen(narrow) < room;
    if (ok) {
        memcpy(out, narrow, strlen(narrow) + 1);
        for (char *p = out; *p; p++) {
            *p = *p == '\\' ? '/' : *p;
        }
    }
    free(narrow);
    free(wide);
    return ok;
}

/* Both kinds are in the same folder: the part of the user's data that stays on this machine. */
bool bz_os_user_folder(bz_os_folder kind, char *out, size_t room)
{
    const char *base = bz_os_env("LOCALAPPDATA");
    const int n = base && base[0] ? snprintf(out, room, "%s/bezel", base) : -1;
    (void)kind;
    for (char *p = out; n >= 0 && n < (int)room && *p; p++) {
        *p = *p == '\\' ? '/' : *p;
    }
    return n >= 0 && n < (int)room;
}

/* ---- libraries --------------------------------------------------------------------------------
 */

bz_os_library *bz_os_library_open(const char *name, bz_error *err)
{
    wchar_t *wide = bz_os_wide_path(name);
    HMODULE h = NULL, pinned;
    if (wide) {
        /* A message box would wait for the user when a library that this one needs is missing. */
        const UINT before = SetErrorMode(SEM_FAILCRITICALERRORS);
        const bool path = wcschr(wide, L'\\') != NULL;
        /* A name is not looked for in the current folder, where someone else's file may be. */
        h = LoadLibraryExW(wide, NULL,
                           path ? LOAD_WITH_ALTERED_SEARCH_PATH : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
        const DWORD why = GetLastError();
        SetErrorMode(before);
        SetLastError(why);
    }
    if (!h) {
        const DWORD why = GetLastError();
        wchar_t text[160];
        const DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
                                       NULL, why, 0, text, sizeof text / sizeof *text, NULL);
        char *reason = n ? bz_os_narrow(text) : NULL;
        if (reason) {
            reason[strcspn(reason, "\r\n")] = 0;
            const size_t len = strlen(reason);
            if (len && reason[len - 1] == '.') {
                reason[len - 1] = 0;
            }
        }
        bz_fail(err, BZ_NOT_FOUND, "%.100s: %s", name,
                reason && reason[0] ? reason : "cannot be loaded");
        free(reason);
    } else {
        GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, wide, &pinned); /* stays in memory */
    }
    free(wide);
    return (bz_os_library *)h;
}

bz_os_function bz_os_library_symbol(bz_os_library *library, const char *name)
{
    return (bz_os_function)(uintptr_t)GetProcAddress((HMODULE)library, name);
}

void bz_os_library_close(bz_os_library *library)
{
    if (library) {
        FreeLibrary((HMODULE)library);
    }
}

/* ---- threads ----------------------------------------------------------------------------------
 */

struct bz_os_thread {
    HANDLE handle;
    void (*run)(void *);
    void *argument;
};

static unsigned __stdcall thread_main(void *p)
{
    bz_os_thread *t = p;
    t->run(t->argument);
    return 0;
}

bz_os_thread *bz_os_thread_start(void (*run)(void *), void *argument)
{
    bz_os_thread *t = malloc(sizeof *t);
    if (!t) {
        return NULL;
    }
    *t = (bz_os_thread){.run = run, .argument = argument};
    t->handle = (HANDLE)_beginthreadex(NULL, 8 << 20, thread_main, t,
                                       STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!t->handle) {
        free(t);
        return NULL;
    }
    return t;
}

void bz_os_thread_join(bz_os_thread *t)
{
    if (t) {
        WaitForSingleObject(t->handle, INFINITE);
        CloseHandle(t->handle);
        free(t);
    }
}

void bz_os_wait(atomic_uint *word, unsigned expected)
{
    WaitOnAddress(word, &expected, sizeof expected, INFINITE);
}

void bz_os_wake_all(atomic_uint *word)
{
    WakeByAddressAll(word);
}
