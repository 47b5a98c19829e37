/** Small PDF documents for the tests, written by hand: pages of text, pages that are images, a
 * locked one. */

/** @param {string[]} objects bodies of object 1, 2, ... @param {string} [trailer] */
function pdf(objects, trailer = '') {
    let text = '%PDF-1.4\n';
    const offsets = objects.map((body, i) => {
        const at = text.length;
        text += `${i + 1} 0 obj\n${body}\nendobj\n`;
        return at;
    });
    const start = text.length;
    text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n`;
    for (const at of offsets) text += `${String(at).padStart(10, '0')} 00000 n \n`;
    return Buffer.from(`${text}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF`, 'latin1');
}

const stream = (head, data) => `<< ${head} /Length ${data.length} >>\nstream\n${data}\nendstream`;

/** @param {string[][]} pages the lines of each page */
export function textPdf(pages) {
    const kids = pages.map((_, i) => `${4 + 2 * i} 0 R`).join(' ');
    return pdf([
        '<< /Type /Catalog /Pages 2 0 R >>',
        `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
        '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
        ...pages.flatMap((lines, i) => [
            `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F 3 0 R >> >> /Contents ${5 + 2 * i} 0 R >>`,
            stream('', `BT /F 14 Tf 20 760 Td 18 TL ${lines.map((line) => `(${line}) Tj T*`).join(' ')} ET`),
        ]),
    ]);
}

/** Pages that are one red image each, as a scanner makes them. @param {number} pages */
export function scannedPdf(pages) {
    const kids = Array.from({ length: pages }, () => '3 0 R').join(' ');
    return pdf([
        '<< /Type /Catalog /Pages 2 0 R >>',
        `<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`,
        '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 400] /Resources << /XObject << /I 4 0 R >> >> /Contents 5 0 R >>',
        stream('/Type /XObject /Subtype /Image /Width 2 /Height 2 /ColorSpace /DeviceRGB /BitsPerComponent 8', '\xff\0\0'.repeat(4)),
        stream('', 'q 300 0 0 400 0 0 cm /I Do Q'),
    ]);
}

/** A document that asks for a password. */
export function lockedPdf() {
    const noise = (n) => `<${'5a'.repeat(n)}>`;
    return pdf(
        ['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [] /Count 0 >>', `<< /Filter /Standard /V 1 /R 2 /P -4 /O ${noise(32)} /U ${noise(32)} >>`],
        `/Encrypt 3 0 R /ID [${noise(16)} ${noise(16)}]`,
    );
}
