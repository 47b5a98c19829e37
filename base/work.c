#include "base/work.h"

bool work_do(work_count *w, size_t steps)
{
    if (!w) {
        return true;
    }
    w->done += steps;
    if (w->err == ERR_OK && w->limit && w->done > w->limit) {
        w->err = ERR_LIMIT;
    }
    if (w->err == ERR_OK && w->cancelled && w->done - w->asked >= WORK_GAP) {
        w->asked = w->done;
        w->err = w->cancelled(w->ctx) ? ERR_CANCELLED : ERR_OK;
    }
    return w->err == ERR_OK;
}

err_code work_error(const work_count *w)
{
    return w ? w->err : ERR_OK;
}
