#include "server/engine/adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/os.h"
#include "base/sha256.h"
#include "base/units.h"
#include "bezel_debug.h"

enum { LATEST = sizeof ":latest" - 1 };

/* ---- names ------------------------------------------------------------------------------------
 */

/* "name" and "name:latest" are the same; case is ignored. */
static bool same_name(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    n -= n > LATEST && strcasecmp(a + n - LATEST, ":latest") == 0 ? LATEST : 0;
    m -= m > LATEST && strcasecmp(b + m - LATEST, ":latest") == 0 ? LATEST : 0;
    return n == m && strncasecmp(a, b, n) == 0;
}

static void set_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* "5.1B", "3.4M": as Ollama writes it. */
static void write_count(uint64_t n, char out[32])
{
    if (n >= 1000000000) {
        snprintf(out, 32, "%.1fB", (double)n / 1e9);
    } else if (n >= 1000000) {
        snprintf(out, 32, "%.2fM", (double)n / 1e6);
    } else {
        snprintf(out, 32, "%.2fK", (double)n / 1e3);
    }
}

static model_abilities abilities_of(const bz_model *model)
{
    return (model_abilities){.vision = bz_model_takes(model, BZ_MEDIA_IMAGE),
                             .audio = bz_model_takes(model, BZ_MEDIA_AUDIO),
                             .embeds = bz_model_embedding(model) != 0};
}

static void details_from_model(engine_model *m, const bz_model *model)
{
    model_details *d = &m->details;
    bz_model_info info = {.size = sizeof info};
    if (bz_model_get_info(model, &info, NULL) == BZ_OK) {
        set_text(d->family, sizeof d->family, info.architecture);
        set_text(d->quantization, sizeof d->quantization, info.file_type);
        write_count(info.parameters, d->parameters);
        d->size = info.bytes;
    }
    m->abilities = abilities_of(model);
    m->knows_abilities = true;
}

/* Of a file outside the store: identifies its name, size and time, as reading it all would take
 * long. */
static void make_digest(model_details *d, const char *path)
{
    char text[4200];
    uint8_t hash[BZ_SHA256_BYTES];
    const int n = snprintf(text, sizeof text, "%s %llu %lld", path, (unsigned long long)d->size,
                           (long long)d->modified);
    bz_sha256 sha;
    bz_sha256_begin(&sha);
    bz_sha256_add(&sha, text, n > 0 && n < (int)sizeof text ? (size_t)n : sizeof text);
    bz_sha256_end(&sha, hash);
    bz_sha256_text(hash, d->digest);
}

/* ---- the list ---------------------------------------------------------------------------------
 */

static engine_model *append(models *all, const char *name, bz_error *err)
{
    engine_model *m = calloc(1, sizeof *m), **end = &all->first;
    if (!m || !(m->name = strdup(name))) {
        free(m);
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of models.");
        return NULL;
    }
    while (*end) {
        end = &(*end)->next;
    }
    *end = m;
    return m;
}

bz_status models_add(models *all, const char *name, const char *path, const char *mmproj,
                     bz_error *err)
{
    bz_os_info info = {0};
    bz_model *header = NULL;
    const bz_open_options o = {.size = sizeof o, .headers_only = true};
    bz_status status = bz_model_open_file(&header, path, mmproj, &o, err);
    engine_model *m = status == BZ_OK ? append(all, name, err) : NULL;
    if (m) {
        m->path = strdup(path);
        m->mmproj = mmproj ? strdup(mmproj) : NULL;
        details_from_model(m, header);
        m->details.modified = bz_os_stat(path, &info, NULL) == BZ_OK ? info.modified : 0;
        make_digest(&m->details, path);
    }
    bz_model_free(header);
    return status != BZ_OK                          ? status
           : m && m->path && (!mmproj || m->mmproj) ? BZ_OK
                                                    : BZ_OUT_OF_MEMORY;
}

void models_free(models *all)
{
    while (all->first) {
        engine_model *m = all->first;
        all->first = m->next;
        models_unload(m);
        free(m->name);
        free(m->path);
        free(m->mmproj);
        model_adapters_forget(m);
        free(m);
    }
    while (all->notes) {
        ability_note *note = all->notes;
        all->notes = note->next;
        free(note);
    }
}

static void fill_from_entry(engine_model *m, const bz_store_entry *e)
{
    static const char prefix[] = "sha256:";
    const bool has = strncmp(e->digest, prefix, sizeof prefix - 1) == 0;
    set_text(m->details.family, sizeof m->details.family, e->config.family);
    set_text(m->details.parameters, sizeof m->details.parameters, e->config.parameters);
    set_text(m->details.quantization, sizeof m->details.quantization, e->config.quantization);
    set_text(m->details.digest, sizeof m->details.digest,
             e->digest + (has ? sizeof prefix - 1 : 0));
    m->details.size = e->size;
    m->details.modified = e->modified;
}

static engine_model *find_known(const models *all, const char *name)
{
    for (engine_model *m = all->first; m; m = m->next) {
        if (same_name(m->name, name)) {
            return m;
        }
    }
    return NULL;
}

/* A name of the store that is not in the list yet. */
static bz_status find_in_store(models *all, const char *name, engine_model **out, bz_error *err)
{
    bz_store_name asked, found;
    bz_store_list list = {0};
    if (all->options->no_store || bz_store_name_parse(&asked, name, NULL) != BZ_OK) {
        return BZ_OK;
    }
    bz_status status = bz_store_list_all(&list, err);
    for (size_t i = 0; status == BZ_OK && !*out && i < list.n; i++) {
        const bz_store_entry *e = &list.entries[i];
        if (bz_store_name_parse(&found, e->name, NULL) == BZ_OK &&
            bz_store_name_same(&asked, &found)) {
            *out = find_known(all, e->name);
            *out = *out ? *out : append(all, e->name, err);
            status = *out ? BZ_OK : BZ_OUT_OF_MEMORY;
            if (*out && !(*out)->path) {
                fill_from_entry(*out, e);
            }
        }
    }
    bz_store_list_free(&list);
    return status;
}

bz_status models_find(models *all, const char *name, engine_model **out, bz_error *err)
{
    char shown[200];
    *out = NULL;
    if (!name || !*name) {
        *out = all->first;
        return *out ? BZ_OK
                    : bz_fail(err, BZ_BAD_REQUEST,
                              "The request names no model, and the server was started without "
                              "one.");
    }
    *out = find_known(all, name);
    const bz_status status = *out ? BZ_OK : find_in_store(all, name, out, err);
    if (status != BZ_OK || *out) {
        return status;
    }
    return bz_fail(err, BZ_NOT_FOUND, "model '%s' not found",
                   bz_str_show((bz_str){name, strlen(name)}, shown));
}

bz_status models_each(models *all, bool (*each)(void *user, const engine_model *m), void *user,
                      bz_error *err)
{
    bz_store_list list = {0};
    for (const engine_model *m = all->first; m; m = m->next) {
        if (m->path && !each(user, m)) {
            return BZ_OK;
        }
    }
    bz_status status = all->options->no_store ? BZ_OK : bz_store_list_all(&list, err);
    for (size_t i = 0; status == BZ_OK && i < list.n; i++) {
        const bz_store_entry *e = &list.entries[i];
        const engine_model *known = find_known(all, e->name);
        engine_model entry = {.name = e->name};
        fill_from_entry(&entry, e);
        if (e->problem.code || (known && known->path)) {
            continue;
        }
        if (!each(user, known ? known : &entry)) {
            break;
        }
    }
    bz_store_list_free(&list);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------------
 */

uint64_t models_memory(const engine_model *m)
{
    return m->details.size + (m->batch ? bz_batch_cache_bytes(m->batch) : 0);
}

bool models_in_use(const engine_model *m)
{
    return m->running || m->prepared;
}

void models_unload(engine_model *m)
{
    for (int i = 0; i < MODEL_MAX_SESSIONS; i++) {
        bz_session_free(m->sessions[i].session);
        free(m->sessions[i].ids);
        m->sessions[i] = (model_session){0};
    }
    bz_encoder_free(m->encoder);
    bz_batch_free(m->batch);
    bz_embedder_free(m->embedder);
    model_adapters_close(m);
    bz_model_free(m->model);
    bz_store_model_free(&m->store);
    m->encoder = NULL;
    m->batch = NULL;
    m->embedder = NULL;
    m->model = NULL;
    m->store = (bz_store_model){0};
    m->unload = false;
}

/* By the fully qualified name, which cannot be the name of a file in the working folder. */
bz_status models_files(const engine_model *m, bz_store_model *store, const char **path,
                       const char **mmproj, bz_error *err)
{
    bz_store_name name;
    char text[BZ_NAME_TEXT];
    *store = (bz_store_model){0};
    *path = m->path;
    *mmproj = m->mmproj;
    if (m->path) {
        return BZ_OK;
    }
    bz_status status = bz_store_name_parse(&name, m->name, err);
    if (status == BZ_OK) {
        snprintf(text, sizeof text, "%s/%s/%s:%s", name.host, name.space, name.model, name.tag);
        status = bz_store_resolve(text, store, err);
    }
    if (status == BZ_OK) {
        *path = store->path;
        *mmproj = store->n_projectors ? store->projectors[0] : NULL;
    }
    return status;
}

/* After every step of the job that opens a model. */
static int on_open_event(void *user, const bz_event *event)
{
    const models *all = user;
    (void)event;
    return all->while_opening && all->while_opening(all->user);
}

bz_status models_abilities(models *all, const engine_model *m, model_abilities *out, bz_error *err)
{
    const bz_open_options o = {.size = sizeof o, .headers_only = true};
    const char *path, *mmproj;
    bz_store_model store;
    bz_model *header = NULL;
    if (m->knows_abilities) {
        *out = m->abilities;
        return BZ_OK;
    }
    for (const ability_note *note = all->notes; note; note = note->next) {
        if (strcmp(note->digest, m->details.digest) == 0 && strcmp(note->name, m->name) == 0) {
            *out = note->abilities;
            return BZ_OK;
        }
    }
    bz_status status = models_files(m, &store, &path, &mmproj, err);
    status = status == BZ_OK ? bz_model_open_file(&header, path, mmproj, &o, err) : status;
    ability_note *note = status == BZ_OK ? calloc(1, sizeof *note) : NULL;
    if (status == BZ_OK) {
        *out = abilities_of(header);
    }
    if (note) { /* else the header is read again the next time */
        set_text(note->name, sizeof note->name, m->name);
        set_text(note->digest, sizeof note->digest, m->details.digest);
        note->abilities = *out;
        note->next = all->notes;
        all->notes = note;
    }
    bz_model_free(header);
    bz_store_model_free(&store);
    return status;
}

static bz_status open_on(models *all, engine_model *m, const char *device, const char *path,
                         const char *mmproj, bz_error *err)
{
    const bz_host host = {.size = sizeof host, .event = on_open_event, .user = all};
    const bz_open_options o = {.size = sizeof o, .device = device, .host = &host};
    m->on_gpu = strcmp(device, "gpu") == 0;
    return bz_model_open_file(&m->model, path, mmproj, &o, err);
}

static void give_notice(const models *all, const char *sentence)
{
    if (all->options->notice) {
        all->options->notice(sentence);
    }
}

/* Whether there is a GPU that is not emulated on the CPU; the first time says why not. */
static bool has_gpu(models *all)
{
    if (all->gpu == GPU_UNKNOWN) {
        bz_debug_gpu *gpu = NULL;
        bz_error err = {0};
        char text[512];
        if (bz_debug_gpu_open(&gpu, &err) != BZ_OK) {
            snprintf(text, sizeof text, "Models run on the CPU: %s", err.text);
        } else if (strcmp(bz_debug_gpu_get_info(gpu).kind, "cpu") == 0) {
            snprintf(text, sizeof text,
                     "Models run on the CPU: the GPU found here, %.200s, is emulated on it and "
                     "slower; '--device gpu' uses it all the same.",
                     bz_debug_gpu_get_info(gpu).adapter);
        } else {
            all->gpu = GPU_THERE;
        }
        if (all->gpu == GPU_UNKNOWN) {
            all->gpu = GPU_MISSING;
            give_notice(all, text);
        }
        bz_debug_gpu_close(gpu);
    }
    return all->gpu == GPU_THERE;
}

static bz_status open_model(models *all, engine_model *m, bz_error *err)
{
    const char *device = all->options->device ? all->options->device : "cpu";
    const char *path, *mmproj;
    bz_status status = models_files(m, &m->store, &path, &mmproj, err);
    if (status != BZ_OK) {
        return status;
    }
    if (strcmp(device, "auto") != 0) {
        return open_on(all, m, device, path, mmproj, err);
    }
    if (has_gpu(all)) {
        char text[512];
        status = open_on(all, m, "gpu", path, mmproj, err);
        if (status == BZ_OK || status == BZ_ABORTED) {
            return status;
        }
        snprintf(text, sizeof text, "%s runs on the CPU: %s", m->name, err->text);
        give_notice(all, text);
    }
    return open_on(all, m, "cpu", path, mmproj, err);
}

static bz_status load(models *all, engine_model *m, bz_error *err)
{
    const engine_options *o = all->options;
    const uint64_t start = bz_os_now();
    bz_status status = open_model(all, m, err);
    if (status == BZ_OK) {
        const uint32_t limit = bz_model_context(m->model);
        m->context = o->context ? o->context : 32768;
        m->context = m->context < limit ? m->context : limit;
        details_from_model(m, m->model);
        status = model_adapters_open(m, err);
    }
    if (status == BZ_OK && bz_model_embedding(m->model)) {
        const bz_embedder_options eo = {.size = sizeof eo, .threads = o->threads};
        status = bz_embedder_new(&m->embedder, m->model, &eo, err);
        if (status == BZ_OK && bz_embedder_notice(m->embedder) && o->notice) {
            o->notice(bz_embedder_notice(m->embedder));
        }
    } else if (status == BZ_OK) {
        const bz_batch_options bo = {.size = sizeof bo,
                                     .slots = o->parallel,
                                     .context = m->context,
                                     .threads = o->threads,
                                     .kv = o->kv};
        status = bz_batch_new(&m->batch, m->model, &bo, err);
        if (status == BZ_OK) {
            status = bz_batch_set_adapters(m->batch, m->adapters, m->n_adapters, err);
        }
    }
    if (status != BZ_OK) {
        models_unload(m);
        return status;
    }
    m->keep_alive = o->keep_alive;
    m->unload = false; /* asked for while it was not loaded */
    m->load_ns = bz_os_now() - start;
    m->last_used = bz_os_now();
    return BZ_OK;
}

/* The idle model that was unused for longest. */
static engine_model *oldest_idle(const models *all)
{
    engine_model *found = NULL;
    for (engine_model *m = all->first; m; m = m->next) {
        if (m->model && !models_in_use(m) && (!found || m->last_used < found->last_used)) {
            found = m;
        }
    }
    return found;
}

static uint64_t memory_in_use(const models *all)
{
    uint64_t total = 0;
    for (const engine_model *m = all->first; m; m = m->next) {
        total += m->model ? models_memory(m) : 0;
    }
    return total;
}

models_answer models_load(models *all, engine_model *m, bz_error *err)
{
    const uint64_t max = all->options->max_memory;
    if (m->model) {
        return MODELS_READY;
    }
    if (max && all->refuse_larger && m->details.size > max) {
        char size[BZ_UNITS_MAX], limit[BZ_UNITS_MAX];
        bz_fail(err, BZ_OUT_OF_MEMORY,
                "The model %s takes %s, more than the %s that the server may use (--max-memory).",
                m->name, bz_bytes_text(m->details.size, size), bz_bytes_text(max, limit));
        return MODELS_FAILED;
    }
    while (max && memory_in_use(all) && memory_in_use(all) + m->details.size > max) {
        engine_model *idle = oldest_idle(all);
        if (!idle) {
            return MODELS_WAIT;
        }
        models_unload(idle);
    }
    return load(all, m, err) == BZ_OK ? MODELS_READY : MODELS_FAILED;
}

uint64_t models_end_of(const engine_model *m)
{
    return m->keep_alive < 0 ? 0 : m->last_used + (uint64_t)m->keep_alive;
}

uint64_t models_expire(models *all)
{
    const uint64_t now = bz_os_now();
    uint64_t next = 0;
    for (engine_model *m = all->first; m; m = m->next) {
        if (!m->model || models_in_use(m)) {
            continue;
        }
        const uint64_t end = models_end_of(m);
        if (m->unload || (end && end <= now)) {
            models_unload(m);
        } else if (end && (!next || end < next)) {
            next = end;
        }
    }
    return next;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

size_t models_token_text(const bz_model *model, int32_t token, char out[BZ_TEXT_MAX])
{
    static const char space[] = "\xE2\x96\x81"; /* the vocabulary's spelling of a blank */
    size_t n, len = 0;
    const char *piece = bz_token_piece(model, token, &n);
    if (n == 6 && memcmp(piece, "<0x", 3) == 0) { /* a byte */
        const char digits[] = {piece[3], piece[4], 0};
        out[0] = (char)strtoul(digits, NULL, 16);
        return 1;
    }
    for (size_t i = 0; i < n && len < BZ_TEXT_MAX; i++) {
        const bool blank = n - i >= 3 && memcmp(piece + i, space, 3) == 0;
        out[len++] = blank ? ' ' : piece[i];
        i += blank ? 2 : 0;
    }
    return len;
}

/* ---- sessions ---------------------------------------------------------------------------------
 */

static size_t common(const model_session *s, const int32_t *ids, size_t n)
{
    size_t same = 0;
    while (same < n && same < s->n_ids && s->ids[same] == ids[same]) {
        same++;
    }
    return same;
}

model_session *models_session(models *all, engine_model *m, const int32_t *ids, size_t n,
                              bz_error *err)
{
    const uint32_t max = all->options->parallel && all->options->parallel < MODEL_MAX_SESSIONS
                             ? all->options->parallel
                             : MODEL_MAX_SESSIONS;
    model_session *best = NULL, *unused = NULL;
    size_t most = 0;
    for (uint32_t i = 0; i < max; i++) {
        model_session *s = &m->sessions[i];
        if (s->busy) {
            continue;
        }
        if (!s->session) {
            unused = unused ? unused : s;
            continue;
        }
        const size_t same = common(s, ids, n);
        if (!best || same > most || (same == most && s->used < best->used)) {
            best = s;
            most = same;
        }
    }
    best = unused && (!best || most < best->n_ids / 2) ? unused : best;
    if (!best) {
        return NULL;
    }
    if (!best->session) {
        const bz_session_options so = {.size = sizeof so,
                                       .context = m->context,
                                       .threads = all->options->threads,
                                       .kv = all->options->kv};
        if (bz_session_new(&best->session, m->model, &so, err) != BZ_OK) {
            return NULL;
        }
        if (bz_session_set_adapters(best->session, m->adapters, m->n_adapters, err) != BZ_OK) {
            bz_session_free(best->session);
            best->session = NULL;
            return NULL;
        }
    }
    int32_t *copy = malloc((n + 1) * sizeof *copy);
    if (!copy) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
        return NULL;
    }
    memcpy(copy, ids, n * sizeof *copy);
    free(best->ids);
    best->ids = copy;
    best->n_ids = n;
    best->busy = true;
    best->used = bz_os_now();
    return best;
}
