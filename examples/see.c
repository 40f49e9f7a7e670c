/* see: ask about an image.
 *
 *   see model.gguf image.ppm "What is this?" [mmproj.gguf]
 *
 * The library takes pixels and knows no file formats: the program decodes. A PPM file is little
 * more than pixels, so that this one needs no other library. The answer goes to stdout.
 */
#include <bezel_media.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const bz_error *err)
{
    fprintf(stderr, "see: %s (%s)\n", err->text, bz_status_name(err->code));
    return EXIT_FAILURE;
}

/* Pixels [height][width][3], to be freed; NULL and *err if there are none. */
static uint8_t *read_ppm(const char *path, uint32_t *width, uint32_t *height, bz_error *err)
{
    FILE *f = fopen(path, "rb");
    uint8_t *rgb = NULL;
    unsigned w, h;
    if (f && fscanf(f, "P6 %5u %5u 255", &w, &h) == 2 && w > 0 && h > 0 && fgetc(f) != EOF) {
        const size_t n = (size_t)w * h * 3;
        rgb = malloc(n);
        if (rgb && fread(rgb, 1, n, f) != n) {
            free(rgb);
            rgb = NULL;
        }
        *width = w;
        *height = h;
    }
    if (f) {
        fclose(f);
    }
    if (!rgb) {
        *err = (bz_error){BZ_BAD_FILE,
                          "The image is missing, or is not a PPM file of 8 bits a color (P6)."};
    }
    return rgb;
}

/* Encoding is a job; the pixels must stay until it is freed. */
static bz_media *encode(bz_encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
                        bz_error *err)
{
    bz_job *job = NULL;
    bz_media *media = NULL;
    if (bz_encode_image(encoder, rgb, width, height, &job, err) == BZ_OK &&
        bz_job_run(job, NULL, err) == BZ_OK) {
        media = bz_job_media(job); /* ours, even when job and encoder are gone */
    }
    bz_job_free(job);
    return media;
}

/* A request as clients of OpenAI's or Ollama's interface write it; what "url" says is up to us, as
 * we read the image. To be freed. */
static char *write_request(const char *question)
{
    static const char begin[] = "{\"temperature\": 0, \"max_tokens\": 200, \"messages\": "
                                "[{\"role\": \"user\", \"content\": ["
                                "{\"type\": \"image_url\", \"image_url\": {\"url\": \"image\"}},"
                                "{\"type\": \"text\", \"text\": \"";
    static const char end[] = "\"}]}]}";
    char *request = malloc(sizeof begin + 6 * strlen(question) + sizeof end);
    if (!request) {
        return NULL;
    }
    char *p = request + sprintf(request, "%s", begin);
    for (const char *q = question; *q; q++) {
        if ((unsigned char)*q < ' ' || *q == '"' || *q == '\\') {
            p += sprintf(p, "\\u%04x", (unsigned)*q);
        } else {
            *p++ = *q;
        }
    }
    strcpy(p, end);
    return request;
}

static int show(void *user, bz_turn_part part, const char *text, size_t len)
{
    (void)user;
    if (part == BZ_TURN_ANSWER) {
        fwrite(text, 1, len, stdout);
        fflush(stdout);
    }
    return ferror(stdout); /* non-zero cancels */
}

int main(int argc, char **argv)
{
    bz_model *model = NULL;
    bz_encoder *encoder = NULL;
    bz_media *media = NULL;
    uint8_t *rgb = NULL;
    char *request = NULL, *answer = NULL;
    uint32_t width, height;
    bz_error err = {0};
    int code = EXIT_SUCCESS;
    /* The request's first and only image. */
    const bz_chat_options options = {
        .size = sizeof options, .part = show, .media = &media, .n_media = 1};

    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: see model.gguf image.ppm \"What is this?\" [mmproj.gguf]\n");
        return 2;
    }
    if (bz_model_open_file(&model, argv[1], argc == 5 ? argv[4] : NULL, NULL, &err) != BZ_OK ||
        (rgb = read_ppm(argv[2], &width, &height, &err)) == NULL ||
        bz_encoder_new(&encoder, model, NULL, &err) != BZ_OK ||
        (media = encode(encoder, rgb, width, height, &err)) == NULL) {
        code = fail(&err);
    } else if ((request = write_request(argv[3])) == NULL) {
        code = fail(&(bz_error){BZ_OUT_OF_MEMORY, "No memory for the question."});
    } else if (bz_chat(model, request, strlen(request), &options, &answer, &err) != BZ_OK) {
        code = fail(&err);
    } else {
        putchar('\n');
    }
    bz_free(answer); /* the same as JSON */
    free(request);
    free(rgb);
    bz_media_free(media);
    bz_encoder_free(encoder); /* before its model; NULL is fine for each */
    bz_model_free(model);
    return code;
}
