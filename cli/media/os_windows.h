/* COM for os_windows_*.c, loaded when the first picture or sound is decoded: at the start it would
 * only take time. */
#ifndef BZ_CLI_MEDIA_OS_WINDOWS_H
#define BZ_CLI_MEDIA_OS_WINDOWS_H

#include "base/os_windows.h"
#include <objbase.h>

typedef HRESULT(STDAPICALLTYPE com_create)(REFCLSID, LPUNKNOWN, DWORD, REFIID, LPVOID *);
typedef void(STDAPICALLTYPE com_leave)(void);

typedef struct com_library {
    bz_os_library *library;
    bool ready;
    com_create *create;
    com_leave *leave;
} com_library;

/* For the calling thread, until com_close, which is needed after a failure too. */
bz_status com_open(com_library *c, bz_error *err);
void com_close(com_library *c);

#endif
