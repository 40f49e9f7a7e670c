/* A conversation in a file, and what the model has computed of it in another beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "base/os_program.h"
#include "cli/term.h"
#include "cli/verbs/run.h"

/* "chat.json.state"; the caller frees it. */
static char *state_path(const char *path, bz_error *err)
{
    const size_t room = strlen(path) + sizeof ".state";
    char *state = malloc(room);
    if (state) {
        snprintf(state, room, "%s.state", path);
    } else {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    }
    return state;
}

/* Does not overwrite a file of another kind. */
static bool is_ours(const char *path)
{
    char head[8] = {0};
    FILE *f = bz_os_stream(path, "rb");
    const bool is = !f || (fread(head, 1, sizeof head, f) == sizeof head &&
                           memcmp(head, "BZSESSN", sizeof head) == 0);
    if (f) {
        fclose(f);
    }
    return is;
}

bz_status run_save(const run_state *r, const char *path, bz_error *err)
{
    bz_status status = conversation_save(&r->conversation, path, r->name, err);
    char *state = status == BZ_OK ? state_path(path, err) : NULL;
    if (!state) {
        return err->code;
    }
    if (!is_ours(state)) {
        status = bz_fail(err, BZ_BAD_REQUEST,
                         "%.200s exists and is not a saved session; choose another name.", state);
    } else if (bz_session_get_stats(r->session).position) {
        status = bz_session_save(r->session, state, err);
    }
    free(state);
    return status;
}

bz_status run_load(run_state *r, const char *path, bz_error *err)
{
    bz_error why = {0};
    const bz_status status = conversation_load(&r->conversation, path, err);
    char *state = status == BZ_OK ? state_path(path, err) : NULL;
    if (!state) {
        return err->code;
    }
    media_cache_clear(&r->cache); /* belongs to the old conversation; files are read again */
    if (bz_os_file_exists(state) && bz_session_load(r->session, state, &why) != BZ_OK &&
        !r->o->quiet) {
        fprintf(stderr, "%s(%s The conversation is read again.)%s\n", term_dim(), why.text,
                term_plain());
    }
    free(state);
    return BZ_OK;
}
