/** A random id. Not crypto.randomUUID, which pages over plain http lack. */
export function newId(): string {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
