/** Models from a web server: read in place, and downloaded into the browser's storage. */
import { createHash } from "node:crypto";
import { Bezel, type BezelError, type DownloadOptions, type DownloadProgress } from "../../web/package/src/index.js";
import { Ranges } from "../../web/package/src/ranges.js";
import { stall, urlSource, type Fetch } from "../../web/package/src/url_source.js";
import { check, checkEqual, finish, test } from "./check.js";
import { FakeOpfs } from "./fake_opfs.js";
import { FileServer } from "./http.js";
import { codeOf, errorOf, localOptions, nano } from "./package.js";
import { readBytes } from "./platform.js";

const bytes = await readBytes(nano);
const digest = createHash("sha256").update(bytes).digest("hex");

async function withServer(use: (server: FileServer, url: string) => Promise<void>, content: Uint8Array = bytes): Promise<void> {
    const server = new FileServer(content);
    const url = await server.start();
    try {
        await use(server, url);
    } finally {
        server.stop();
    }
}

async function withStore(use: (store: FakeOpfs, server: FileServer, url: string) => Promise<void>, content?: Uint8Array): Promise<void> {
    const store = new FakeOpfs();
    store.install();
    await withServer((server, url) => use(store, server, url), content);
}

const download = async (url: string, options: DownloadOptions = {}): ReturnType<typeof Bezel.download> =>
    Bezel.download(url, { ...(await localOptions()), parallel: 2, ...options } as DownloadOptions);

// ---- reading in place -----------------------------------------------------------------------------------

await test("a small model at a URL is read with one request after the probe", async () => {
    await withServer(async (server, url) => {
        const model = await Bezel.load(url, await localOptions());
        checkEqual(model.name, "nano e", "name");
        checkEqual((await model.tokenize("x")).length, 1, "tokens");
        checkEqual(server.requests.map(({ range }) => range), ["bytes=0-0", undefined], "requests");
        model.close();
    });
});

await test("a large model at a URL, and one that is only inspected, is read with range requests", async () => {
    await withServer(async (server, url) => {
        check((await Bezel.inspect(url, await localOptions())).runs, "runs");
        check(server.requests.every(({ range }) => range !== undefined), "ranges only when inspecting");
    });
    const large = new Uint8Array(33 << 20);
    large.set(bytes, 1 << 20);
    await withServer(async (server, url) => {
        const source = await urlSource(url);
        checkEqual([...(await source.read(1 << 20, 1024))], [...bytes.subarray(0, 1024)], "bytes");
        checkEqual(server.requests.map(({ range }) => range), ["bytes=0-0", `bytes=${1 << 20}-${(1 << 20) + 1023}`], "requests");
    }, large);
});

await test("a server without ranges: the model is read from its beginning, and reads wait for their bytes", async () => {
    await withServer(async (server, url) => {
        server.ranges = false;
        (await Bezel.load(url, await localOptions())).close();
        checkEqual(server.requests.length, 2, "requests");
        check((await Bezel.inspect(url, await localOptions())).runs, "inspected");
        server.resetCounts();
        server.breakAfter = 5000;
        server.breaks = 3; // the probe's, and two of the stream
        const source = await urlSource(url);
        const [late, early] = await Promise.all([source.read(bytes.byteLength - 9, 9), source.read(100, 50)]);
        checkEqual([...late, ...early], [...bytes.subarray(-9), ...bytes.subarray(100, 150)], "bytes");
        checkEqual([server.breaks, server.requests.length], [0, 4], "broken connections, requests");
        source.close?.();
    });
});

await test("errors of a URL, with code and message", async () => {
    const load = async (url: string): Promise<BezelError | null> => errorOf(async () => Bezel.load(url, await localOptions()));
    await withServer(async (server, url) => {
        server.status = 404;
        checkEqual((await load(url))?.code, "not_found", "404");
        server.status = 403;
        check(/permission/.test((await load(url))?.message ?? ""), "403");
        server.status = 0;
        server.onSent = () => (server.etag = `"${server.requests.length}"`);
        check(/changed/.test((await load(url))?.message ?? ""), "changed while reading");
        server.stop();
        const gone = await load(url);
        check(gone?.code === "network" && /no connection/.test(gone.message), String(gone?.message));
    });
});

await test("a broken connection is retried", async () => {
    await withServer(async (server, url) => {
        server.breakAfter = 1000;
        server.breaks = 2;
        (await Bezel.load(url, await localOptions())).close();
        checkEqual(server.breaks, 0, "breaks");
    });
});

/** A browser's cache that has only the headers of the URL's responses. */
const emptyFromCache: Fetch = async (url, init) => {
    const response = await fetch(url, init);
    return init?.cache === "no-store" ? response : new Response(new Uint8Array(0), response);
};

await test("a response from the cache that is cut off is fetched again", async () => {
    await withServer(async (_, url) => {
        const source = await urlSource(url, { fetch: emptyFromCache, partly: true });
        checkEqual([...(await source.read(0, 1024))], [...bytes.subarray(0, 1024)], "bytes");
    });
});

await test("an answer that is always too short is an error of the network", async () => {
    await withServer(async (_, url) => {
        const source = await urlSource(url, { fetch: (address, init) => emptyFromCache(address, { ...init, cache: "default" }), partly: true });
        const error = await errorOf(() => source.read(0, 1024));
        check(error?.code === "network" && error.message.includes("after 0 of 1024 bytes"), String(error?.message));
    });
});

await test("cancelling a load from a URL", async () => {
    await withServer(async (server, url) => {
        const control = new AbortController();
        server.onSent = () => control.abort();
        checkEqual(await codeOf(async () => Bezel.load(url, await localOptions({ signal: control.signal }))), "aborted", "code");
    });
});

// ---- ranges -----------------------------------------------------------------------------------------------

await test("Ranges against a reference set", () => {
    let seed = 1;
    const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
    for (let round = 0; round < 300; round++) {
        const ranges = new Ranges();
        const set = new Set<number>();
        for (let i = random(12); i >= 0; i--) {
            const from = random(60);
            const to = from + random(20);
            ranges.add(from, to);
            for (let k = from; k < to; k++) {
                set.add(k);
            }
        }
        const size = random(80);
        const most = 1 + random(9);
        const missing = ranges.missing(size, most).flatMap(([a, b]) => {
            check(b > a && b - a <= most, `a piece of ${b - a}`);
            return Array.from({ length: b - a }, (_, k) => a + k);
        });
        checkEqual(missing, Array.from({ length: size }, (_, k) => k).filter((k) => !set.has(k)), "missing");
        checkEqual(ranges.total, set.size, "total");
        let prefix = 0;
        while (set.has(prefix)) {
            prefix++;
        }
        checkEqual(ranges.prefix, prefix, "prefix");
    }
});

// ---- downloads --------------------------------------------------------------------------------------------

await test("a download is stored, listed, loaded and removed", async () => {
    await withStore(async (store, server, url) => {
        const reports: DownloadProgress[] = [];
        const stored = await download(url, { sha256: digest.toUpperCase(), onProgress: (p) => reports.push(p) });
        checkEqual([stored.name, stored.size], ["nano e.gguf", bytes.byteLength], "stored");
        checkEqual((await Bezel.models()).map(({ name, size }) => [name, size]), [["nano e.gguf", bytes.byteLength]], "listed");
        checkEqual([...store.files.keys()], ["nano e.gguf"], "no journal is left");
        checkEqual(Buffer.compare(store.files.get("nano e.gguf")?.bytes ?? new Uint8Array(), bytes), 0, "bytes");
        const [last] = reports.filter(({ stage }) => stage === "download").slice(-1);
        checkEqual([last?.done, last?.total], [bytes.byteLength, bytes.byteLength], "progress");
        check(reports.some(({ stage }) => stage === "verify"), "verified");
        const model = await Bezel.load("opfs:nano e.gguf", await localOptions());
        checkEqual((await model.tokenize("x")).length, 1, "tokens");
        model.close();
        server.resetCounts();
        await download(url, { sha256: digest });
        checkEqual(server.requests.length, 1, "a complete file is not fetched again");
        await Bezel.remove("nano e.gguf");
        checkEqual(await Bezel.models(), [], "removed");
        checkEqual(await codeOf(() => Bezel.remove("nano e.gguf")), "not_found", "twice");
    });
});

await test("a cancelled download is not listed, and is resumed", async () => {
    await withStore(async (store, server, url) => {
        const control = new AbortController();
        const stop = (p: DownloadProgress): void => {
            if (p.done > bytes.byteLength / 3) {
                control.abort();
            }
        };
        checkEqual(await codeOf(() => download(url, { signal: control.signal, onProgress: stop })), "aborted", "code");
        checkEqual([...store.files.keys()].sort(), ["nano e.gguf", "nano e.gguf.journal"], "files");
        checkEqual(await Bezel.models(), [], "not listed");
        const error = await errorOf(async () => Bezel.load("opfs:nano e.gguf", await localOptions()));
        check(error?.code === "not_found" && /not downloaded completely/.test(error.message), String(error?.message));
        server.resetCounts();
        let first = -1;
        await download(url, { sha256: digest, onProgress: ({ done }) => (first = first < 0 ? done : first) });
        check(first > bytes.byteLength / 3 - 1, `resumed from ${first}`);
        check(server.sentBytes <= bytes.byteLength - first + 1, `${server.sentBytes} bytes were sent`);
        check(server.requests.slice(1).every(({ ifRange }) => ifRange === '"one"'), "with If-Range");
        checkEqual((await Bezel.models()).length, 1, "listed");
    });
});

await test("after a broken connection, only missing bytes are fetched", async () => {
    await withStore(async (_, server, url) => {
        server.breakAfter = 30_000;
        server.breaks = 3;
        await download(url, { sha256: digest, parallel: 1 });
        checkEqual(server.breaks, 0, "breaks");
        check(server.sentBytes < 1.2 * bytes.byteLength, `${server.sentBytes} bytes of ${bytes.byteLength}`);
    });
});

await test("a truncated or invalid journal", async () => {
    await withStore(async (store, _, url) => {
        const control = new AbortController();
        await codeOf(() => download(url, { signal: control.signal, onProgress: ({ done }) => done > 50_000 && control.abort() }));
        const journal = store.files.get("nano e.gguf.journal");
        check(journal !== undefined && journal.bytes.byteLength > 50, "a journal");
        const text = new TextDecoder().decode(journal?.bytes);
        (journal as { bytes: Uint8Array }).bytes = new TextEncoder().encode(`${text}1 99999999`);
        await download(url, { sha256: digest });
        await Bezel.remove("nano e.gguf");
        await codeOf(() => download(url, { signal: AbortSignal.timeout(0) }));
        store.files.set("nano e.gguf.journal", { bytes: new TextEncoder().encode("{broken"), modified: 0, open: false });
        await download(url, { sha256: digest });
        checkEqual((await Bezel.models()).length, 1, "listed");
    });
});

await test("a download restarts if the file changed on the server", async () => {
    await withStore(async (store, server, url) => {
        const control = new AbortController();
        await codeOf(() => download(url, { signal: control.signal, onProgress: ({ done }) => done > 50_000 && control.abort() }));
        server.etag = '"two"';
        server.bytes = bytes.map((b, i) => (i < 1000 ? b : b ^ 255));
        server.resetCounts();
        await download(url);
        check(server.sentBytes > bytes.byteLength - 1, "all of it");
        checkEqual(Buffer.compare(store.files.get("nano e.gguf")?.bytes ?? new Uint8Array(), server.bytes), 0, "the new bytes");
        await Bezel.remove("nano e.gguf");
        server.onSent = () => (server.etag = server.requests.length === 2 ? '"three"' : server.etag);
        server.resetCounts();
        await download(url, { parallel: 1 }); // changes between the first request and the first range: status 200, so it restarts
        checkEqual((await Bezel.models()).length, 1, "listed");
        await Bezel.remove("nano e.gguf");
        server.onSent = () => (server.etag = `"${server.requests.length}"`);
        const error = await errorOf(() => download(url));
        check(error?.code === "network" && /keeps changing/.test(error.message), String(error?.message));
        checkEqual((await Bezel.models()).length, 0, "not listed");
    });
});

await test("servers without ranges, without a size, without an ETag", async () => {
    await withStore(async (_, server, url) => {
        server.ranges = false;
        await download(url, { sha256: digest });
        await Bezel.remove("nano e.gguf");
        server.sendsLength = false;
        await download(url, { sha256: digest });
        await Bezel.remove("nano e.gguf");
        server.breakAfter = 30_000;
        server.breaks = 2; // the first request is answered with the whole file
        server.sendsLength = true;
        checkEqual(await codeOf(() => download(url)), "network", "broken connection");
        checkEqual(await Bezel.models(), [], "not listed");
        server.ranges = true;
        server.etag = null;
        await download(url, { sha256: digest });
    });
});

await test("with a wrong checksum the file is removed", async () => {
    await withStore(async (store, _, url) => {
        const error = await errorOf(() => download(url, { sha256: "0".repeat(64) }));
        check(error?.code === "checksum" && error.message.includes(digest), String(error?.message));
        checkEqual([...store.files.keys()], [], "files");
        checkEqual(await codeOf(() => download(url, { sha256: "abc" })), "bad_request", "an invalid checksum");
    });
});

await test("a hash that the host sends is checked, and reported; other tags are none", async () => {
    await withStore(async (store, server, url) => {
        checkEqual((await download(url)).sha256, null, "without a hash nothing is checked");
        server.linkedTag = '"a-tag-of-another-kind"';
        await Bezel.remove("nano e.gguf");
        checkEqual((await download(url)).sha256, null, "not a hash");
        server.linkedTag = `"${digest}"`;
        await Bezel.remove("nano e.gguf");
        checkEqual((await download(url)).sha256, digest, "checked");
        server.linkedTag = `"${"0".repeat(64)}"`;
        await Bezel.remove("nano e.gguf");
        checkEqual(await codeOf(() => download(url)), "checksum", "another hash");
        checkEqual([...store.files.keys()], [], "files");
        checkEqual((await download(url, { sha256: digest })).sha256, digest, "the caller's hash counts");
    });
});

await test("downloads that are not complete are listed from their journals", async () => {
    await withStore(async (store, server, url) => {
        checkEqual(await Bezel.unfinished(), [], "none");
        const control = new AbortController();
        const stop = ({ done }: DownloadProgress): void => void (done > bytes.byteLength / 3 && control.abort());
        await codeOf(() => download(url, { signal: control.signal, onProgress: stop }));
        const [one, ...others] = await Bezel.unfinished();
        checkEqual([one?.name, one?.url, one?.size, others.length], ["nano e.gguf", url, bytes.byteLength, 0], "listed");
        check((one?.done ?? 0) > bytes.byteLength / 3 - 1 && (one?.done ?? 0) < bytes.byteLength, `${one?.done} bytes`);
        const journal = store.files.get("nano e.gguf.journal");
        check(journal !== undefined, "a journal");
        if (journal) {
            journal.bytes = new TextEncoder().encode("no journal\n");
        }
        checkEqual((await Bezel.unfinished()).map(({ url: address, size, done }) => [address, size, done]), [["", null, 0]], "an invalid journal");
        await Bezel.remove("nano e.gguf");
        checkEqual(await Bezel.unfinished(), [], "removed");
        server.ranges = false;
        const again = new AbortController();
        await codeOf(() => download(url, { signal: again.signal, onProgress: ({ done }) => void (done > 1000 && again.abort()) }));
        checkEqual((await Bezel.unfinished()).map(({ done }) => done), [0], "without ranges it begins again");
    });
});

await test("a file that is not GGUF is refused at its first bytes", async () => {
    const page = new TextEncoder().encode(`<!doctype html>${" ".repeat(1e6)}`);
    await withStore(async (store, server, url) => {
        const error = await errorOf(() => download(url, { parallel: 1 }));
        check(error?.code === "bad_file" && /not a GGUF/.test(error.message), String(error?.message));
        checkEqual([...store.files.keys()], [], "files");
        server.status = 404;
        checkEqual(await codeOf(() => download(url)), "not_found", "404");
        checkEqual(await codeOf(() => download(url, { name: "../x" })), "bad_request", "an invalid name");
    }, page);
});

await test("a full quota is reported before or during the download", async () => {
    await withStore(async (store, _, url) => {
        store.quota = 100_000;
        const error = await errorOf(() => download(url));
        check(error?.code === "quota" && /GB/.test(error.message), String(error?.message));
        store.reportsQuota = false;
        checkEqual(await codeOf(() => download(url)), "quota", "while writing");
        checkEqual(await Bezel.models(), [], "not listed");
        store.quota = Infinity;
        await download(url, { sha256: digest });
        checkEqual((await Bezel.models()).length, 1, "afterwards");
    });
});

await test("of two downloads with one name, one is refused", async () => {
    await withStore(async (_, __, url) => {
        const codes = await Promise.all([codeOf(() => download(url)), codeOf(() => download(url))]);
        checkEqual(codes.sort(), ["bad_request", "none"], "codes");
    });
});

await test("without a validator and a checksum nothing is resumed", async () => {
    await withStore(async (store, server, url) => {
        server.etag = null;
        const control = new AbortController();
        await codeOf(() => download(url, { signal: control.signal, onProgress: ({ done }) => done > 50_000 && control.abort() }));
        server.bytes = bytes.map((b, i) => (i < 1000 ? b : b ^ 255)); // another file of the same size
        server.resetCounts();
        let first = -1;
        await download(url, { onProgress: ({ done }) => (first = first < 0 ? done : first) });
        checkEqual(first, 0, "bytes that were kept");
        checkEqual(Buffer.compare(store.files.get("nano e.gguf")?.bytes ?? new Uint8Array(), server.bytes), 0, "the new bytes");
        await Bezel.remove("nano e.gguf");
        server.breakAfter = 30_000;
        server.breaks = 1;
        const error = await errorOf(() => download(url));
        check(error?.code === "network" && /cannot be resumed: the server does not identify/.test(error.message), String(error?.message));
        checkEqual(await Bezel.models(), [], "not listed");
    });
});

await test("a server that stops sending counts as a broken connection", async () => {
    stall.afterMs = 100;
    await withStore(async (_, server, url) => {
        for (const after of [0, 5000]) {
            server.stalls = 2;
            server.stallAfter = after;
            (await Bezel.load(url, await localOptions())).close();
            checkEqual(server.stalls, 0, "stalled connections while reading in place");
            server.stalls = after ? 2 : 0; // a download makes its first request once
            await download(url, { sha256: digest, parallel: 1 });
            checkEqual(server.stalls, 0, "stalled connections while downloading");
            await Bezel.remove("nano e.gguf");
        }
    });
    stall.afterMs = 60_000;
});

finish();
