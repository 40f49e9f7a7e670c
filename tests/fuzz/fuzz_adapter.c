/* Any file as an adapter: refused with a sentence, or a session computes with it. */
#include <stdlib.h>
#include <string.h>

#include "bezel_adapter.h"
#include "support/forward.h"
#include "support/golden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bz_model *m; /* the same every time, never freed */
    static const int32_t ids[] = {2, 500, 77};
    const bz_session_options o = {.size = sizeof o, .threads = 1, .context = 16, .chunk = 2};
    bz_adapter *a = NULL;
    bz_error err = {0};
    m = m ? m : open_or_fail(model_path("nano-e-q4_0.gguf"));
    const bz_status status = bz_adapter_open(&a, m, data, size, "x", &err);
    if ((status == BZ_OK) != (a != NULL) ||
        (status != BZ_OK && (!err.text[0] || err.code != status))) {
        abort();
    }
    if (status != BZ_OK) {
        return 0;
    }
    bz_adapter_info info = {.size = sizeof info};
    bz_session *s = session_or_fail(m, &o);
    if (bz_adapter_get_info(a, &info, &err) != BZ_OK || info.pairs > size ||
        bz_session_set_adapters(s, &(bz_adapter_use){a, 0.5f}, 1, &err) != BZ_OK) {
        abort();
    }
    bz_adapter_free(a); /* the session keeps it */
    const bz_status passed = prefill(s, ids, 3, 0, NULL, &err);
    if (passed != BZ_OK && passed != BZ_NUMERIC) { /* large values may overflow */
        abort();
    }
    bz_session_free(s);
    return 0;
}
