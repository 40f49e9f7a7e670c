/** Parses an image's size from its header, so that huge images are refused before they are decoded. The input is
 * untrusted; what is not recognized is null. */

import { be16, be32, byte, le16, le24, le32, text } from "./header_bytes.js";

export interface ImageSize {
    width: number;
    height: number;
}

/** Walks the markers up to the frame header. */
function jpegSize(b: Uint8Array): ImageSize | null {
    for (let at = 2; at + 9 < b.length; ) {
        if (byte(b, at) !== 0xff) {
            return null;
        }
        const marker = byte(b, at + 1);
        const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
        if (frame) {
            return { width: be16(b, at + 7), height: be16(b, at + 5) };
        }
        const standalone = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd9);
        at += standalone ? (marker === 0xff ? 1 : 2) : 2 + Math.max(2, be16(b, at + 2));
    }
    return null;
}

function webpSize(b: Uint8Array): ImageSize | null {
    switch (text(b, 12, 4)) {
        case "VP8 ":
            return { width: le16(b, 26) & 0x3fff, height: le16(b, 28) & 0x3fff };
        case "VP8L": {
            const bits = le32(b, 21);
            return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
        }
        case "VP8X":
            return { width: le24(b, 24) + 1, height: le24(b, 27) + 1 };
        default:
            return null;
    }
}

export function imageSize(b: Uint8Array): ImageSize | null {
    if (b.length < 30) {
        return null;
    }
    if (text(b, 1, 7) === "PNG\r\n\u001a\n") {
        return { width: be32(b, 16), height: be32(b, 20) };
    }
    if (be16(b, 0) === 0xffd8) {
        return jpegSize(b);
    }
    if (text(b, 0, 4) === "GIF8") {
        return { width: le16(b, 6), height: le16(b, 8) };
    }
    if (text(b, 0, 4) === "RIFF" && text(b, 8, 4) === "WEBP") {
        return webpSize(b);
    }
    if (text(b, 0, 2) === "BM" && le32(b, 14) >= 40) {
        return { width: le32(b, 18), height: Math.abs(le32(b, 22) | 0) };
    }
    return null;
}
