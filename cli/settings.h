/* How an answer is made: numbers that options, /set, a prompts file and a store's params layer
 * all give by the same names, which are Ollama's. */
#ifndef BZ_CLI_SETTINGS_H
#define BZ_CLI_SETTINGS_H

#include "bezel.h"
#include "store/ollama_manifest.h"

typedef enum setting {
    SET_TEMPERATURE,
    SET_TOP_K,
    SET_TOP_P,
    SET_MIN_P,
    SET_REPEAT_PENALTY,
    SET_REPEAT_LAST_N,
    SET_PRESENCE_PENALTY,
    SET_FREQUENCY_PENALTY,
    SET_SEED,
    SET_NUM_PREDICT,
    SET_NUM_CTX,
    SETTINGS
} setting;

/* Zero-initialise: nothing is set. */
typedef struct settings {
    bool set[SETTINGS];
    double value[SETTINGS];
    uint64_t seed; /* whole, where value[SET_SEED] could not hold it */
    char **stop;   /* [n_stop] owned */
    size_t n_stop;
    bool stop_set; /* an empty list can be meant */
} settings;

void settings_free(settings *s);

const char *settings_name(setting id);           /* "temperature" */
const char *settings_about(setting id);          /* a few words for /set and the help */
int settings_find(const char *name, size_t len); /* SETTINGS: there is none of that name */

/* All refuse with bad_request and a sentence. */
bz_status settings_put_text(settings *s, setting id, const char *text, bz_error *err);
bz_status settings_put_number(settings *s, setting id, double value, bz_error *err);
bz_status settings_add_stop(settings *s, const char *text, size_t len, bz_error *err);
bool settings_draws(setting id); /* about how a token is drawn, which diffusion models do by a
                                    schedule of their own */
void settings_unset(settings *s, setting id);
void settings_clear_stops(settings *s); /* as if none had been given */

bz_status settings_from_store(settings *s, const bz_store_params *params, bz_error *err);

/* Takes from `under` what s does not set. */
bz_status settings_fill(settings *s, const settings *under, bz_error *err);

/* What the library is asked for; zero where nothing is set, so that the file's own hints count.
 * Stop strings are not among it: they are about the answer, and so part of the conversation. */
bz_generate_options settings_to_generate(const settings *s);

/* "0.7", "off"; what counts when nothing is set, too. Returns out. */
enum { SETTING_TEXT = 48 };
const char *settings_show(const settings *s, setting id, char out[SETTING_TEXT]);

uint64_t settings_new_seed(void); /* for when nobody gave one */

#endif
