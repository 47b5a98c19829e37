/** The published packages that tests of this folder use. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = fileURLToPath(new URL('.', import.meta.url));

/** Their folder, filled if need be; tests that run side by side wait for each other. Without them the test is skipped;
 * what: how they are called there. */
export function installModules(what) {
    try {
        execFileSync('flock', ['package-lock.json', 'sh', '-c',
            '[ node_modules -nt package-lock.json ] || { npm ci --no-audit --no-fund --loglevel=error && touch node_modules; }'], { cwd: here });
    } catch (error) {
        console.log(`skipped: ${what} could not be installed: ${error.message}`);
        process.exit(77);
    }
    return join(here, 'node_modules');
}
