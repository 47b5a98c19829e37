/* bench_video: how long a video takes to become the encoder's patches, beside the ffmpeg program
 * decoding the same video to the same scaled frames. Both take turns, so that other work on the
 * machine meets both.
 *
 *     build/bench_video VIDEO [ROUNDS]        # ffmpeg must be on the PATH
 *
 * Prints each round, the medians, their ratio, processor time, and the peak memory of the video's
 * process and of this one.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "bench/stats.h"
#include "vision/video/video_worker.h"

enum { ROUNDS_MAX = 99, FRAMES_MAX = 768 };

extern char **environ;

typedef struct bench {
    const char *path;
    int fd;
    size_t bytes;
    processor_config pc;
    patches patches;
    int32_t n, width, height;
} bench;

static err_code on_begin(void *ctx, const video_info *info, int32_t n, const double *times,
                         err_detail *detail)
{
    bench *b = ctx;
    b->n = n;
    return processor_video_begin(&b->patches, &b->pc, n, info->height, info->width, times, detail);
}

static err_code on_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    bench *b = ctx;
    return processor_video_add(&b->patches, &b->pc, b->n, i, frame, detail);
}

/* Processor seconds of children that have ended, their largest resident memory in *peak_kib. */
static double child_seconds(long *peak_kib)
{
    struct rusage u;
    (void)getrusage(RUSAGE_CHILDREN, &u);
    *peak_kib = u.ru_maxrss;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double read_ours(bench *b)
{
    err_detail d = {0};
    video_job job = {.source = {.fd = b->fd, .bytes = b->bytes},
                     .limits = video_limits_default(),
                     .processor = &b->pc,
                     .max_shown = FRAMES_MAX,
                     .program = "/proc/self/exe"};
    job.limits.n_threads = LIMIT_VIDEO_THREADS;
    double start = clock_ms();
    if (video_worker_read(&job, &(video_consumer){on_begin, on_frame, b}, &d) != ERR_OK) {
        fprintf(stderr, "bench_video: %s\n", d.text);
        exit(1);
    }
    double ms = clock_ms() - start;
    b->width = b->patches.w * b->pc.patch_size;
    b->height = b->patches.h * b->pc.patch_size;
    patches_deinit(&b->patches);
    return ms;
}

static double read_ffmpeg(const bench *b)
{
    char filter[96];
    pid_t pid;
    int status = 1;
    snprintf(filter, sizeof filter, "fps=%g,scale=%d:%d:flags=bicubic", b->pc.video_fps, b->width, b->height);
    char *argv[] = {"ffmpeg", "-v",   "error",    "-nostdin", "-y", "-i",       (char *)b->path, "-an",
                    "-vf",    filter, "-pix_fmt", "rgb24",    "-f", "rawvideo", "/dev/null",     NULL};
    double start = clock_ms();
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid ||
        status != 0) {
        fprintf(stderr, "bench_video: ffmpeg is missing or failed\n");
        exit(1);
    }
    return clock_ms() - start;
}

int main(int argc, char **argv)
{
    bench b = {.path = argc > 1 ? argv[1] : NULL};
    err_detail d = {0};
    file_map map = {0};
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], ratios[ROUNDS_MAX];
    if (argc == 2 && strcmp(argv[1], VIDEO_WORKER_COMMAND) == 0) {
        return video_worker_main();
    }
    int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    if (!b.path || n < 1 || n > ROUNDS_MAX) {
        fprintf(stderr, "bench_video VIDEO [ROUNDS]\n");
        return 2;
    }
    if (file_map_open(&map, b.path, &d) != ERR_OK || (b.fd = open(b.path, O_RDONLY | O_CLOEXEC)) < 0 ||
        processor_config_load(&b.pc, json_folder("/nonexistent"), &d) != ERR_OK) {
        fprintf(stderr, "bench_video: %s cannot be read\n", b.path);
        return 1;
    }
    b.bytes = map.bytes;
    for (int i = 0; i < n; i++) {
        long peak = 0;
        struct rusage own;
        double cpu0 = child_seconds(&peak);
        ours[i] = read_ours(&b);
        double cpu1 = child_seconds(&peak);
        if (i == 0) {
            (void)getrusage(RUSAGE_SELF, &own);
            printf("%d frames of %d x %d; peak memory: %ld MiB in the video's process, %ld MiB here\n", b.n,
                   b.width, b.height, peak / 1024, own.ru_maxrss / 1024);
        }
        theirs[i] = read_ffmpeg(&b);
        double cpu2 = child_seconds(&peak);
        ratios[i] = ours[i] / theirs[i];
        printf("round %d: parley %.0f ms (%.2f s processor time), ffmpeg %.0f ms (%.2f s), ratio %.2f\n",
               i + 1, ours[i], cpu1 - cpu0, theirs[i], cpu2 - cpu1, ratios[i]);
        fflush(stdout);
    }
    printf("median: parley %.0f ms, ffmpeg %.0f ms, ratio %.2f\n", stats_median(ours, (size_t)n),
           stats_median(theirs, (size_t)n), stats_median(ratios, (size_t)n));
    close(b.fd);
    file_map_close(&map);
    return 0;
}
