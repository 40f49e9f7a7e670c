/* Runs a fuzz target over files given by name, so that its corpus is part of
 * `make test` without libFuzzer:  replay-NAME corpus/NAME/... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as large as the file, so that sanitisers see a read past its end. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    uint8_t *data = NULL;
    long length = -1;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 &&
        fseek(file, 0, SEEK_SET) == 0) {
        *size = (size_t)length;
        data = malloc(*size ? *size : 1);
        if (data && fread(data, 1, *size, file) != *size) {
            free(data);
            data = NULL;
        }
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        size_t size = 0;
        uint8_t *data = read_file(argv[i], &size);
        if (!data) {
            printf("  cannot read %s\nFAIL replay\n", argv[i]);
            return 1;
        }
        /* named first: a failure ends the program inside the call */
        printf("replay %s\n", argv[i]);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    const char *slash = strrchr(argv[0], '/');
    printf("ok %s, %d files\n", slash ? slash + 1 : argv[0], argc - 1);
    return 0;
}
