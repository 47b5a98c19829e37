#include "vision/video/video.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "vision/video/video_webp.h"
#include "vision/image/media_av.h"

/* The only decoders that a video may use, by name, so that a build with more of them does not widen
 * what is reachable. */
static const struct {
    enum AVCodecID id;
    const char *decoder, *name;
} CODECS[] = {
    {AV_CODEC_ID_H264, "h264", "H.264"},   {AV_CODEC_ID_HEVC, "hevc", "HEVC"},
    {AV_CODEC_ID_VP8, "vp8", "VP8"},       {AV_CODEC_ID_VP9, "vp9", "VP9"},
    {AV_CODEC_ID_AV1, "libdav1d", "AV1"},  {AV_CODEC_ID_MPEG4, "mpeg4", "MPEG-4"},
    {AV_CODEC_ID_MJPEG, "mjpeg", "MJPEG"}, {AV_CODEC_ID_GIF, "gif", "GIF"},
    {AV_CODEC_ID_APNG, "apng", "APNG"},
};
enum { ANALYZE_US_MAX = 2000000 };
static const char CODEC_LIST[] = "h264,hevc,vp8,vp9,libdav1d,mpeg4,mjpeg,gif,apng";

struct video {
    video_source source;
    video_limits limits;
    video_info info;
    video_webp *webp;   /* instead of all that the libraries for the other formats need */
    double deadline_ms; /* of the call that runs; 0: none */
    bool timed_out, was_cancelled;
    int stream;      /* index of the video track */
    size_t codec;    /* index into CODECS */
    int orientation; /* EXIF number of the display matrix */
    AVRational time_base;
    int64_t *pts; /* [info.n_frames] presentation times, ascending; what a wanted frame is known by */
    size_t pts_cap;
    bool by_number; /* the container has no presentation times: frames are counted instead */
    /* [n_keys] times of the frames that decoding can begin with, in the order they are stored */
    int64_t *keys;
    size_t n_keys, keys_cap;
    bool can_skip; /* keys ascend and the container's word on them is worth something */
};

/* ---- errors ---- */

static err_code fail(err_code code, err_detail *detail)
{
    switch (code) {
    case ERR_UNSUPPORTED:
        return err_set_param(
            detail, code, NULL, "unsupported_video_media_type",
            "this is not a video in a format that can be read here (MP4, MOV, WebM, MKV, AVI, GIF, "
            "APNG, WebP with H.264, HEVC, VP8, VP9, AV1, MPEG-4 or MJPEG)");
    case ERR_NOMEM:
        return err_set(detail, code, "not enough memory to read the video");
    case ERR_CANCELLED:
        return err_set(detail, code, "reading the video was stopped");
    default:
        return err_set_param(detail, ERR_CORRUPT, NULL, "video_parse_error",
                             "the video is damaged or incomplete");
    }
}

static err_code too_large(err_detail *detail, const char *what)
{
    return err_set_param(detail, ERR_LIMIT, NULL, "video_too_large",
                         "the video has %s than this server allows", what);
}

/* Why a library call failed: because we stopped it, or because of the video. */
static err_code fail_or_stopped(const video *f, int rc, err_detail *detail)
{
    if (f->was_cancelled) {
        return fail(ERR_CANCELLED, detail);
    }
    if (f->timed_out) {
        return err_set_param(detail, ERR_TIMEOUT, NULL, "video_timeout", "reading the video took too long");
    }
    return fail(rc == AVERROR(ENOMEM) ? ERR_NOMEM : ERR_CORRUPT, detail);
}

/* Asked by the demuxer in blocking calls and by our loops. */
static int interrupted(void *ctx)
{
    video *f = ctx;
    f->was_cancelled = f->was_cancelled || (f->limits.cancelled && f->limits.cancelled(f->limits.ctx));
    f->timed_out = f->timed_out || (f->deadline_ms > 0 && clock_ms() > f->deadline_ms);
    return f->was_cancelled || f->timed_out;
}

static void start_clock(video *f)
{
    f->timed_out = f->was_cancelled = false;
    f->deadline_ms = f->limits.max_wall_s > 0 ? clock_ms() + 1000 * f->limits.max_wall_s : 0;
}

video_limits video_limits_default(void)
{
    return (video_limits){
        .max_bytes = LIMIT_VIDEO_BYTES,
        .max_pixels = LIMIT_VIDEO_PIXELS,
        .max_side = LIMIT_IMAGE_SIDE,
        .max_duration_s = LIMIT_VIDEO_DURATION_S,
        .max_packets = LIMIT_VIDEO_PACKETS,
        .max_frames = LIMIT_VIDEO_TRACK_FRAMES,
        .n_threads = 1,
        .max_wall_s = LIMIT_VIDEO_WALL_S,
        .max_memory = LIMIT_VIDEO_MEMORY,
    };
}

/* ---- opening: the tracks, then one pass over all packets ---- */

static AVFormatContext *open_container(video *f, media_file *file)
{
    static const char *const DEMUXERS[] = {NULL, "mov", "matroska", "avi", "gif", "apng", NULL};
    *file = (media_file){.data = f->source.data, .fd = f->source.fd, .bytes = f->source.bytes};
    return media_av_open(file, DEMUXERS[f->info.format], CODEC_LIST, interrupted, f);
}

/* The EXIF orientation that shows a frame as the display matrix does, for turns by 90 degrees and
 * mirrors: shown x = a x + c y, y = b x + d y. */
static int orientation_of(const AVStream *stream)
{
    size_t bytes = 0;
#if LIBAVFORMAT_VERSION_MAJOR >= 61
    const AVCodecParameters *codec = stream->codecpar;
    const AVPacketSideData *side =
        av_packet_side_data_get(codec->coded_side_data, codec->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    const uint8_t *data = side ? side->data : NULL;
    bytes = side ? side->size : 0;
#else
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
#endif
    int32_t m[9];
    if (!data || bytes < sizeof m) {
        return 1;
    }
    memcpy(m, data, sizeof m);
    int64_t a = m[0], b = m[1], c = m[3], d = m[4];
    if (llabs(a) + llabs(d) >= llabs(b) + llabs(c)) {
        return a >= 0 ? (d >= 0 ? 1 : 4) : (d >= 0 ? 2 : 3);
    }
    return b >= 0 ? (c >= 0 ? 5 : 6) : (c >= 0 ? 8 : 7);
}

static bool size_fits(const video *f, int32_t width, int32_t height)
{
    return width <= f->limits.max_side && height <= f->limits.max_side &&
           (uint64_t)width * (uint64_t)height <= f->limits.max_pixels;
}

/* Chooses the video track and discards all others. */
static err_code choose_track(video *f, AVFormatContext *format, err_detail *detail)
{
    f->stream = -1;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        AVStream *stream = format->streams[i];
        bool is_video_track = stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
                              !(stream->disposition & AV_DISPOSITION_ATTACHED_PIC);
        f->info.has_audio |= stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        if (is_video_track && f->stream < 0) {
            f->stream = (int)i;
        } else {
            stream->discard = AVDISCARD_ALL;
        }
    }
    if (f->stream < 0) {
        return fail(ERR_UNSUPPORTED, detail);
    }
    const AVStream *stream = format->streams[f->stream];
    const AVCodecParameters *par = stream->codecpar;
    for (f->codec = 0; f->codec < ARRAY_LEN(CODECS) && CODECS[f->codec].id != par->codec_id; f->codec++) {
    }
    if (f->codec == ARRAY_LEN(CODECS)) {
        return fail(ERR_UNSUPPORTED, detail);
    }
    if (par->width == 0 && par->codec_id == AV_CODEC_ID_MPEG4) {
        /* MP4 leaves MPEG-4's size to the decoder: it looks at the first frames (with the listed
         * decoders only). */
        format->max_analyze_duration = ANALYZE_US_MAX;
        (void)avformat_find_stream_info(format, NULL);
    }
    if (par->width < 1 || par->height < 1 || stream->time_base.num < 1 || stream->time_base.den < 1) {
        return fail_or_stopped(f, 0, detail);
    }
    if (!size_fits(f, par->width, par->height)) {
        return too_large(detail, "larger frames");
    }
    f->time_base = stream->time_base;
    f->orientation = orientation_of(stream);
    f->info.codec = CODECS[f->codec].name;
    f->info.width = f->orientation >= 5 ? par->height : par->width;
    f->info.height = f->orientation >= 5 ? par->width : par->height;
    return ERR_OK;
}

/* A VP8 packet may hold a frame that is only for reference. */
static bool is_shown(const video *f, const AVPacket *packet)
{
    bool hidden = CODECS[f->codec].id == AV_CODEC_ID_VP8 && packet->size > 0 && !(packet->data[0] & 0x10);
    return !hidden && !(packet->flags & AV_PKT_FLAG_DISCARD);
}

static err_code add_frame(video *f, int64_t pts, bool is_key, err_detail *detail)
{
    size_t n = (size_t)f->info.n_frames;
    if (f->info.n_frames >= f->limits.max_frames) {
        return too_large(detail, "more frames");
    }
    if (!memory_grow(&f->pts, &f->pts_cap, n + 1, 1024, sizeof *f->pts) ||
        (is_key && !memory_grow(&f->keys, &f->keys_cap, f->n_keys + 1, 1024, sizeof *f->keys))) {
        return fail(ERR_NOMEM, detail);
    }
    f->by_number = f->by_number || pts == AV_NOPTS_VALUE;
    f->pts[f->info.n_frames++] = pts;
    if (is_key) {
        f->can_skip = f->can_skip && (f->n_keys == 0 || f->keys[f->n_keys - 1] < pts);
        f->keys[f->n_keys++] = pts;
    }
    return ERR_OK;
}

/* Presentation times of all frames, unsorted, and the duration of the last packet. */
static err_code scan_packets(video *f, AVFormatContext *format, int64_t *last_duration, err_detail *detail)
{
    err_code err = ERR_OK;
    int64_t n_packets = 0, n_own = 0;
    AVPacket *packet = av_packet_alloc();
    int rc = packet ? 0 : AVERROR(ENOMEM);
    f->can_skip = f->info.format == VIDEO_MP4 || f->info.format == VIDEO_MATROSKA;
    while (rc >= 0 && !err && (rc = av_read_frame(format, packet)) >= 0) {
        if (++n_packets > f->limits.max_packets) {
            err = too_large(detail, "more packets");
        } else if (interrupted(f)) {
            rc = AVERROR_EXIT;
        } else if (packet->stream_index == f->stream) {
            n_own++;
            if (packet->flags & AV_PKT_FLAG_CORRUPT) {
                err = fail(ERR_CORRUPT, detail);
            } else if (is_shown(f, packet)) {
                err = add_frame(f, packet->pts, packet->flags & AV_PKT_FLAG_KEY, detail);
                *last_duration = packet->duration;
            }
        }
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    if (!err && rc != AVERROR_EOF) {
        err = fail_or_stopped(f, rc, detail);
    }
    /* MP4's table of samples counts frames exactly; AVI's header is often wrong. */
    int64_t n_promised = f->info.format == VIDEO_MP4 ? format->streams[f->stream]->nb_frames : 0;
    if (!err && (f->info.n_frames == 0 || n_own < n_promised)) {
        err = fail(ERR_CORRUPT, detail);
    }
    return err;
}

static int compare_pts(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double seconds(const video *f, int64_t ticks)
{
    return (double)ticks * av_q2d(f->time_base);
}

/* Rate, duration, and whether the rate is constant, from the times of all frames and the rate that
 * the container says. */
static void measure(video *f, AVRational rate, int64_t last_duration)
{
    video_info *info = &f->info;
    double nominal = av_q2d(rate.den ? rate : (AVRational){0, 1});
    int64_t n = info->n_frames;
    if (f->by_number) {
        info->fps = nominal > 0 ? nominal : av_q2d(av_inv_q(f->time_base));
        info->duration_s = (double)n / info->fps;
        return;
    }
    qsort(f->pts, (size_t)n, sizeof *f->pts, compare_pts);
    double span = seconds(f, f->pts[n - 1]) - seconds(f, f->pts[0]);
    if (n > 1 && span > 0) {
        info->fps = (double)(n - 1) / span;
        /* The container's own rate is exact where the times are rounded; it must agree to a quarter
         * of a frame. */
        if (nominal > 0 && fabs(span * nominal - (double)(n - 1)) < 0.25) {
            info->fps = nominal;
        }
    }
    double frame_s = info->fps > 0 ? 1 / info->fps : 0;
    info->duration_s = span + (last_duration > 0 ? seconds(f, last_duration) : frame_s);
    for (int64_t i = 0; i < n && info->fps > 0; i++) {
        double off = seconds(f, f->pts[i] - f->pts[0]) - (double)i * frame_s;
        info->variable_rate = info->variable_rate || fabs(off) > 0.25 * frame_s + av_q2d(f->time_base);
    }
}

static err_code open_webp(video *f, int64_t *last_duration, err_detail *detail)
{
    int64_t at = 0;
    err_code err = video_webp_open(&f->webp, &f->source);
    if (err != ERR_OK) {
        return fail(err, detail);
    }
    video_webp_size(f->webp, &f->info.width, &f->info.height);
    if (!size_fits(f, f->info.width, f->info.height)) {
        return too_large(detail, "larger frames");
    }
    f->info.codec = "WebP";
    f->time_base = (AVRational){1, 1000};
    for (int64_t i = 0; i < video_webp_count(f->webp) && !err; i++) {
        err = add_frame(f, at, true, detail);
        *last_duration = video_webp_duration(f->webp, i);
        at += *last_duration;
    }
    return err;
}

static err_code open_stream(video *f, AVRational *rate, int64_t *last_duration, err_detail *detail)
{
    media_file file;
    AVFormatContext *format = open_container(f, &file);
    err_code err = format ? choose_track(f, format, detail) : fail_or_stopped(f, file.rc, detail);
    err = err ? err : scan_packets(f, format, last_duration, detail);
    if (!err) {
        *rate = format->streams[f->stream]->avg_frame_rate;
    }
    media_av_close(&format);
    return err;
}

err_code video_open(video **out, const video_source *source, const video_limits *limits, err_detail *detail)
{
    uint8_t head[16];
    int64_t last_duration = 0;
    AVRational rate = {0, 1};
    *out = NULL;
    if (!video_read_at(source, 0, head, sizeof head) || video_sniff(head, sizeof head) == VIDEO_UNKNOWN) {
        return fail(ERR_UNSUPPORTED, detail);
    }
    video *f = calloc(1, sizeof *f);
    if (!f) {
        return fail(ERR_NOMEM, detail);
    }
    f->source = *source;
    f->limits = *limits;
    f->info.format = video_sniff(head, sizeof head);
    media_av_init();
    start_clock(f);
    err_code err = ERR_OK;
    if (source->bytes > limits->max_bytes) {
        err = too_large(detail, "more bytes");
    } else if (!video_is_complete(source, f->info.format)) {
        err = fail(ERR_CORRUPT, detail);
    } else if (f->info.format == VIDEO_WEBP) {
        err = open_webp(f, &last_duration, detail);
    } else {
        err = open_stream(f, &rate, &last_duration, detail);
    }
    if (!err) {
        measure(f, rate, last_duration);
        if (!(f->info.duration_s <= f->limits.max_duration_s)) {
            err = too_large(detail, "a longer duration");
        }
    }
    if (err) {
        video_close(f);
        return err;
    }
    *out = f;
    return ERR_OK;
}

void video_close(video *f)
{
    if (f) {
        free(f->pts);
        free(f->keys);
        video_webp_close(f->webp);
        free(f);
    }
}

const video_info *video_get_info(const video *f)
{
    return &f->info;
}

/* ---- which frames ---- */

err_code video_plan(const video_info *info, const processor_config *pc, const video_request *request,
                    int32_t *indices, double *times, int32_t cap, int32_t *n, err_detail *detail)
{
    const double slack = 1e-6; /* 0.1 s at 30 frames a second is frame 3, whatever 0.1 is in binary */
    double first = ceil(request->start_s * info->fps - slack);
    double last = request->end_s > 0 && info->fps > 0 ? ceil(request->end_s * info->fps - slack)
                                                      : (double)info->n_frames;
    processor_config own = *pc;
    first = first > 0 ? first : 0;
    last = last < (double)info->n_frames ? last : (double)info->n_frames;
    if (!(first < last)) {
        return err_set_param(detail, ERR_INVALID, NULL, "video_range",
                             "the wanted part of the video, from %.3f s on, is empty; the video lasts %.3f s",
                             request->start_s, info->duration_s);
    }
    if (request->max_frames > 0 && request->max_frames < own.video_max_frames) {
        own.video_max_frames = request->max_frames;
    }
    int64_t begin = (int64_t)first;
    err_code err = processor_sample_frames(&own, (int64_t)last - begin, info->fps, request->fps,
                                           request->n_frames, indices, cap, n, detail);
    if (err == ERR_LIMIT && detail) {
        snprintf(detail->name, sizeof detail->name, "video_too_large");
    }
    for (int32_t i = 0; i < *n && !err; i++) {
        indices[i] += (int32_t)begin;
        times[i] = info->fps > 0 ? indices[i] / info->fps : 0;
    }
    return err;
}

/* ---- reading ---- */

typedef struct reader {
    video *f;
    AVCodecContext *codec;
    AVFrame *frame;
    int64_t *targets; /* [n] what the wanted frames are known by, ascending */
    int32_t n, next;
    int64_t n_seen; /* frames that came out of the decoder */
    size_t n_keys;  /* key frames met */
    bool may_skip;  /* slices that no wanted frame needs are left out */
    bool skipped;   /* one was */
    bool missed;    /* then a wanted frame did not come */
    media_converter shower;
    video_frame_fn *on_frame;
    void *ctx;
} reader;

/* The frame that is seen `number` / fps seconds after the first one: the last whose time has come,
 * with a quarter of a frame's patience for rounded times. */
static int64_t target_of(const video *f, int64_t number)
{
    if (f->by_number) {
        return number;
    }
    if (!f->info.variable_rate) {
        return f->pts[number];
    }
    double at = ((double)number + 0.25) / f->info.fps;
    size_t low = 0, high = (size_t)f->info.n_frames; /* pts[low] has come, pts[high] has not */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (seconds(f, f->pts[middle] - f->pts[0]) <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return f->pts[low];
}

static bool is_target(const reader *r, int64_t key)
{
    return bsearch(&key, r->targets + r->next, (size_t)(r->n - r->next), sizeof key, compare_pts) != NULL;
}

static err_code open_decoder(reader *r, const AVStream *stream, err_detail *detail)
{
    const video *f = r->f;
    const AVCodec *decoder = avcodec_find_decoder_by_name(CODECS[f->codec].decoder);
    if (!decoder) {
        return fail(ERR_UNSUPPORTED, detail);
    }
    r->codec = avcodec_alloc_context3(decoder);
    r->frame = av_frame_alloc();
    if (!r->codec || !r->frame || avcodec_parameters_to_context(r->codec, stream->codecpar) < 0) {
        return fail(ERR_NOMEM, detail);
    }
    r->codec->pkt_timebase = stream->time_base;
    r->codec->thread_count = f->limits.n_threads > 1 ? f->limits.n_threads : 1;
    /* The library compares sizes rounded up to its alignment with this. */
    r->codec->max_pixels = (int64_t)f->limits.max_pixels + (int64_t)128 * f->limits.max_side;
    const int rc = avcodec_open2(r->codec, decoder, NULL);
    return rc < 0 ? fail_or_stopped(f, rc, detail) : ERR_OK;
}

/* Shows the decoded frame to the caller for every wanted number that it stands for. */
static err_code deliver(reader *r, int64_t key, err_detail *detail)
{
    const video *f = r->f;
    const AVFrame *frame = r->frame;
    image img = {0};
    if (r->targets[r->next] > key) { /* there is one: else nothing would be decoded any more */
        return ERR_OK;
    }
    bool is_damaged = frame->decode_error_flags || (frame->flags & AV_FRAME_FLAG_CORRUPT);
    if (r->skipped && (is_damaged || r->targets[r->next] < key)) {
        r->missed = true;
        return ERR_OK;
    }
    if (is_damaged) {
        return fail(ERR_CORRUPT, detail);
    }
    if (!size_fits(f, frame->width, frame->height)) {
        return too_large(detail, "larger frames");
    }
    const image_header h = {.width = frame->width, .height = frame->height, .orientation = f->orientation};
    err_code err = media_av_convert(&r->shower, &img, &h, frame, NULL);
    if (err) {
        err = fail(err, detail);
    }
    while (!err && r->next < r->n && r->targets[r->next] <= key) {
        err = r->on_frame(r->ctx, r->next, &img, detail);
        r->next += err == ERR_OK;
    }
    return err;
}

/* The decoder refused a packet: what was skipped may be why. */
static err_code decoder_failed(reader *r, int rc, err_detail *detail)
{
    r->missed = r->skipped && !interrupted(r->f);
    return r->missed ? ERR_OK : fail_or_stopped(r->f, rc, detail);
}

/* Takes all frames that the decoder has ready. */
static err_code drain(reader *r, err_detail *detail)
{
    err_code err = ERR_OK;
    int rc = 0;
    while (!err && !r->missed && r->next < r->n && (rc = avcodec_receive_frame(r->codec, r->frame)) >= 0) {
        int64_t key = r->f->by_number                   ? r->n_seen
                      : r->frame->pts != AV_NOPTS_VALUE ? r->frame->pts
                                                        : r->frame->best_effort_timestamp;
        r->n_seen++;
        err = deliver(r, key, detail);
    }
    return !err && rc < 0 && rc != AVERROR(EAGAIN) && rc != AVERROR_EOF ? decoder_failed(r, rc, detail) : err;
}

/* True if the stored packet lies before the last key frame that the next wanted frame can be
 * decoded from. TRAP: a frame shown before a key frame may be stored behind it, so the key frame is
 * one shown no later than the wanted frame. */
static bool is_skippable(reader *r, const AVPacket *packet)
{
    const video *f = r->f;
    bool was_key = packet->flags & AV_PKT_FLAG_KEY;
    r->n_keys += was_key && is_shown(f, packet);
    return r->may_skip && r->n_keys < f->n_keys && f->keys[r->n_keys] <= r->targets[r->next];
}

/* Hands a packet of the video track to the decoder, unless nobody needs it. */
static int send_packet(reader *r, const AVPacket *packet, bool *skipping)
{
    if (is_skippable(r, packet)) {
        if (!*skipping) {
            avcodec_flush_buffers(r->codec);
        }
        *skipping = r->skipped = true;
        return 0;
    }
    *skipping = false;
    /* Frames that no other frame needs are not even decoded, unless they are wanted. */
    r->codec->skip_frame =
        r->f->by_number || is_target(r, packet->pts) ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
    return avcodec_send_packet(r->codec, packet);
}

/* Decodes until the last wanted frame was delivered, or one was missed. */
static err_code decode_video(reader *r, AVFormatContext *format, AVPacket *packet, err_detail *detail)
{
    video *f = r->f;
    err_code err = ERR_OK;
    bool skipping = false;
    int rc = 0;
    while (!err && !r->missed && r->next < r->n && (rc = av_read_frame(format, packet)) >= 0) {
        bool own = packet->stream_index == f->stream;
        if (interrupted(f)) {
            rc = AVERROR_EXIT;
        } else if (own) {
            rc = send_packet(r, packet, &skipping);
        }
        av_packet_unref(packet);
        if (rc < 0) {
            return decoder_failed(r, rc, detail);
        }
        err = own && !skipping ? drain(r, detail) : ERR_OK;
    }
    if (err || r->missed || r->next == r->n) {
        return err;
    }
    if (rc != AVERROR_EOF) {
        return fail_or_stopped(f, rc, detail);
    }
    (void)avcodec_send_packet(r->codec, NULL); /* the frames still inside the decoder */
    err = drain(r, detail);
    r->missed = !err && r->next < r->n && r->skipped;
    return !err && !r->missed && r->next < r->n ? fail(ERR_CORRUPT, detail) : err;
}

/* One pass over the video, from its start: not every container can seek. */
static err_code read_once(reader *r, AVPacket *packet, err_detail *detail)
{
    video *f = r->f;
    media_file file;
    AVFormatContext *format = open_container(f, &file);
    err_code err = ERR_OK;
    r->missed = r->skipped = false;
    r->n_seen = 0;
    r->n_keys = 0;
    if (!format || f->stream >= (int)format->nb_streams) {
        err = fail_or_stopped(f, format ? 0 : file.rc, detail);
    }
    if (!err) {
        for (unsigned i = 0; i < format->nb_streams; i++) {
            format->streams[i]->discard = (int)i == f->stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
        }
        err = open_decoder(r, format->streams[f->stream], detail);
    }
    err = err ? err : decode_video(r, format, packet, detail);
    avcodec_free_context(&r->codec);
    av_frame_free(&r->frame);
    media_av_close(&format);
    return err;
}

/* The same for WebP, whose frames build on each other. */
static err_code read_webp(reader *r, err_detail *detail)
{
    video *f = r->f;
    const image_header h = {
        .format = IMAGE_WEBP, .width = f->info.width, .height = f->info.height, .orientation = 1};
    image_sink sink;
    image img = {0};
    err_code err = video_webp_rewind(f->webp);
    err = err ? fail(err, detail) : image_sink_init(&sink, &img, &h, detail);
    for (int64_t i = 0; i < f->info.n_frames && r->next < r->n && !err; i++) {
        const uint8_t *rgba = NULL;
        if (interrupted(f) || !video_webp_next(f->webp, &rgba)) {
            err = fail_or_stopped(f, 0, detail);
        } else if (r->targets[r->next] == f->pts[i]) {
            for (int32_t y = 0; y < h.height; y++) {
                image_sink_put(&sink, (size_t)y, 0, 1, (size_t)h.width,
                               rgba + (size_t)y * (size_t)h.width * 4, 4);
            }
            for (; !err && r->next < r->n && r->targets[r->next] == f->pts[i]; r->next += err == ERR_OK) {
                err = r->on_frame(r->ctx, r->next, &img, detail);
            }
        }
    }
    image_deinit(&img);
    return err;
}

err_code video_read(video *f, const int32_t *indices, int32_t n, video_frame_fn *on_frame, void *ctx,
                    err_detail *detail)
{
    reader r = {.f = f,
                .n = n,
                .on_frame = on_frame,
                .ctx = ctx,
                .may_skip = f->can_skip && !f->by_number && f->n_keys > 1};
    for (int32_t i = 0; i < n; i++) {
        if (indices[i] < (i > 0 ? indices[i - 1] : 0) || indices[i] >= f->info.n_frames) {
            return err_set(detail, ERR_INVALID, "frame numbers must ascend and be below %lld",
                           (long long)f->info.n_frames);
        }
    }
    start_clock(f);
    AVPacket *packet = av_packet_alloc();
    r.targets = malloc(((size_t)n + 1) * sizeof *r.targets);
    err_code err = packet && r.targets ? ERR_OK : fail(ERR_NOMEM, detail);
    for (int32_t i = 0; i < n && !err; i++) {
        r.targets[i] = target_of(f, indices[i]);
    }
    if (!err) {
        err = f->webp ? read_webp(&r, detail) : read_once(&r, packet, detail);
    }
    if (!err && r.missed) { /* the key frames were none: what is still wanted is decoded from the start */
        r.may_skip = false;
        err = read_once(&r, packet, detail);
    }
    av_packet_free(&packet);
    media_converter_deinit(&r.shower);
    free(r.targets);
    return err;
}
