/* Replaces libpcaudio: espeak-ng links to it, but here it only writes samples to memory. */
#include <stddef.h>
void *create_audio_device_object(const char *d, const char *a, const char *b)
{
    (void)d;
    (void)a;
    (void)b;
    return NULL;
}
int audio_object_open(void *o, int f, unsigned r, unsigned char c)
{
    (void)o;
    (void)f;
    (void)r;
    (void)c;
    return 0;
}
void audio_object_close(void *o)
{
    (void)o;
}
void audio_object_destroy(void *o)
{
    (void)o;
}
int audio_object_write(void *o, const void *d, size_t n)
{
    (void)o;
    (void)d;
    (void)n;
    return 0;
}
int audio_object_drain(void *o)
{
    (void)o;
    return 0;
}
int audio_object_flush(void *o)
{
    (void)o;
    return 0;
}
const char *audio_object_strerror(void *o, int e)
{
    (void)o;
    (void)e;
    return "";
}
