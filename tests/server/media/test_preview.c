/* preview: what is said of an uploaded file: whole messages for each thing that may be seen of it, by whom it is shown, and
 * what is left out. The file, the engine and the copier are made up. */
#include "server/media/preview.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/open_files.h"

/* ---- what is seen ---- */

static const char *mime;  /* of the file; NULL: neither an image nor a video */
static err_code open_err; /* of the file */
static engine_info info;  /* of the engine */
static engine_media_facts facts;
static int n_thumbs;
static size_t jpeg_bytes;
static err_code ends_with;
static bool is_cancelled;

static char shown_by[128]; /* who, how many bytes, what, and whether somebody waits */
static uint8_t jpeg[1 << 18];

err_code __wrap_file_store_open(file_store *fs, uint64_t scope, const char *id, file_handle *out,
                                err_detail *d);
err_code __wrap_file_store_open(file_store *fs, uint64_t scope, const char *id, file_handle *out,
                                err_detail *d)
{
    CHECK(!fs && scope == 7 && !d);
    CHECK_STR(id, "file_1");
    *out = (file_handle){.fd = open("/dev/null", O_RDONLY), .bytes = 1234, .mime = mime};
    return open_err;
}

const engine_info *__wrap_engine_get_info(const engine *e);
const engine_info *__wrap_engine_get_info(const engine *e)
{
    (void)e;
    return &info;
}

static err_code show(const char *who, preview_tokens *out, int fd, size_t n_bytes, bool is_video,
                     const preview_hooks *hooks)
{
    CHECK(fcntl(fd, F_GETFD) >= 0);
    snprintf(shown_by, sizeof shown_by, "%s: %zu bytes of %s%s", who, n_bytes,
             is_video ? "a video" : "an image", hooks->cancelled(hooks->ctx) ? ", nobody waits" : "");
    if (facts.width > 0) {
        hooks->facts(hooks->ctx, &facts);
    }
    for (int i = 0; i < n_thumbs; i++) {
        const preview_thumb thumb = {
            .t_s = 1.25 * i, .width = 40 + i, .height = 30 + i, .jpeg = jpeg, .n_bytes = jpeg_bytes};
        hooks->thumb(hooks->ctx, &thumb);
    }
    *out = (preview_tokens){.n_frames = 10, .n_tokens = 321};
    return ends_with;
}

err_code __wrap_engine_preview(const engine *e, preview_tokens *out, int fd, size_t n_bytes, bool is_video,
                               const preview_hooks *hooks, err_detail *d);
err_code __wrap_engine_preview(const engine *e, preview_tokens *out, int fd, size_t n_bytes, bool is_video,
                               const preview_hooks *hooks, err_detail *d)
{
    (void)d;
    return show(e ? "the engine" : "no engine", out, fd, n_bytes, is_video, hooks);
}

err_code __wrap_media_copier_preview(const media_copier *c, preview_tokens *out, int fd, size_t n_bytes,
                                     bool is_video, const preview_hooks *hooks, err_detail *d);
err_code __wrap_media_copier_preview(const media_copier *c, preview_tokens *out, int fd, size_t n_bytes,
                                     bool is_video, const preview_hooks *hooks, err_detail *d)
{
    (void)d;
    return show(c ? "the copier" : "no copier", out, fd, n_bytes, is_video, hooks);
}

/* ---- what is said ---- */

static char members[512];
static int n_members;
static bytes out;

static bool cancelled(void *ctx)
{
    CHECK(ctx == members);
    return is_cancelled;
}

static void on_facts(void *ctx, bytes *text)
{
    CHECK(ctx == members);
    snprintf(members, sizeof members, "%s", bytes_str(text));
    n_members++;
}

/* Never looked into. */
static engine *const AN_ENGINE = (engine *)&info;
static media_copier *const A_COPIER = (media_copier *)&facts;

static const char *say(bool has_engine, bool has_copier)
{
    members[0] = shown_by[0] = '\0';
    n_members = 0;
    bytes_deinit(&out);
    bytes_init(&out, 1 << 21);
    preview_run(&out, &(preview_task){.engine = has_engine ? AN_ENGINE : NULL,
                                      .media = has_copier ? A_COPIER : NULL,
                                      .scope = 7,
                                      .file_id = "file_1",
                                      .cancelled = cancelled,
                                      .on_facts = on_facts,
                                      .ctx = members});
    return bytes_str(&out);
}

#define THUMB(t, w, h)                                                                                       \
    "{\"t_ms\":" t ",\"width\":" w ",\"height\":" h ",\"data_uri\":\"data:image/jpeg;base64,anBlZw==\"}"
#define MESSAGE(thumbs)                                                                                      \
    "{\"type\":\"media.preview\",\"file_id\":\"file_1\",\"thumbs\":[" thumbs                                 \
    "],\"sampled_frames\":10,\"est_tokens\":321}"

static void test_messages(void)
{
    mime = "image/png";
    facts = (engine_media_facts){.width = 640, .height = 480};
    n_thumbs = 1;
    jpeg_bytes = 4;
    CHECK_STR(say(true, true), MESSAGE(THUMB("0", "40", "30")));
    CHECK_STR(members, ",\"width\":640,\"height\":480");
    CHECK_INT(n_members, 1);

    mime = "video/mp4";
    facts = (engine_media_facts){.width = 64,
                                 .height = 48,
                                 .duration_s = 2.7186,
                                 .fps = 29.97003,
                                 .n_frames = 5000000000,
                                 .codec = "H.\"264\"",
                                 .has_audio = true};
    n_thumbs = 3;
    CHECK_STR(say(true, true),
              MESSAGE(THUMB("0", "40", "30") "," THUMB("1250", "41", "31") "," THUMB("2500", "42", "32")));
    CHECK_STR(members,
              ",\"width\":64,\"height\":48,\"duration_ms\":2719,\"fps\":29.970,\"frames\":5000000000,"
              "\"codec\":\"H.\\\"264\\\"\",\"has_audio\":true");
    facts.has_audio = false;
    ends_with = ERR_CORRUPT; /* what was seen until then is shown */
    CHECK_STR(say(true, true),
              MESSAGE(THUMB("0", "40", "30") "," THUMB("1250", "41", "31") "," THUMB("2500", "42", "32")));
    CHECK(strstr(members, "\"has_audio\":false") != NULL);
    n_thumbs = 0;
    CHECK_STR(say(true, true), "");
    CHECK_INT(n_members, 1);
    n_thumbs = 1;
    is_cancelled = true;
    ends_with = ERR_CANCELLED;
    CHECK_STR(say(true, true), "");
    CHECK_STR(shown_by, "the copier: 1234 bytes of a video, nobody waits");
    is_cancelled = false;
    ends_with = ERR_OK;
    static char wide[4096]; /* of a codec's name too much is not said at all */
    memset(wide, 'c', sizeof wide - 1);
    facts.codec = wide;
    (void)say(true, true);
    CHECK_INT(n_members, 0);
    facts.codec = NULL;
    facts.width = 0;
    CHECK_STR(say(true, true), MESSAGE(THUMB("0", "40", "30")));
    CHECK_INT(n_members, 0);
    n_thumbs = 2; /* as base64, with what stands beside them: as much as a message may have, and more */
    jpeg_bytes = 196554;
    CHECK_INT(strlen(say(true, true)), PREVIEW_BYTES + strlen(MESSAGE("")));
    jpeg_bytes++;
    CHECK_INT(strlen(say(true, true)), 0);
}

static void test_by_whom(void)
{
    static const struct {
        const char *mime;
        bool has_engine, has_copier, sees_images, sees_videos;
        const char *by;
    } ROWS[] = {
        {"image/png", true, true, true, false, "the engine: 1234 bytes of an image"},
        {"image/png", true, true, false, true, "the copier: 1234 bytes of an image"},
        {"image/png", true, false, false, true, "the engine: 1234 bytes of an image"},
        {"image/png", false, true, true, true, "the copier: 1234 bytes of an image"},
        {"image/png", false, false, true, true, "no engine: 1234 bytes of an image"},
        {"video/mp4", true, true, true, false, "the copier: 1234 bytes of a video"},
        {"video/mp4", true, true, false, true, "the engine: 1234 bytes of a video"},
        {"video/mp4", true, false, true, false, "the engine: 1234 bytes of a video"},
        {"videos/mp4", true, true, true, false, "the engine: 1234 bytes of an image"},
        {NULL, true, true, true, true, ""},
    };
    n_thumbs = 1;
    jpeg_bytes = 4;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        mime = ROWS[i].mime;
        info.has_vision = ROWS[i].sees_images;
        info.has_video = ROWS[i].sees_videos;
        CHECK_STR(say(ROWS[i].has_engine, ROWS[i].has_copier), mime ? MESSAGE(THUMB("0", "40", "30")) : "");
        CHECK_STR(shown_by, ROWS[i].by);
    }
    mime = "image/png";
    open_err = ERR_NOT_FOUND;
    CHECK_STR(say(true, true), "");
    CHECK_STR(shown_by, "");
}

int main(void)
{
    memcpy(jpeg, "jpeg", 4);
    test_messages();
    test_by_whom();
    bytes_deinit(&out);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
