/* bezel serve: the page, and the APIs of OpenAI and Ollama, at an address of this machine. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/files.h"
#include "server/static.h"
#include "base/error.h"
#include "base/os_program.h"
#include "bezel_batch.h"
#include "cli/device.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/media/decode.h"
#include "cli/verbs/serve_models.h"
#include "cli/verbs/serve_pull.h"
#include "cli/verbs/serve_sandbox.h"

enum {
    FIRST_PORT = 11435,
    PORTS = 100,
    NO_PORT = -1,
    URL_SIZE = OS_ADDRESS_SIZE + 32
}; /* 11434 is Ollama's */

typedef struct serving {
    char folder_path[PATH_MAX];
    files_folder folder;
    files_models models;
    os_listener listener;
    char url[URL_SIZE];
    api api;
    serve_puller puller;
    server *server;
} serving;

/* A browser opens 6, or 30 in several tabs; programs on this machine are all one client. */
enum { MAX_CONNECTIONS = 1024, MAX_PER_CLIENT = 512, STOP_MS = 2000 };

/* ---- what is served ------------------------------------------------------------------------- */

static bool has_page(const char *folder)
{
    char page[PATH_MAX];
    const int n = snprintf(page, sizeof page, "%s/index.html", folder);
    return n > 0 && n < (int)sizeof page && bz_os_file_exists(page);
}

/* Finds the page beside an installed program or in the build folder; else `out` is empty. */
static void find_page(char out[PATH_MAX])
{
    static const char *const places[] = {"../share/bezel/web", "web/app"};
    char program[PATH_MAX];
    char *slash = bz_os_program_path(program, sizeof program) ? strrchr(program, '/') : NULL;
    out[0] = 0;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        char folder[PATH_MAX];
        *slash = 0;
        const int n = snprintf(folder, sizeof folder, "%s/%s", program, places[i]);
        /* without ".." */
        if (n > 0 && n < (int)sizeof folder && has_page(folder) &&
            bz_os_real_path(folder, out, PATH_MAX)) {
            return;
        }
        out[0] = 0;
    }
}

static int open_folder(const cli_options *o, serving *s)
{
    bz_error err = {0};
    if (o->dir) {
        snprintf(s->folder_path, sizeof s->folder_path, "%s", o->dir);
    } else {
        find_page(s->folder_path);
    }
    if (!s->folder_path[0]) {
        return EXIT_OK; /* the API alone */
    }
    if (os_open_folder(s->folder_path, &s->folder.fd, &err) != BZ_OK) {
        fprintf(stderr, "bezel: cannot serve the folder %s: %s.\n", s->folder_path, err.text);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

/* ---- where ------------------------------------------------------------------------------------
 */

static int begin_listening(const cli_options *o, serving *s)
{
    const char *host = o->host ? o->host : "127.0.0.1";
    const bool given = o->port != NO_PORT;
    const int first = given ? o->port : FIRST_PORT, last = given ? first : FIRST_PORT + PORTS - 1;
    bool taken = true;
    bz_error err = {0};
    if (!given && !o->host && os_listen_inherited(&s->listener)) {
        return EXIT_OK;
    }
    if (first > 65535) {
        return cli_usage_error("serve", "port %d does not exist; the highest is 65535.", first);
    }
    for (int port = first; taken && port <= last; port++) {
        if (os_listen(&s->listener, host, (uint16_t)port, &taken, &err) == BZ_OK) {
            return EXIT_OK;
        }
    }
    if (taken && given) {
        fprintf(stderr,
                "bezel: port %d of %s is in use by another program; give another --port, or "
                "none.\n",
                first, host);
    } else if (taken) {
        fprintf(stderr,
                "bezel: ports %d to %d of %s are in use by other programs; give a free one with "
                "--port.\n",
                first, last, host);
    } else if (err.code == BZ_BAD_REQUEST) {
        return cli_usage_error("serve", "%s", err.text);
    } else {
        fprintf(stderr, "bezel: cannot listen on port %d of %s: %s.\n", first, host, err.text);
    }
    return EXIT_FAILED;
}

/* For a browser on this machine, which cannot connect to a wildcard address. */
static void write_url(serving *s)
{
    const char *a = s->listener.address;
    const bool v6 = strchr(a, ':') != NULL;
    a = strcmp(a, "0.0.0.0") == 0 ? "127.0.0.1" : strcmp(a, "::") == 0 ? "::1" : a;
    snprintf(s->url, sizeof s->url, "http://%s%s%s:%u/", v6 ? "[" : "", a, v6 ? "]" : "",
             s->listener.port);
}

/* Before the sandbox, in which no program can be started; until the models are read its requests
 * wait. */
static void open_browser(const cli_options *o, const serving *s)
{
    if (o->open && !os_open_browser(s->url)) {
        fprintf(stderr, "bezel: cannot open a browser (%s is missing); open the address by hand.\n",
                os_browser_starter);
    }
}

static int print_address(const serving *s)
{
    printf("%s serves the APIs of OpenAI (%sv1) and Ollama", s->url, s->url);
    if (s->folder_path[0]) {
        printf(", the page in %s", s->folder_path);
    } else {
        printf(" (the web page is not built: 'make web')");
    }
    for (size_t i = 0; i < s->models.n; i++) {
        printf("%s /models/%s", i ? "," : " and", s->models.list[i].name);
    }
    puts("; stop it with Ctrl-C");
    if (!access_is_loopback(s->listener.address)) {
        fprintf(stderr,
                "bezel: other machines can reach this server, but their browsers allow WebGPU "
                "only over https.\n");
    }
    return cli_flush();
}

/* ---- the verb
 * ------------------------------------------------------------------------------------ */

/* ---- GET / ------------------------------------------------------------------------------------
 */

/* Browsers navigate with Accept: text/html; what a page fetches has Sec-Fetch-Mode. */
static bool is_browser(const http_head *h)
{
    return http_list_has(h, "Accept", "text/html") || http_field(h, "Sec-Fetch-Mode").data;
}

/* The page for browsers; other clients check here whether an Ollama server is running. */
static void serve_root(void *user, exchange *x)
{
    static const char running[] = "Ollama is running";
    serving *s = user;
    const http_head *h = exchange_head(x);
    const bool top = bz_str_is(http_text(h, h->path), "/");
    if (top && !is_browser(h)) {
        exchange_bytes(x, 200, "text/plain; charset=utf-8", running, sizeof running - 1);
    } else if (s->folder.fd >= 0) {
        files_serve_folder(&s->folder, x);
    } else {
        exchange_text(x, 404, top ? "The web page is not built; run 'make web'." : "Not found.");
    }
}

/* ---- the engine -------------------------------------------------------------------------------
 */

static bz_status decode(bz_media_kind kind, const uint8_t *bytes, size_t n, engine_decoded *out,
                        bz_error *err)
{
    rgb_image image = {0};
    bz_sound sound = {0};
    const bz_status status = kind == BZ_MEDIA_IMAGE ? decode_image(&image, bytes, n, err)
                                                    : decode_sound(&sound, bytes, n, err);
    *out = (engine_decoded){.rgb = image.rgb,
                            .width = image.width,
                            .height = image.height,
                            .pcm = sound.pcm,
                            .samples = sound.frames,
                            .rate = sound.rate};
    if (status != BZ_OK) {
        err->code = status == BZ_OUT_OF_MEMORY ? status : BZ_BAD_REQUEST; /* the client's fault */
    }
    return status;
}

/* Ollama's OLLAMA_KEEP_ALIVE, as --keep-alive. */
static bool read_keep_alive(const cli_options *o, int64_t *ns)
{
    const char *given = o->keep_alive ? o->keep_alive : bz_os_env("OLLAMA_KEEP_ALIVE");
    const bz_json_node node = {.kind = BZ_JSON_STRING,
                               .of.text = {given, given ? strlen(given) : 0}};
    *ns = 0;
    if (!given || !*given) {
        return true;
    }
    const bool ok = api_read_duration(&node, ns);
    *ns = *ns == 0 ? 1 : *ns; /* 0 would mean the default */
    return ok;
}

static void notice(const char *sentence)
{
    fprintf(stderr, "bezel: %s\n", sentence);
}

static void wake(void *user)
{
    server_wake(user);
}

/* ENGINE_SHIFT_BY_API: the option was not given. */
static bool read_shift(const cli_options *o, engine_shift *shift)
{
    const bool off = o->context_shift && strcmp(o->context_shift, "off") == 0;
    *shift = !o->context_shift ? ENGINE_SHIFT_BY_API : off ? ENGINE_SHIFT_OFF : ENGINE_SHIFT_ON;
    return !o->context_shift || off || strcmp(o->context_shift, "on") == 0;
}

static int make_engine(const cli_options *o, serving *s)
{
    bz_error err = {0};
    int64_t keep_alive;
    uint64_t memory;
    int code = EXIT_OK;
    engine_shift shift;
    if (!read_shift(o, &shift)) {
        return cli_usage_error("serve", "'--context-shift' must be on or off, not '%s'.",
                               o->context_shift);
    }
    if (!read_keep_alive(o, &keep_alive)) {
        return cli_usage_error("serve", "'--keep-alive' needs a time such as 30s, 5m or -1.");
    }
    if (!cli_read_memory("--max-memory", o->max_memory, &memory, &code)) {
        return code;
    }
    const engine_options options = {.device = o->device,
                                    .keep_alive = keep_alive,
                                    .max_memory = memory,
                                    .threads = o->threads,
                                    .kv = o->kv,
                                    .context = o->context,
                                    .parallel = o->parallel,
                                    .queue = o->queue,
                                    .shift = shift,
                                    .decode = decode,
                                    .notice = notice};
    if (o->device && strcmp(o->device, "cpu") != 0 && strcmp(o->device, "gpu") != 0 &&
        strcmp(o->device, "auto") != 0) {
        return cli_usage_error("serve", "unknown device '%s'; use auto, cpu or gpu.", o->device);
    }
    if (o->parallel > BZ_BATCH_MAX_SLOTS) {
        return cli_usage_error("serve", "'--parallel' must be from 1 to %d.", BZ_BATCH_MAX_SLOTS);
    }
    s->api.engine = engine_new(&options, &err);
    return s->api.engine ? EXIT_OK : cli_error(&err);
}

/* Streams end with an error, instead of being cut. */
static bool should_stop(void *user)
{
    const serving *s = user;
    const bool asked = interrupt_stop();
    if (asked) {
        engine_stop(s->api.engine);
    }
    interrupt_asked = 0;
    interrupt_ended = 0;
    return asked;
}

static void log_line(void *user, const server_log *line)
{
    (void)user;
    fprintf(stderr, "%s %.*s %d %llu\n", http_method_name(line->method), (int)line->path.len,
            line->path.data, line->status, (unsigned long long)line->sent);
}

enum { MAX_ORIGINS = 64, ORIGINS_SIZE = 4096 };

/* Programs on this machine, as Ollama allows them: pages of other local servers, and programs that
 * are pages. No web site has such an origin. */
static const char *const local_origins[] = {
    "localhost", "127.0.0.1",          "0.0.0.0",        "::1", "app://*", "file://*",
    "tauri://*", "vscode-webview://*", "vscode-file://*"};

/* Those of OLLAMA_ORIGINS, separated by commas; `text` holds them. */
static size_t add_listed_origins(const char *origins[MAX_ORIGINS], size_t n,
                                 char text[ORIGINS_SIZE])
{
    const char *variable = bz_os_env("OLLAMA_ORIGINS");
    char *rest = NULL;
    snprintf(text, ORIGINS_SIZE, "%s", variable ? variable : "");
    for (char *item = strtok_r(text, ", ", &rest); item && n < MAX_ORIGINS;
         item = strtok_r(NULL, ", ", &rest)) {
        origins[n++] = item;
    }
    return n;
}

static int serve(const cli_options *o, serving *s)
{
    size_t n_hosts = 0, n_origins = 0;
    const char *origins[MAX_ORIGINS];
    char listed[ORIGINS_SIZE];
    while (o->hosts[n_hosts]) {
        n_hosts++;
    }
    while (o->origins[n_origins]) {
        origins[n_origins] = o->origins[n_origins];
        n_origins++;
    }
    for (size_t i = 0; i < sizeof local_origins / sizeof *local_origins; i++) {
        origins[n_origins++] = local_origins[i];
    }
    n_origins = add_listed_origins(origins, n_origins, listed);
    server_route routes[API_MAX_ROUTES + 2] = {
        {"/", HTTP_GET, 0, serve_root, s, true},
        {"/models/", HTTP_GET, 0, files_serve_models, &s->models, true},
    };
    const size_t n_routes = 2 + api_routes(&s->api, routes + 2);
    interrupt_catch_to_serve();
    const server_options options = {
        .listener = s->listener,
        .routes = routes,
        .n_routes = n_routes,
        .access = {.address = s->listener.address,
                   .names = o->hosts,
                   .n_names = n_hosts,
                   .origins = origins,
                   .n_origins = n_origins,
                   .key = o->api_key},
        .headers = static_headers,
        .refuse = api_refuse_early,
        .max_connections = MAX_CONNECTIONS,
        .max_per_client = MAX_PER_CLIENT,
        .interrupt = interrupt_fd(),
        .stop = should_stop,
        .stop_ms = STOP_MS,
        .user = s,
        .log = o->verbose ? log_line : NULL,
    };
    bz_error err = {0};
    server *running = server_new(&options, &err);
    if (!running) {
        return cli_error(&err);
    }
    s->api.wake = wake;
    s->api.wake_user = running;
    if (engine_start(s->api.engine, wake, running, &err) != BZ_OK) {
        server_free(running);
        return cli_error(&err);
    }
    const int code = print_address(s);
    if (code == EXIT_OK) {
        server_run(running);
    }
    /* Ends all requests, then the threads that would wake the server. */
    server_close(running);
    api_end_downloads(&s->api);
    engine_free(s->api.engine);
    s->api.engine = NULL;
    server_free(running);
    return code;
}

static int run(int argc, char **argv)
{
    cli_options o = {.model = "", .port = NO_PORT}; /* models are a list */
    int code = cli_parse(&cli_serve_verb, argc, argv, "wvmdcbTZl13", CLI_MODEL_LIST, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    o.device = device_default(&o);
    serving *s = calloc(1, sizeof *s);
    if (!s) {
        fprintf(stderr, "bezel: no memory for a server.\n");
        return EXIT_CANNOT;
    }
    s->folder.fd = -1;
    s->puller.control = -1;
    code = make_engine(&o, s);
    code = code == EXIT_OK ? open_folder(&o, s) : code;
    code = code == EXIT_OK ? begin_listening(&o, s) : code;
    if (code == EXIT_OK) {
        write_url(s);
        open_browser(&o, s);
        s->api.pull = serve_puller_pull;
        s->api.pull_user = &s->puller;
        code = serve_puller_start(&s->puller, &o, s->listener.fd);
    }
    if (code == EXIT_OK) {
        serve_enter_sandbox(&o, s->folder_path, &code);
    }
    code = code == EXIT_OK ? serve_add_models(&o, &s->models, s->api.engine) : code;
    code = code == EXIT_OK ? serve(&o, s) : code;
    os_close_file(s->folder.fd);
    engine_free(s->api.engine);
    serve_puller_end(&s->puller);
    serve_free_models(&s->models);
    free(s);
    return code;
}

const cli_verb cli_serve_verb = {
    "serve", run, "serve the chat page, and the APIs of OpenAI and Ollama",
    "Usage: bezel serve [options] [MODEL...]\n\n"
    "  bezel serve --open\n"
    "  bezel serve gemma4:e2b model.gguf --port 11434\n\n"
    "Prints the address and serves until Ctrl-C. By default only this machine can connect.\n"
    "MODEL is a file, a folder of GGUF files or a name from 'bezel list'; requests may name\n"
    "these and every model of Ollama's store, and models are loaded when they are needed.\n\n"
    "      --port N            port (default: 11435, or the next free one)\n"
    "      --host ADDR         address to listen on (127.0.0.1)\n"
    "      --dir FOLDER        serve these files instead of Bezel's own page\n"
    "      --model MODEL       the same as MODEL; may be repeated\n"
    "      --mmproj FILE       vision and audio file of a two-file model\n"
    "      --lora FILE[:SCALE] apply a LoRA adapter to all answers; may be repeated\n"
    "      --device DEVICE     auto (default: the GPU, where there is one), cpu or gpu\n"
    "      --parallel N        answers that one model writes at the same time, 1 to 64 (16)\n"
    "      --queue N           requests that may wait; more are answered with 503 (512)\n"
    "  -c, --ctx N             tokens of a conversation (the model's limit, at most 32768)\n"
    "      --context-shift MODE  on: conversations that are too long lose their oldest turns;\n"
    "                          off: they are refused (default: as the request's API has it)\n"
    "      --max-memory SIZE   for all loaded models, such as 8GB; unused ones are unloaded\n"
    "      --keep-alive TIME   how long an unused model stays loaded (5m); -1: forever\n"
    "      --threads N         threads that compute\n"
    "      --kv f16|q8|q4      KV cache in 16, 8 or 4 bits\n"
    "      --api-key KEY       requests to the API need 'Authorization: Bearer KEY'\n"
    "      --origins PATTERN   pages of these origins may use the API; may be repeated\n"
    "      --allow-host NAME   accept requests to this host name too; may be repeated\n"
    "      --open              open the page in the browser\n"
    "      --sandbox MODE      auto, on or off: confine the server to its models and the store\n"
    "  -v, --verbose           log every request to stderr\n"};
