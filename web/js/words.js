/**
 * What the page says in words: every error with a next step, every phase of the work, the state of
 * the connection.
 * @typedef {import('./state/store.js').Message} Message
 */
import { formatDuration, formatRate } from './util.js';

/** code -> [what happened, what to do]. The server's own sentence follows where it says more. */
const ERRORS = {
    context_length_exceeded: [
        'The conversation is longer than the model can read.',
        'Start a new chat, or send less text or fewer files.',
    ],
    queue_full: ['The server is busy: its queue is full.', 'Try again in a few seconds.'],
    rate_limit_error: ['The server is busy.', 'Try again in a few seconds.'],
    model_loading: ['The model is still loading.', 'Try again when the dot next to its name is green.'],
    server_draining: ['The server is about to stop or restart.', 'Try again when it is back.'],
    unavailable_error: ['The server is not ready.', 'Try again in a few seconds.'],
    model_not_found: ['The server does not have this model.', 'Choose another one in the menu at the top.'],
    invalid_api_key: ['The server asks for an API key.', 'Enter it in the settings.'],
    authentication_error: ['The server asks for an API key.', 'Enter it in the settings.'],
    connection_lost: ['The connection to the server was lost.', 'Check that it runs, then try again.'],
    response_not_found: [
        'The server no longer has the rest of this answer.',
        'Ask again to get a whole one.',
    ],
    response_evicted: [
        'The server had no room to keep this answer.',
        'Ask again to get a whole one.',
    ],
    idempotency_reply_evicted: [
        'The server had no room to keep this answer.',
        'Ask again to get a whole one.',
    ],
    stream_not_read: [
        'The answer came faster than it could be received.',
        'Ask again to get a whole one.',
    ],
    unsupported_image_media_type: ['The server cannot read this image format.', 'Send it as PNG or JPEG.'],
    image_parse_error: ['The image is damaged or incomplete.', 'Open it elsewhere, save it again and retry.'],
    image_not_supported: ['This model cannot see images.', 'Ask without them, or start a model with vision.'],
    video_not_supported: ['This model cannot see videos.', 'Ask without them, or start a model that can.'],
    video_parse_error: ['The video is damaged or of an unknown format.', 'Save it as MP4 or WebM and retry.'],
    unsupported_video_codec: ['The server cannot read this video format.', 'Save it as MP4 (H.264) or WebM and retry.'],
    unsupported_video_media_type: ['The server cannot read this video format.', 'Save it as MP4 (H.264) or WebM and retry.'],
    video_too_large: ['The video is larger than this server allows.', 'Trim it or save it smaller, and retry.'],
    video_timeout: ['Reading the video took too long.', 'Trim it or save it smaller, and retry.'],
    video_range: ['The chosen part of the video is empty.', 'Choose another part.'],
    video_too_long: ['The video is too long.', 'Trim it and retry.'],
    too_many_images: ['One request may not hold this many images.', 'Start a new chat, or send fewer.'],
    image_too_large: ['The image is larger than the server accepts.', 'Make it smaller and retry.'],
    upload_too_large: ['The file is larger than the server accepts.', 'Cut it, or start the server with --max-upload.'],
    upload_quota_exceeded: ['The server has no room for more files.', 'Wait until some have expired, or start it with --upload-quota.'],
    upload_storage_failed: ['The server could not store the file.', 'Its disk may be full.'],
    upload_hash_mismatch: ['The file was damaged on its way.', 'Try again.'],
    file_not_found: ['The server no longer has a file of this chat.', 'Try again: it will be sent once more.'],
    request_too_large: ['The message is larger than the server accepts.', 'Send fewer or smaller images.'],
    http_413: ['The message is larger than the server accepts.', 'Send fewer or smaller images.'],
    invalid_request_error: ['The server did not accept the request.', 'Change it and try again.'],
    not_supported_error: ['The server cannot do this.', ''],
    server_error: ['Something went wrong on the server.', 'Try again; its log says more.'],
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
    return { what: 'The answer could not be made.', next: 'Try again.', detail: error.message || error.code };
}

/**
 * What the server does for an answer right now.
 * @param {any} progress the last RunEvent of kind waiting, queued, started, progress or lost
 * @param {string} [noun] what was sent: "the image", "the video"
 * @returns {{text: string, value: number|null}} value: 0..1, or null if unknown
 */
export function progressWords(progress, noun = 'the image') {
    const { processed = 0, total = 0 } = progress;
    const value = total > 0 ? Math.min(1, processed / total) : null;
    const eta = progress.etaMs > 1500 ? ` · about ${formatDuration(Math.ceil(progress.etaMs / 1000) * 1000)} left` : '';
    const percent = value === null ? '' : ` · ${Math.round(value * 100)} %`;
    switch (progress.kind === 'progress' ? progress.phase : progress.kind) {
        case 'waiting':
            return { text: 'Waiting for the server', value: null };
        case 'queued':
            return {
                text: progress.position > 0 ? `In the queue · ${progress.position} before you` : 'In the queue',
                value: null,
            };
        case 'upload_checking':
            return { text: `Checking ${noun}${percent}`, value };
        case 'upload_sending':
            return { text: `Sending ${noun}${percent}`, value };
        case 'media_decode':
            return { text: `Opening ${noun}${total > 1 ? ` · ${noun.includes('video') ? 'frame ' : ''}${processed} of ${total}` : ''}`, value };
        case 'vision_encode':
            return { text: `Encoding ${noun}${percent}${eta}`, value };
        case 'prefill':
            return {
                text: `Reading the conversation${total ? ` · ${processed} of ${total} tokens` : ''}${eta}`,
                value,
            };
        case 'lost':
            return { text: 'Connection lost, trying to resume the answer', value: null };
        default:
            return { text: 'Starting', value: null };
    }
}

/** The figures under an answer. @param {Message} message
 * @returns {{name: string, text: string, title: string}[]} the speed first, where it is known */
export function figures(message) {
    const t = message.timings;
    if (!t) return [];
    const list = [];
    const rate = t.predicted_per_second ?? (t.predicted_ms > 0 ? (t.predicted_n * 1000) / t.predicted_ms : 0);
    if (rate > 0) {
        list.push({ name: 'Speed', text: `${formatRate(rate)} tokens/s`, title: `${t.predicted_n} tokens in the answer` });
    }
    const first = t.ttft_ms ?? t.prompt_ms;
    if (first > 0) list.push({ name: 'First token', text: `after ${formatDuration(first)}`, title: phases(t) });
    if (t.server) {
        list.push({ name: 'Answered by', text: `${t.server}, another server`, title: t.rule ? `Sent there by the rule: ${t.rule}` : 'Its model was chosen' });
    }
    if (t.route && rate > 0 && !t.server) {
        list.push({
            name: 'Route',
            text: t.route === 'media' ? 'media route' : 'text route',
            title: t.route === 'media' ? 'Went through the vision encoder' : 'Text only, no vision encoder',
        });
    }
    if (t.cache_n > 0) {
        const skipped = (t.sparse_n ?? 0) - (t.sparse_kept_n ?? 0);
        const share = Math.round((100 * t.cache_n) / (t.cache_n + (t.prompt_n ?? 0) + skipped));
        list.push({ name: 'Cache', text: `${share} % remembered`, title: `${t.cache_n} tokens of the conversation were still in the server's cache` });
    }
    if (t.sparse_n > 0) {
        const share = Math.round((100 * t.sparse_kept_n) / t.sparse_n);
        list.push({
            name: 'Sparse prefill',
            text: `${share} % of the prompt read`,
            title: `Sparse prefill: the model read ${t.sparse_kept_n} of ${t.sparse_n} tokens, those that seemed to matter`,
        });
    }
    if (t.draft_n > 0) {
        const accepted = Math.round(((t.draft_n_accepted ?? t.draft_accepted_n ?? 0) / t.draft_n) * 100);
        list.push({ name: 'Drafts', text: `${accepted} % drafts kept`, title: 'Drafted tokens that the model agreed with' });
    }
    return list;
}

/** @param {any} t timings */
function phases(t) {
    const parts = [];
    if (t.queue_ms > 1) parts.push(`queue ${formatDuration(t.queue_ms)}`);
    if (t.media_ms > 0) parts.push(`opening images ${formatDuration(t.media_ms)}`);
    if (t.vision_ms > 0) parts.push(`looking ${formatDuration(t.vision_ms)}`);
    if (t.prompt_ms > 0) parts.push(`reading ${t.prompt_n ?? ''} tokens ${formatDuration(t.prompt_ms)}`);
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
                const label = value > 0 ? `Loading ${Math.round(value * 100)} %` : 'Loading';
                return { label, tone: 'busy', detail: 'The model is being loaded; you can write already.', value };
            }
            if (state === 'draining') {
                return {
                    label: 'Restarting',
                    tone: 'busy',
                    detail: 'The server is about to stop or restart. Running answers are finished first; what you send now waits until it is back.',
                };
            }
            return { label: 'Connected', tone: 'good', detail: '' };
        case 'fallback':
            return { label: 'Connected', tone: 'good', detail: 'Over plain HTTP: WebSocket is blocked on the way.' };
        case 'loading':
            return { label: 'Loading', tone: 'busy', detail: 'The model is being loaded; you can write already.' };
        case 'unauthorised':
            return connection.key
                ? { label: 'Wrong key', tone: 'bad', detail: 'The server does not accept this API key.' }
                : { label: 'Key needed', tone: 'bad', detail: 'The server asks for an API key.' };
        case 'connecting':
        case 'retrying':
            if (!navigator.onLine) break;
            if (connection.failures >= 2) break;
            return { label: 'Connecting', tone: 'busy', detail: '' };
    }
    if (!navigator.onLine) {
        return {
            label: 'Offline',
            tone: 'bad',
            detail: 'This device is offline. Your chats are here to read; what you send goes out once the network is back.',
        };
    }
    return {
        label: 'Reconnecting',
        tone: 'bad',
        detail: 'The server cannot be reached. It is tried again by itself.',
    };
}
