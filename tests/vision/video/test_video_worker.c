/* The video's own process: it shows what reading here shows; one that crashes, hangs, spins, lies
 * or is refused memory fails its video alone; what it may do is little. This program is its own
 * worker, good or bad by its first word.
 */
#define _GNU_SOURCE
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "vision/video/video_confine.h"
#include "vision/video/video_worker.h"

/* ---- workers ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* A worker between the caller and a real one: message K of what that one says (BEGIN is 0, frame 0 is 1) is preceded by an
 * empty one of its kind (e), said twice (r), left out (d), or left out with all that follow but the END (l). */
static int lie(char how, int at)
{
    struct {
        uint32_t magic, kind;
        uint64_t bytes;
    } head, empty;
    enum { LINK = 1, END = 3 };
    char job[4096], *body = malloc(1 << 20);
    int pair[2] = {-1, -1};
    const ssize_t n_job = recv(LINK, job, sizeof job, 0);
    if (!body || n_job <= 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return 1;
    }
    if (fork() == 0) {
        close(pair[0]); /* so that it ends when nobody listens any more */
        return dup2(pair[1], LINK) == LINK ? video_worker_main() : 1;
    }
    close(pair[1]);
    bool ok = file_write_all(pair[0], job, (size_t)n_job);
    head.kind = 0;
    for (int i = 0; ok && head.kind != END; i++) {
        ok = file_read_all(pair[0], &head, sizeof head) && head.bytes <= 1 << 20 &&
             file_read_all(pair[0], body, (size_t)head.bytes);
        empty = head;
        empty.bytes = 0;
        if (ok && i == at && how == 'e') {
            ok = file_write_all(LINK, &empty, sizeof empty);
        }
        const bool is_left_out = (i == at && how == 'd') || (i >= at && how == 'l' && head.kind != END);
        for (int times = is_left_out ? 0 : i == at && how == 'r' ? 2 : 1; ok && times > 0; times--) {
            ok = file_write_all(LINK, &head, sizeof head) && file_write_all(LINK, body, (size_t)head.bytes);
        }
    }
    free(body);
    return 0;
}

static int work_badly(const char *how)
{
    if (strncmp(how, "lie", 3) == 0) {
        return lie(how[3], how[4] - '0');
    }
    if (strcmp(how, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(how, "crash-later") == 0) { /* in the middle of reading */
        (void)setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 15000}}, NULL);
        return video_worker_main();
    } else if (strcmp(how, "tight") == 0) { /* hardly any memory beyond what the program has at its start */
        unsigned long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (file && fscanf(file, "%lu", &pages) == 1 && !IS_SANITIZED) {
            rlim_t most = (rlim_t)(pages * (unsigned long)sysconf(_SC_PAGESIZE) + (256 << 10));
            (void)setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
        }
        return video_worker_main();
    } else if (strcmp(how, "sleep") == 0) {
        for (;;) {
            pause();
        }
    } else if (strcmp(how, "spin") == 0) {
        for (volatile unsigned i = 0;; i = i + 1) {
        }
    } else if (strcmp(how, "babble") == 0) {
        char noise[4096];
        memset(noise, 'x', sizeof noise);
        while (write(1, noise, sizeof noise) > 0) {
        }
    }
    return 0;
}

/* What is left to a confined process; the exit code names the first thing that should not have
 * worked. */
static int check_confined(void)
{
    int inherited = open("/dev/null", O_RDONLY);
    if (!video_confine((size_t)64 << 20, 5)) {
        return 1;
    }
    if (IS_SANITIZED) {
        return 0;
    }
    char byte;
    void *small = malloc((size_t)16 << 20), *large = malloc((size_t)80 << 20);
    return read(inherited, &byte, 1) >= 0                  ? 2
           : open("/etc/passwd", O_RDONLY) >= 0            ? 3
           : socket(AF_INET, SOCK_STREAM, 0) >= 0          ? 4
           : fork() >= 0                                   ? 5
           : execl("/bin/true", "true", (char *)NULL) >= 0 ? 6
           : kill(getppid(), 0) == 0                       ? 7
           : large != NULL                                 ? 8
           : small == NULL                                 ? 9
                                                           : 0;
}

/* ---- the caller ---- */

enum { MAX_FRAMES = 256 };

typedef struct seen {
    int32_t n_planned, n;
    int32_t width, height;
    char codec[16];
    double times[MAX_FRAMES];
    uint64_t sums[MAX_FRAMES]; /* of each frame's bytes */
    atomic_bool stop;          /* asked by the limits */
    int32_t refuse_at;         /* frame whose reception fails; 0: none */
} seen;

static err_code on_begin(void *ctx, const video_info *info, int32_t n, const double *times,
                         err_detail *detail)
{
    seen *s = ctx;
    (void)detail;
    s->n_planned = n;
    s->width = info->width;
    s->height = info->height;
    snprintf(s->codec, sizeof s->codec, "%s", info->codec);
    memcpy(s->times, times, (size_t)n * sizeof *times);
    return ERR_OK;
}

static err_code on_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    seen *s = ctx;
    CHECK_INT(i, s->n);
    if (s->refuse_at && i == s->refuse_at) {
        return err_set(detail, ERR_NOMEM, "enough");
    }
    uint64_t sum = 0;
    for (size_t k = 0; k < (size_t)frame->width * (size_t)frame->height * 3; k++) {
        sum = sum * 31 + frame->rgb[k];
    }
    s->sums[s->n++] = sum;
    return ERR_OK;
}

static bool wants_stop(void *ctx)
{
    return atomic_load(&((seen *)ctx)->stop);
}

static size_t max_memory; /* of workers; 0: the default */

static err_code show(seen *s, const char *name, const char *command, double wall_s, int32_t max_shown,
                     err_detail *d)
{
    char relative[128];
    file_map m = {0};
    processor_config pc;
    *d = (err_detail){0};
    snprintf(relative, sizeof relative, "videos/%s", name);
    CHECK_OK(processor_config_load(&pc, json_folder("/nonexistent"), d), *d);
    CHECK_OK(file_map_open(&m, check_data(relative), d), *d);
    video_job job = {.source = {.data = m.data, .bytes = m.bytes, .fd = -1},
                     .limits = video_limits_default(),
                     .processor = &pc,
                     .max_shown = max_shown,
                     .program = command ? "/proc/self/exe" : NULL,
                     .command = command};
    job.limits.max_wall_s = wall_s;
    job.limits.n_threads = 2;
    job.limits.max_memory = max_memory ? max_memory : job.limits.max_memory;
    job.limits.cancelled = wants_stop;
    job.limits.ctx = s;
    err_code err = video_worker_read(&job, &(video_consumer){on_begin, on_frame, s}, d);
    file_map_close(&m);
    return err;
}

static void test_same_frames(void)
{
    static const char *const NAMES[] = {"h264_faststart.mp4",
                                        "h264_turned_90.mp4",
                                        "h264_b_frames.mp4",
                                        "h264_refresh.mkv",
                                        "h264_size_change.mp4",
                                        "hevc_10bit.mkv",
                                        "vp8.webm",
                                        "vp9_alpha.webm",
                                        "av1.mkv",
                                        "mpeg4.avi",
                                        "webp.webp",
                                        "gif.gif",
                                        "apng.png",
                                        "h264_one_frame.mp4",
                                        "h264_hour.mp4"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        seen here = {0}, there = {0};
        err_detail d;
        CHECK_OK(show(&here, NAMES[i], NULL, 60, MAX_FRAMES, &d), d);
        double start = clock_ms();
        CHECK_OK(show(&there, NAMES[i], VIDEO_WORKER_COMMAND, 60, MAX_FRAMES, &d), d);
        printf("%s: %d frames in %.0f ms\n", NAMES[i], there.n, clock_ms() - start);
        CHECK(here.n > 0 && here.n == here.n_planned);
        CHECK_INT(there.n, here.n);
        CHECK_INT(there.n_planned, here.n_planned);
        CHECK_INT(there.width, here.width);
        CHECK_INT(there.height, here.height);
        CHECK_STR(there.codec, here.codec);
        CHECK(memcmp(here.times, there.times, sizeof here.times) == 0);
        CHECK(memcmp(here.sums, there.sums, sizeof here.sums) == 0);
    }
    seen few = {0};
    err_detail d;
    CHECK_OK(show(&few, "h264_faststart.mp4", VIDEO_WORKER_COMMAND, 60, 3, &d), d);
    CHECK_INT(few.n, 3);
}

static void test_errors(void)
{
    static const struct {
        const char *video, *name;
        err_code code;
    } CASES[] = {{"sound_only.mp4", "unsupported_video_media_type", ERR_UNSUPPORTED},
                 {"ffv1.mkv", "unsupported_video_media_type", ERR_UNSUPPORTED}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        seen s = {0};
        err_detail here, there;
        CHECK_INT(show(&s, CASES[i].video, NULL, 60, MAX_FRAMES, &here), CASES[i].code);
        CHECK_INT(show(&s, CASES[i].video, VIDEO_WORKER_COMMAND, 60, MAX_FRAMES, &there), CASES[i].code);
        CHECK_STR(there.name, CASES[i].name);
        CHECK_STR(there.text, here.text);
    }
}

static void test_bad_workers(void)
{
    static const struct {
        const char *command, *name;
        err_code code;
        double wall_s, most_ms;
    } CASES[] = {
        {"crash", "video_parse_error", ERR_CORRUPT, 60, 30000},
        {"crash-later", "video_parse_error", ERR_CORRUPT, 60, 30000},
        {"silent", "video_parse_error", ERR_CORRUPT, 60, 30000},
        {"babble", "video_parse_error", ERR_CORRUPT, 60, 30000},
        {"sleep", "video_timeout", ERR_TIMEOUT, 0.3, 30000},
        {"spin", "video_timeout", ERR_TIMEOUT, 0.3, 30000},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        seen s = {0};
        err_detail d;
        double start = clock_ms();
        CHECK_INT(show(&s, "h264_hour.mp4", CASES[i].command, CASES[i].wall_s, MAX_FRAMES, &d),
                  CASES[i].code);
        CHECK_STR(d.name, CASES[i].name);
        CHECK(clock_ms() - start < CASES[i].most_ms);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
        /* The next video is read as if nothing had been. */
        seen next = {0};
        CHECK_OK(show(&next, "vp9.webm", VIDEO_WORKER_COMMAND, 60, MAX_FRAMES, &d), d);
    }
    /* One that does nothing is noticed long before its time is over. */
    seen s = {0};
    err_detail d;
    double start = clock_ms();
    CHECK_INT(show(&s, "vp9.webm", "sleep", 600, MAX_FRAMES, &d), ERR_TIMEOUT);
    CHECK(clock_ms() - start < 1e3 * (LIMIT_VIDEO_IDLE_S + 60));
}

/* A worker that says things in another order, or too few or too many of them. */
static void test_lies(void)
{
    static const char *const lies[] = {"liee0", "liee1", "liee4", "lier0", "lier1",
                                       "lied0", "lied1", "lied3", "liel1", "liel3"};
    seen s = {0};
    err_detail d;
    CHECK_OK(show(&s, "h264_faststart.mp4", "lie-9", 60, 3, &d), d); /* 3 frames and the END */
    CHECK_INT(s.n, 3);
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        s = (seen){0};
        const err_code err = show(&s, "h264_faststart.mp4", lies[i], 60, 3, &d);
        if (err != ERR_CORRUPT || strcmp(d.name, "video_parse_error") != 0) {
            fprintf(stderr, "  %s: %d, %s, %d frames\n", lies[i], (int)err, d.name, s.n);
            CHECK(!"found out");
        }
    }
}

/* Out of memory in the middle: an error that names the video, whichever allocation it was. */
static void test_out_of_memory(void)
{
    seen s = {0}, next = {0}, third = {0};
    err_detail d;
    if (IS_SANITIZED) {
        return;
    }
    err_code err = show(&s, "size_change.avi", "tight", 60, MAX_FRAMES, &d);
    printf("without memory: %s, %s\n", d.name, d.text);
    CHECK(err == ERR_LIMIT || err == ERR_CORRUPT || err == ERR_UNSUPPORTED);
    CHECK(strstr(d.name, "video_") != NULL);
    max_memory = 256 << 10;
    err = show(&third, "size_change.avi", VIDEO_WORKER_COMMAND, 60, MAX_FRAMES, &d);
    CHECK(err == ERR_LIMIT || err == ERR_CORRUPT || err == ERR_UNSUPPORTED);
    max_memory = 0;
    CHECK_OK(show(&next, "vp9.webm", VIDEO_WORKER_COMMAND, 60, MAX_FRAMES, &d), d);
}

static void test_stopping(void)
{
    seen s = {0};
    err_detail d;
    atomic_store(&s.stop, true);
    CHECK_INT(show(&s, "vp9.webm", "sleep", 60, MAX_FRAMES, &d), ERR_CANCELLED);
    seen refusing = {.refuse_at = 2};
    CHECK_INT(show(&refusing, "vp9.webm", VIDEO_WORKER_COMMAND, 60, MAX_FRAMES, &d), ERR_NOMEM);
    CHECK_INT(refusing.n, 2);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_confined(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(check_confined());
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

static int count_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], VIDEO_WORKER_COMMAND) == 0) {
        return video_worker_main();
    }
    if (argc > 1) {
        return work_badly(argv[1]);
    }
#ifdef PARLEY_EMULATOR
    CHECK_SKIP(
        "the confined process is this program once more, which the system cannot start without the emulator");
#endif
    int n_before = count_descriptors();
    test_same_frames();
    test_errors();
    test_bad_workers();
    test_lies();
    test_out_of_memory();
    test_stopping();
    test_confined();
    CHECK_INT(count_descriptors(), n_before);
    CHECK_DONE();
}
