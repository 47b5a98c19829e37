/** What a run of the browser tests prints: tests that failed, with the reason; what a test has measured; and how
 * many passed, file by file. A reporter of node --test. */
import { basename } from 'node:path';

const indented = (text) => String(text).replace(/^/gm, '    ');

export default async function* report(events) {
    const passed = new Map();
    for await (const { type, data } of events) {
        const file = basename(data.file ?? '');
        if (type === 'test:pass' && data.details?.type !== 'suite') passed.set(file, (passed.get(file) ?? 0) + !data.skip);
        else if (type === 'test:diagnostic' && data.nesting === 0 && /^[^a-z]|: /.test(data.message)) yield `# ${data.message}\n`;
        else if (type === 'test:stderr' || type === 'test:stdout') yield data.message;
        else if (type === 'test:fail') {
            const { error } = data.details;
            const cause = error?.cause ?? error;
            yield `not ok - ${file}: ${data.name}\n${indented(cause?.stack ?? cause?.message ?? cause)}\n`;
        }
    }
    for (const [file, count] of passed) yield `ok - ${file}: ${count} passed\n`;
}
