#include "server/media/uploads.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

/* What is copied of a part at once: others have their turn in between. */
enum { SLICE_BYTES = 2 << 20, ASKED_BYTES = 65536 };

void uploads_init(uploads *us, file_store *files, write_queue *writes)
{
    memset(us, 0, sizeof *us);
    us->files = files;
    us->writes = writes;
}

void uploads_deinit(uploads *us)
{
    while (us->n > 0) {
        uploads_drop(us, us->list[us->n - 1]);
    }
}

static void touch(const uploads *us, upload *up)
{
    up->expires_at = clock_unix_s() + file_store_get_options(us->files)->expire_s;
}

/* Frees what has arrived of the upload, and its share of the quota. */
static void release_content(uploads *us, upload *up)
{
    file_sink_drop(up->sink);
    up->sink = NULL;
    file_store_release(us->files, up->facts.scope, up->reserved);
    up->reserved = 0;
    for (size_t i = 0; i < up->n_parts; i++) {
        close(up->parts[i].fd);
    }
    up->n_parts = 0;
}

void uploads_drop(uploads *us, upload *up)
{
    for (size_t i = 0; i < us->n; i++) {
        if (us->list[i] == up) {
            us->n--;
            memmove(&us->list[i], &us->list[i + 1], (us->n - i) * sizeof *us->list);
            break;
        }
    }
    release_content(us, up);
    free(up->parts);
    free(up->order);
    bytes_deinit(&up->asked);
    free(up);
}

void uploads_expire(uploads *us, int64_t now_s)
{
    for (size_t i = us->n; i-- > 0;) {
        if (us->list[i]->expires_at <= now_s) {
            uploads_drop(us, us->list[i]);
        }
    }
}

/* ---- beginning ---- */

/* Makes room by forgetting the oldest finished upload; false if every one is still on its way. */
static bool forget_finished(uploads *us, uint64_t scope, bool of_scope)
{
    for (size_t i = 0; i < us->n; i++) {
        upload *up = us->list[i];
        if (up->status == UPLOAD_COMPLETED && (!of_scope || up->facts.scope == scope)) {
            uploads_drop(us, up);
            return true;
        }
    }
    return false;
}

static bool has_room(uploads *us, uint64_t scope)
{
    size_t own = 0;
    for (size_t i = 0; i < us->n; i++) {
        own += us->list[i]->facts.scope == scope;
    }
    return (own < LIMIT_UPLOADS_PER_KEY || forget_finished(us, scope, true)) &&
           (us->n < LIMIT_UPLOADS || forget_finished(us, scope, false));
}

err_code uploads_open_file(uploads *us, uint64_t scope, uint64_t n_bytes, size_t ahead, file_sink **out,
                           err_detail *d)
{
    *out = NULL;
    err_code err = file_store_reserve(us->files, scope, n_bytes, d);
    if (err == ERR_OK) {
        err = file_sink_open(out, us->writes, file_store_get_options(us->files)->dir, n_bytes, ahead, d);
        if (err != ERR_OK) {
            file_store_release(us->files, scope, n_bytes);
        }
    }
    return err;
}

err_code uploads_begin(uploads *us, upload **out, const file_facts *facts, uint64_t n_bytes, upload_kind kind,
                       err_detail *d)
{
    *out = NULL;
    if (!has_room(us, facts->scope)) {
        return err_set_param(d, ERR_LIMIT, NULL, "too_many_uploads",
                             "too many uploads are on their way; finish or cancel some");
    }
    file_sink *sink = NULL;
    err_code err = kind == UPLOAD_BY_CHUNKS ? uploads_open_file(us, facts->scope, n_bytes, 0, &sink, d)
                                            : file_store_reserve(us->files, facts->scope, n_bytes, d);
    if (err != ERR_OK) {
        return err;
    }
    upload *up = calloc(1, sizeof *up);
    if (!up) {
        file_sink_drop(sink);
        file_store_release(us->files, facts->scope, n_bytes);
        return err_set(d, ERR_NOMEM, "no memory for this upload");
    }
    bytes_init(&up->asked, ASKED_BYTES);
    up->kind = kind;
    up->facts = *facts;
    up->sink = sink;
    up->bytes = up->reserved = n_bytes;
    up->handle = ++us->next_handle;
    up->created_at = clock_unix_s();
    hash_random_id(up->id, sizeof up->id, "upload_");
    touch(us, up);
    us->list[us->n++] = up;
    *out = up;
    return ERR_OK;
}

/* By its id, or (NULL) by its handle. */
static upload *find(uploads *us, uint64_t scope, const char *id, uint32_t handle)
{
    for (size_t i = 0; i < us->n; i++) {
        upload *up = us->list[i];
        if (up->facts.scope == scope && (id ? strcmp(up->id, id) == 0 : up->handle == handle)) {
            touch(us, up);
            return up;
        }
    }
    return NULL;
}

upload *uploads_find(uploads *us, uint64_t scope, const char *id)
{
    return find(us, scope, id, 0);
}

upload *uploads_find_handle(uploads *us, uint64_t scope, uint32_t handle)
{
    return find(us, scope, NULL, handle);
}

/* ---- by chunks ---- */

err_code upload_chunk(upload *up, uint64_t offset, const void *data, size_t n, err_detail *d)
{
    if (up->status != UPLOAD_PENDING || offset + n <= up->received) {
        return ERR_OK; /* it is here already */
    }
    if (offset > up->received) {
        return err_set_param(d, ERR_INVALID, NULL, "upload_offset_mismatch",
                             "the next byte expected is number %llu, not %llu",
                             (unsigned long long)up->received, (unsigned long long)offset);
    }
    const size_t known = (size_t)(up->received - offset);
    err_code err = file_sink_add(up->sink, (const char *)data + known, n - known, d);
    up->received = file_sink_queued(up->sink);
    /* Without memory for it the chunk counts as not sent. */
    return err != ERR_BUSY ? err
                           : err_set_param(d, ERR_INVALID, NULL, "upload_offset_mismatch",
                                           "there was no memory for this chunk; the next byte expected is "
                                           "number %llu",
                                           (unsigned long long)up->received);
}

uint64_t upload_written(const upload *up)
{
    return up->sink ? file_sink_written(up->sink) : up->received;
}

err_code uploads_finish(upload *up, err_detail *d)
{
    if (up->received != up->bytes || up->kind != UPLOAD_BY_CHUNKS) {
        return err_set_param(d, ERR_INVALID, NULL, "upload_incomplete", "%llu of %llu bytes have arrived",
                             (unsigned long long)up->received, (unsigned long long)up->bytes);
    }
    up->status = UPLOAD_ENDING;
    return ERR_OK;
}

/* ---- by parts ---- */

err_code upload_part_begin(const uploads *us, const upload *up, file_sink **out, err_detail *d)
{
    *out = NULL;
    if (up->kind != UPLOAD_BY_PARTS || up->status != UPLOAD_PENDING) {
        return err_set_param(d, ERR_INVALID, NULL, "upload_not_pending",
                             "this upload takes no parts (any more)");
    }
    return file_sink_open(out, us->writes, file_store_get_options(us->files)->dir, up->bytes,
                          UPLOAD_FORM_AHEAD, d);
}

err_code upload_part_add(upload *up, file_sink *f, const void *data, size_t n, err_detail *d)
{
    if (n > up->bytes - up->received) {
        return err_set_param(d, ERR_LIMIT, NULL, "upload_too_large",
                             "the parts hold more than the %llu bytes announced",
                             (unsigned long long)up->bytes);
    }
    err_code err = file_sink_add(f, data, n, d);
    up->received += err == ERR_OK ? n : 0;
    return err;
}

void upload_part_abort(upload *up, file_sink *f)
{
    if (f) {
        up->received -= file_sink_queued(f);
        file_sink_drop(f);
    }
}

err_code upload_part_end(upload *up, file_sink *f, const upload_part **out, err_detail *d)
{
    if (up->status != UPLOAD_PENDING) {
        upload_part_abort(up, f);
        return err_set_param(d, ERR_INVALID, NULL, "upload_not_pending",
                             "the upload was completed meanwhile");
    }
    const bool is_full = up->n_parts == LIMIT_UPLOAD_PARTS;
    if (is_full || !memory_grow(&up->parts, &up->cap_parts, up->n_parts + 1, 8, sizeof *up->parts)) {
        upload_part_abort(up, f);
        return is_full ? err_set_param(d, ERR_LIMIT, NULL, "too_many_parts", "an upload may have %d parts",
                                       LIMIT_UPLOAD_PARTS)
                       : err_set(d, ERR_NOMEM, "no memory for this upload");
    }
    uint8_t unused[HASH_BYTES];
    file_writer *w = file_sink_take(f);
    upload_part *part = &up->parts[up->n_parts++];
    part->bytes = file_writer_bytes(w);
    part->fd = file_writer_finish(w, unused);
    hash_random_id(part->id, sizeof part->id, "part_");
    *out = part;
    return ERR_OK;
}

static bool find_part(const upload *up, const char *id, size_t *at)
{
    for (size_t i = 0; i < up->n_parts; i++) {
        if (strcmp(up->parts[i].id, id) == 0) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* Reads the client's order into up->order; the bytes must be those announced. */
static err_code read_order(upload *up, const char *const *ids, size_t n, err_detail *d)
{
    uint64_t total = 0;
    free(up->order);
    up->n_order = up->next = 0;
    up->next_at = 0;
    up->order = n <= LIMIT_UPLOAD_PARTS ? calloc(n + 1, sizeof *up->order) : NULL;
    if (!up->order) {
        return err_set(d, ERR_NOMEM, "no memory for this upload");
    }
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        if (!find_part(up, ids[i], &at)) {
            return err_set_param(d, ERR_INVALID, "part_ids", "upload_part_not_found",
                                 "part_ids[%zu] is not part of this upload", i);
        }
        up->order[up->n_order++] = at;
        total += up->parts[at].bytes;
    }
    return total == up->bytes ? ERR_OK
                              : err_set_param(d, ERR_INVALID, "part_ids", "upload_incomplete",
                                              "these parts hold %llu bytes; %llu were announced",
                                              (unsigned long long)total, (unsigned long long)up->bytes);
}

err_code uploads_assemble(uploads *us, upload *up, const char *const *ids, size_t n, err_detail *d)
{
    if (up->kind != UPLOAD_BY_PARTS || up->status != UPLOAD_PENDING) {
        return err_set_param(d, ERR_INVALID, NULL, "upload_not_pending",
                             "this upload cannot be completed now");
    }
    err_code err = read_order(up, ids, n, d);
    err = err == ERR_OK ? uploads_open_file(us, up->facts.scope, up->bytes, 0, &up->sink, d) : err;
    if (err == ERR_OK) {
        up->reserved += up->bytes;
        up->status = UPLOAD_ENDING;
    }
    return err;
}

/* ---- the end ---- */

static err_code copy_slice(upload *up, err_detail *d)
{
    const upload_part *part = &up->parts[up->order[up->next]];
    const uint64_t left = part->bytes - up->next_at;
    const size_t n = left < SLICE_BYTES ? (size_t)left : SLICE_BYTES;
    err_code err = file_sink_copy(up->sink, part->fd, up->next_at, n, d);
    up->next_at += n;
    if (up->next_at >= part->bytes) {
        up->next++;
        up->next_at = 0;
    }
    return err;
}

/* Hands the written file to the store. The bytes set aside for it go with it. */
static err_code store(uploads *us, upload *up, err_detail *d)
{
    file_writer *w = file_sink_take(up->sink);
    up->sink = NULL;
    up->reserved -= up->bytes;
    err_code err = file_store_add(us->files, w, up->bytes, &up->facts, &up->file, d);
    if (err != ERR_OK) {
        return err;
    }
    if (up->has_hash && memcmp(up->hash, up->file.hash, HASH_BYTES) != 0) {
        file_store_delete(us->files, up->facts.scope, up->file.id);
        return err_set_param(d, ERR_INVALID, NULL, "upload_hash_mismatch",
                             "what arrived has another SHA-256 than announced; upload it again");
    }
    return ERR_OK;
}

err_code uploads_step(uploads *us, upload *up, bool *done, err_detail *d)
{
    *done = false;
    err_code err = file_sink_error(up->sink, d);
    if (err == ERR_OK && !file_sink_is_idle(up->sink)) {
        return ERR_OK;
    }
    if (err == ERR_OK && up->next < up->n_order) {
        err = copy_slice(up, d);
        if (err == ERR_OK) {
            return ERR_OK;
        }
    }
    if (err == ERR_OK) {
        err = store(us, up, d);
    } else {
        file_sink_drop(up->sink);
        up->sink = NULL;
        file_store_release(us->files, up->facts.scope, up->bytes);
        up->reserved -= up->bytes;
    }
    up->status = err == ERR_OK ? UPLOAD_COMPLETED : UPLOAD_PENDING;
    *done = err == ERR_OK;
    if (*done) {
        release_content(us, up);
    }
    return err;
}
