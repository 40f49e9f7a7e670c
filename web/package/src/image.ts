/** Decodes image files to pixels with the browser: EXIF orientation applied, no color conversion, transparent pixels on white. */
import { BezelError } from "./errors.js";
import { imageSize, type ImageSize } from "./image_size.js";

/** Bytes that are searched for the size; in a JPEG it may follow a large preview. */
const HEADER_BYTES = 1 << 20;
/** Side of the tiles that are read: limits the memory and the canvas size. */
const TILE = 2048;

type Canvas2d = OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D;

/** Null: the format is not recognized. */
export async function readSize(file: Blob): Promise<ImageSize | null> {
    return imageSize(new Uint8Array(await file.slice(0, HEADER_BYTES).arrayBuffer()));
}

export async function openImage(file: Blob): Promise<ImageBitmap> {
    const name = "name" in file ? String(file.name) : "The image";
    if (typeof createImageBitmap === "undefined") {
        throw new BezelError("bad_request", `${name} cannot be decoded here: pass pixels as {data, width, height}.`);
    }
    try {
        return await createImageBitmap(file, { imageOrientation: "from-image", premultiplyAlpha: "none", colorSpaceConversion: "none" }).catch((reason: unknown) => {
            if (reason instanceof TypeError) {
                return createImageBitmap(file); // a browser without support for these options
            }
            throw reason;
        });
    } catch (reason) {
        throw new BezelError("bad_file", `${name} cannot be read as an image: it is damaged, or its format is not supported by this browser.`, { cause: reason });
    }
}

function newCanvas(width: number, height: number): OffscreenCanvas | HTMLCanvasElement {
    if (typeof OffscreenCanvas !== "undefined") {
        return new OffscreenCanvas(width, height);
    }
    if (typeof document === "undefined") {
        throw new BezelError("bad_request", "This browser has no canvas in workers, which decoding images needs; load the model with worker: false.");
    }
    return Object.assign(document.createElement("canvas"), { width, height });
}

/** Reads a tile, [height][width][4]. */
type Reader = (x: number, y: number, width: number, height: number) => Uint8ClampedArray | Uint8Array;

/** A 2D canvas premultiplies colors by alpha, which is lossless only for opaque pixels. */
function canvasReader(bitmap: ImageBitmap): Reader {
    const [w, h] = [Math.min(TILE, bitmap.width), Math.min(TILE, bitmap.height)];
    const context = newCanvas(w, h).getContext("2d", { willReadFrequently: true }) as Canvas2d | null;
    if (!context) {
        throw new BezelError("out_of_memory", "The browser could not create a canvas to decode an image.");
    }
    context.globalCompositeOperation = "copy";
    context.imageSmoothingEnabled = false;
    context.fillStyle = "#a15a37";
    context.fillRect(0, 0, 1, 1);
    if (String(context.getImageData(0, 0, 1, 1).data) !== "161,90,55,255") {
        throw new BezelError("bad_request", "The browser's fingerprinting protection falsifies pixels; allow this site to read canvas data.");
    }
    return (x, y, width, height) => {
        context.drawImage(bitmap, x, y, width, height, 0, 0, width, height);
        return context.getImageData(0, 0, width, height).data;
    };
}

/** A WebGL texture keeps colors regardless of alpha. Null: no WebGL, or the image exceeds its texture size. */
function textureReader(bitmap: ImageBitmap): Reader | null {
    const gl = newCanvas(1, 1).getContext("webgl2") as WebGL2RenderingContext | null;
    if (!gl || Math.max(bitmap.width, bitmap.height) > (gl.getParameter(gl.MAX_TEXTURE_SIZE) as number)) {
        return null;
    }
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
    gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, gl.getParameter(gl.TEXTURE_BINDING_2D) as WebGLTexture, 0);
    if (gl.checkFramebufferStatus(gl.FRAMEBUFFER) !== gl.FRAMEBUFFER_COMPLETE || gl.getError() !== gl.NO_ERROR) {
        return null;
    }
    return (x, y, width, height) => {
        const pixels = new Uint8Array(4 * width * height);
        gl.readPixels(x, y, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
        if (x + width === bitmap.width && y + height === bitmap.height) {
            gl.getExtension("WEBGL_lose_context")?.loseContext(); // after the last tile, free its memory now
        }
        return pixels;
    };
}

/** A color of a pixel that is composited on white, as the reference implementation does: the bits of Pillow's alpha_composite. */
export function onWhite(color: number, alpha: number): number {
    const sum = color * alpha + 255 * (255 - alpha) + 128;
    return (sum + (sum >> 8)) >> 8;
}

/** Copies a tile, on white. False: `mustBeOpaque`, and a pixel is not. */
function copyTile(to: Uint8Array, imageWidth: number, x: number, y: number, width: number, from: ArrayLike<number>, mustBeOpaque: boolean): boolean {
    for (let i = 0, row = 0; i < from.length; row++) {
        let at = 3 * ((y + row) * imageWidth + x);
        for (const end = i + 4 * width; i < end; i += 4) {
            const alpha = from[i + 3] as number;
            if (mustBeOpaque && alpha !== 255) {
                return false;
            }
            to[at++] = onWhite(from[i] as number, alpha);
            to[at++] = onWhite(from[i + 1] as number, alpha);
            to[at++] = onWhite(from[i + 2] as number, alpha);
        }
    }
    return true;
}

function copyTiles(bitmap: ImageBitmap, rgb: Uint8Array, read: Reader, mustBeOpaque: boolean): boolean {
    for (let y = 0; y < bitmap.height; y += TILE) {
        for (let x = 0; x < bitmap.width; x += TILE) {
            const [w, h] = [Math.min(TILE, bitmap.width - x), Math.min(TILE, bitmap.height - y)];
            if (!copyTile(rgb, bitmap.width, x, y, w, read(x, y, w, h), mustBeOpaque)) {
                return false;
            }
        }
    }
    return true;
}

/** rgb: [height][width][3] */
export function readPixels(bitmap: ImageBitmap, rgb: Uint8Array): void {
    const fromCanvas = canvasReader(bitmap);
    if (copyTiles(bitmap, rgb, fromCanvas, true)) {
        return;
    }
    copyTiles(bitmap, rgb, textureReader(bitmap) ?? fromCanvas, false);
}
