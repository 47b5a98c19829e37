/* call_filter_answer: what a filter of system calls says to one, read as the kernel reads it.
 *
 *     struct sock_filter lines[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
 *     struct seccomp_data call = {.nr = SYS_read, .arch = CALL_FILTER_ARCHITECTURE};
 *     CHECK_INT(call_filter_answer_of(lines, 1, &call), SECCOMP_RET_ALLOW);
 */
#ifndef PARLEY_TESTS_CALL_FILTER_ANSWER_H
#define PARLEY_TESTS_CALL_FILTER_ANSWER_H

#include "base/call_filter.h"
#include "tests/check.h"

static inline unsigned call_filter_answer_of(const struct sock_filter *lines, size_t n_lines,
                                             const struct seccomp_data *call)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n_lines; i++) {
        const struct sock_filter *l = &lines[i];
        const unsigned kind = BPF_CLASS(l->code);
        if (kind == BPF_RET) {
            return l->k;
        }
        if (kind == BPF_LD) {
            memcpy(&value, (const char *)call + l->k, sizeof value);
            continue;
        }
        const unsigned op = BPF_OP(l->code);
        const bool holds = op == BPF_JEQ   ? value == l->k
                           : op == BPF_JGE ? value >= l->k
                                           : (value & l->k) != 0;
        CHECK(kind == BPF_JMP && (op == BPF_JEQ || op == BPF_JGE || op == BPF_JSET));
        i += holds ? l->jt : l->jf;
    }
    CHECK(!"an end");
    return 0;
}

#endif
