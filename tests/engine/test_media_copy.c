/* media_copy and previews: tests/engine/media_copies.txt has what becomes of files; which images go as they are, which are
 * made smaller, how frames are numbered and timed, what is refused, that the memory is given back whatever happens, and
 * what the person who uploads is shown. */
#include "engine/media_copy.h"
#include "engine/engine_private.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "tests/check.h"
#include "tests/engine/chats.h"
#include "tests/engine/previews.h"
#include "tests/engine/readers.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "vision/image/image.h"
#include "vision/video/video_worker.h"

enum { MOST = 64 };

/* What came. */
typedef struct got {
    int32_t n;
    media_copy_file files[MOST];
    bool same[MOST]; /* the bytes that were sent */
    const uint8_t *sent;
    size_t n_sent;
    int32_t fail_at;   /* -1: nowhere */
    int32_t cancel_at; /* polls until then; -1: never */
} got;

static media_copier *c;
static ledger *memory;
static const char *program;

static err_code keep(void *ctx, const media_copy_file *file, err_detail *detail)
{
    got *g = ctx;
    CHECK(g->n < MOST && file->n_bytes > 0);
    CHECK(ledger_get_status(memory).used > 0 || file->data == g->sent);
    g->same[g->n] = file->n_bytes == g->n_sent && memcmp(file->data, g->sent, g->n_sent) == 0;
    if (!g->same[g->n]) { /* what was made can be read, and has the size that is told */
        const image_limits limits = {.max_pixels = 1 << 24, .max_side = 1 << 14};
        image_plan plan;
        err_detail d = {0};
        CHECK_OK(image_measure(&plan, file->data, file->n_bytes, &limits, &d), d);
        CHECK(plan.format == IMAGE_JPEG && plan.width == file->width && plan.height == file->height);
        CHECK_STR(file->mime, "image/jpeg");
    }
    g->files[g->n] = *file;
    return g->n++ == g->fail_at ? err_set(detail, ERR_IO, "nobody reads it") : ERR_OK;
}

static bool is_cancelled(void *ctx)
{
    got *g = ctx;
    return g->cancel_at >= 0 && g->cancel_at-- == 0;
}

static err_code copy(got *g, chat_part *part, media_copy_order order, err_detail *d)
{
    ledger_hold hold = {.ledger = memory};
    order.part = part;
    order.memory = &hold;
    order.each = keep;
    order.cancelled = is_cancelled;
    order.ctx = g;
    g->sent = part->data;
    g->n_sent = part->data_bytes;
    *d = (err_detail){0};
    const err_code err = media_copy(c, &order, d);
    CHECK_INT(hold.bytes, 0);
    CHECK_INT(ledger_get_status(memory).used, 0);
    return err;
}

static file_map map_of(const char *name)
{
    char path[4096];
    file_map map = {0};
    err_detail d = {0};
    CHECK(file_join(path, sizeof path, PARLEY_SOURCE_DIR, name));
    CHECK_OK(file_map_open(&map, path, &d), d);
    return map;
}

static void test_images(void)
{
    static const struct {
        const char *name;
        int64_t max_pixels, min, max; /* of the order, of the part */
        bool only_common, checks, is_same;
        int32_t width, height; /* 0: its own */
    } cases[] = {
        {"assets/samples/color.png", 1 << 24, 0, 0, false, false, true, 0, 0},
        {"assets/samples/color.png", 1 << 24, 0, 0, true, true, true, 0, 0},
        {"assets/samples/read-text.jpg", 1 << 24, 0, 0, true, false, true, 0, 0},
        {"assets/samples/color.png", 1000, 0, 0, false, false, false, 0, 0},
        {"assets/samples/color.png", 1 << 24, 0, 1000, false, false, false, 0, 0},
        {"assets/samples/color.png", 1000, 0, 1 << 24, false, false, false, 0, 0},
        {"assets/samples/color.png", 1000, 1 << 20, 0, false, false, false, 0, 0},
        {"tests/data/images/alpha.webp", 1 << 24, 0, 0, false, false, true, 0, 0},
        {"tests/data/images/alpha.webp", 1 << 24, 0, 0, true, false, false, 0, 0},
        {"tests/data/images/animated.gif", 1 << 24, 0, 0, false, false, true, 0, 0},
        {"tests/data/images/animated.gif", 1 << 24, 0, 0, true, false, false, 0, 0},
        {"tests/data/images/bilevel.bmp", 1 << 24, 0, 0, false, false, false, 0, 0},
        {"tests/data/images/deflate.tif", 1 << 24, 0, 0, false, false, false, 0, 0},
        {"tests/data/images/exif6.jpg", 1 << 24, 0, 0, false, false, false, 0, 0}, /* turned */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        file_map map = map_of(cases[i].name);
        const image_limits limits = {.max_pixels = 1 << 24, .max_side = 1 << 14};
        image_plan plan;
        err_detail d = {0};
        CHECK_OK(image_measure(&plan, map.data, map.bytes, &limits, &d), d);
        chat_part part = {.kind = CHAT_IMAGE, .data = map.data, .data_bytes = map.bytes};
        part.pixels.min = cases[i].min;
        part.pixels.max = cases[i].max;
        got g = {.fail_at = -1, .cancel_at = -1};
        const media_copy_order order = {.max_pixels = cases[i].max_pixels,
                                        .only_common = cases[i].only_common,
                                        .checks = cases[i].checks};
        CHECK_OK(copy(&g, &part, order, &d), d);
        const media_copy_file *f = &g.files[0];
        if (g.n != 1 || g.same[0] != cases[i].is_same) {
            fprintf(stderr, "  case %zu: %d files, %s\n", i, g.n, g.same[0] ? "as it was" : "made anew");
            CHECK(!"as it should be");
        }
        CHECK(f->i == 0 && f->n == 1 && f->t_s == 0 && f->duration_s == 0);
        const int64_t most =
            cases[i].max && cases[i].max < cases[i].max_pixels ? cases[i].max : cases[i].max_pixels;
        CHECK((int64_t)f->width * f->height <= most);
        if ((int64_t)plan.width * plan.height <= most) {
            CHECK(f->width == plan.width && f->height == plan.height);
        } else { /* as large as may be, in its proportions */
            CHECK((int64_t)f->width * f->height > most * 9 / 10);
            CHECK(fabs((double)f->width / f->height - (double)plan.width / plan.height) < 0.1);
        }
        if (cases[i].is_same) {
            CHECK_STR(f->mime, image_format_mime(plan.format));
        }
        if (!cases[i].is_same) { /* what takes it may refuse it, and nobody may want it any more */
            got refused = {.fail_at = 0, .cancel_at = -1};
            CHECK_INT(copy(&refused, &part, order, &d), ERR_IO);
            CHECK_STR(d.text, "nobody reads it");
        }
        file_map_close(&map);
    }
}

static void test_damage(void)
{
    file_map map = map_of("assets/samples/color.png");
    uint8_t *cut = malloc(map.bytes);
    err_detail d = {0};
    memcpy(cut, map.data, map.bytes);
    chat_part part = {.kind = CHAT_IMAGE, .data = cut, .data_bytes = map.bytes - 20};
    got g = {.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, (media_copy_order){.max_pixels = 1 << 24}, &d), d); /* nobody looked */
    got seen = {.fail_at = -1, .cancel_at = -1};
    CHECK_INT(copy(&seen, &part, (media_copy_order){.max_pixels = 1 << 24, .checks = true}, &d), ERR_CORRUPT);
    CHECK_INT(seen.n, 0);
    CHECK_INT(copy(&seen, &part, (media_copy_order){.max_pixels = 1000}, &d), ERR_CORRUPT);
    part.data_bytes = 5;
    CHECK_INT(copy(&seen, &part, (media_copy_order){.max_pixels = 1 << 24}, &d), ERR_UNSUPPORTED);
    part = (chat_part){.kind = CHAT_VIDEO, .data = cut, .data_bytes = map.bytes};
    CHECK(copy(&seen, &part, (media_copy_order){.max_pixels = 1 << 24, .max_frames = 4}, &d) != ERR_OK);
    CHECK_INT(seen.n, 0);
    free(cut);
    file_map_close(&map);
}

static void check_frames(const got *g, int32_t n, double duration)
{
    CHECK_INT(g->n, n);
    for (int32_t i = 0; i < g->n; i++) {
        const media_copy_file *f = &g->files[i];
        CHECK(f->i == i && f->n == n && f->width == g->files[0].width && f->height == g->files[0].height);
        CHECK(fabs(f->duration_s - duration) < 1e-6);
        CHECK(i == 0 ? f->t_s == 0 : f->t_s > g->files[i - 1].t_s && f->t_s <= duration);
    }
}

static void test_videos(void)
{
    file_map map = map_of("assets/samples/ball-moves.mp4");
    err_detail d = {0};
    chat_part part = {.kind = CHAT_VIDEO, .data = map.data, .data_bytes = map.bytes};
    const media_copy_order order = {.max_pixels = 1 << 20, .max_frames = 4};
    got g = {.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, order, &d), d);
    const double duration = g.files[0].duration_s;
    CHECK(duration > 0.5);
    check_frames(&g, 4, duration);
    part.video.n_frames = 3;
    g = (got){.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, order, &d), d);
    check_frames(&g, 3, duration);
    part.video.n_frames = 0;
    part.video.max_frames = 2;
    g = (got){.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, order, &d), d);
    check_frames(&g, 2, duration);
    part.video.max_frames = 0;
    part.video.min_frames = 6; /* the part may ask for as many as the options allow */
    g = (got){.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, order, &d), d);
    CHECK(g.n >= 6);
    check_frames(&g, g.n, duration);
    part.video.min_frames = g.n + 6; /* more than the video has seconds for */
    g = (got){.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, order, &d), d);
    check_frames(&g, part.video.min_frames, duration);
    const int32_t width = g.files[0].width;
    part.video.min_frames = 0;
    part.pixels.max = 4 * 1000; /* of all frames together */
    g = (got){.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, order, &d), d);
    check_frames(&g, 4, duration);
    CHECK(g.files[0].width < width && g.files[0].width * g.files[0].height <= 1000);
    g = (got){.fail_at = 1, .cancel_at = -1};
    CHECK_INT(copy(&g, &part, order, &d), ERR_IO);
    CHECK_INT(g.n, 2);
    g = (got){.fail_at = -1, .cancel_at = 0};
    CHECK_INT(copy(&g, &part, order, &d), ERR_CANCELLED);
    file_map_close(&map);

    /* A list of images: as many, by the rate that is told. */
    static const char *const names[] = {"assets/samples/two-differ-a.png", "assets/samples/two-differ-b.png",
                                        "assets/samples/two-differ-a.png"};
    file_map maps[3];
    chat_file list[3] = {{0}};
    for (size_t i = 0; i < 3; i++) {
        maps[i] = map_of(names[i]);
        list[i].data = maps[i].data;
        list[i].bytes = maps[i].bytes;
    }
    part = (chat_part){.kind = CHAT_VIDEO};
    part.video.list = list;
    part.video.n_list = 3;
    part.video.list_fps = 2;
    g = (got){.fail_at = -1, .cancel_at = -1};
    CHECK_OK(copy(&g, &part, (media_copy_order){.max_pixels = 3000, .max_frames = 8}, &d), d);
    check_frames(&g, 3, 1.5);
    CHECK(fabs(g.files[2].t_s - 1.0) < 1e-9);
    CHECK(g.files[0].width * g.files[0].height <= 1000);
    g = (got){.fail_at = -1, .cancel_at = 0};
    CHECK_INT(copy(&g, &part, (media_copy_order){.max_pixels = 3000, .max_frames = 8}, &d), ERR_CANCELLED);
    CHECK_INT(g.n, 0);
    for (size_t i = 0; i < 3; i++) {
        file_map_close(&maps[i]);
    }
}

/* ---- previews ---- */

typedef struct shown {
    int n_facts, n_thumbs;
    engine_media_facts facts;
    preview_thumb last;
    double first_t;
    bool is_cancelled;
} shown;

static void take_facts(void *ctx, const engine_media_facts *facts)
{
    shown *s = ctx;
    CHECK_INT(s->n_thumbs, 0);
    s->n_facts++;
    s->facts = *facts;
}

static void take_thumb(void *ctx, const preview_thumb *thumb)
{
    shown *s = ctx;
    CHECK(s->n_facts == 1 && thumb->width <= 160 && thumb->height <= 160 && thumb->n_bytes > 100);
    CHECK(thumb->width == 160 || thumb->height == 160 || thumb->width == s->facts.width);
    CHECK(s->n_thumbs == 0 || thumb->t_s > s->last.t_s);
    s->first_t = s->n_thumbs == 0 ? thumb->t_s : s->first_t;
    s->last = *thumb;
    s->n_thumbs++;
}

static bool preview_stopped(void *ctx)
{
    return ((shown *)ctx)->is_cancelled;
}

static err_code preview(shown *s, preview_tokens *tokens, const char *name, size_t cut, bool is_video,
                        err_detail *d)
{
    char path[4096];
    CHECK(file_join(path, sizeof path, PARLEY_SOURCE_DIR, name));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const off_t n = lseek(fd, 0, SEEK_END);
    const preview_hooks hooks = {take_facts, take_thumb, preview_stopped, s};
    *d = (err_detail){0};
    const err_code err = media_copier_preview(c, tokens, fd, cut ? cut : (size_t)n, is_video, &hooks, d);
    CHECK_INT(close(fd), 0); /* it stays ours */
    CHECK_INT(ledger_get_status(memory).used, 0);
    return err;
}

static void test_previews(void)
{
    preview_tokens tokens = {0};
    err_detail d = {0};
    shown s = {0};
    CHECK_OK(preview(&s, &tokens, "assets/samples/color.png", 0, false, &d), d);
    CHECK(s.n_facts == 1 && s.n_thumbs == 1 && s.facts.width > 0 && s.facts.n_frames == 0 && !s.facts.codec);
    CHECK_INT(tokens.n_frames, 1);
    CHECK(tokens.n_tokens >= 64 + 2 &&
          tokens.n_tokens < 1000); /* 65536 pixels at least are shown: 8 x 8 tokens */
    CHECK(s.last.t_s == 0);
    s = (shown){0};
    CHECK_OK(preview(&s, &tokens, "assets/samples/ball-moves.mp4", 0, true, &d), d);
    CHECK(s.n_facts == 1 && s.n_thumbs >= 2 && s.n_thumbs <= ENGINE_PREVIEW_THUMBS && s.first_t == 0);
    CHECK(s.facts.codec && s.facts.duration_s > 0.5 && s.facts.fps > 0 && s.facts.n_frames > 2);
    CHECK(s.n_thumbs == (tokens.n_frames < ENGINE_PREVIEW_THUMBS ? tokens.n_frames : ENGINE_PREVIEW_THUMBS));
    CHECK(tokens.n_tokens >= tokens.n_frames / 2 * 10);
    s = (shown){0};
    CHECK_INT(preview(&s, &tokens, "assets/samples/color.png", 30, false, &d), ERR_CORRUPT);
    CHECK(s.n_facts == 0 && tokens.n_frames == 0 && tokens.n_tokens == 0);
    CHECK_INT(preview(&s, &tokens, "assets/samples/color.png", (size_t)LIMIT_BODY_BYTES + 1, false, &d),
              ERR_LIMIT);
    CHECK(preview(&s, &tokens, "assets/samples/color.png", 0, true, &d) != ERR_OK);
    CHECK(preview(&s, &tokens, "assets/samples/ball-moves.mp4", 0, false, &d) != ERR_OK);
    CHECK(s.n_facts == 0);
    s.is_cancelled = true;
    CHECK_INT(preview(&s, &tokens, "assets/samples/ball-moves.mp4", 0, true, &d), ERR_CANCELLED);
}

/* The limits of the options, where they say some, and none beyond the server's own. */
static void test_settings(void)
{
    const video_limits usual = video_limits_default();
    media_settings m = media_settings_of(&(engine_options){.video_program = NULL}, memory);
    CHECK_INT(m.max_video_frames, LIMIT_VIDEO_FRAMES);
    CHECK_INT(m.max_image_pixels, LIMIT_IMAGE_PIXELS);
    CHECK(m.memory == memory && m.video_program == NULL);
    CHECK_INT(m.video_limits.n_threads, LIMIT_VIDEO_THREADS);
    CHECK_INT(m.video_limits.max_bytes, usual.max_bytes);
    CHECK_INT(m.video_limits.max_pixels, usual.max_pixels);
    CHECK_INT(m.video_limits.max_memory, usual.max_memory);
    CHECK_NEAR(m.video_limits.max_duration_s, usual.max_duration_s, 0);
    CHECK_NEAR(m.video_limits.max_wall_s, usual.max_wall_s, 0);
    m = media_settings_of(&(engine_options){.videos = {.max_bytes = 1,
                                                       .max_pixels = 1,
                                                       .max_memory = 1,
                                                       .max_duration_s = 1,
                                                       .max_time_s = 1,
                                                       .max_frames = 1},
                                            .max_image_pixels = 1,
                                            .video_program = "p"},
                          NULL);
    CHECK(m.video_limits.max_bytes == 1 && m.video_limits.max_pixels == 1 && m.video_limits.max_memory == 1);
    CHECK(m.video_limits.max_duration_s == 1 && m.video_limits.max_wall_s == 1 && m.max_image_pixels == 1);
    CHECK(m.memory == NULL && m.max_video_frames == 1 && strcmp(m.video_program, "p") == 0);
    for (int32_t more = -1; more <= 1; more++) {
        m = media_settings_of(&(engine_options){.videos = {.max_frames = LIMIT_VIDEO_FRAMES_MAX + more},
                                                .max_image_pixels = LIMIT_IMAGE_PIXELS + more},
                              NULL);
        CHECK_INT(m.max_video_frames, LIMIT_VIDEO_FRAMES_MAX + (more < 0 ? more : 0));
        CHECK_INT(m.max_image_pixels, LIMIT_IMAGE_PIXELS + (more < 0 ? more : 0));
    }
}

/* ---- recorded ----
 *
 *     > {"messages":[{"role":"user","content":[{"image":"FILE","max":1000}]}],"pixels":4000,"common":true,"memory":100000,"cancels":true}
 *     < 0 of 1: image/jpeg 30x30, scale 3, at 0 of 0 s
 *     > {"preview":"FILE","is_video":true}      as in previews.h
 */

enum { MEMORY = 1 << 30, MOST_LOOKS = 100 };

static err_code tell_file(void *ctx, const media_copy_file *f, err_detail *detail)
{
    preview_teller *t = ctx;
    (void)detail;
    bytes_printf(t->out, "< %d of %d: %s %dx%d, scale %d, at %.4g of %g s\n", f->i, f->n, f->mime, f->width,
                 f->height, strcmp(f->mime, "image/jpeg") == 0 ? previews_scale(f->data, f->n_bytes) : 0,
                 f->t_s, f->duration_s);
    return ERR_OK;
}

static err_code tell_copy(preview_teller *t, const json *v, const chat_input *in, err_detail *d)
{
    ledger_hold hold = {.ledger = memory};
    const media_copy_order order = {.part = &in->messages[0].parts[0],
                                    .max_pixels = chats_number(v, "pixels", 1 << 24),
                                    .max_frames = (int32_t)chats_number(v, "frames", 4),
                                    .only_common = json_is_true(json_get(v, "common")),
                                    .checks = json_is_true(json_get(v, "checks")),
                                    .memory = &hold,
                                    .each = tell_file,
                                    .cancelled = json_get(v, "unhooked") ? NULL : previews_cancelled,
                                    .ctx = t};
    const err_code err = media_copy(c, &order, d);
    if (err != ERR_OK) {
        bytes_printf(t->out, "< error %s: %s\n", err_name(err), d->text);
    }
    CHECK_INT(hold.bytes, 0);
    return err;
}

static err_code tell_preview(preview_teller *t, const json *v, err_detail *d)
{
    const int fd = open(chats_path(chats_text(v, "preview")), O_RDONLY | O_CLOEXEC);
    const size_t n = (size_t)chats_number(v, "bytes", lseek(fd, 0, SEEK_END));
    const preview_hooks hooks = previews_hooks(t);
    preview_tokens tokens = {-1, -1};
    const err_code err = media_copier_preview(c, &tokens, json_get(v, "gone") ? -1 : fd, n,
                                              json_is_true(json_get(v, "is_video")), &hooks, d);
    previews_tell(t, err, &tokens, d);
    close(fd);
    return err;
}

/* Once, or cancelled at each look until it is done; with a ledger of its own, whose peak is told. "apart": read in another
 * process, which takes a tenth of a second. "asks": what is asked of readers is told, too. */
static void tell_line(bytes *out, const char *line, size_t len)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, line, len, LIMIT_JSON_DEPTH, &d), d);
    const json *v = json_root(doc);
    chat_input *in = chats_make(v);
    memory = ledger_create((size_t)chats_number(v, "memory", MEMORY));
    c = media_copier_create(
        &(engine_options){.memory = memory,
                          .video_program = json_is_true(json_get(v, "apart")) ? program : NULL,
                          .max_image_pixels = chats_number(v, "largest", 0),
                          .videos = {.max_frames = (int32_t)chats_number(v, "shown", 0),
                                     .max_time_s = json_num(json_get(v, "seconds"), 0)}});
    CHECK(memory != NULL && c != NULL);
    readers_told = json_get(v, "asks") ? out : NULL;
    for (int32_t stops_at = json_get(v, "cancels") != NULL; stops_at < MOST_LOOKS; stops_at++) {
        preview_teller t = {.out = out, .stops_at = stops_at};
        d = (err_detail){0};
        const err_code err = json_get(v, "preview") ? tell_preview(&t, v, &d) : tell_copy(&t, v, in, &d);
        CHECK_INT(ledger_get_status(memory).used, 0);
        if (stops_at == 0 || err != ERR_CANCELLED) {
            break;
        }
    }
    bytes_printf(out, "< peak %zu\n", ledger_get_status(memory).peak);
    media_copier_destroy(c);
    ledger_destroy(memory);
    chat_input_destroy(in);
    json_free(doc);
}

static void tell_answer(void *ctx, bytes *out, const char *line, size_t len)
{
    (void)ctx;
    if (*line == '>') {
        tell_line(out, line + 2, len - 2);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], VIDEO_WORKER_COMMAND) == 0) {
        return video_worker_main();
    }
#ifdef PARLEY_EMULATOR
    CHECK_SKIP("this program starts itself again, which an emulator does not do");
#endif
    memory = ledger_create((size_t)2 << 30);
    c = media_copier_create(&(engine_options){.memory = memory, .video_program = argv[0]});
    CHECK(memory != NULL && c != NULL);
    test_settings();
    test_images();
    test_damage();
    test_videos();
    test_previews();
    media_copier_destroy(c);
    media_copier_destroy(NULL);
    ledger_destroy(memory);
    program = argv[0];
    recorded_answers(PARLEY_SOURCE_DIR "/tests/engine/media_copies.txt", tell_answer, NULL);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
