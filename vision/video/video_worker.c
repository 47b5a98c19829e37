#define _GNU_SOURCE /* memfd_create */
#include "vision/video/video_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "vision/video/video_confine.h"
#include "vision/image/resize.h"

enum { MAGIC = 0x464d4c31, POLL_MS = 20, SHOWN_MAX = 4096, CODEC_NAME_MAX = 16, GRACE_MS = 1000 };
enum { VIDEO_FD = 0, LINK_FD = 1, FIRST_FREE_FD = 3 };

/* ---- what goes over the socket; both ends are the same program ---- */

typedef struct wire_job {
    uint32_t magic;
    int32_t max_shown;
    uint64_t video_bytes;
    video_limits limits; /* its pointers are NULL */
    video_request request;
    processor_config processor;
    image_limits image_limits;
    int32_t image_width, image_height; /* 0: a video */
} wire_job;

typedef enum wire_kind { WIRE_BEGIN = 1, WIRE_FRAME, WIRE_END } wire_kind;

typedef struct wire_head {
    uint32_t magic;
    uint32_t kind;
    uint64_t bytes; /* of what follows */
} wire_head;

typedef struct wire_begin {
    video_info info; /* codec is NULL */
    char codec[CODEC_NAME_MAX];
    int32_t n; /* as many doubles follow */
} wire_begin;

typedef struct wire_frame {
    int32_t i; /* the pixels of the planned size follow */
} wire_frame;

typedef struct wire_end {
    int32_t code;
    char name[ERR_NAME_MAX];
    char text[ERR_TEXT_MAX];
} wire_end;

/* ---- reading in this process ---- */

/* Resizes frames to the model's input size before they leave the worker. */
typedef struct sizer {
    const video_consumer *viewer;
    const processor_config *pc;
    image frame; /* of the wanted size */
} sizer;

static err_code sizer_begin(sizer *s, const video_info *info, int32_t n, const double *times,
                            err_detail *detail)
{
    err_code err =
        processor_video_size(s->pc, n, info->height, info->width, &s->frame.height, &s->frame.width, detail);
    if (err == ERR_OK && !(s->frame.rgb = malloc((size_t)s->frame.width * (size_t)s->frame.height * 3))) {
        err = err_set(detail, ERR_NOMEM, "not enough memory to read the video");
    }
    return err == ERR_OK ? s->viewer->begin(s->viewer->ctx, info, n, times, detail) : err;
}

static err_code sizer_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    sizer *s = ctx;
    err_code err = resize_bicubic(s->frame.rgb, s->frame.width, s->frame.height, frame->rgb, frame->width,
                                  frame->height, detail);
    return err == ERR_OK ? s->viewer->frame(s->viewer->ctx, i, &s->frame, detail) : err;
}

static err_code show_here(const video_job *job, const video_consumer *viewer, err_detail *detail)
{
    video *f = NULL;
    int32_t n = 0, cap = job->max_shown;
    if (cap < 1 || cap > SHOWN_MAX) {
        return err_set(detail, ERR_INVALID, "a video cannot be shown in %d frames", cap);
    }
    int32_t *indices = malloc((size_t)cap * sizeof *indices);
    double *times = malloc((size_t)cap * sizeof *times);
    processor_config pc = *job->processor;
    pc.video_max_frames = pc.video_max_frames < cap ? pc.video_max_frames : cap;
    pc.video_min_frames = pc.video_min_frames < cap ? pc.video_min_frames : cap;
    sizer s = {.viewer = viewer, .pc = &pc};
    err_code err = indices && times ? video_open(&f, &job->source, &job->limits, detail)
                                    : err_set(detail, ERR_NOMEM, "not enough memory to read the video");
    err = err == ERR_OK ? video_plan(video_get_info(f), &pc, &job->request, indices, times, cap, &n, detail)
                        : err;
    err = err == ERR_OK ? sizer_begin(&s, video_get_info(f), n, times, detail) : err;
    err = err == ERR_OK ? video_read(f, indices, n, sizer_frame, &s, detail) : err;
    video_close(f);
    image_deinit(&s.frame);
    free(indices);
    free(times);
    return err;
}

/* The same for an image: frame 0 of its size. */
static err_code show_image_here(const video_job *job, const video_consumer *viewer, err_detail *detail)
{
    const int32_t width = job->image.width, height = job->image.height;
    const uint8_t *data = job->source.data;
    image img = {0}, resized = {.width = width, .height = height};
    void *map = NULL;
    if (!data) {
        map = mmap(NULL, job->source.bytes, PROT_READ, MAP_PRIVATE, job->source.fd, 0);
        if (map == MAP_FAILED) {
            return err_set(detail, ERR_NOMEM, "not enough memory to read the image");
        }
        data = map;
    }
    err_code err = image_decode(&img, data, job->source.bytes, &job->image.limits, detail);
    if (map) {
        munmap(map, job->source.bytes);
    }
    if (err == ERR_OK && img.width == width && img.height == height) {
        err = viewer->frame(viewer->ctx, 0, &img, detail);
    } else if (err == ERR_OK) {
        resized.rgb = malloc((size_t)width * (size_t)height * 3);
        err = resized.rgb ? resize_bicubic(resized.rgb, width, height, img.rgb, img.width, img.height, detail)
                          : err_set(detail, ERR_NOMEM, "not enough memory to resize the image");
        err = err == ERR_OK ? viewer->frame(viewer->ctx, 0, &resized, detail) : err;
    }
    image_deinit(&img);
    image_deinit(&resized);
    return err;
}

/* ---- the worker's side ---- */

static bool send_message(wire_kind kind, const void *fixed, size_t n_fixed, const void *rest, size_t n_rest)
{
    const wire_head head = {.magic = MAGIC, .kind = kind, .bytes = n_fixed + n_rest};
    return file_write_all(LINK_FD, &head, sizeof head) && file_write_all(LINK_FD, fixed, n_fixed) &&
           file_write_all(LINK_FD, rest, n_rest);
}

static err_code worker_begin(void *ctx, const video_info *info, int32_t n, const double *times,
                             err_detail *detail)
{
    wire_begin b;
    (void)ctx;
    memset(&b, 0, sizeof b); /* padding too: it crosses to another process */
    b.info = *info;
    b.info.codec = NULL;
    b.n = n;
    snprintf(b.codec, sizeof b.codec, "%s", info->codec);
    return send_message(WIRE_BEGIN, &b, sizeof b, times, (size_t)n * sizeof *times)
               ? ERR_OK
               : err_set(detail, ERR_CANCELLED, "nobody waits for this video");
}

static err_code worker_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    const wire_frame f = {.i = i};
    (void)ctx;
    return send_message(WIRE_FRAME, &f, sizeof f, frame->rgb,
                        (size_t)frame->width * (size_t)frame->height * 3)
               ? ERR_OK
               : err_set(detail, ERR_CANCELLED, "nobody waits for this video");
}

/* Several threads may use them up sooner than the wall's. */
static int processor_seconds(double wall_s)
{
    return wall_s > 0 && wall_s < INT_MAX ? (int)ceil(wall_s) : LIMIT_VIDEO_WALL_S;
}

int video_worker_main(void)
{
    wire_job w;
    wire_end end;
    err_detail detail = {0};
    memset(&end, 0, sizeof end);
    /* The job is the caller's own; the video is not looked at before the process is confined. */
    if (!file_read_all(LINK_FD, &w, sizeof w) || w.magic != MAGIC ||
        !video_confine(w.limits.max_memory, processor_seconds(w.limits.max_wall_s))) {
        return 1;
    }
    const video_job job = {.source = {.fd = VIDEO_FD, .bytes = (size_t)w.video_bytes},
                           .limits = w.limits,
                           .request = w.request,
                           .processor = &w.processor,
                           .max_shown = w.max_shown,
                           .image = {w.image_limits, w.image_width, w.image_height}};
    const video_consumer viewer = {.begin = worker_begin, .frame = worker_frame};
    end.code = (int32_t)(job.image.width > 0 ? show_image_here : show_here)(&job, &viewer, &detail);
    snprintf(end.name, sizeof end.name, "%s", detail.name);
    snprintf(end.text, sizeof end.text, "%s", detail.text);
    return send_message(WIRE_END, &end, sizeof end, NULL, 0) ? 0 : 1;
}

/* ---- the caller's side: the process ---- */

typedef struct worker {
    const video_job *job;
    pid_t pid;          /* 0: none */
    int link;           /* -1: none */
    double deadline_ms; /* 0: none */
    clockid_t cpu_clock;
    double cpu_ms, busy_ms; /* processor time last seen, and when it or the stream last moved */
    int32_t n, next;        /* frames: planned, shown */
    image frame;            /* its buffer is there once the plan came */
} worker;

static err_code stopped_working(err_detail *detail)
{
    return err_set_param(detail, ERR_TIMEOUT, NULL, "video_timeout", "reading the video took too long");
}

static err_code died(err_detail *detail)
{
    return err_set_param(detail, ERR_CORRUPT, NULL, "video_parse_error",
                         "the video could not be read to its end; it is damaged or unusual");
}

/* A descriptor that stands in the way of none of 0, 1, 2; closes the old one. -1 on failure, also
 * for -1. */
static int above_stdio(int fd)
{
    if (fd < 0 || fd >= FIRST_FREE_FD) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    close(fd);
    return moved;
}

/* A descriptor of its own with the video's bytes. */
static int video_descriptor(const video_source *source)
{
    if (!source->data) {
        return fcntl(source->fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    }
    enum { NO_EXEC = 8 }; /* MFD_NOEXEC_SEAL, which kernels before 6.3 do not know */
    int fd = memfd_create("video", MFD_CLOEXEC | NO_EXEC);
    fd = above_stdio(fd < 0 && errno == EINVAL ? memfd_create("video", MFD_CLOEXEC) : fd);
    if (fd >= 0 && !file_write_all(fd, source->data, source->bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Starts PROGRAM COMMAND with the video as 0, the socket as 1 and nothing as 2; -1 if the system
 * refused. */
static pid_t spawn_worker(const video_job *job, int video_fd, int link)
{
    const char *command = job->command ? job->command : VIDEO_WORKER_COMMAND;
    char *argv[] = {(char *)job->program, (char *)command, NULL};
    char libraries[1024];
    const char *path = getenv("LD_LIBRARY_PATH");
    int n = snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", path ? path : "");
    /* One thread for what the program links beside the decoders; nothing else of the environment is
     * its business. */
    char *environment[] = {"OPENBLAS_NUM_THREADS=1", "MALLOC_ARENA_MAX=2",
                           path && n < (int)sizeof libraries ? libraries : NULL, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t pid = -1;
    sigemptyset(&none);
    sigfillset(&all);
    if (posix_spawn_file_actions_init(&files) != 0) {
        return -1;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return -1;
    }
    bool ok = posix_spawn_file_actions_adddup2(&files, video_fd, VIDEO_FD) == 0 &&
              posix_spawn_file_actions_adddup2(&files, link, LINK_FD) == 0 &&
              posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
              posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
              posix_spawnattr_setsigdefault(&attributes, &all) == 0 &&
              posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) == 0;
    if (!ok || posix_spawn(&pid, job->program, &files, &attributes, argv, environment) != 0) {
        pid = -1;
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

static err_code start_worker(worker *w, const video_job *job, err_detail *detail)
{
    int pair[2] = {-1, -1};
    wire_job request;
    *w = (worker){.job = job, .link = -1};
    int video_fd = video_descriptor(&job->source);
    if (video_fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        pair[0] = above_stdio(pair[0]);
        pair[1] = above_stdio(pair[1]);
        if (pair[0] >= 0 && pair[1] >= 0) {
            w->pid = spawn_worker(job, video_fd, pair[1]);
        }
    }
    file_close(video_fd);
    file_close(pair[1]);
    w->link = pair[0];
    if (w->pid <= 0) {
        return err_set(detail, ERR_NOMEM, "the system refused a process to read the video");
    }
    memset(&request, 0, sizeof request);
    request.magic = MAGIC;
    request.max_shown = job->max_shown;
    request.video_bytes = job->source.bytes;
    request.limits = job->limits;
    request.limits.cancelled = NULL;
    request.limits.ctx = NULL;
    request.request = job->request;
    if (job->image.width > 0) {
        request.image_limits = job->image.limits;
        request.image_width = job->image.width;
        request.image_height = job->image.height;
    } else {
        request.processor = *job->processor;
    }
    w->busy_ms = clock_ms();
    w->deadline_ms = job->limits.max_wall_s > 0 ? w->busy_ms + 1e3 * job->limits.max_wall_s + GRACE_MS : 0;
    if (clock_getcpuclockid(w->pid, &w->cpu_clock) != 0 ||
        send(w->link, &request, sizeof request, MSG_NOSIGNAL) != (ssize_t)sizeof request) {
        return died(detail);
    }
    return ERR_OK;
}

/* Ends the process if it has not ended; true if the system had stopped it for its use of the
 * processor. */
static bool end_worker(worker *w)
{
    int status = 0;
    file_close(w->link);
    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    free(w->frame.rgb);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
}

/* ---- the caller's side: messages ---- */

/* Whether the worker still may go on: asked while nothing comes from it. */
static err_code watch(worker *w, err_detail *detail)
{
    const video_limits *limits = &w->job->limits;
    double now = clock_ms();
    struct timespec cpu;
    if (limits->cancelled && limits->cancelled(limits->ctx)) {
        return err_set(detail, ERR_CANCELLED, "reading the video was stopped");
    }
    if (w->deadline_ms > 0 && now > w->deadline_ms) {
        return stopped_working(detail);
    }
    if (clock_gettime(w->cpu_clock, &cpu) == 0) {
        double used = (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec / 1e6;
        if (used > w->cpu_ms) {
            w->cpu_ms = used;
            w->busy_ms = now;
        }
    }
    return now > w->busy_ms + 1e3 * LIMIT_VIDEO_IDLE_S ? stopped_working(detail) : ERR_OK;
}

/* The next n bytes of the stream. */
static err_code receive(worker *w, void *data, size_t n, err_detail *detail)
{
    char *p = data;
    while (n > 0) {
        struct pollfd poll_link = {.fd = w->link, .events = POLLIN};
        int ready = poll(&poll_link, 1, POLL_MS);
        if (ready < 0 && errno != EINTR) {
            return died(detail);
        }
        if (ready <= 0) {
            err_code err = watch(w, detail);
            if (err != ERR_OK) {
                return err;
            }
            continue;
        }
        ssize_t got = recv(w->link, p, n, 0);
        if (got <= 0) {
            return died(detail);
        }
        w->busy_ms = clock_ms();
        p += got;
        n -= (size_t)got;
    }
    return ERR_OK;
}

static err_code receive_begin(worker *w, uint64_t n_bytes, const video_consumer *viewer, err_detail *detail)
{
    wire_begin b;
    double *times = NULL;
    const video_limits *limits = &w->job->limits;
    err_code err = n_bytes < sizeof b || w->frame.rgb ? died(detail) : receive(w, &b, sizeof b, detail);
    if (err != ERR_OK) {
        return err;
    }
    const video_info *info = &b.info;
    if (b.n < 1 || b.n > w->job->max_shown || n_bytes != sizeof b + (uint64_t)b.n * sizeof *times ||
        info->width < 1 || info->width > limits->max_side || info->height < 1 ||
        info->height > limits->max_side) {
        return died(detail);
    }
    err = processor_video_size(w->job->processor, b.n, info->height, info->width, &w->frame.height,
                               &w->frame.width, detail);
    if (err != ERR_OK) {
        return err;
    }
    times = malloc((size_t)b.n * sizeof *times);
    w->frame.rgb = malloc((size_t)w->frame.width * (size_t)w->frame.height * 3);
    err = times && w->frame.rgb ? receive(w, times, (size_t)b.n * sizeof *times, detail)
                                : err_set(detail, ERR_NOMEM, "not enough memory to read the video");
    if (err == ERR_OK) {
        b.codec[sizeof b.codec - 1] = '\0';
        b.info.codec = b.codec;
        w->n = b.n;
        err = viewer->begin(viewer->ctx, &b.info, b.n, times, detail);
    }
    free(times);
    return err;
}

/* The one frame of an image is of the size that was asked for. */
static err_code expect_image(worker *w, err_detail *detail)
{
    w->n = 1;
    w->frame.width = w->job->image.width;
    w->frame.height = w->job->image.height;
    w->frame.rgb = malloc((size_t)w->frame.width * (size_t)w->frame.height * 3);
    return w->frame.rgb ? ERR_OK : err_set(detail, ERR_NOMEM, "not enough memory to read the image");
}

static err_code receive_frame(worker *w, uint64_t n_bytes, const video_consumer *viewer, err_detail *detail)
{
    wire_frame f;
    const size_t n = (size_t)w->frame.width * (size_t)w->frame.height * 3;
    if (!w->frame.rgb || n_bytes != sizeof f + (uint64_t)n) {
        return died(detail);
    }
    err_code err = receive(w, &f, sizeof f, detail);
    if (err == ERR_OK && (f.i != w->next || f.i >= w->n)) {
        err = died(detail);
    }
    err = err == ERR_OK ? receive(w, w->frame.rgb, n, detail) : err;
    err = err == ERR_OK ? viewer->frame(viewer->ctx, w->next++, &w->frame, detail) : err;
    w->busy_ms = clock_ms(); /* the viewer's time is not the worker's */
    return err;
}

/* How the worker says it ended. Its memory is the video's fault, not the server's. */
static err_code receive_end(worker *w, uint64_t n_bytes, err_detail *detail)
{
    wire_end end;
    err_code err = n_bytes != sizeof end ? died(detail) : receive(w, &end, sizeof end, detail);
    if (err != ERR_OK) {
        return err;
    }
    end.name[sizeof end.name - 1] = '\0';
    end.text[sizeof end.text - 1] = '\0';
    if (end.code == ERR_OK) {
        return w->n > 0 && w->next == w->n ? ERR_OK : died(detail);
    }
    if (end.code == ERR_NOMEM) {
        return err_set_param(detail, ERR_LIMIT, NULL, "video_too_large",
                             "reading the video needs more memory than this server allows");
    }
    if (end.code < 0 || end.code >= ERR_N_CODES || end.code == ERR_CANCELLED) {
        return died(detail);
    }
    return err_set_param(detail, (err_code)end.code, NULL, end.name, "%s", end.text);
}

err_code video_worker_read(const video_job *job, const video_consumer *viewer, err_detail *detail)
{
    worker w;
    wire_head head = {0};
    if (!job->program) {
        video_job own = *job;
        own.limits.n_threads = 1;
        return (job->image.width > 0 ? show_image_here : show_here)(&own, viewer, detail);
    }
    err_code err = start_worker(&w, job, detail);
    if (err == ERR_OK && job->image.width > 0) {
        err = expect_image(&w, detail);
    }
    while (err == ERR_OK && head.kind != WIRE_END) {
        err = receive(&w, &head, sizeof head, detail);
        if (err != ERR_OK) {
            break;
        }
        switch (head.magic == MAGIC ? head.kind : 0) {
        case WIRE_BEGIN:
            err = receive_begin(&w, head.bytes, viewer, detail);
            break;
        case WIRE_FRAME:
            err = receive_frame(&w, head.bytes, viewer, detail);
            break;
        case WIRE_END:
            err = receive_end(&w, head.bytes, detail);
            break;
        default:
            err = died(detail);
        }
        /* A worker that never stops talking is stopped too. */
        if (err == ERR_OK && head.kind != WIRE_END) {
            err = watch(&w, detail);
        }
    }
    bool used_up = end_worker(&w);
    return err == ERR_CORRUPT && used_up ? stopped_working(detail) : err;
}
