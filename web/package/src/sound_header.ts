/** Parses the headers of sound files: whether C can read them, and their sample rate. The input is untrusted; what is
 * not recognized is null. */

import { byte, le16, le32, text } from "./header_bytes.js";

/** A WAV file of integers or floats. Compressed ones are decoded by the browser. */
export function isPlainWav(b: Uint8Array): boolean {
    if (!/^(RIFF|RF64)$/.test(text(b, 0, 4)) || text(b, 8, 4) !== "WAVE") {
        return false;
    }
    for (let at = 12; at + 8 <= b.length; at += 8 + le32(b, at + 4) + (le32(b, at + 4) & 1)) {
        if (text(b, at, 4) === "fmt ") {
            const code = le16(b, at + 8);
            return [1, 3].includes(code === 0xfffe ? le16(b, at + 32) : code);
        }
    }
    return true; // truncated: C reports it
}

const mp3Rates = [
    [11025, 12000, 8000],
    [],
    [22050, 24000, 16000],
    [44100, 48000, 32000],
];

function mp3Rate(b: Uint8Array): number | null {
    let at = 0;
    if (text(b, 0, 3) === "ID3") {
        at = 10 + ((byte(b, 6) << 21) | (byte(b, 7) << 14) | (byte(b, 8) << 7) | byte(b, 9));
    }
    for (const end = Math.min(b.length - 3, at + 8192); at < end; at++) {
        const layer = (byte(b, at + 1) >> 1) & 3;
        if (byte(b, at) === 0xff && byte(b, at + 1) >= 0xe0 && layer !== 0 && byte(b, at + 2) >> 4 !== 15) {
            const rate = mp3Rates[(byte(b, at + 1) >> 3) & 3]?.[(byte(b, at + 2) >> 2) & 3];
            if (rate !== undefined) {
                return rate;
            }
        }
    }
    return null;
}

/** Sample rate in Hz, within the range that browsers support; null: unknown. */
export function rateOfFile(b: Uint8Array): number | null {
    let rate: number | null = null;
    if (text(b, 0, 4) === "fLaC") {
        rate = (byte(b, 18) << 12) | (byte(b, 19) << 4) | (byte(b, 20) >> 4);
    } else if (text(b, 0, 4) === "OggS") {
        const page = 27 + byte(b, 26);
        rate = text(b, page, 7) === "\u0001vorbis" ? le32(b, page + 12) : text(b, page, 8) === "OpusHead" ? 48000 : null;
    } else if (/^R(IF|F6)/.test(text(b, 0, 3))) {
        for (let at = 12; at + 16 <= b.length && rate === null; at += 8 + le32(b, at + 4) + (le32(b, at + 4) & 1)) {
            rate = text(b, at, 4) === "fmt " ? le32(b, at + 12) : null;
        }
    } else {
        rate = mp3Rate(b);
    }
    return rate !== null && rate >= 8000 && rate <= 96000 ? rate : null;
}
