/* Shared by os_windows*.c: texts in UTF-16, and errors. */
#ifndef BZ_BASE_OS_WINDOWS_H
#define BZ_BASE_OS_WINDOWS_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "base/os.h"

/* Texts of the system's calls; the caller frees them. NULL: no memory, or not UTF-8. */
wchar_t *bz_os_wide(const char *text);
char *bz_os_narrow(const wchar_t *text);
/* A path: with \ and, if it is long, with the prefix that lifts the limit of 260 characters. */
wchar_t *bz_os_wide_path(const char *path);

/* Sets errno from the error of the last call, and returns it. */
int bz_os_set_errno(void);

/* Opens a file for sharing as on other systems: it may be renamed, replaced and removed meanwhile.
 * INVALID_HANDLE_VALUE, with errno: failed. */
HANDLE bz_os_open_handle(const char *path, DWORD access, DWORD creation, DWORD flags);

/* Seconds since 1970. */
int64_t bz_os_from_filetime(FILETIME t);

#endif
