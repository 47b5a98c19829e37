#define _GNU_SOURCE /* syscall */
#include "base/call_filter.h"

#include <unistd.h>

#ifdef CALL_FILTER_ARCHITECTURE
static void add(call_filter *f, struct sock_filter line)
{
    if (f->n < CALL_FILTER_LINES) {
        f->lines[f->n++] = line;
    } else {
        f->n = CALL_FILTER_LINES + 1;
    }
}

void call_filter_begin(call_filter *f)
{
    f->n = 0;
    call_filter_load(f, offsetof(struct seccomp_data, arch));
    call_filter_jump(f, BPF_JEQ, CALL_FILTER_ARCHITECTURE, 1, 0);
    call_filter_answer(f, SECCOMP_RET_KILL_PROCESS);
    call_filter_load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__ /* the calls of the x32 ABI have numbers of their own */
    call_filter_jump(f, BPF_JGE, 0x40000000u, 0, 1);
    call_filter_answer(f, SECCOMP_RET_KILL_PROCESS);
#endif
}

void call_filter_load(call_filter *f, size_t field)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)field));
}

void call_filter_answer(call_filter *f, unsigned result)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

void call_filter_answer_if(call_filter *f, int call, unsigned result)
{
    call_filter_jump(f, BPF_JEQ, (unsigned)call, 0, 1);
    call_filter_answer(f, result);
}

void call_filter_jump(call_filter *f, unsigned condition, unsigned value, unsigned char yes, unsigned char no)
{
    add(f, (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | condition | BPF_K), value, yes, no));
}

bool call_filter_enter(const call_filter *f, unsigned flags)
{
    if (f->n > CALL_FILTER_LINES) {
        return false;
    }
    /* The kernel reads the lines only. */
    const struct sock_fprog program = {.len = f->n, .filter = (struct sock_filter *)f->lines};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}
#endif
