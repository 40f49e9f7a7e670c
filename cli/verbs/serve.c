/* bezel serve: the page, and models for it, at an address of this machine. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "server/files.h"
#include "server/static.h"
#include "base/error.h"
#include "base/os.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/pebble.h"

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
} serving;

/* A browser opens 6, or 30 in several tabs. */
enum { MAX_PER_CLIENT = 128 };

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
    char *slash = os_program_path(program, sizeof program) ? strrchr(program, '/') : NULL;
    out[0] = 0;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        char folder[PATH_MAX];
        *slash = 0;
        const int n = snprintf(folder, sizeof folder, "%s/%s", program, places[i]);
        /* without ".." */
        if (n > 0 && n < (int)sizeof folder && has_page(folder) && realpath(folder, out)) {
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
        fprintf(stderr, "bezel: the web page is not built; run 'make web', or name a "
                        "folder with --dir.\n");
        return EXIT_FAILED;
    }
    if (os_open_folder(s->folder_path, &s->folder.fd, &err) != BZ_OK) {
        fprintf(stderr, "bezel: cannot serve the folder %s: %s.\n", s->folder_path, err.text);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

/* Name of a model in URLs: the last part of its path, without characters that URLs do not allow. */
static char *address_name(const char *name, bool from_store)
{
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    name += strspn(name, ".");
    const size_t n = strlen(name), end = sizeof ".gguf" - 1;
    const bool add = from_store && (n < end || strcmp(name + n - end, ".gguf") != 0);
    char *out = malloc(n + end + 1);
    if (out) {
        snprintf(out, n + end + 1, "%s%s", name, add ? ".gguf" : "");
        for (char *c = out; *c; c++) {
            *c = (unsigned char)*c < 0x20 || *c == 0x7F || *c == '\\' ? '_' : *c;
        }
    }
    return out;
}

static int check_model(const char *path)
{
    os_file f;
    bz_error err = {0};
    const bz_status status = os_open_file(path, &f, &err);
    if (status != BZ_OK) {
        fprintf(stderr, "bezel: %s: %s.\n", path, err.text);
        return status == BZ_NOT_FOUND ? EXIT_NO_MODEL : EXIT_FAILED;
    }
    os_close(f.fd);
    return EXIT_OK;
}

/* owner: index of the model that the file belongs to; the next free index: a model itself. */
static int add_file(serving *s, size_t owner, const char *name, const char *path, bool from_store)
{
    const int code = check_model(path);
    files_model *more =
        code == EXIT_OK ? realloc(s->models.list, (s->models.n + 1) * sizeof *more) : NULL;
    if (code != EXIT_OK) {
        return code;
    }
    s->models.list = more ? more : s->models.list;
    const files_model m = {more ? address_name(name, from_store) : NULL, more ? strdup(path) : NULL,
                           owner < s->models.n ? s->models.list[owner].name : NULL};
    if (!m.name || !m.path) {
        free(m.name);
        free(m.path);
        fprintf(stderr, "bezel: no memory for the list of models.\n");
        return EXIT_CANNOT;
    }
    s->models.list[s->models.n++] = m;
    for (size_t i = 0; i + 1 < s->models.n; i++) {
        if (strcmp(s->models.list[i].name, m.name) == 0) {
            fprintf(
                stderr,
                "bezel: two models would have the address /models/%s; serve only one of them.\n",
                m.name);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

/* A file with all its parts, or a name in Ollama's store; and its mmproj file, if it has one. */
static int add_model(serving *s, const char *model, const char *mmproj)
{
    const size_t owner = s->models.n;
    bz_store_model found;
    bz_error err = {0};
    if (pebble_resolve(model, &found, &err) != BZ_OK) {
        return cli_error(&err);
    }
    int code = EXIT_OK;
    const uint32_t count = found.name ? 1 : bz_model_part_count(found.path);
    if (count > 1) {
        for (uint32_t i = 1; code == EXIT_OK && i <= count; i++) {
            char part[PATH_MAX];
            code = bz_model_part_path(found.path, i, part, sizeof part)
                       ? add_file(s, owner, part, part, false)
                       : EXIT_FAILED;
        }
    } else {
        code = add_file(s, owner, found.name ? found.name : found.path, found.path,
                        found.name != NULL);
    }
    if (code == EXIT_OK && mmproj) {
        code = add_file(s, owner, mmproj, mmproj, false);
    } else if (code == EXIT_OK && found.n_projectors) {
        code = add_file(s, owner, found.projectors[0], found.projectors[0], true);
    }
    bz_store_model_free(&found);
    return code;
}

static int add_models(const cli_options *o, serving *s)
{
    int code = EXIT_OK;
    if (o->mmproj && (!o->models[0] || o->models[1])) {
        return cli_usage_error("serve", "'--mmproj' needs exactly one '--model'.");
    }
    for (size_t i = 0; code == EXIT_OK && o->models[i]; i++) {
        code = add_model(s, o->models[i], o->mmproj);
    }
    return code;
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

static int print_address(const serving *s)
{
    printf("%s serves %s", s->url, s->folder_path);
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

static bool should_stop(void *user)
{
    (void)user;
    const bool asked = interrupt_stop();
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

static void catch_signals(void)
{
    struct sigaction before;
    const bool nohup = sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
    interrupt_catch_all();
    if (nohup) {
        signal(SIGHUP, SIG_IGN);
    }
}

static int serve(const cli_options *o, serving *s)
{
    size_t n_hosts = 0;
    while (o->hosts[n_hosts]) {
        n_hosts++;
    }
    const server_route routes[] = {
        {"/", HTTP_GET, 0, files_serve_folder, &s->folder},
        {"/models/", HTTP_GET, 0, files_serve_models, &s->models},
    };
    catch_signals();
    const server_options options = {
        .listener = s->listener,
        .routes = routes,
        .n_routes = sizeof routes / sizeof *routes,
        .access = {.address = s->listener.address, .names = o->hosts, .n_names = n_hosts},
        .headers = static_headers,
        .max_per_client = MAX_PER_CLIENT,
        .interrupt = interrupt_fd(),
        .stop = should_stop,
        .log = o->verbose ? log_line : NULL,
    };
    bz_error err = {0};
    server *running = server_new(&options, &err);
    if (!running) {
        return cli_error(&err);
    }
    const int code = print_address(s);
    if (code == EXIT_OK) {
        if (o->open && !os_open_browser(s->url)) {
            fprintf(
                stderr,
                "bezel: cannot open a browser (xdg-open is missing); open the address by hand.\n");
        }
        server_run(running);
    }
    server_free(running);
    return code;
}

static int run(int argc, char **argv)
{
    cli_options o = {.model = "", .port = NO_PORT}; /* no positional model */
    int code = cli_parse(&cli_serve_verb, argc, argv, "wvm", 0, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    serving *s = calloc(1, sizeof *s);
    if (!s) {
        fprintf(stderr, "bezel: no memory for a server.\n");
        return EXIT_CANNOT;
    }
    s->folder.fd = -1;
    code = add_models(&o, s);
    code = code == EXIT_OK ? open_folder(&o, s) : code;
    code = code == EXIT_OK ? begin_listening(&o, s) : code;
    if (code == EXIT_OK) {
        write_url(s);
        code = serve(&o, s);
    }
    os_close(s->folder.fd);
    for (size_t i = 0; i < s->models.n; i++) {
        free(s->models.list[i].name);
        free(s->models.list[i].path);
    }
    free(s->models.list);
    free(s);
    return code;
}

const cli_verb cli_serve_verb = {
    "serve", run, "serve the web page to a browser",
    "Usage: bezel serve [options]\n\n"
    "  bezel serve --open\n"
    "  bezel serve --model model.gguf --port 8080\n\n"
    "Prints the address and serves until Ctrl-C. By default only this machine can connect.\n\n"
    "      --port N            port (default: 11435, or the next free one)\n"
    "      --host ADDR         address to listen on (127.0.0.1)\n"
    "      --dir FOLDER        serve these files instead of Bezel's own page\n"
    "      --model MODEL       offer a model to the page: a file or a name from 'bezel list';\n"
    "                          may be repeated\n"
    "      --mmproj FILE       vision and audio file of a two-file model\n"
    "      --allow-host NAME   accept requests to this host name too; may be repeated\n"
    "      --open              open the page in the browser\n"
    "  -v, --verbose           log every request to stderr\n"};
