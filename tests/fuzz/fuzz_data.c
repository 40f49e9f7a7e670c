/* Any text as a data: URL: complete bytes, or an error message; as a typed file name, and as a
 * message that may contain one. */
#include <stdlib.h>
#include <string.h>

#include "cli/chat/named_file.h"
#include "cli/chat/source.h"
#include "cli/chat/typed_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source s = {0};
    bz_error err = {0};
    unsigned sum = 0;
    char *text = malloc(size + 1); /* of exactly that size, so that sanitizers see a read past it */
    if (!text) {
        return 0;
    }
    memcpy(text, data, size);
    if (source_read_data(&s, text, size, &err) == BZ_OK) {
        for (size_t i = 0; i < s.size; i++) {
            sum += s.data[i];
        }
        if (s.size > size) {
            abort();
        }
    } else if (!err.text[0]) {
        abort();
    }
    source_close(&s);
    char *path = typed_path(text, size);
    if (!path) {
        abort();
    }
    free(path);
    bz_media_kind kind;
    char name[NAMED_FILE_MAX];
    if (named_file(text, size, &kind, name) && (strlen(name) > size || kind > BZ_MEDIA_VIDEO)) {
        abort();
    }
    free(text);
    return sum == 0xFFFFFFFFu;
}
