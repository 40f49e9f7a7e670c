#include "store/pull.h"

void bz_pull_progress_json(bz_json *j, const bz_pull_progress *p)
{
    bz_json_object(j);
    bz_json_put_text(j, "status", p->status);
    if (p->digest) {
        bz_json_put_text(j, "digest", p->digest);
        bz_json_put_uint(j, "total", p->total);
        if (p->completed) { /* Ollama omits 0 */
            bz_json_put_uint(j, "completed", p->completed);
        }
    }
    bz_json_end(j);
}
