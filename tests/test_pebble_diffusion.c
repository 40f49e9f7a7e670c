/* Pebble Diffusion, the small diffusion model that ships with the engine, against the official
 * class with the same weights: logits over a canvas, and a text of several canvases generated with
 * recorded random numbers. */
#include "bezel_diffusion.h"
#include "support/canvas.h"
#include "support/check.h"
#include "support/forward.h"

#define MODEL "../../models/pebble-diffusion.gguf" /* from build/golden */

int main(void)
{
    golden g;
    size_t n, n_step, n_init;
    golden_open(&g, golden_path("pebble-diffusion/golden.gguf"));
    bz_model *m = open_or_fail(golden_path(MODEL));
    const bz_session_options o = {.size = sizeof o, .exact = true, .threads = 2};
    begin("the official logits over a canvas");
    CHECK(bz_model_canvas(m) == 64);
    check_canvas_logits(&g, m, &o, 1e-3);

    if (!quick_run()) {
        begin("the official text, canvas by canvas");
        CHECK(golden_i32(&g, &n_step, "gen.step") && golden_i32(&g, &n_init, "gen.init"));
        CHECKF(n_init / 64 > 1 && n_step > 10, "%zu canvases, %zu steps", n_init / 64, n_step);
        check_generation(&g, m, &o, "gen");
        const int32_t *sequence = golden_i32(&g, &n, "gen.sequence");
        CHECK(sequence && sequence[n - 1] == 0); /* an end token, then padding */
    }
    bz_model_free(m);
    golden_close(&g);
    return finish();
}
