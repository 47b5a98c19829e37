/* call_filter: a seccomp program, line by line, for those who give up system calls (the server, the video
 * worker). It answers by the number of a call and, where that says too little, by its arguments.
 *
 *     call_filter f;
 *     call_filter_begin(&f);
 *     call_filter_answer_if(&f, SYS_ptrace, SECCOMP_RET_KILL_PROCESS);
 *     call_filter_answer(&f, SECCOMP_RET_ALLOW);
 *     bool held = call_filter_enter(&f, SECCOMP_FILTER_FLAG_TSYNC);
 *
 * Any thread; nothing is owned. */
#ifndef PARLEY_BASE_CALL_FILTER_H
#define PARLEY_BASE_CALL_FILTER_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Whose system calls the filter knows; not defined on other processors. */
#if defined(__x86_64__)
#define CALL_FILTER_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CALL_FILTER_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* A sanitizer reserves terabytes of addresses, looks at its own files and traces the program for leaks: what
 * would be in its way is left out. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

enum { CALL_FILTER_LINES = 256 };

typedef struct call_filter {
    struct sock_filter lines[CALL_FILTER_LINES];
    unsigned short n; /* above CALL_FILTER_LINES if some did not fit */
} call_filter;

#ifdef CALL_FILTER_ARCHITECTURE
/* Starts an empty filter: a call of another architecture's numbers ends the process. The call's number is
 * loaded. */
void call_filter_begin(call_filter *f);

/* Loads a field of struct seccomp_data; `field` is its offset in bytes. */
void call_filter_load(call_filter *f, size_t field);

/* Answers every call that comes this far. `result` is a SECCOMP_RET_ value. */
void call_filter_answer(call_filter *f, unsigned result);

/* Answers if the loaded number is `call`'s. */
void call_filter_answer_if(call_filter *f, int call, unsigned result);

/* Skips `yes` lines if the loaded value meets `condition` (BPF_JEQ, BPF_JGE, BPF_JSET) with `value`, else
 * `no` lines. */
void call_filter_jump(call_filter *f, unsigned condition, unsigned value, unsigned char yes,
                      unsigned char no);

/* Puts the calling thread under the filter for good; `flags` as seccomp() takes them. False if lines did
 * not fit or the kernel refuses. New privileges must have been given up before. */
bool call_filter_enter(const call_filter *f, unsigned flags);
#endif

#endif
