/* What is read of a video file before a demuxer sees it: bytes that are there, and where a GIF ends. */
#include "vision/video/video_header.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/file.h"
#include "tests/check.h"
#include "tests/guard.h"
#include "tests/one_fails.h"

ONE_FAILS(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), (errno = EIO, -1))

enum { MOST = 2048 };

/* From memory and from a file: all of the bytes or none. */
static void test_reading(void)
{
    static const struct {
        size_t at, n;
        bool is_there;
    } CASES[] = {{0, 0, true},  {0, 1, true},  {0, 10, true},       {0, 11, false}, {9, 1, true},
                 {9, 2, false}, {10, 0, true}, {10, 1, false},      {11, 0, false}, {SIZE_MAX, 1, false},
                 {4, 6, true},  {4, 7, false}, {1, SIZE_MAX, false}};
    char name[] = "/tmp/parley_header_XXXXXX";
    const int fd = mkstemp(name);
    CHECK(fd >= 0 && write(fd, "0123456789more", 14) == 14 && unlink(name) == 0);
    uint8_t *text = guard_copy("0123456789", 10);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int k = 0; k < 2; k++) {
            const video_source source = {.data = k ? NULL : text, .bytes = 10, .fd = k ? fd : -1};
            uint8_t got[16] = "________________";
            const size_t n = CASES[i].n < sizeof got ? CASES[i].n : 0;
            CHECK_INT(video_read_at(&source, CASES[i].at, got, CASES[i].n), CASES[i].is_there);
            CHECK(memcmp(got, CASES[i].is_there ? "0123456789" + CASES[i].at : "________________", n) == 0);
            CHECK(got[n] == '_');
        }
    }
    guard_free(text);
    close(fd);
}

static size_t put_table(uint8_t *to, uint8_t flags)
{
    size_t n = flags & 0x80 ? 6 : 0;
    for (int i = 0; n && i < (flags & 7); i++) {
        n *= 2;
    }
    memset(to, 0, n);
    return n;
}

/* A GIF with these flags of its screen and of each of two images, in front of each of which stands an extension. */
static size_t make_gif(uint8_t out[MOST], uint8_t screen, uint8_t image)
{
    static const uint8_t EXTENSION[] = {0x21, 0xf9, 4, 0, 0, 0, 0, 0}, PIXELS[] = {2, 2, 0x44, 1, 1, 0x3b, 0};
    size_t n = 13;
    memcpy(out, "GIF89a\x09\0\x07\0?\0\0", 13);
    out[10] = screen;
    n += put_table(out + n, screen);
    for (int i = 0; i < 2; i++) {
        memcpy(out + n, EXTENSION, sizeof EXTENSION);
        n += sizeof EXTENSION;
        memcpy(out + n, "\x2c\0\0\0\0\x09\0\x07\0", 9);
        out[n + 9] = image;
        n += 10;
        n += put_table(out + n, image);
        memcpy(out + n, PIXELS, sizeof PIXELS);
        n += sizeof PIXELS;
    }
    out[n++] = 0x3b;
    return n;
}

/* Tables of colours of every size, or none: whole up to the trailer, and not before it. */
static void test_gifs(void)
{
    static const uint8_t FLAGS[] = {0,    0x07, 0x78, 0x80, 0x81, 0x82, 0x83, 0x84,
                                    0x85, 0x86, 0x87, 0x88, 0xf0, 0xf7, 0xff};
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        for (size_t k = 0; k < 2; k++) {
            static uint8_t file[2 * MOST];
            const uint8_t screen = k ? 0x80 : FLAGS[i], image = k ? FLAGS[i] : 0;
            const size_t n = make_gif(file, screen, image);
            size_t n_short = 0;
            for (size_t cut = 0; cut <= n; cut++) {
                uint8_t *copy = guard_copy(file, cut);
                const bool whole =
                    video_is_complete(&(video_source){.data = copy, .bytes = cut, .fd = -1}, VIDEO_GIF);
                n_short += whole && cut < n;
                CHECK(cut < n || whole);
                guard_free(copy);
            }
            CHECK_INT(n_short, 0);
            file[n - 1] = 0x20; /* a block of no kind */
            CHECK(!video_is_complete(&(video_source){.data = file, .bytes = n, .fd = -1}, VIDEO_GIF));
        }
    }
}

/* Boxes of each form of length: all of them end inside the file. */
static void test_boxes(void)
{
    static const struct {
        const char *bytes;
        size_t n;
    } CASES[] = {{"\0\0\0\x08"
                  "ftyp",
                  8},
                 {"\0\0\0\x10"
                  "ftypabcdefgh",
                  16},
                 {"\0\0\0\x01mdat\0\0\0\0\0\0\0\x12xy", 18},
                 {"\0\0\0\x01mdat\0\0\0\0\0\0\0\x10", 16},
                 {"\0\0\0\x08"
                  "ftyp\0\0\0\x01mdat\0\0\0\0\0\0\0\x10\0\0\0\x09mdatx",
                  33}};
    static const size_t ENDS[] = {8, 24}; /* of boxes inside the last one */
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (size_t cut = 0; cut <= CASES[i].n; cut++) {
            uint8_t *copy = guard_copy((const uint8_t *)CASES[i].bytes, cut);
            const bool whole =
                video_is_complete(&(video_source){.data = copy, .bytes = cut, .fd = -1}, VIDEO_MP4);
            const bool ends = cut == 0 || cut == CASES[i].n || (i == 4 && (cut == ENDS[0] || cut == ENDS[1]));
            CHECK_INT(whole, ends);
            guard_free(copy);
        }
    }
    static const struct {
        const char *bytes;
        bool whole;
    } OTHERS[] = {{"\0\0\0\0mdatabcdefgh", true},              /* up to the end of the file */
                  {"\0\0\0\x07mdatabcdefgh", false},           /* shorter than its own head */
                  {"\0\0\0\x01mdat\0\0\0\0\0\0\0\x07", false}, /* the same in 64 bits */
                  {"\0\0\0\x01mdat\x80\0\0\0\0\0\0\x10", false}};
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        const video_source source = {.data = (const uint8_t *)OTHERS[i].bytes, .bytes = 16, .fd = -1};
        CHECK_INT(video_is_complete(&source, VIDEO_MP4), OTHERS[i].whole);
    }
}

/* Of a file that cannot be read in one place nobody can say that it is whole. */
static void test_refused_reads(void)
{
    static const char *const names[] = {"vp9.webm", "h264_faststart.mp4", "mpeg4.avi",
                                        "gif.gif",  "webp.webp",          "apng.png"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[4200];
        uint8_t head[16];
        CHECK(file_join(path, sizeof path, check_data("videos"), names[i]));
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const video_source source = {.fd = fd, .bytes = (size_t)lseek(fd, 0, SEEK_END)};
        CHECK(video_read_at(&source, 0, head, sizeof head));
        const video_format format = video_sniff(head, sizeof head);
        one_fails(NULL, 0);
        CHECK(video_is_complete(&source, format));
        const int n_calls = one_fails_counted("pread");
        CHECK(n_calls > 0);
        for (int n = 1; n <= n_calls; n++) {
            one_fails("pread", n);
            CHECK(!video_is_complete(&source, format));
            CHECK(one_fails_over());
        }
        close(fd);
    }
}

int main(void)
{
    test_reading();
    test_gifs();
    test_boxes();
    test_refused_reads();
    CHECK_DONE();
}
