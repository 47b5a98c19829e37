/* What is said of an image and of a video when memory is lacking: each of our own allocations fails once, of who waits for
 * the other process, of that process (this program, told by its first word which one), and where both are one. Nothing is
 * left then: no pixels, no process, no descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "vision/video/image_reader.h"
#include "vision/video/video_worker.h"

ONE_FAILS(void *, mmap, (void *at, size_t n, int access, int flags, int fd, off_t offset),
          (at, n, access, flags, fd, offset), (errno = ENOMEM, MAP_FAILED))

#define POOR "poor-" /* a worker whose nth allocation fails */

enum { MAX_POINTS = 100 };

static const image_limits LIMITS = {.max_pixels = LIMIT_IMAGE_PIXELS, .max_side = LIMIT_IMAGE_SIDE};

typedef enum way { HERE, WAITING, THERE } way; /* whose allocations fail */

static err_code on_begin(void *ctx, const video_info *info, int32_t n, const double *times,
                         err_detail *detail)
{
    (void)info, (void)times, (void)detail;
    CHECK(n > 0);
    *(int32_t *)ctx = 0;
    return ERR_OK;
}

static err_code on_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    (void)detail;
    CHECK(frame->rgb && i == *(int32_t *)ctx);
    ++*(int32_t *)ctx;
    return ERR_OK;
}

static err_code read_video(const file_map *file, const char *command, bool is_here, err_detail *d)
{
    processor_config pc;
    processor_config_init(&pc);
    int32_t n = 0;
    video_job job = {.source = {.data = file->data, .bytes = file->bytes, .fd = -1},
                     .limits = video_limits_default(),
                     .processor = &pc,
                     .max_shown = 3,
                     .program = is_here ? NULL : "/proc/self/exe",
                     .command = command};
    const err_code err = video_worker_read(&job, &(video_consumer){on_begin, on_frame, &n}, d);
    CHECK(err || n == 3);
    return err;
}

/* In half its size, from memory or from a file. */
static err_code show_image(const file_map *file, const char *command, bool is_here, int fd, err_detail *d)
{
    int32_t n = 0;
    image_plan plan;
    CHECK_OK(image_measure(&plan, file->data, file->bytes, &LIMITS, d), *d);
    video_job job = {.source = {.data = fd < 0 ? file->data : NULL, .bytes = file->bytes, .fd = fd},
                     .limits = video_limits_default(),
                     .image = {LIMITS, plan.width / 2, plan.height / 2},
                     .program = is_here ? NULL : "/proc/self/exe",
                     .command = command};
    const err_code err = video_worker_read(&job, &(video_consumer){.frame = on_frame, .ctx = &n}, d);
    CHECK_INT(n, err == ERR_OK);
    return err;
}

static err_code read_image(const file_map *file, err_detail *d)
{
    image out;
    image_plan plan;
    const image_read_job job = {.data = file->data,
                                .bytes = file->bytes,
                                .limits = LIMITS,
                                .max_memory = (size_t)128 << 20,
                                .max_wall_s = 60,
                                .program = "/proc/self/exe"};
    err_code err = image_reader_measure(&plan, &job, d);
    err = err ? err : image_reader_read(&out, &job, &plan, plan.width / 2, plan.height / 2, d);
    CHECK((out.rgb != NULL) == (err == ERR_OK));
    image_deinit(&out);
    return err;
}

static void record(bytes *said, const char *name, way whose)
{
    static const char *const ways[] = {"here", "there", "there, by the process itself"};
    char what[1024], command[32];
    const bool is_video = strncmp(name, "videos", 6) == 0;
    file_map file = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&file, check_data(name), &d), d);
    bytes_printf(said, "%s, %s\n", name, ways[whose]);
    const size_t n_before = open_files();
    err_code err = ERR_NOMEM;
    for (int n = 1; err != ERR_OK && n < MAX_POINTS; n++) {
        d = (err_detail){0};
        snprintf(command, sizeof command, POOR "%d", n);
        const char *asked = whose == THERE ? command : NULL;
        alloc_fail_at(whose == THERE ? 0 : (size_t)n);
        err = is_video           ? read_video(&file, asked, whose == HERE, &d)
              : whose == WAITING ? read_image(&file, &d)
                                 : show_image(&file, asked, whose == HERE, -1, &d);
        alloc_fail_at(0);
        snprintf(what, sizeof what, "%s%s%s%s%s", err ? err_name(err) : "all is there", d.name[0] ? ", " : "",
                 err ? d.name : "", err ? ": " : "", err ? d.text : "");
        one_fails_say(said, "allocation", n, what);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
        CHECK_INT(open_files(), n_before);
    }
    one_fails_say(said, NULL, 0, NULL);
    file_map_close(&file);
}

/* An image that is a file is mapped; where that is refused there is no image. */
static void test_refused_map(void)
{
    file_map file = {0};
    err_detail d = {0};
    const char *path = check_data("images/lossy.webp");
    CHECK_OK(file_map_open(&file, path, &d), d);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_OK(show_image(&file, NULL, true, fd, &d), d);
    one_fails("mmap", 1);
    CHECK_INT(show_image(&file, NULL, true, fd, &d), ERR_NOMEM);
    CHECK(one_fails_over());
    CHECK_STR(d.text, "not enough memory to read the image");
    file_close(fd);
    file_map_close(&file);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        alloc_fail_at(strncmp(argv[1], POOR, strlen(POOR)) == 0 ? strtoul(argv[1] + strlen(POOR), NULL, 10)
                                                                : 0);
        return video_worker_main();
    }
#ifdef PARLEY_EMULATOR
    CHECK_SKIP(
        "the other process is this program once more, which the system cannot start without the emulator");
#endif
    bytes said = bytes_empty(1 << 20);
    static const char *const names[] = {"images/lossy.webp", "videos/vp9.webm"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        for (way whose = HERE; whose <= THERE; whose++) {
            record(&said, names[i], whose);
        }
    }
    test_refused_map();
    recorded_check("vision/video/reader_memory.txt", bytes_str(&said));
    bytes_deinit(&said);
    CHECK_DONE();
}
