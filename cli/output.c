#include "cli/output.h"

int cli_flush(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "bezel: cannot write the answer.\n");
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

static bool to_stdout(void *user, const char *bytes, size_t n)
{
    (void)user;
    return fwrite(bytes, 1, n, stdout) == n;
}

void cli_json_begin(bz_json *j)
{
    bz_json_init(j, to_stdout, NULL);
}

int cli_json_end(bz_json *j)
{
    bz_json_finish(j); /* it fails only where stdout does, which is what cli_flush asks */
    putchar('\n');
    return cli_flush();
}
