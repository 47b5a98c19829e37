/** Starts the page behind its first frame: running all the modules takes longer than showing that
 * it comes. */
let started = false;
function start() {
    if (started) return;
    started = true;
    import('./views/app.js');
}
requestAnimationFrame(() => setTimeout(start));
setTimeout(start, 150); // a hidden tab has no frames
