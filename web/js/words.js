/**
 * What the page says in words: every error with a next step, every phase of the work, the state of
 * the connection.
 * @typedef {import('./state/store.js').Message} Message
 */
import { formatPercent, plural, t } from './language.js';
import { formatDuration, formatRate } from './util.js';

/** code -> [what happened, what to do]. The server's own sentence follows where it says more. */
const ERRORS = {
    context_length_exceeded: [
        t`The conversation is longer than the model can read.`,
        t`Start a new chat, or send less text or fewer files.`,
    ],
    queue_full: [t`The server is busy: its queue is full.`, t`Try again in a few seconds.`],
    rate_limit_error: [t`The server is busy.`, t`Try again in a few seconds.`],
    model_loading: [t`The model is still loading.`, t`Try again when the dot next to its name is green.`],
    server_draining: [t`The server is about to stop or restart.`, t`Try again when it is back.`],
    unavailable_error: [t`The server is not ready.`, t`Try again in a few seconds.`],
    model_not_found: [t`The server does not have this model.`, t`Choose another one in the menu at the top.`],
    invalid_api_key: [t`The server asks for an API key.`, t`Enter it in the settings.`],
    authentication_error: [t`The server asks for an API key.`, t`Enter it in the settings.`],
    connection_lost: [t`The connection to the server was lost.`, t`Check that it runs, then try again.`],
    response_not_found: [
        t`The server no longer has the rest of this answer.`,
        t`Ask again to get a whole one.`,
    ],
    response_evicted: [
        t`The server had no room to keep this answer.`,
        t`Ask again to get a whole one.`,
    ],
    idempotency_reply_evicted: [
        t`The server had no room to keep this answer.`,
        t`Ask again to get a whole one.`,
    ],
    stream_not_read: [
        t`The answer came faster than it could be received.`,
        t`Ask again to get a whole one.`,
    ],
    unsupported_image_media_type: [t`The server cannot read this image format.`, t`Send it as PNG or JPEG.`],
    image_parse_error: [t`The image is damaged or incomplete.`, t`Open it elsewhere, save it again and retry.`],
    image_not_supported: [t`This model cannot see images.`, t`Ask without them, or start a model with vision.`],
    video_not_supported: [t`This model cannot see videos.`, t`Ask without them, or start a model that can.`],
    video_parse_error: [t`The video is damaged or of an unknown format.`, t`Save it as MP4 or WebM and retry.`],
    unsupported_video_codec: [t`The server cannot read this video format.`, t`Save it as MP4 (H.264) or WebM and retry.`],
    unsupported_video_media_type: [t`The server cannot read this video format.`, t`Save it as MP4 (H.264) or WebM and retry.`],
    video_too_large: [t`The video is larger than this server allows.`, t`Trim it or save it smaller, and retry.`],
    video_timeout: [t`Reading the video took too long.`, t`Trim it or save it smaller, and retry.`],
    video_range: [t`The chosen part of the video is empty.`, t`Choose another part.`],
    video_too_long: [t`The video is too long.`, t`Trim it and retry.`],
    too_many_images: [t`One request may not hold this many images.`, t`Start a new chat, or send fewer.`],
    image_too_large: [t`The image is larger than the server accepts.`, t`Make it smaller and retry.`],
    upload_too_large: [t`The file is larger than the server accepts.`, t`Cut it, or start the server with --max-upload.`],
    upload_quota_exceeded: [t`The server has no room for more files.`, t`Wait until some have expired, or start it with --upload-quota.`],
    upload_storage_failed: [t`The server could not store the file.`, t`Its disk may be full.`],
    upload_hash_mismatch: [t`The file was damaged on its way.`, t`Try again.`],
    file_not_found: [t`The server no longer has a file of this chat.`, t`Try again: it will be sent once more.`],
    request_too_large: [t`The message is larger than the server accepts.`, t`Send fewer or smaller images.`],
    http_413: [t`The message is larger than the server accepts.`, t`Send fewer or smaller images.`],
    invalid_request_error: [t`The server did not accept the request.`, t`Change it and try again.`],
    not_supported_error: [t`The server cannot do this.`, ''],
    server_error: [t`Something went wrong on the server.`, t`Try again; its log says more.`],
};

/**
 * @param {{code: string, message: string, status?: number}} error
 * @returns {{what: string, next: string, detail: string}}
 */
export function errorWords(error) {
    const known = ERRORS[error.code];
    if (known) return { what: known[0], next: known[1], detail: error.message };
    if (error.status === 413) return errorWords({ ...error, code: 'http_413' });
    if (error.status === 429) return errorWords({ ...error, code: 'queue_full' });
    if (error.status === 503) return errorWords({ ...error, code: 'unavailable_error' });
    if (error.status === 401) return errorWords({ ...error, code: 'invalid_api_key' });
    return { what: t`The answer could not be made.`, next: t`Try again.`, detail: error.message || error.code };
}

/**
 * What the server does for an answer right now.
 * @param {any} progress the last RunEvent of kind waiting, queued, started, progress or lost
 * @param {'image'|'video'} [kind] what was sent @param {boolean} [several]
 * @returns {{text: string, value: number|null}} value: 0..1, or null if unknown
 */
export function progressWords(progress, kind = 'image', several = false) {
    const noun = kind === 'video' ? (several ? t`the videos` : t`the video`) : several ? t`the images` : t`the image`;
    const { processed = 0, total = 0 } = progress;
    const value = total > 0 ? Math.min(1, processed / total) : null;
    const eta = progress.etaMs > 1500 ? ` · ${t`about ${formatDuration(Math.ceil(progress.etaMs / 1000) * 1000)} left`}` : '';
    const percent = value === null ? '' : ` · ${formatPercent(value)}`;
    switch (progress.kind === 'progress' ? progress.phase : progress.kind) {
        case 'waiting':
            return { text: t`Waiting for the server`, value: null };
        case 'queued':
            return {
                text: progress.position > 0 ? t`In the queue · ${progress.position} before you` : t`In the queue`,
                value: null,
            };
        case 'upload_checking':
            return { text: t`Checking ${noun}` + percent, value };
        case 'upload_sending':
            return { text: t`Sending ${noun}` + percent, value };
        case 'media_decode':
            return { text: t`Opening ${noun}` + (total > 1 ? ` · ${kind === 'video' ? t`frame ${processed} of ${total}` : t`${processed} of ${total}`}` : ''), value };
        case 'vision_encode':
            return { text: t`Encoding ${noun}` + percent + eta, value };
        case 'prefill':
            return {
                text: t`Reading the conversation` + (total ? ` · ${t`${processed} of ${total} tokens`}` : '') + eta,
                value,
            };
        case 'lost':
            return { text: t`Connection lost, trying to resume the answer`, value: null };
        default:
            return { text: t`Starting`, value: null };
    }
}

/** The figures under an answer. @param {Message} message
 * @returns {{name: string, text: string, title: string}[]} the speed first, where it is known */
export function figures(message) {
    const { timings } = message;
    if (!timings) return [];
    const list = [];
    const rate = timings.predicted_per_second ?? (timings.predicted_ms > 0 ? (timings.predicted_n * 1000) / timings.predicted_ms : 0);
    if (rate > 0) {
        list.push({ name: t`Speed`, text: t`${formatRate(rate)} tokens/s`, title: plural(timings.predicted_n, '{0} token in the answer', '{0} tokens in the answer') });
    }
    const first = timings.ttft_ms ?? timings.prompt_ms;
    if (first > 0) list.push({ name: t`First token`, text: t`after ${formatDuration(first)}`, title: phases(timings) });
    if (timings.server) {
        list.push({ name: t`Answered by`, text: t`${timings.server}, another server`, title: timings.rule ? t`Sent there by the rule: ${timings.rule}` : t`Its model was chosen` });
    }
    if (timings.route && rate > 0 && !timings.server) {
        list.push({
            name: t`Route`,
            text: timings.route === 'media' ? t`media route` : t`text route`,
            title: timings.route === 'media' ? t`Went through the vision encoder` : t`Text only, no vision encoder`,
        });
    }
    if (timings.cache_n > 0) {
        const skipped = (timings.sparse_n ?? 0) - (timings.sparse_kept_n ?? 0);
        const share = formatPercent(timings.cache_n / (timings.cache_n + (timings.prompt_n ?? 0) + skipped));
        list.push({ name: t`Cache`, text: t`${share} remembered`, title: t`${timings.cache_n} tokens of the conversation were still in the server's cache` });
    }
    if (timings.sparse_n > 0) {
        const share = formatPercent(timings.sparse_kept_n / timings.sparse_n);
        list.push({
            name: t`Sparse prefill`,
            text: t`${share} of the prompt read`,
            title: t`Sparse prefill: the model read ${timings.sparse_kept_n} of ${timings.sparse_n} tokens, those that seemed to matter`,
        });
    }
    if (timings.draft_n > 0) {
        const accepted = formatPercent((timings.draft_n_accepted ?? timings.draft_accepted_n ?? 0) / timings.draft_n);
        list.push({ name: t`Drafts`, text: t`${accepted} drafts kept`, title: t`Drafted tokens that the model agreed with` });
    }
    return list;
}

/** @param {any} timings */
function phases(timings) {
    const parts = [];
    if (timings.queue_ms > 1) parts.push(t`queue ${formatDuration(timings.queue_ms)}`);
    if (timings.media_ms > 0) parts.push(t`opening images ${formatDuration(timings.media_ms)}`);
    if (timings.vision_ms > 0) parts.push(t`looking ${formatDuration(timings.vision_ms)}`);
    if (timings.prompt_ms > 0) parts.push(t`reading ${timings.prompt_n ?? ''} tokens ${formatDuration(timings.prompt_ms)}`);
    return parts.join(', ');
}

/**
 * @param {import('./protocol/connection.js').Connection} connection
 * @returns {{label: string, tone: 'good'|'busy'|'bad', detail: string, value?: number}} value: of a bar, 0..1
 */
export function connectionWords(connection) {
    const state = connection.server?.state;
    switch (connection.state) {
        case 'open':
            if (state === 'loading') {
                const value = connection.server.progress ?? 0;
                const label = value > 0 ? t`Loading ${formatPercent(value)}` : t`Loading`;
                return { label, tone: 'busy', detail: t`The model is being loaded; you can write already.`, value };
            }
            if (state === 'draining') {
                return {
                    label: t`Restarting`,
                    tone: 'busy',
                    detail: t`The server is about to stop or restart. Running answers are finished first; what you send now waits until it is back.`,
                };
            }
            return { label: t`Connected`, tone: 'good', detail: '' };
        case 'fallback':
            return { label: t`Connected`, tone: 'good', detail: t`Over plain HTTP: WebSocket is blocked on the way.` };
        case 'loading':
            return { label: t`Loading`, tone: 'busy', detail: t`The model is being loaded; you can write already.` };
        case 'unauthorised':
            return connection.key
                ? { label: t`Wrong key`, tone: 'bad', detail: t`The server does not accept this API key.` }
                : { label: t`Key needed`, tone: 'bad', detail: t`The server asks for an API key.` };
        case 'connecting':
        case 'retrying':
            if (!navigator.onLine) break;
            if (connection.failures >= 2) break;
            return { label: t`Connecting`, tone: 'busy', detail: '' };
    }
    if (!navigator.onLine) {
        return {
            label: t`Offline`,
            tone: 'bad',
            detail: t`This device is offline. Your chats are here to read; what you send goes out once the network is back.`,
        };
    }
    return {
        label: t`Reconnecting`,
        tone: 'bad',
        detail: t`The server cannot be reached. It is tried again by itself.`,
    };
}
