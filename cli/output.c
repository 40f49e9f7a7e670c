#include "cli/output.h"

int cli_flush(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "bezel: cannot write to standard output.\n");
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

bool cli_write(void *user, const char *bytes, size_t n)
{
    (void)user;
    return fwrite(bytes, 1, n, stdout) == n;
}

void cli_json_begin(bz_json *j)
{
    bz_json_init(j, cli_write, NULL);
}

int cli_json_end(bz_json *j)
{
    bz_json_finish(j); /* fails only if stdout does, which cli_flush reports */
    putchar('\n');
    return cli_flush();
}
