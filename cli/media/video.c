/* Frames of video files, with libavformat, libavcodec and libswscale. */
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "base/os.h"
#include "cli/media/decode.h"

/* The libraries bring more than a hundred others with them, so they are loaded when a video is read
 * and not with the program. */
#if LIBAVFORMAT_VERSION_MAJOR < 61
#define LIBAV_FORMAT_SIDE(X) X(av_stream_get_side_data)
#define LIBAV_CODEC_SIDE(X)
#else
#define LIBAV_FORMAT_SIDE(X)
#define LIBAV_CODEC_SIDE(X) X(av_packet_side_data_get)
#endif

#define LIBAV_FORMAT(X)                                                                            \
    X(av_find_best_stream)                                                                         \
    X(av_guess_frame_rate)                                                                         \
    X(av_read_frame)                                                                               \
    X(av_seek_frame)                                                                               \
    X(avformat_alloc_context)                                                                      \
    X(avformat_close_input)                                                                        \
    X(avformat_find_stream_info)                                                                   \
    X(avformat_free_context)                                                                       \
    X(avformat_open_input)                                                                         \
    X(avio_alloc_context)                                                                          \
    X(avio_context_free)                                                                           \
    LIBAV_FORMAT_SIDE(X)

#define LIBAV_CODEC(X)                                                                             \
    X(av_packet_alloc)                                                                             \
    X(av_packet_free)                                                                              \
    X(av_packet_unref)                                                                             \
    X(avcodec_alloc_context3)                                                                      \
    X(avcodec_find_decoder)                                                                        \
    X(avcodec_flush_buffers)                                                                       \
    X(avcodec_free_context)                                                                        \
    X(avcodec_get_name)                                                                            \
    X(avcodec_open2)                                                                               \
    X(avcodec_parameters_to_context)                                                               \
    X(avcodec_receive_frame)                                                                       \
    X(avcodec_send_packet)                                                                         \
    LIBAV_CODEC_SIDE(X)

#define LIBAV_SCALE(X)                                                                             \
    X(sws_freeContext)                                                                             \
    X(sws_getCachedContext)                                                                        \
    X(sws_getCoefficients)                                                                         \
    X(sws_scale)                                                                                   \
    X(sws_setColorspaceDetails)

#define LIBAV_UTIL(X)                                                                              \
    X(av_dict_free)                                                                                \
    X(av_dict_set)                                                                                 \
    X(av_display_rotation_get)                                                                     \
    X(av_frame_alloc)                                                                              \
    X(av_frame_free)                                                                               \
    X(av_frame_unref)                                                                              \
    X(av_free)                                                                                     \
    X(av_freep)                                                                                    \
    X(av_log_set_level)                                                                            \
    X(av_malloc)                                                                                   \
    X(av_pix_fmt_desc_get)

#define POINTER(name) __typeof__(name) *name;
static struct {
    bool loaded;
    LIBAV_FORMAT(POINTER)
    LIBAV_CODEC(POINTER)
    LIBAV_SCALE(POINTER)
    LIBAV_UTIL(POINTER)
} av;

#define SONAME(library, major) library ".so." AV_STRINGIFY(major)
#define LOAD(name)                                                                                 \
    av.name = (__typeof__(name) *)bz_os_library_symbol(library, #name);                            \
    complete = complete && av.name;

/* The versions that the program was compiled for. They stay loaded. */
static bz_status load_libav(bz_error *err)
{
    static const char *const names[] = {SONAME("libavutil", LIBAVUTIL_VERSION_MAJOR),
                                        SONAME("libavcodec", LIBAVCODEC_VERSION_MAJOR),
                                        SONAME("libavformat", LIBAVFORMAT_VERSION_MAJOR),
                                        SONAME("libswscale", LIBSWSCALE_VERSION_MAJOR)};
    bool complete = true;
    if (av.loaded) {
        return BZ_OK;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bz_error why = {0};
        bz_os_library *library = bz_os_library_open(names[i], &why);
        if (!library) {
            return bz_fail(err, BZ_BAD_FILE, "Video cannot be read without %s: %s.", names[i],
                           why.text);
        }
        switch (i) {
        case 0: LIBAV_UTIL(LOAD) break;
        case 1: LIBAV_CODEC(LOAD) break;
        case 2: LIBAV_FORMAT(LOAD) break;
        case 3: LIBAV_SCALE(LOAD) break;
        }
        bz_os_library_close(library);
    }
    av.loaded = complete;
    return complete ? BZ_OK
                    : bz_fail(err, BZ_BAD_FILE, "Video cannot be read: libav lacks a function.");
}

enum {
    BUFFER = 1 << 16,      /* bytes of one read */
    MAX_PACKETS = 1 << 23, /* 38 hours at 60 frames per second */
};

/* A packet of the video stream, which is one frame. */
typedef struct packet_time {
    int64_t pts, dts;
    bool key; /* decoding can begin here */
} packet_time;

struct video_reader {
    const uint8_t *bytes; /* [size] the file */
    int64_t size, at;
    AVFormatContext *format;
    AVIOContext *io;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    struct SwsContext *scale;
    int stream, orientation;
    packet_time *times; /* [n_times] in the order in which frames are shown */
    uint64_t n_times;
    bool timed;    /* all packets have a time; else frames are counted */
    bool exact;    /* frames are decoded from the first one on, without seeking */
    bool drained;  /* the decoder was told that there are no more packets */
    uint64_t next; /* number of the frame that comes next, where frames are counted */
    int64_t last;  /* time of the frame that came last */
};

static int read_bytes(void *user, uint8_t *to, int want)
{
    video_reader *v = user;
    const int64_t left = v->size - v->at;
    const int n = want < left ? want : (int)left;
    if (n <= 0) {
        return AVERROR_EOF;
    }
    memcpy(to, v->bytes + v->at, (size_t)n);
    v->at += n;
    return n;
}

static int64_t seek_bytes(void *user, int64_t offset, int whence)
{
    video_reader *v = user;
    if (whence & AVSEEK_SIZE) {
        return v->size;
    }
    whence &= ~AVSEEK_FORCE;
    offset += whence == SEEK_CUR ? v->at : whence == SEEK_END ? v->size : 0;
    if (offset < 0 || offset > v->size) {
        return AVERROR(EINVAL);
    }
    v->at = offset;
    return offset;
}

/* A file that names other files or addresses is not followed. */
static int refuse_open(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                       AVDictionary **options)
{
    (void)format, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

static bz_status damaged(bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "The video is damaged or cut off.");
}

/* ---- opening ------------------------------------------------------------------------ */

static bz_status open_format(video_reader *v, bz_error *err)
{
    static const char formats[] =
        "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif,mpegts,mpeg,ogg,flv,"
        "asf";
    AVDictionary *options = NULL;
    uint8_t *buffer = av.av_malloc(BUFFER);
    v->format = av.avformat_alloc_context();
    v->io =
        buffer ? av.avio_alloc_context(buffer, BUFFER, 0, v, read_bytes, NULL, seek_bytes) : NULL;
    if (!v->io) {
        av.av_free(buffer);
    }
    if (!v->format || !v->io) {
        av.avformat_free_context(v->format);
        v->format = NULL;
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a video.");
    }
    v->format->pb = v->io;
    v->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    v->format->io_open = refuse_open;
    av.av_dict_set(&options, "format_whitelist", formats, 0);
    const int opened =
        av.avformat_open_input(&v->format, NULL, NULL, &options); /* frees it if not */
    av.av_dict_free(&options);
    if (opened < 0) {
        return bz_fail(err, BZ_BAD_FILE,
                       "This file is not a video that Bezel reads (MP4, MOV, WebM, MKV, AVI, MPEG, "
                       "OGG, FLV, WMV, GIF), or it is damaged.");
    }
    return av.avformat_find_stream_info(v->format, NULL) >= 0 ? BZ_OK : damaged(err);
}

/* Phones write pixels as the sensor has them, and how to rotate them. */
static int stream_orientation(const AVStream *s)
{
#if LIBAVFORMAT_VERSION_MAJOR < 61
    size_t n = 0;
    const uint8_t *matrix = av.av_stream_get_side_data(s, AV_PKT_DATA_DISPLAYMATRIX, &n);
#else
    const AVPacketSideData *data = av.av_packet_side_data_get(
        s->codecpar->coded_side_data, s->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    const uint8_t *matrix = data ? data->data : NULL;
    const size_t n = data ? data->size : 0;
#endif
    if (!matrix || n < 9 * sizeof(int32_t)) {
        return 1;
    }
    const double angle = av.av_display_rotation_get((const int32_t *)(const void *)matrix);
    return angle > 45 && angle < 135     ? 8
           : angle < -45 && angle > -135 ? 6
           : angle > 135 || angle < -135 ? 3
                                         : 1;
}

static bz_status open_codec(video_reader *v, bz_error *err)
{
    v->stream = av.av_find_best_stream(v->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    const AVStream *s = v->stream >= 0 ? v->format->streams[v->stream] : NULL;
    if (!s || s->disposition & AV_DISPOSITION_ATTACHED_PIC) {
        return bz_fail(err, BZ_BAD_FILE, "The file has no video, only sound.");
    }
    const AVCodec *codec = av.avcodec_find_decoder(s->codecpar->codec_id);
    if (!codec) {
        return bz_fail(err, BZ_BAD_FILE, "The video is coded as %s, which cannot be read.",
                       av.avcodec_get_name(s->codecpar->codec_id));
    }
    v->codec = av.avcodec_alloc_context3(codec);
    v->packet = av.av_packet_alloc();
    v->frame = av.av_frame_alloc();
    if (!v->codec || !v->packet || !v->frame ||
        av.avcodec_parameters_to_context(v->codec, s->codecpar) < 0) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a video.");
    }
    v->codec->pkt_timebase = s->time_base;
    v->codec->thread_count = 1;
    v->orientation = stream_orientation(s);
    const bz_status status =
        bz_image_check((uint32_t)s->codecpar->width, (uint32_t)s->codecpar->height, err);
    if (status != BZ_OK) {
        return status;
    }
    return av.avcodec_open2(v->codec, codec, NULL) >= 0 ? BZ_OK : damaged(err);
}

static void close_format(video_reader *v)
{
    av.avformat_close_input(&v->format);
    if (v->io) {
        av.av_freep(&v->io->buffer);
        av.avio_context_free(&v->io);
    }
}

/* To the first frame. Seeking there is not exact in every container, opening again is. */
static bz_status rewind_file(video_reader *v, bz_error *err)
{
    close_format(v);
    v->at = 0;
    v->drained = false;
    v->next = 0;
    v->last = INT64_MIN;
    av.avcodec_flush_buffers(v->codec);
    return open_format(v, err);
}

static int by_time(const void *a, const void *b)
{
    const packet_time *x = a, *y = b;
    return x->pts < y->pts ? -1 : x->pts > y->pts;
}

/* Reads all packets, without decoding them. Containers often do not state how many frames they
 * have. */
static bz_status read_times(video_reader *v, bz_error *err)
{
    uint64_t cap = 0;
    v->timed = true;
    while (av.av_read_frame(v->format, v->packet) >= 0) {
        const AVPacket *p = v->packet;
        if (p->stream_index == v->stream && !(p->flags & AV_PKT_FLAG_DISCARD)) {
            if (v->n_times == cap) {
                cap = cap ? 2 * cap : 1024;
                packet_time *more =
                    cap <= MAX_PACKETS ? realloc(v->times, (size_t)cap * sizeof *more) : NULL;
                if (!more) {
                    av.av_packet_unref(v->packet);
                    return cap <= MAX_PACKETS
                               ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a video's frames.")
                               : bz_fail(err, BZ_BAD_FILE,
                                         "The video has more than %d frames; cut it.", MAX_PACKETS);
                }
                v->times = more;
            }
            v->timed = v->timed && p->pts != AV_NOPTS_VALUE;
            v->times[v->n_times++] =
                (packet_time){p->pts, p->dts, (p->flags & AV_PKT_FLAG_KEY) != 0};
        }
        av.av_packet_unref(v->packet);
    }
    if (v->n_times == 0) {
        return bz_fail(err, BZ_BAD_FILE, "The video has no frames; it is probably cut off.");
    }
    if (v->timed) {
        qsort(v->times, (size_t)v->n_times, sizeof *v->times, by_time);
    }
    return rewind_file(v, err);
}

bz_status video_open(video_reader **out, const uint8_t *bytes, size_t n, video_info *info,
                     bz_error *err)
{
    video_reader *v = calloc(1, sizeof *v);
    if (!v) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a video.");
    }
    *v = (video_reader){.bytes = bytes, .size = (int64_t)n, .last = INT64_MIN};
    bz_status status = load_libav(err);
    if (status == BZ_OK) {
        av.av_log_set_level(AV_LOG_QUIET);
        status = open_format(v, err);
    }
    if (status == BZ_OK) {
        status = open_codec(v, err);
    }
    if (status == BZ_OK) {
        status = read_times(v, err);
    }
    if (status != BZ_OK) {
        video_close(v);
        return status;
    }
    AVStream *s = v->format->streams[v->stream];
    const AVRational rate =
        s->avg_frame_rate.num ? s->avg_frame_rate : av.av_guess_frame_rate(v->format, s, NULL);
    *info =
        (video_info){.frames = v->n_times, .rate = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0};
    *out = v;
    return BZ_OK;
}

void video_close(video_reader *v)
{
    if (!v || !av.loaded) {
        free(v);
        return;
    }
    av.sws_freeContext(v->scale);
    av.av_frame_free(&v->frame);
    av.av_packet_free(&v->packet);
    av.avcodec_free_context(&v->codec);
    close_format(v);
    free(v->times);
    free(v);
}

/* ---- frames ------------------------------------------------------------------------- */

/* The next frame of the decoder. False: there are no more. A damaged packet is left out. */
static bool decode_next(video_reader *v)
{
    for (;;) {
        const int got = av.avcodec_receive_frame(v->codec, v->frame);
        if (got >= 0) {
            return true;
        }
        if (got != AVERROR(EAGAIN) || v->drained) {
            return false;
        }
        if (av.av_read_frame(v->format, v->packet) < 0) {
            v->drained = true;
            av.avcodec_send_packet(v->codec, NULL);
            continue;
        }
        if (v->packet->stream_index == v->stream) {
            av.avcodec_send_packet(v->codec, v->packet);
        }
        av.av_packet_unref(v->packet);
    }
}

/* Moves to where decoding can begin before frame `index`, unless that is before the current frame.
 * True: it has moved. */
static bool skip_to(video_reader *v, uint64_t index)
{
    uint64_t key = index;
    while (key > 0 && !v->times[key].key) {
        key--;
    }
    const packet_time *to = &v->times[key];
    if (!v->timed || v->exact || key == 0 || to->pts <= v->last || to->dts == AV_NOPTS_VALUE ||
        av.av_seek_frame(v->format, v->stream, to->dts, AVSEEK_FLAG_BACKWARD) < 0) {
        return false;
    }
    av.avcodec_flush_buffers(v->codec);
    v->drained = false;
    return true;
}

/* Decodes up to a frame. False: it is not there. *missed: the first one is already past it. */
static bool decode_to(video_reader *v, uint64_t index, bool *missed)
{
    *missed = false;
    for (bool first = true; decode_next(v); first = false) {
        const uint64_t number = v->next++;
        const bool timed = v->timed && v->frame->best_effort_timestamp != AV_NOPTS_VALUE;
        v->last = timed ? v->frame->best_effort_timestamp : v->last;
        if (timed ? v->last >= v->times[index].pts : number >= index) {
            *missed = first && timed && v->last > v->times[index].pts;
            return true;
        }
        av.av_frame_unref(v->frame);
    }
    return false;
}

static bz_status find_frame(video_reader *v, uint64_t index, bz_error *err)
{
    const bool moved = skip_to(v, index);
    bool missed, found = decode_to(v, index, &missed);
    if (moved && (missed || !found)) { /* this container cannot be sought in: from the beginning */
        v->exact = true;
        av.av_frame_unref(v->frame);
        const bz_status status = rewind_file(v, err);
        if (status != BZ_OK) {
            return status;
        }
        found = decode_to(v, index, &missed);
    }
    return found ? BZ_OK : damaged(err);
}

/* The frame as RGB; where it may be transparent, on white. */
static bz_status convert(video_reader *v, rgb_image *p, bz_error *err)
{
    const AVFrame *f = v->frame;
    const AVPixFmtDescriptor *kind = av.av_pix_fmt_desc_get(f->format);
    const bool alpha = kind && kind->flags & AV_PIX_FMT_FLAG_ALPHA;
    const size_t channels = alpha ? 4 : 3;
    bz_status status = image_alloc(p, (uint32_t)f->width, (uint32_t)f->height, err);
    if (status != BZ_OK) {
        return status;
    }
    /* lines of libswscale may be written a few bytes too far */
    const size_t stride = (p->width * channels + 63) / 64 * 64;
    uint8_t *lines = av.av_malloc(stride * p->height + 64);
    v->scale = av.sws_getCachedContext(v->scale, f->width, f->height, f->format, f->width,
                                       f->height, alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24,
                                       SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, NULL,
                                       NULL, NULL);
    if (!lines || !v->scale) {
        av.av_free(lines);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a frame of a video.");
    }
    const int *from = av.sws_getCoefficients(
        f->colorspace == AVCOL_SPC_UNSPECIFIED && f->height >= 720 ? SWS_CS_ITU709
                                                                   : (int)f->colorspace);
    av.sws_setColorspaceDetails(v->scale, from, f->color_range == AVCOL_RANGE_JPEG,
                                av.sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    av.sws_scale(v->scale, (const uint8_t *const *)f->data, f->linesize, 0, f->height,
                 (uint8_t *[4]){lines}, (int[4]){(int)stride});
    for (uint32_t y = 0; y < p->height; y++) {
        uint8_t *to = p->rgb + (size_t)y * p->width * 3;
        if (alpha) {
            image_on_white(to, lines + y * stride, p->width);
        } else {
            memcpy(to, lines + y * stride, (size_t)p->width * 3);
        }
    }
    av.av_free(lines);
    return image_orient(p, v->orientation, err);
}

bz_status video_frame(video_reader *v, uint64_t index, rgb_image *p, bz_error *err)
{
    *p = (rgb_image){0};
    bz_status status = index < v->n_times ? find_frame(v, index, err) : damaged(err);
    if (status != BZ_OK) {
        return status;
    }
    status = convert(v, p, err);
    av.av_frame_unref(v->frame);
    if (status != BZ_OK) {
        image_free(p);
    }
    return status;
}
