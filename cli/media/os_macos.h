/* Frameworks of macOS, loaded when the first picture or sound is decoded. They are not linked, and
 * their declarations are repeated where they are used, because programs are built without Apple's
 * headers. */
#ifndef BZ_CLI_MEDIA_OS_MACOS_H
#define BZ_CLI_MEDIA_OS_MACOS_H

#include "base/os.h"

#define FRAMEWORK(name) "/System/Library/Frameworks/" name ".framework/" name

/* X(function) declares a member of its type, or loads it; `complete` becomes false if it is not
 * there. */
#define POINTER(name) __typeof__(name) *name;
#define LOAD(name)                                                                                 \
    f->name = (__typeof__(name) *)bz_os_library_symbol(library, #name);                            \
    complete = complete && f->name;

/* Opens a framework; the sentence of a failure names it. */
static inline bz_os_library *framework_open(const char *path, bz_error *err)
{
    bz_error why = {0};
    bz_os_library *library = bz_os_library_open(path, &why);
    if (!library) {
        bz_fail(err, BZ_BAD_FILE, "The decoders of macOS cannot be used: %s.", why.text);
    }
    return library;
}

static inline bz_status framework_status(bool complete, bz_error *err)
{
    return complete
               ? BZ_OK
               : bz_fail(err, BZ_BAD_FILE, "The decoders of macOS cannot be used: one is missing.");
}

#endif
