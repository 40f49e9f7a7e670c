#include "base/options.h"

#include <string.h>

/* More than any struct of a later version will have: a size that was never set. */
enum { MAX_SIZE = 4096 };

static bz_status check_size(size_t size, size_t first, const char *name, bz_error *err)
{
    if (size < first || size > MAX_SIZE) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The size of %s is %zu; set its first member to sizeof(%s).", name, size,
                       name);
    }
    return BZ_OK;
}

bz_status bz_read_options(void *to, size_t known, size_t first, const void *from, const char *name,
                          bz_error *err)
{
    memset(to, 0, known);
    if (!from) {
        memcpy(to, &known, sizeof known);
        return BZ_OK;
    }
    size_t size;
    memcpy(&size, from, sizeof size);
    const bz_status status = check_size(size, first, name, err);
    if (status != BZ_OK) {
        return status;
    }
    const unsigned char *bytes = from;
    for (size_t i = known; i < size; i++) {
        if (bytes[i]) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "%s has a setting that version %s does not know: the program was made "
                           "for a newer version of the library.",
                           name, bz_version());
        }
    }
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &known, sizeof known); /* what is passed on inside the library is this version's */
    return BZ_OK;
}

bz_status bz_write_sized(void *to, const void *from, size_t known, size_t first, const char *name,
                         bz_error *err)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    const bz_status status = check_size(size, first, name, err);
    if (status != BZ_OK) {
        return status;
    }
    memset((char *)to + sizeof size, 0, size - sizeof size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size,
           (size < known ? size : known) - sizeof size);
    return BZ_OK;
}
