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
#include "vision/video/video_webp.h"

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

/* What the first twelve bytes say, one byte less, and with each of them changed. */
static void test_sniffing(void)
{
    static const struct {
        video_format format;
        const char *bytes, *counts; /* an x for each byte that matters */
    } CASES[] = {
        {VIDEO_MATROSKA, "\x1a\x45\xdf\xa3________", "xxxx        "},
        {VIDEO_AVI, "RIFF____AVI ", "xxxx    xxxx"},
        {VIDEO_WEBP, "RIFF____WEBP", "xxxx    xxxx"},
        {VIDEO_GIF, "GIF87a______", "xxxxxx      "},
        {VIDEO_GIF, "GIF89a______", "xxxxxx      "},
        {VIDEO_APNG, "\x89PNG\r\n\x1a\n____", "xxxxxxxx    "},
        {VIDEO_MP4, "____ftyp____", "    xxxx    "},
        {VIDEO_MP4, "____moov____", "    xxxx    "},
        {VIDEO_MP4, "____mdat____", "    xxxx    "},
        {VIDEO_MP4, "____wide____", "    xxxx    "},
        {VIDEO_MP4, "____free____", "    xxxx    "},
        {VIDEO_MP4, "____skip____", "    xxxx    "},
        {VIDEO_UNKNOWN, "____trak____", "            "},
        {VIDEO_UNKNOWN, "RIFF____WAVE", "            "},
        {VIDEO_UNKNOWN, "GIF88a______", "            "},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        uint8_t head[12];
        memcpy(head, CASES[i].bytes, 12);
        CHECK_INT(video_sniff(head, 12), CASES[i].format);
        CHECK_INT(video_sniff(head, 11), VIDEO_UNKNOWN);
        for (size_t k = 0; k < 12; k++) {
            head[k] ^= 0x80;
            CHECK_INT(video_sniff(head, 12), CASES[i].counts[k] == 'x' ? VIDEO_UNKNOWN : CASES[i].format);
            head[k] ^= 0x80;
        }
    }
    CHECK(!video_is_complete(&(video_source){.data = (const uint8_t *)"____trak____", .bytes = 12, .fd = -1},
                             VIDEO_UNKNOWN));
}

static bool is_whole(const uint8_t *file, size_t n, video_format format)
{
    uint8_t *copy = guard_copy(file, n);
    const bool whole = video_is_complete(&(video_source){.data = copy, .bytes = n, .fd = -1}, format);
    guard_free(copy);
    return whole;
}

/* An EBML number of so many bytes; unknown: all its bits are set. */
static size_t put_ebml(uint8_t *to, size_t len, uint64_t value, bool unknown)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = unknown ? 0xff : (uint8_t)(value >> 8 * (len - 1 - i));
    }
    to[0] = (uint8_t)((to[0] & (0xff >> len)) | 0x80 >> (len - 1));
    return len;
}

/* Matroska: the lengths of the head and of the one segment behind it, of one to eight bytes. */
static void test_segments(void)
{
    enum { INSIDE = 20 };
    for (size_t i = 0; i < 8 * 8 * 4; i++) {
        uint8_t file[64] = "\x1a\x45\xdf\xa3";
        const size_t of_head = 1 + i % 8, of_segment = 1 + i / 8 % 8;
        const bool head_unknown = i / 64 & 1, unknown = i / 64 & 2;
        size_t n = 4 + put_ebml(file + 4, of_head, 3, head_unknown) + 3;
        memcpy(file + n, "\x18\x53\x80\x67", 4);
        const size_t segment = n;
        n += 4 + put_ebml(file + n + 4, of_segment, INSIDE, unknown);
        const size_t inside = n;
        n += INSIDE;
        for (size_t cut = 0; cut <= n + 1; cut++) {
            const bool whole = !head_unknown && (unknown ? cut >= segment + 12 : cut >= n);
            CHECK_INT(is_whole(file, cut, VIDEO_MATROSKA), whole);
        }
        if (head_unknown || unknown) {
            continue;
        }
        for (size_t k = 0; k < 4; k++) { /* another element */
            file[segment + k] ^= 0x80;
            CHECK(!is_whole(file, n, VIDEO_MATROSKA));
            file[segment + k] ^= 0x80;
        }
        (void)put_ebml(file + segment + 4, of_segment, INSIDE + 1, false);
        CHECK(!is_whole(file, n, VIDEO_MATROSKA) && is_whole(file, n + 1, VIDEO_MATROSKA));
        (void)put_ebml(file + segment + 4, of_segment, 0, false); /* empty, whatever follows */
        CHECK(is_whole(file, inside + 12, VIDEO_MATROSKA));
        file[segment + 4] = 0; /* more than eight bytes */
        CHECK(!is_whole(file, n, VIDEO_MATROSKA));
        file[4] = 0;
        CHECK(!is_whole(file, n, VIDEO_MATROSKA));
        memcpy(file + 4, "\x01\xff\xff\xff\xff\xff\xff\xfe", 8); /* a head larger than any file */
        CHECK(!is_whole(file, n, VIDEO_MATROSKA));
    }
}

/* RIFF: one length; PNG: parts up to the one that is called the end. */
static void test_riff_and_png(void)
{
    static const uint8_t RIFF[] = "RIFF\x0a\0\0\0WEBP123456more", PNG[] = "\x89PNG\r\n\x1a\n"
                                                                          "\0\0\0\x02IHDRabcrc."
                                                                          "\0\0\0\0IDATcrc."
                                                                          "\0\0\0\x01IENDacrc.more";
    enum { N_RIFF = 18, N_PNG = 8 + 14 + 12 + 13 };
    for (size_t cut = 8; cut <= N_RIFF + 4; cut++) {
        CHECK_INT(is_whole(RIFF, cut, VIDEO_WEBP), cut >= N_RIFF);
        CHECK_INT(is_whole(RIFF, cut, VIDEO_AVI), cut >= N_RIFF);
    }
    for (size_t cut = 8; cut <= N_PNG + 4; cut++) {
        CHECK_INT(is_whole(PNG, cut, VIDEO_APNG), cut >= N_PNG);
    }
}

/* How long the frames of a moving WebP are shown: one of less than 11 ms as browsers do it. */
static void test_durations(void)
{
    static const int32_t TIMES[][2] = {{0, 100}, {1, 100},   {10, 100},           {11, 11},
                                       {12, 12}, {100, 100}, {0xfffffe, 0xfffffe}};
    file_map m = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&m, check_data("videos/webp.webp"), &d), d);
    uint8_t *copy = malloc(m.bytes);
    memcpy(copy, m.data, m.bytes);
    size_t n = 0;
    for (size_t at = 12; at + 24 <= m.bytes;
         at += 8 + (copy[at + 4] | copy[at + 5] << 8 | copy[at + 6] << 16) + 1) {
        at &= ~(size_t)1; /* an odd part is filled up */
        if (memcmp(copy + at, "ANMF", 4) == 0) {
            const int32_t ms = TIMES[n++ % ARRAY_LEN(TIMES)][0];
            for (int k = 0; k < 3; k++) {
                copy[at + 8 + 12 + (size_t)k] = (uint8_t)(ms >> 8 * k);
            }
        }
    }
    CHECK_INT(n, 20);
    const video_source source = {.data = copy, .bytes = m.bytes, .fd = -1};
    video_webp *w = NULL;
    CHECK_INT(video_webp_open(&w, &source), ERR_OK);
    CHECK_INT(video_webp_count(w), 20);
    for (int64_t i = 0; i < 20; i++) {
        CHECK_INT(video_webp_duration(w, i), TIMES[(size_t)i % ARRAY_LEN(TIMES)][1]);
    }
    CHECK_INT(video_webp_duration(w, 20), 100); /* there is none */
    for (int round = 0; round < 2; round++) {
        const uint8_t *rgba = NULL;
        CHECK_INT(video_webp_rewind(w), ERR_OK);
        for (int i = 0; i < 20; i++) {
            CHECK(video_webp_next(w, &rgba) && rgba);
        }
        CHECK(!video_webp_next(w, &rgba) && !rgba);
    }
    video_webp_close(w);
    CHECK_INT(video_webp_open(&w, &(video_source){.data = copy, .bytes = m.bytes / 2, .fd = -1}),
              ERR_CORRUPT);
    CHECK(!w);
    CHECK_INT(video_webp_open(&w, &(video_source){.bytes = m.bytes, .fd = -1}),
              ERR_CORRUPT); /* cannot be read */
    CHECK(!w);
    free(copy);
    file_map_close(&m);
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
    test_sniffing();
    test_segments();
    test_riff_and_png();
    test_durations();
    test_refused_reads();
    CHECK_DONE();
}
