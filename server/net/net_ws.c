#include <string.h>

#include "server/net/net_lws.h"

/* A close code of the register that libwebsockets has no name for. */
enum { TRY_AGAIN_LATER = 1013 };

int net_ws_open(net_conn *c)
{
    c->phase = CONN_SOCKET;
    const struct lws_protocols *protocol = lws_get_protocol(c->wsi);
    c->is_extended = protocol && strcmp(protocol->name, "parley.v1") == 0;
    c->net->cb.on_open(c->net->cb.ctx, c->id, c->is_extended);
    lws_callback_on_writable(c->wsi);
    return 0;
}

static int refuse(net_conn *c, enum lws_close_status code, const char *reason)
{
    lws_close_reason(c->wsi, code, (unsigned char *)(uintptr_t)reason, strlen(reason));
    return -1;
}

int net_ws_receive(net_conn *c, const void *data, size_t len)
{
    if (c->close_code) {
        return 0;
    }
    const bool is_binary = lws_frame_is_binary(c->wsi);
    if (is_binary && (!c->is_extended || c->net->opt.max_binary == 0)) {
        return refuse(c, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "binary frames are not understood");
    }
    if (lws_is_first_fragment(c->wsi)) {
        net_conn_drop_input(c);
    }
    size_t rest = lws_remaining_packet_payload(c->wsi);
    size_t max = is_binary ? c->net->opt.max_binary : c->net->opt.max_message;
    if (rest > max || len > max - rest || c->in.len > max - rest - len) {
        return refuse(c, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "message too large");
    }
    if (!net_conn_receive(c, data, len, max)) {
        return refuse(c, (enum lws_close_status)TRY_AGAIN_LATER, "no memory for this message now");
    }
    if (lws_is_final_fragment(c->wsi) && rest == 0) {
        if (is_binary) {
            c->net->cb.on_binary(c->net->cb.ctx, c->id, c->in.data, c->in.len);
        } else {
            c->net->cb.on_message(c->net->cb.ctx, c->id, &c->in);
        }
        net_conn_drop_input(c);
    }
    return 0;
}

int net_ws_writable(net_conn *c)
{
    /* One message a callback. Its room is LWS_PRE bytes in front, which libwebsockets writes the
     * frame header to. */
    static const char room[LWS_PRE];
    if (lws_get_close_length(c->wsi) > 0) {
        /* libwebsockets asks for more although a close frame was sent, and nothing may follow
         * one */
        return 0;
    }
    bytes_clear(&c->piece);
    bytes_append(&c->piece, room, sizeof room);
    net_pull pull = c->net->cb.on_writable(c->net->cb.ctx, c->id, &c->piece);
    if (c->piece.failed) {
        return refuse(c, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "no memory");
    }
    size_t len = c->piece.len - sizeof room;
    if (len == 0 && c->close_code) { /* what was queued is sent first */
        c->is_closing = true;
        lws_close_reason(c->wsi, (enum lws_close_status)c->close_code, (unsigned char *)c->close_reason,
                         strlen(c->close_reason));
        return -1;
    }
    if (len > 0 && lws_write(c->wsi, (unsigned char *)c->piece.data + sizeof room, len, LWS_WRITE_TEXT) < 0) {
        return -1;
    }
    c->sent_bytes += len;
    if (c->piece.cap > 1 << 20) {
        bytes_deinit(&c->piece);
    }
    if (pull == NET_PULL_MORE || len > 0) {
        lws_callback_on_writable(c->wsi);
    }
    return 0;
}
