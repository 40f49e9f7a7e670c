/* Settings of an answer, under Ollama's names. They come from options, /set, a prompts file or the
 * params layer of Ollama's store. */
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

/* Zero-initialize: nothing is set. */
typedef struct settings {
    bool set[SETTINGS];
    double value[SETTINGS];
    uint64_t seed; /* exact; value[SET_SEED] may be rounded */
    char **stop;   /* [n_stop] owned */
    size_t n_stop;
    bool stop_set; /* true also for an empty list that was given */
    char *form; /* a member of the request that says what answers may be: "format":{...}; or NULL */
} settings;

void settings_free(settings *s);

const char *settings_name(setting id);           /* "temperature" */
const char *settings_about(setting id);          /* a few words for /set and the help */
int settings_find(const char *name, size_t len); /* SETTINGS: no such name */

/* Invalid values are BZ_BAD_REQUEST. */
bz_status settings_put_text(settings *s, setting id, const char *text, bz_error *err);
bz_status settings_put_number(settings *s, setting id, double value, bz_error *err);
bz_status settings_add_stop(settings *s, const char *text, size_t len, bz_error *err);
bool settings_draws(setting id); /* token sampling, which diffusion models do not use */
void settings_unset(settings *s, setting id);
void settings_clear_stops(settings *s); /* as if none had been given */

bz_status settings_from_store(settings *s, const bz_store_params *params, bz_error *err);

/* `format`: json, or the file of a JSON schema; `grammar`: the file of a GBNF grammar. One of them
 * is NULL. Checks it by making the grammar. */
bz_status settings_put_form(settings *s, const char *format, const char *grammar, bz_error *err);
void settings_clear_form(settings *s);
const char *settings_form_name(const settings *s); /* for showing */

/* Copies from `under` the settings that s does not have. */
bz_status settings_fill(settings *s, const settings *under, bz_error *err);

/* The options for the library; zero for what is not set, so that the model file's values apply.
 * Stop strings are not included: they are in the JSON request. */
bz_generate_options settings_to_generate(const settings *s);

/* The value as text ("0.7"), or what applies if it is not set ("off"). Returns out. */
enum { SETTING_TEXT = 48 };
const char *settings_show(const settings *s, setting id, char out[SETTING_TEXT]);

uint64_t settings_new_seed(void); /* a random one */

#endif
