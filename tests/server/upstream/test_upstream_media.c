/* upstream_media: how the videos and images of a chat are said to each engine, for each way of saying and each setting, as one
 * recorded text. What would decode them is a double of media_copy. */
#include "server/upstream/upstream_media.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/limits.h"
#include "tests/folder.h"
#include "tests/recorded.h"

static bytes all;

/* ---- the double of media_copy ---- */

static err_code copied = ERR_OK; /* what it returns after its files */

err_code __wrap_media_copy(const media_copier *c, const media_copy_order *o, err_detail *d);
err_code __wrap_media_copy(const media_copier *c, const media_copy_order *o, err_detail *d)
{
    const bool is_video = o->part->kind == CHAT_VIDEO;
    (void)c;
    bytes_printf(&all, " [%s of at most %lld pixels, %d frames%s%s%s%s]", is_video ? "video" : "image",
                 (long long)o->max_pixels, o->max_frames, o->only_common ? ", common" : "",
                 o->checks ? ", checked" : "", o->memory ? ", reserved" : "",
                 o->cancelled(o->ctx) ? ", cancelled" : "");
    err_code err = ERR_OK;
    for (int i = 0; i < (is_video ? 2 : 1) && err == ERR_OK; i++) {
        const media_copy_file f = {"image/jpeg", (const uint8_t *)"frame0" + i, 6, i, 2, 1.25 * i, 3.5, 4, 5};
        err = o->each(o->ctx, &f, d);
    }
    return err != ERR_OK ? err : copied != ERR_OK ? err_set(d, copied, "it is damaged") : ERR_OK;
}

/* ---- parts ---- */

static const uint8_t MP4[] = "\0\0\0\x18"
                             "ftypmp42\0\0\0\0mp42isom";

static chat_video videos[] = {
    {0},
    {.fps = 2.5},
    {.fps = 2.5, .max_frames = 9},
    {.n_frames = 7},
    {.n_frames = 7, .fps = 2.5},
    {.max_frames = 9},
    {.min_frames = 3},
    {.start_s = 1.5},
    {.end_s = 2.25},
    {.fps = 2.5, .n_frames = 7, .min_frames = 3, .max_frames = 9, .start_s = 1.5, .end_s = 2.25},
    {.fps = 2.25, .max_frames = 9},
    {.fps = 2.75, .max_frames = 9},
};

static chat_part video_part(const chat_video *v)
{
    return (chat_part){
        .kind = CHAT_VIDEO, .data = MP4, .data_bytes = sizeof MP4 - 1, .video = *v, .param = "here"};
}

static bool cancelled(void *ctx)
{
    return ctx != NULL;
}

static void progress(void *ctx, gen_phase phase, int32_t done, int32_t n)
{
    (void)ctx;
    bytes_printf(&all, " (%d of %d, %d)", done, n, phase == GEN_PHASE_MEDIA);
}

/* What is asked of a server, and by whom. */
static int64_t most_pixels;
static bool is_watched = true;
static void *gone;

/* Says the first `n` parts of a chat. */
static void say(const char *what, upstream_engine e, upstream_video way, upstream_answer sees,
                chat_part *parts, size_t n, ledger_hold *memory)
{
    static const char *const ENGINES[] = {[UPSTREAM_OTHER] = "other",
                                          [UPSTREAM_LLAMA_CPP] = "llama.cpp",
                                          [UPSTREAM_VLLM] = "vllm",
                                          [UPSTREAM_SGLANG] = "sglang",
                                          [UPSTREAM_PARLEY] = "parley"};
    static const char *const WAYS[] = {"auto", "url", "frames", "none"}, *const SEES[] = {"?", "yes", "no"};
    const prepare_hooks hooks = {
        .progress = is_watched ? progress : NULL, .cancelled = is_watched ? cancelled : NULL, .ctx = gone};
    chat_message message = {.role = CHAT_USER, .parts = parts, .n_parts = n};
    const chat_input in = {.messages = &message, .n_messages = 1};
    ledger_hold any = {.ledger = NULL};
    upstream_media m = {
        .hooks = &hooks, .memory = memory ? memory : &any, .engine = e, .max_pixels = most_pixels};
    bytes out = bytes_empty(1 << 20);
    bytes_printf(&all, "%s, %s, %s, %s:", what, ENGINES[e], WAYS[way], SEES[sees]);
    upstream_media_begin(&m, &in, way, sees);
    for (size_t i = 0; i < n; i++) {
        err_detail d = {0};
        const err_code err = upstream_media_write(&m, &out, &parts[i], &d);
        if (err != ERR_OK) {
            bytes_printf(&all, " %s %s (%s): %s", err_name(err), d.name, d.param, d.text);
        }
    }
    upstream_media_end(&m, &out);
    bytes_printf(&all, "\n  %s\n", bytes_str(&out));
    bytes_deinit(&out);
}

static void test_settings(void)
{
    for (size_t i = 0; i < sizeof videos / sizeof *videos; i++) {
        char what[32];
        snprintf(what, sizeof what, "settings %zu", i);
        for (upstream_engine e = UPSTREAM_OTHER; e <= UPSTREAM_PARLEY; e++) {
            chat_part part = video_part(&videos[i]);
            say(what, e, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, NULL);
        }
    }
    for (upstream_engine e = UPSTREAM_OTHER; e <= UPSTREAM_PARLEY; e++) {
        chat_part part = video_part(&videos[0]);
        for (upstream_video way = UPSTREAM_VIDEO_AUTO; way <= UPSTREAM_VIDEO_FRAMES; way++) {
            for (upstream_answer sees = UPSTREAM_UNKNOWN; sees <= UPSTREAM_NO; sees++) {
                say("ways", e, way, sees, &part, 1, NULL);
            }
        }
        part.pixels.min = 77;
        say("least pixels", e, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, NULL);
        part.pixels = (chat_pixels){0, 88};
        say("most pixels", e, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, NULL);
        for (size_t i = 1; i < sizeof videos / sizeof *videos;
             i += i == 5 ? 5 : 1) { /* vLLM's settings are of the whole body */
            chat_part two[] = {video_part(&videos[2]), video_part(&videos[i])};
            two[1].video.start_s = i == 2 ? 0.0 : two[1].video.start_s;
            say("two videos", e, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, two, 2, NULL);
        }
        chat_file list[1] = {{0}};
        part = video_part(&videos[0]);
        part.video.list = list;
        part.video.n_list = 1;
        say("a list of images", e, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, NULL);
    }
}

static void test_files(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    ledger *l = ledger_create(5000);
    ledger_hold hold = {.ledger = l};
    folder_make(folder);
    snprintf(path, sizeof path, "%s/video", folder);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, MP4, sizeof MP4 - 1) == (ssize_t)(sizeof MP4 - 1));
    chat_part part = video_part(&videos[1]);
    part.data = NULL;
    part.fd = fd;
    say("a file", UPSTREAM_PARLEY, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, &hold);
    bytes_printf(&all, "  reserved %zu\n", hold.bytes);
    ledger_give_all(&hold);
    part.data_bytes++;
    say("a file that is cut", UPSTREAM_PARLEY, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, &hold);
    part.data_bytes = LIMIT_UPSTREAM_VIDEO_BYTES;
    say("the largest", UPSTREAM_PARLEY, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, &hold);
    part.data_bytes++;
    say("a larger one", UPSTREAM_PARLEY, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, NULL);
    part = video_part(&videos[0]);
    part.data = (const uint8_t *)"no video at all, but text";
    say("no video", UPSTREAM_PARLEY, UPSTREAM_VIDEO_URL, UPSTREAM_UNKNOWN, &part, 1, NULL);
    close(fd);
    for (upstream_engine e = UPSTREAM_OTHER; e <= UPSTREAM_PARLEY; e++) {
        chat_part image = {.kind = CHAT_IMAGE, .data = MP4, .data_bytes = 9, .param = "there"};
        say("an image", e, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN, &image, 1, NULL);
        most_pixels = 1;
        say("an image of few pixels", e, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN, &image, 1, NULL);
        most_pixels = 0;
    }
    for (int i = 0; i < 2; i++) {
        chat_part frames = video_part(&videos[0]);
        gone = i == 0 ? &all : NULL;
        is_watched = i == 0;
        say(i ? "nobody looks" : "nobody waits", UPSTREAM_VLLM, UPSTREAM_VIDEO_FRAMES, UPSTREAM_UNKNOWN,
            &frames, 1, NULL);
    }
    is_watched = true;
    static const err_code CODES[] = {ERR_CORRUPT, ERR_NOMEM, ERR_BUSY, ERR_CANCELLED, ERR_UNSUPPORTED};
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
        chat_part image = {.kind = CHAT_IMAGE, .data = MP4, .data_bytes = 9, .param = "there"};
        copied = CODES[i];
        say("a damaged one", UPSTREAM_VLLM, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN, &image, 1, NULL);
        image.is_found = true;
        say("of a tool", UPSTREAM_VLLM, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN, &image, 1, NULL);
        image.param = NULL;
    }
    copied = ERR_OK;
    bytes_printf(&all, "  reserved %zu\n", hold.bytes);
    ledger_give_all(&hold);
    ledger_destroy(l);
}

/* A file is the same in pieces as in memory. */
static void test_long_file(void)
{
    enum { N = 200001 };
    static uint8_t data[N];
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/video", folder);
    for (size_t i = 0; i < N; i++) {
        data[i] = i < sizeof MP4 - 1 ? MP4[i] : (uint8_t)(i * i >> 5);
    }
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, data, N) == N);
    chat_part parts[] = {video_part(&videos[0]), video_part(&videos[0])};
    parts[0].data = data;
    parts[1].data = NULL;
    parts[1].fd = fd;
    bytes out[2] = {bytes_empty(1 << 20), bytes_empty(1 << 20)};
    for (int i = 0; i < 2; i++) {
        ledger_hold any = {.ledger = NULL};
        err_detail d = {0};
        upstream_media m = {.memory = &any, .engine = UPSTREAM_PARLEY, .sends_files = true};
        parts[i].data_bytes = N;
        CHECK_OK(upstream_media_write(&m, &out[i], &parts[i], &d), d);
    }
    CHECK(out[0].len > N / 3 * 4 && strcmp(bytes_str(&out[0]), bytes_str(&out[1])) == 0);
    bytes_deinit(&out[0]);
    bytes_deinit(&out[1]);
    close(fd);
}

int main(void)
{
    bytes_init(&all, 1 << 20);
    test_settings();
    test_files();
    test_long_file();
    recorded_check("server/upstream/media.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
