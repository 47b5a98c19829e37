/* The video's own process: it shows what reading here shows; one that crashes, hangs, spins, lies
 * or is refused memory fails its video alone; what it may do is little. This program is its own
 * worker, good or bad by its first word.
 */
#define _GNU_SOURCE
#include "tests/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "tests/one_fails.h"
#include "vision/video/video_confine.h"
#include "vision/video/video_worker.h"

/* ---- workers ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* A worker between the caller and a real one: message K of what that one says (BEGIN is 0, frame 0 is 1) is preceded by an
 * empty one of its kind (e), said twice (r), left out (d), or left out with all that follow but the END (l); so many bytes
 * are cut from its end (c); a number in it, at a place, is another one (n); or it is said once more with the next number (m). */
static int lie(char how, int at, size_t amount, int32_t number)
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
        if (ok && i == at && how == 'n') {
            memcpy(body + amount, &number, sizeof number);
        } else if (ok && i == at && how == 'c') {
            head.bytes -= amount;
        }
        empty = head;
        empty.bytes = 0;
        if (ok && i == at && how == 'e') {
            ok = file_write_all(LINK, &empty, sizeof empty);
        }
        if (ok && i == at && how == 'm') {
            ok = file_write_all(LINK, &head, sizeof head) && file_write_all(LINK, body, (size_t)head.bytes);
            memcpy(&number, body, sizeof number);
            number++;
            memcpy(body, &number, sizeof number);
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
        const char *const amount = strchr(how, ','), *const number = amount ? strchr(amount + 1, ',') : NULL;
        return lie(how[3], how[4] - '0', amount ? strtoul(amount + 1, NULL, 10) : 0,
                   number ? (int32_t)strtol(number + 1, NULL, 10) : 0);
    }
    if (strcmp(how, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(how, "use-up") == 0) { /* as the system does it, later */
        raise(SIGXCPU);
    } else if (strcmp(how, "use-up-last") == 0) {
        (void)video_worker_main();
        raise(SIGXCPU);
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
    video_info info; /* but for the codec's name, which is gone later */
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
    s->info = *info;
    s->info.codec = NULL;
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
static bool from_file;    /* the video is an open file, not in memory */

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
    if (from_file) {
        job.source.data = NULL;
        job.source.fd = open(check_data(relative), O_RDONLY | O_CLOEXEC);
    }
    job.limits.max_wall_s = wall_s;
    job.limits.n_threads = 2;
    job.limits.max_memory = max_memory ? max_memory : job.limits.max_memory;
    job.limits.cancelled = wants_stop;
    job.limits.ctx = s;
    err_code err = video_worker_read(&job, &(video_consumer){on_begin, on_frame, s}, d);
    file_close(job.source.fd);
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
        CHECK_INT(there.info.width, here.info.width);
        CHECK_INT(there.info.height, here.info.height);
        CHECK_INT(there.info.format, here.info.format);
        CHECK_INT(there.info.n_frames, here.info.n_frames);
        CHECK_NEAR(there.info.fps, here.info.fps, 0);
        CHECK_NEAR(there.info.duration_s, here.info.duration_s, 0);
        CHECK(there.info.variable_rate == here.info.variable_rate &&
              there.info.has_audio == here.info.has_audio);
        CHECK_STR(there.codec, here.codec);
        CHECK(memcmp(here.times, there.times, sizeof here.times) == 0);
        CHECK(memcmp(here.sums, there.sums, sizeof here.sums) == 0);
    }
    seen few = {0};
    err_detail d;
    CHECK_OK(show(&few, "h264_faststart.mp4", VIDEO_WORKER_COMMAND, 60, 3, &d), d);
    CHECK_INT(few.n, 3);
    /* How many frames may be shown at most: from one on, up to a limit. */
    static const int32_t MOSTS[] = {1, 4096, 0, -1, 4097};
    for (size_t i = 0; i < 2 * ARRAY_LEN(MOSTS); i++) {
        const int32_t most = MOSTS[i / 2];
        char says[64];
        seen s = {0};
        snprintf(says, sizeof says, "a video cannot be shown in %d frames", most);
        const bool ok = most == 1 || most == 4096;
        CHECK_INT(show(&s, "vp9.webm", i % 2 ? VIDEO_WORKER_COMMAND : NULL, 60, most, &d),
                  ok ? ERR_OK : ERR_INVALID);
        CHECK_STR(d.text, ok ? "" : says);
        CHECK_INT(s.n, !ok ? 0 : most == 1 ? 1 : 6);
    }
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

/* ---- made-up time ---- */

static int poll_error = ENOMEM;

/* While it is on nothing comes from a worker, and time passes where the caller waits for it. */
static struct {
    bool is_on, cpu_fails;
    double now_ms, cpu_ms;
    double busy_until_ms, cpu_share; /* until then the worker uses so much of a processor */
    double stop_ms;                  /* then the caller wants it to stop; 0: never */
    seen *seen;
} made_up;

double __real_clock_ms(void);
double __wrap_clock_ms(void);
int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __real_poll(struct pollfd *polled, nfds_t n, int ms);
int __wrap_poll(struct pollfd *polled, nfds_t n, int ms);

double __wrap_clock_ms(void)
{
    return made_up.is_on ? made_up.now_ms : __real_clock_ms();
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    if (!made_up.is_on) {
        return __real_clock_gettime(id, out);
    }
    const int64_t ns = (int64_t)(made_up.cpu_ms * 1e6);
    *out = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return made_up.cpu_fails ? (errno = EINVAL, -1) : 0;
}

int __wrap_poll(struct pollfd *polled, nfds_t n, int ms)
{
    if (one_fails_now("poll")) {
        errno = poll_error;
        return -1;
    }
    if (!made_up.is_on) {
        return __real_poll(polled, n, ms);
    }
    CHECK(ms > 0 && n == 1);
    made_up.cpu_ms += made_up.now_ms < made_up.busy_until_ms ? ms * made_up.cpu_share : 0;
    made_up.now_ms += ms;
    if (made_up.stop_ms > 0 && made_up.now_ms >= made_up.stop_ms) {
        atomic_store(&made_up.seen->stop, true);
    }
    return 0;
}

/* How long a worker may say nothing: for long while it works, a little when it does not, never longer than its time. */
static void test_silence(void)
{
    static const double NEVER = 1e9, BEGIN = 1000, IDLE = 1e3 * LIMIT_VIDEO_IDLE_S, POLL = 20, GRACE = 1000;
    const struct {
        double wall_s, busy_until_ms, cpu_share, stop_ms;
        bool cpu_fails;
        err_code code;
        double end_ms; /* since the begin */
    } CASES[] = {
        {600, 0, 0, 0, false, ERR_TIMEOUT, IDLE + POLL},
        {0, 0, 0, 0, false, ERR_TIMEOUT, IDLE + POLL},
        {3, 0, 0, 0, false, ERR_TIMEOUT, 3000 + GRACE + POLL},
        {60, NEVER, 1, 0, false, ERR_TIMEOUT, 60000 + GRACE + POLL},
        {60, NEVER, 0.01, 0, false, ERR_TIMEOUT, 60000 + GRACE + POLL}, /* others use the processor, too */
        {0, BEGIN + 70000, 1, 0, false, ERR_TIMEOUT, 70000 + IDLE + POLL},
        {0, BEGIN + 1500, 1, 0, false, ERR_TIMEOUT, 1500 + IDLE + POLL},
        {600, NEVER, 1, 0, true, ERR_TIMEOUT, IDLE + POLL},
        {600, NEVER, 1, BEGIN + 400000, false, ERR_CANCELLED, 400000},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        seen s = {0};
        err_detail d;
        made_up.is_on = true;
        made_up.cpu_fails = CASES[i].cpu_fails;
        made_up.now_ms = BEGIN;
        made_up.cpu_ms = 0;
        made_up.busy_until_ms = CASES[i].busy_until_ms;
        made_up.cpu_share = CASES[i].cpu_share;
        made_up.stop_ms = CASES[i].stop_ms;
        made_up.seen = &s;
        const err_code err = show(&s, "vp9.webm", "sleep", CASES[i].wall_s, MAX_FRAMES, &d);
        made_up.is_on = false;
        CHECK_INT(err, CASES[i].code);
        CHECK_STR(d.name, err == ERR_TIMEOUT ? "video_timeout" : "");
        CHECK_NEAR(made_up.now_ms - BEGIN, CASES[i].end_ms, 1e-6);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
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
        {"use-up", "video_timeout", ERR_TIMEOUT, 60, 30000},
        {"use-up-last", "", ERR_OK, 60, 30000},
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
}

/* A worker that says things in another order, or too few or too many of them. */
static void test_lies(void)
{
    static const char *const lies[] = {"liee0", "liee1", "liee4", "lier0", "lier1", "lied0",
                                       "lied1", "lied3", "liel0", "liel1", "liel3", "liem3"};
    seen s = {0};
    err_detail d;
    CHECK_OK(show(&s, "h264_faststart.mp4", "lie-9", 60, 3, &d), d); /* 3 frames and the END */
    CHECK_INT(s.n, 3);
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        s = (seen){0};
        const err_code err = show(&s, "h264_faststart.mp4", lies[i], 60, 3, &d);
        if (err != ERR_CORRUPT || strcmp(d.name, "video_parse_error") != 0 || s.n > 3) {
            fprintf(stderr, "  %s: %d, %s, %d frames\n", lies[i], (int)err, d.name, s.n);
            CHECK(!"found out");
        }
    }
}

/* A worker whose numbers are not those of any video, or of another one. */
static void test_wrong_numbers(void)
{
    enum {
        CODEC = 16,
        N = sizeof(video_info) + CODEC,
        END = 4
    }; /* how many frames follow is behind the codec's name */
    static const struct {
        int message;
        size_t at;
        int32_t number;
        err_code code;
    } CASES[] = {
        {0, N, 3, ERR_OK}, /* as it is */
        {0, N, 0, ERR_CORRUPT},
        {0, N, -1, ERR_CORRUPT},
        {0, N, 2, ERR_CORRUPT},
        {0, N, 4, ERR_CORRUPT},
        {0, offsetof(video_info, width), 0, ERR_CORRUPT},
        {0, offsetof(video_info, width), -192, ERR_CORRUPT},
        {0, offsetof(video_info, width), 1 << 20, ERR_CORRUPT},
        {0, offsetof(video_info, height), 0, ERR_CORRUPT},
        {0, offsetof(video_info, height), -32, ERR_CORRUPT},
        {0, offsetof(video_info, height), 1 << 20, ERR_CORRUPT},
        {1, 0, 1, ERR_CORRUPT}, /* another frame */
        {1, 0, -1, ERR_CORRUPT},
        {3, 0, 3, ERR_CORRUPT},
        {END, 0, -1, ERR_CORRUPT},
        {END, 0, ERR_N_CODES, ERR_CORRUPT},
        {END, 0, ERR_CANCELLED, ERR_CORRUPT},
        {END, 0, ERR_NOMEM, ERR_LIMIT},
        {END, 0, ERR_INTERNAL, ERR_INTERNAL},
        {END, 0, ERR_INVALID, ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        seen s = {0};
        err_detail d;
        char command[64];
        snprintf(command, sizeof command, "lien%d,%zu,%d", CASES[i].message, CASES[i].at, CASES[i].number);
        const err_code err = show(&s, "h264_faststart.mp4", command, 60, 3, &d);
        if (err != CASES[i].code || s.n > (CASES[i].message ? CASES[i].message - 1 : 3)) {
            fprintf(stderr, "  %s: %s, %s, %d frames\n", command, err_name(err), d.text, s.n);
            CHECK(!"found out");
        }
        CHECK(err != ERR_CORRUPT || strcmp(d.name, "video_parse_error") == 0);
        CHECK(err != ERR_LIMIT || strcmp(d.name, "video_too_large") == 0);
    }
    for (int at = 0; at <= END; at++) { /* or that say less than they should */
        seen s = {0};
        err_detail d;
        char command[64];
        snprintf(command, sizeof command, "liec%d,4", at);
        CHECK_INT(show(&s, "h264_faststart.mp4", command, 60, 3, &d), ERR_CORRUPT);
        CHECK_STR(d.name, "video_parse_error");
        CHECK_INT(s.n, at ? at - 1 : 0);
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

/* ---- a system that refuses ---- */

static int memfd_error = ENOMEM;

ONE_FAILS(int, memfd_create, (const char *name, unsigned flags), (name, flags), (errno = memfd_error, -1))
ONE_FAILS(int, socketpair, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair),
          (errno = EMFILE, -1))
ONE_FAILS(int, posix_spawn_file_actions_init, (posix_spawn_file_actions_t * a), (a), ENOMEM)
ONE_FAILS(int, posix_spawnattr_init, (posix_spawnattr_t * a), (a), ENOMEM)
ONE_FAILS(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * a, int from, int to),
          (a, from, to), ENOMEM)
ONE_FAILS(int, posix_spawn_file_actions_addopen,
          (posix_spawn_file_actions_t * a, int fd, const char *path, int flags, mode_t mode),
          (a, fd, path, flags, mode), ENOMEM)
ONE_FAILS(int, posix_spawnattr_setsigmask, (posix_spawnattr_t * a, const sigset_t *set), (a, set), EINVAL)
ONE_FAILS(int, posix_spawnattr_setsigdefault, (posix_spawnattr_t * a, const sigset_t *set), (a, set), EINVAL)
ONE_FAILS(int, posix_spawnattr_setflags, (posix_spawnattr_t * a, short flags), (a, flags), EINVAL)
ONE_FAILS(int, posix_spawn,
          (pid_t * pid, const char *path, const posix_spawn_file_actions_t *files,
           const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]),
          (pid, path, files, attributes, argv, environment), EAGAIN)
ONE_FAILS(int, clock_getcpuclockid, (pid_t pid, clockid_t *clock), (pid, clock), ESRCH)
ONE_FAILS(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags),
          (errno = EPIPE, -1))
ONE_FAILS(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags),
          (errno = ECONNRESET, -1))
ONE_FAILS(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags), (errno = EINTR, -1))
ONE_FAILS(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), (errno = ENOSPC, -1))

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list more;
    va_start(more, command);
    const int argument = va_arg(more, int);
    va_end(more);
    return one_fails_now("fcntl") ? (errno = EMFILE, -1) : __real_fcntl(fd, command, argument);
}

/* A video while the nth call of a function fails, a negative one: from a file. Nothing is left open, no process is left. */
static void check_refused(const char *function, int n, err_code code, const char *name)
{
    seen s = {0};
    err_detail d;
    const int n_before = count_descriptors();
    from_file = n < 0;
    one_fails(function, abs(n));
    const err_code err = show(&s, "vp9.webm", VIDEO_WORKER_COMMAND, 60, 3, &d);
    CHECK(one_fails_over());
    from_file = false;
    if (err != code || strcmp(d.name, name) != 0 || s.n != (code ? 0 : 3)) {
        fprintf(stderr, "  %s %d: %d, %s, %d frames\n", function, n, (int)err, d.name, s.n);
        CHECK(!"what came of it");
    }
    CHECK(code != ERR_NOMEM || strstr(d.text, "refused a process"));
    CHECK_INT(count_descriptors(), n_before);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_refused(void)
{
    static const struct {
        const char *function;
        int n;
    } BEFORE[] = {{"memfd_create", 1},
                  {"socketpair", 1},
                  {"write", 1},
                  {"fcntl", -1},
                  {"posix_spawn_file_actions_init", 1},
                  {"posix_spawnattr_init", 1},
                  {"posix_spawn_file_actions_adddup2", 1},
                  {"posix_spawn_file_actions_adddup2", 2},
                  {"posix_spawn_file_actions_addopen", 1},
                  {"posix_spawnattr_setsigmask", 1},
                  {"posix_spawnattr_setsigdefault", 1},
                  {"posix_spawnattr_setflags", 1},
                  {"posix_spawn", 1}};
    static const char *const LATER[] = {"clock_getcpuclockid", "send", "recv", "poll"};
    for (size_t i = 0; i < ARRAY_LEN(BEFORE); i++) {
        check_refused(BEFORE[i].function, BEFORE[i].n, ERR_NOMEM, "");
    }
    for (size_t i = 0; i < ARRAY_LEN(LATER); i++) {
        check_refused(LATER[i], 1, ERR_CORRUPT, "video_parse_error");
    }
    memfd_error = EINVAL; /* an older kernel does not know a flag */
    check_refused("memfd_create", 1, ERR_OK, "");
    poll_error = EINTR; /* a signal came: it waits on */
    check_refused("poll", 1, ERR_OK, "");
    check_refused("waitpid", 1, ERR_OK, "");
}

/* A server whose standard input is closed gets descriptors that stand in the way of the worker's own. */
static void test_closed_input(void)
{
    const int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
    CHECK(kept >= 0 && close(STDIN_FILENO) == 0);
    seen s = {0};
    err_detail d;
    CHECK_OK(show(&s, "vp9.webm", VIDEO_WORKER_COMMAND, 60, 3, &d), d);
    CHECK_INT(s.n, 3);
    check_refused("fcntl", 1, ERR_NOMEM, ""); /* of the video */
    check_refused("fcntl", 2, ERR_NOMEM, ""); /* of the link */
    CHECK(fcntl(STDIN_FILENO, F_GETFD) < 0);
    CHECK(dup2(kept, STDIN_FILENO) == STDIN_FILENO && close(kept) == 0);
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
    test_silence();
    test_lies();
    test_wrong_numbers();
    test_out_of_memory();
    test_stopping();
    test_refused();
    test_closed_input();
    test_confined();
    CHECK_INT(count_descriptors(), n_before);
    CHECK_DONE();
}
