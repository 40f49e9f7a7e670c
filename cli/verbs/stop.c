/* bezel stop: a running server unloads a model. */
#include <stdlib.h>

#include "base/json.h"
#include "cli/client.h"

static int run(int argc, char **argv)
{
    cli_options o = {.model = "", .port = -1};
    int code = cli_parse(&cli_stop_verb, argc, argv, "u", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.model[0]) {
        return cli_usage_error("stop", "no name given; 'bezel ps' prints what is loaded.");
    }
    bz_json_buffer body = {0};
    bz_json j;
    client_answer answer;
    bz_error err = {0};
    bz_json_init(&j, bz_json_to_buffer, &body);
    bz_json_object(&j);
    bz_json_put_text(&j, "model", o.model);
    bz_json_put_int(&j, "keep_alive", 0);
    bz_json_put_bool(&j, "stream", false);
    bz_json_end(&j);
    if (!bz_json_finish(&j)) {
        fprintf(stderr, "bezel: no memory for a request.\n");
        return EXIT_CANNOT;
    }
    const bz_status status = client_request(&o, "/api/generate", body.text, &answer, &err);
    free(body.text);
    if (status != BZ_OK) {
        return cli_error(&err);
    }
    if (answer.status == 404) {
        bz_fail(&err, BZ_NOT_FOUND, "couldn't find model \"%.100s\" to stop", o.model);
        code = cli_error(&err);
    } else if (answer.status != 200) {
        code = client_error(&answer);
    }
    free(answer.text);
    return code;
}

const cli_verb cli_stop_verb = {"stop", run, "unload a model of a running server",
                                "Usage: bezel stop NAME [options]\n\n"
                                "  bezel stop gemma4:e2b\n\n"
                                "Answers that are being written are completed first.\n\n"
                                "      --host ADDR     where 'bezel serve' listens (127.0.0.1)\n"
                                "      --port N        its port (11435)\n"
                                "      --api-key KEY   its key, if it has one\n"};
