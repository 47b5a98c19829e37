/** Starts the page behind its first frame: running all the modules takes longer than showing that
 * it comes. */
let started = false;
function start() {
    if (started) return;
    started = true;
    import('./views/app.js').then(keepShell);
}
/** Where the page is secure it opens without the server, too. */
function keepShell() {
    if (!navigator.serviceWorker) return;
    const address = new URL('../sw.js', import.meta.url).href;
    const policy = window.trustedTypes?.createPolicy('service-worker', { createScriptURL: () => address });
    navigator.serviceWorker.register(policy ? policy.createScriptURL('') : address).catch(() => {}); // then it does not
}
requestAnimationFrame(() => setTimeout(start));
setTimeout(start, 150); // a hidden tab has no frames
