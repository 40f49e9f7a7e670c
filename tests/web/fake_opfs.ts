/** An in-memory origin private file system with the operations that the package uses. */

interface Content {
    bytes: Uint8Array<ArrayBuffer>;
    modified: number;
    open: boolean;
}

function failure(name: string): Error {
    return new DOMException(name, name);
}

export class FakeOpfs {
    readonly files = new Map<string, Content>();
    /** Maximum bytes of all files. */
    quota = Infinity;
    /** Whether estimate() reports the quota. */
    reportsQuota = true;

    get usage(): number {
        return [...this.files.values()].reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    }

    install(): void {
        const storage = {
            getDirectory: () => Promise.resolve({ getDirectoryHandle: () => Promise.resolve(this.#folder()) }),
            estimate: () => Promise.resolve(this.reportsQuota ? { quota: this.quota, usage: this.usage } : {}),
            persisted: () => Promise.resolve(false),
            persist: () => Promise.resolve(true),
        };
        Object.defineProperty(globalThis, "navigator", { value: { storage, hardwareConcurrency: 2 }, configurable: true });
    }

    #folder(): object {
        return {
            getFileHandle: (name: string, options?: { create?: boolean }) => {
                if (!this.files.has(name)) {
                    if (!options?.create) {
                        return Promise.reject(failure("NotFoundError"));
                    }
                    this.files.set(name, { bytes: new Uint8Array(), modified: Date.now(), open: false });
                }
                return Promise.resolve(this.#handle(name, this.files.get(name) as Content));
            },
            removeEntry: (name: string) => {
                if (this.files.get(name)?.open) {
                    return Promise.reject(failure("NoModificationAllowedError"));
                }
                return this.files.delete(name) ? Promise.resolve() : Promise.reject(failure("NotFoundError"));
            },
            entries: async function* (this: void, files: FakeOpfs["files"], handle: (name: string, c: Content) => object) {
                for (const [name, content] of files) {
                    yield await Promise.resolve([name, handle(name, content)]);
                }
            }.bind(undefined, this.files, (name, content) => this.#handle(name, content)),
        };
    }

    #handle(name: string, content: Content): object {
        const resize = (size: number): void => {
            if (this.usage - content.bytes.byteLength + size > this.quota) {
                throw failure("QuotaExceededError");
            }
            const old = content.bytes;
            content.bytes = new Uint8Array(size);
            content.bytes.set(old.subarray(0, size));
        };
        return {
            kind: "file",
            name,
            getFile: () => Promise.resolve(new File([content.bytes], name, { lastModified: content.modified })),
            createSyncAccessHandle: () => {
                if (content.open) {
                    return Promise.reject(failure("NoModificationAllowedError"));
                }
                content.open = true;
                return Promise.resolve({
                    getSize: () => content.bytes.byteLength,
                    truncate: resize,
                    flush: () => undefined,
                    close: () => (content.open = false),
                    read: (into: Uint8Array, { at }: { at: number }) => {
                        const found = content.bytes.subarray(at, at + into.byteLength);
                        into.set(found);
                        return found.byteLength;
                    },
                    write: (bytes: Uint8Array, { at }: { at: number }) => {
                        if (at + bytes.byteLength > content.bytes.byteLength) {
                            resize(at + bytes.byteLength);
                        }
                        content.bytes.set(bytes, at);
                        return bytes.byteLength;
                    },
                });
            },
        };
    }
}
