/** Reads numbers and text from a file header; bytes past its end are 0. */

export const byte = (b: Uint8Array, at: number): number => b[at] ?? 0;
export const be16 = (b: Uint8Array, at: number): number => (byte(b, at) << 8) | byte(b, at + 1);
export const be32 = (b: Uint8Array, at: number): number => ((be16(b, at) << 16) | be16(b, at + 2)) >>> 0;
export const le16 = (b: Uint8Array, at: number): number => byte(b, at) | (byte(b, at + 1) << 8);
export const le24 = (b: Uint8Array, at: number): number => le16(b, at) | (byte(b, at + 2) << 16);
export const le32 = (b: Uint8Array, at: number): number => (le24(b, at) | (byte(b, at + 3) << 24)) >>> 0;
export const text = (b: Uint8Array, at: number, n: number): string => String.fromCharCode(...b.subarray(at, at + n));
