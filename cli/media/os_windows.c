#include "cli/media/os_windows.h"

typedef HRESULT(STDAPICALLTYPE com_enter)(LPVOID, DWORD);

bz_status com_open(com_library *c, bz_error *err)
{
    bz_error why = {0};
    *c = (com_library){.library = bz_os_library_open("ole32.dll", &why)};
    if (!c->library) {
        return bz_fail(err, BZ_BAD_FILE, "The decoders of Windows cannot be used: %s.", why.text);
    }
    com_enter *enter = (com_enter *)bz_os_library_symbol(c->library, "CoInitializeEx");
    c->create = (com_create *)bz_os_library_symbol(c->library, "CoCreateInstance");
    c->leave = (com_leave *)bz_os_library_symbol(c->library, "CoUninitialize");
    if (!enter || !c->create || !c->leave) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The decoders of Windows cannot be used: ole32.dll lacks a function.");
    }
    const HRESULT entered = enter(NULL, COINIT_MULTITHREADED);
    c->ready = SUCCEEDED(entered); /* S_FALSE too: this thread has entered before */
    return c->ready || entered == RPC_E_CHANGED_MODE
               ? BZ_OK
               : bz_fail(err, BZ_BAD_FILE, "The decoders of Windows cannot be used: error %08lx.",
                         (unsigned long)entered);
}

void com_close(com_library *c)
{
    if (c->ready) {
        c->leave();
    }
    bz_os_library_close(c->library);
    *c = (com_library){0};
}
