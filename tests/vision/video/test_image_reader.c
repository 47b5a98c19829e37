/* Images that are decoded in the confined process: the same pixels as here, and an error that names
 * the limit when its memory does not suffice. The process is this program.
 */
#include "vision/video/image_reader.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "tests/check.h"
#include "tests/one_fails.h"
#include "vision/video/video_worker.h"
#include "vision/image/resize.h"

#define ASLEEP "/proc/self/./exe" /* this program, which then does nothing */

static const image_limits LIMITS = {.max_pixels = LIMIT_IMAGE_PIXELS, .max_side = LIMIT_IMAGE_SIDE};

/* A lossless WebP of one colour: five codes of one symbol each. */
static size_t make_webp(uint8_t out[64], uint32_t width, uint32_t height)
{
    const uint64_t head = (uint64_t)(width - 1) | (uint64_t)(height - 1) << 14;
    uint8_t *data = out + 20;
    memset(out, 0, 64);
    memcpy(out, "RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0\x2f", 21);
    for (int i = 0; i < 4; i++) {
        data[1 + i] = (uint8_t)(head >> 8 * i);
    }
    /* From bit 43 on: no transform, cache or meta codes are seven zeros from bit 32; then a one and
     * three zeros, five times. */
    for (int code = 0, bit = 8 + 28 + 4 + 3; code < 5; code++, bit += 4) {
        data[bit / 8] |= (uint8_t)(1 << bit % 8);
    }
    return 40;
}

static void test_same_pixels(void)
{
    uint8_t file[64];
    err_detail d = {0};
    image here = {0}, there = {0};
    image_plan plan;
    image_read_job job = {.data = file,
                          .bytes = make_webp(file, 320, 200),
                          .limits = LIMITS,
                          .max_memory = (size_t)128 << 20,
                          .max_wall_s = 30};
    CHECK_OK(image_reader_measure(&plan, &job, &d), d);
    CHECK_INT(plan.width, 320);
    CHECK_INT(plan.height, 200);
    const size_t bytes_here = plan.bytes;
    CHECK_OK(image_reader_read(&here, &job, &plan, 64, 32, &d), d);
    CHECK_INT(here.width, 320); /* in its own size */
    job.program = "/proc/self/exe";
    CHECK_OK(image_reader_measure(&plan, &job, &d), d);
    CHECK(plan.bytes > bytes_here); /* the process, too */
    /* Also where one of its sides stays. */
    static const int32_t SIZES[][2] = {{64, 32}, {64, 200}, {320, 32}, {7, 5}};
    for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
        const int32_t width = SIZES[i][0], height = SIZES[i][1];
        const size_t n = (size_t)width * (size_t)height * 3;
        CHECK_OK(image_reader_read(&there, &job, &plan, width, height, &d), d);
        CHECK_INT(there.width, width);
        CHECK_INT(there.height, height);
        uint8_t *resized = malloc(n);
        if (here.rgb && there.rgb && resized) {
            CHECK_OK(resize_bicubic(resized, width, height, here.rgb, 320, 200, &d), d);
            CHECK(memcmp(resized, there.rgb, n) == 0);
        }
        free(resized);
        image_deinit(&there);
    }
    image_deinit(&here);
}

/* The smallest image is one, too. */
static void test_one_pixel(void)
{
    uint8_t file[64];
    err_detail d = {0};
    image there = {0};
    image_plan plan;
    const image_read_job job = {.data = file,
                                .bytes = make_webp(file, 1, 1),
                                .limits = LIMITS,
                                .max_memory = (size_t)128 << 20,
                                .max_wall_s = 30,
                                .program = "/proc/self/exe"};
    CHECK_OK(image_reader_measure(&plan, &job, &d), d);
    CHECK_OK(image_reader_read(&there, &job, &plan, 1, 1, &d), d);
    CHECK(there.width == 1 && there.height == 1);
    image_deinit(&there);
}

/* A file of every format and kind: decoded there as here. */
static void test_files(void)
{
    static const char *const NAMES[] = {"lossy.webp",   "alpha_lossless.webp", "exif6.webp", "animated.webp",
                                        "animated.gif", "alpha.tif",           "exif6.tif",  "palette.bmp"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        char path[512];
        bytes file;
        err_detail d = {0};
        image here = {0}, there = {0};
        image_plan plan;
        snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/tests/data/images/%s", NAMES[i]);
        bytes_init(&file, 1 << 20);
        CHECK_OK(file_read(&file, path, &d), d);
        const image_read_job job = {.data = (const uint8_t *)file.data,
                                    .bytes = file.len,
                                    .limits = LIMITS,
                                    .max_memory = (size_t)128 << 20,
                                    .max_wall_s = 30,
                                    .program = "/proc/self/exe"};
        CHECK_OK(image_reader_measure(&plan, &job, &d), d);
        CHECK_OK(image_decode(&here, job.data, job.bytes, &LIMITS, &d), d);
        CHECK_OK(image_reader_read(&there, &job, &plan, plan.width, plan.height, &d), d);
        CHECK_INT(here.width, plan.width);
        CHECK_INT(here.height, plan.height);
        if (here.rgb && there.rgb) {
            CHECK(memcmp(here.rgb, there.rgb, (size_t)here.width * (size_t)here.height * 3) == 0);
        }
        image_deinit(&here);
        image_deinit(&there);
        bytes_deinit(&file);
    }
}

static void test_errors(void)
{
    uint8_t file[64];
    err_detail d = {0};
    image img = {0};
    image_plan plan;
    image_read_job job = {.data = file,
                          .bytes = make_webp(file, 8000, 8000),
                          .limits = LIMITS,
                          .max_memory = (size_t)64 << 20,
                          .max_wall_s = 30,
                          .program = "/proc/self/exe"};
    CHECK_OK(image_reader_measure(&plan, &job, &d), d);
    CHECK(plan.bytes <= (size_t)128 << 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK_INT(image_reader_read(&img, &job, &plan, 64, 64, &d), ERR_LIMIT);
    CHECK_STR(d.name, "image_too_large");
    CHECK(strstr(d.text, "40 bytes") && strstr(d.text, "8000 x 8000") && strstr(d.text, "64 MiB"));
    CHECK(!img.rgb);
#endif
    job.bytes = make_webp(file, 320, 200);
    CHECK_OK(image_reader_measure(&plan, &job, &d), d);
    file[25] |= 0xff; /* no such transform */
    CHECK_INT(image_reader_read(&img, &job, &plan, 64, 64, &d), ERR_CORRUPT);
    CHECK_STR(d.name, "image_parse_error");
    CHECK(strstr(d.text, "WebP") != NULL);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

/* A process that says nothing, one that is not wanted any more, and one that cannot be started. */
static void test_ends(void)
{
    static const struct {
        const char *program;
        double wall_s;
        bool (*cancelled)(void *ctx);
        err_code code;
        const char *name, *text;
    } CASES[] = {
        {ASLEEP, 0.2, NULL, ERR_TIMEOUT, "image_timeout", "reading the image took too long"},
        {ASLEEP, 30, always, ERR_CANCELLED, "", "reading the image was stopped"},
        {"/nowhere/at/all", 30, NULL, ERR_NOMEM, "", "the system refused a process"},
    };
    uint8_t file[64];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        err_detail d = {0};
        image img = {0};
        image_plan plan;
        const image_read_job job = {.data = file,
                                    .bytes = make_webp(file, 320, 200),
                                    .limits = LIMITS,
                                    .max_memory = (size_t)128 << 20,
                                    .max_wall_s = CASES[i].wall_s,
                                    .cancelled = CASES[i].cancelled,
                                    .program = CASES[i].program};
        CHECK_OK(image_reader_measure(&plan, &job, &d), d);
        CHECK_INT(image_reader_read(&img, &job, &plan, 64, 64, &d), CASES[i].code);
        CHECK_STR(d.name, CASES[i].name);
        CHECK(strstr(d.text, CASES[i].text) != NULL);
        CHECK(img.rgb == NULL);
    }
}

ONE_FAILS(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags),
          (errno = ECONNRESET, -1))

/* Wherever the process falls silent, also behind the image: there is an error, and no pixels. Of a small image, each part of
 * which comes at once: what is ahead of a message, then its parts. */
static void test_broken_off(void)
{
    enum { N_PARTS = 5 };
    uint8_t file[64];
    image there;
    image_plan plan;
    err_detail d = {0};
    const image_read_job job = {.data = file,
                                .bytes = make_webp(file, 320, 200),
                                .limits = LIMITS,
                                .max_memory = (size_t)128 << 20,
                                .max_wall_s = 30,
                                .program = "/proc/self/exe"};
    CHECK_OK(image_reader_measure(&plan, &job, &d), d);
    one_fails(NULL, 0);
    CHECK_OK(image_reader_read(&there, &job, &plan, 7, 5, &d), d);
    CHECK_INT(one_fails_counted("recv"), N_PARTS);
    image_deinit(&there);
    for (int n = 1; n <= N_PARTS; n++) {
        one_fails("recv", n);
        CHECK_INT(image_reader_read(&there, &job, &plan, 7, 5, &d), ERR_CORRUPT);
        CHECK(one_fails_over());
        CHECK_STR(d.name, "image_parse_error");
        CHECK(!there.rgb && there.width == 0);
    }
}

int main(int argc, char **argv)
{
    if (strcmp(argv[0], ASLEEP) == 0) {
        pause();
    }
    if (argc > 1 && strcmp(argv[1], VIDEO_WORKER_COMMAND) == 0) {
        return video_worker_main();
    }
#ifdef PARLEY_EMULATOR
    CHECK_SKIP(
        "the confined process is this program once more, which the system cannot start without the emulator");
#endif
    test_same_pixels();
    test_one_pixel();
    test_files();
    test_errors();
    test_broken_off();
    test_ends();
    CHECK_DONE();
}
