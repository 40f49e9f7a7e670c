/** The page's lookup of models on other hosts, its list of models, and what it says about a device: no browser needed. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BezelError, type Capabilities } from "../../web/app/src/bezel.js";
import { browserName } from "../../web/app/src/bench_picture.js";
import { readCatalog } from "../../web/app/src/catalog.js";
import { fitOf } from "../../web/app/src/fit.js";
import { formatTimeLeft } from "../../web/app/src/format.js";
import { findModel } from "../../web/app/src/hosts.js";
import { Rate } from "../../web/app/src/rate.js";
import { check, checkEqual, finish, test } from "./check.js";

const hex = (digit: string): string => digit.repeat(64);
const entry = (path: string, digit: string | null, size = 1000): object => ({ type: "file", path, size, ...(digit === null ? {} : { lfs: { oid: hex(digit), size } }) });
const manifest = (layers: object[]): object => ({ schemaVersion: 2, layers });
const layer = (kind: string, digest: unknown, size: unknown = 5): object => ({ mediaType: `application/vnd.ollama.image.${kind}`, digest, size });

/** Path with query to [status, body, headers]. */
const answers: Record<string, [status: number, body: unknown, headers?: Record<string, string>]> = {
    "/api/models/org/plain/tree/main?recursive=true": [200, [
        { type: "directory", path: "BF16" },
        entry("README.md", null),
        entry("gemma-Q8_0.gguf", "8"),
        entry("gemma-UD-Q4_K_XL.gguf", "4"),
        entry("gemma-imatrix.gguf", "1"),
        entry("mtp-gemma-BF16.gguf", "3"),
        entry("mtp-gemma-Q8_0.gguf", "2", 55),
        entry("mmproj-BF16.gguf", "b"),
        entry("mmproj-F16.gguf", "f", 77),
        entry("BF16/gemma-BF16-00001-of-00002.gguf", "c"),
    ], { Link: '</api/models/org/plain/tree/main?recursive=true&cursor=x>; rel="next"' }],
    "/api/models/org/plain/tree/main?recursive=true&cursor=x": [200, [
        entry("BF16/gemma-BF16-00002-of-00002.gguf", "d"),
        entry("odd/gemma-F32-00001-of-00003.gguf", "e"),
        entry("no-hash-Q6_K.gguf", null),
        { type: "file", path: "bad-hash-Q5_K_M.gguf", size: -1, lfs: { oid: "not a hash" } },
        { type: "file", path: 7 },
        null,
    ], { Link: '<https://elsewhere.example/x>; rel="next"' }],
    "/api/models/org/several/tree/main?recursive=true": [200, [entry("a-IQ2_M.gguf", "1"), entry("b-IQ3_M.gguf", "2")]],
    "/api/models/org/one/tree/main?recursive=true": [200, [entry("only.gguf", "1")]],
    "/api/models/org/empty/tree/main?recursive=true": [200, []],
    "/api/models/org/object/tree/main?recursive=true": [200, { error: "no list" }],
    "/api/models/org/html/tree/main?recursive=true": [200, "<html>"],
    "/api/models/org/private/tree/main?recursive=true": [401, {}],
    "/api/models/org/broken/tree/main?recursive=true": [503, {}],
    "/api/models/org/one/tree/v2?recursive=true": [200, [entry("deep/only.gguf", "9")]],
    "/v2/library/gemma4/manifests/e2b": [200, manifest([layer("license", `sha256:${hex("0")}`), layer("model", `sha256:${hex("a")}`, 70), layer("projector", `sha256:${hex("b")}`, 7), layer("draft", `sha256:${hex("c")}`, 3)])],
    "/v2/user/gemma4/manifests/latest": [200, manifest([layer("model", `sha256:${hex("a")}`)])],
    "/v2/library/liar/manifests/latest": [200, manifest([layer("model", "sha256:../../secret")])],
    "/v2/library/huge/manifests/latest": [200, manifest([layer("model", `sha256:${hex("a")}`, 1e300)])],
    "/v2/library/textless/manifests/latest": [200, manifest([layer("adapter", `sha256:${hex("a")}`)])],
    "/v2/library/odd/manifests/latest": [200, { layers: "none" }],
};

const http = createServer((request, response) => {
    const [status, body, headers] = answers[request.url ?? ""] ?? [404, {}];
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
});
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
const hosts = { huggingFace: url, ollama: url };
const { signal } = new AbortController();
const find = (text: string): ReturnType<typeof findModel> => findModel(text, hosts, signal);

async function refused(text: string, code: string, sentence: RegExp): Promise<void> {
    try {
        await find(text);
    } catch (reason) {
        check(reason instanceof BezelError && reason.code === code && sentence.test(reason.message), `${text}: ${String(reason)}`);
        return;
    }
    throw new Error(`${text} was found`);
}

await test("a repository: the quant, all parts, the mmproj file, sizes and hashes", async () => {
    const xl = await find("org/plain");
    checkEqual(xl.files.map(({ name, sha256 }) => [name, sha256]), [["gemma-UD-Q4_K_XL.gguf", hex("4")]], "the preferred quant");
    checkEqual(xl.media, [{ url: `${url}/org/plain/resolve/main/mmproj-F16.gguf`, name: "mmproj-F16.gguf", size: 77, sha256: hex("f") }], "mmproj");
    checkEqual(xl.drafter, [{ url: `${url}/org/plain/resolve/main/mtp-gemma-Q8_0.gguf`, name: "mtp-gemma-Q8_0.gguf", size: 55, sha256: hex("2") }], "drafter");
    checkEqual(xl.title, "gemma-UD-Q4_K_XL", "title");
    for (const name of ["org/plain:Q4_K_XL", "hf:org/plain:ud-q4_k_xl", "hf.co/org/plain:UD-Q4_K_XL", "https://huggingface.co/org/plain:UD-Q4_K_XL"]) {
        const named = name.startsWith("https:") ? name.replace("https://", "") : name;
        checkEqual((await find(named)).files[0]?.sha256, hex("4"), named);
    }
    checkEqual((await find("org/plain:BF16")).files.map(({ sha256 }) => sha256), [hex("c"), hex("d")], "both parts, from two pages");
    checkEqual((await find("org/plain:Q6_K")).files[0]?.sha256, null, "no hash");
    const bad = (await find("org/plain:Q5_K_M")).files[0];
    checkEqual([bad?.sha256, bad?.size], [null, null], "an invalid hash or size counts as none");
    checkEqual((await find("org/one")).files[0]?.name, "only.gguf", "the only file needs no quant");
});

await test("addresses of a repository and of a file in it are looked up, for the hash", async () => {
    checkEqual((await find(`${url}/org/one`)).files[0]?.sha256, hex("1"), "the repository");
    const file = await find(`${url}/org/plain/blob/main/gemma-Q8_0.gguf`);
    checkEqual([file.files[0]?.sha256, file.media.length, file.drafter.length], [hex("8"), 1, 1], "a file");
    const chosen = await find(`${url}/org/plain/blob/main/mtp-gemma-Q8_0.gguf`);
    checkEqual([chosen.files[0]?.sha256, chosen.drafter], [hex("2"), []], "the drafter itself");
    checkEqual((await find(`${url}/org/plain/resolve/main/BF16/gemma-BF16-00001-of-00002.gguf?download=true`)).files.length, 2, "all parts");
    checkEqual((await find(`${url}/org/one/resolve/v2/deep/only.gguf`)).files[0]?.url, `${url}/org/one/resolve/v2/deep/only.gguf`, "another revision");
    await refused(`${url}/org/one/blob/main/gone.gguf`, "not_found", /has no file gone\.gguf/);
});

await test("what a repository does not have is said, with what it has", async () => {
    await refused("org/plain:Q2_K", "not_found", /has no Q2_K; it has .*Q8_0/);
    await refused("org/several", "not_found", /several models: enter one of IQ2_M, IQ3_M/);
    await refused("org/plain:F32", "not_found", /has no F32/); // one of three parts
    await refused("org/empty", "not_found", /no complete GGUF file/);
    await refused("org/missing", "not_found", /has no repository org\/missing/);
    await refused("org/private", "not_found", /not public/);
    await refused("org/broken", "network", /status 503/);
    await refused("org/html", "network", /not JSON/);
    await refused("org/object", "network", /unknown form/);
});

await test("Ollama's names: digests of the manifest are the hashes", async () => {
    const model = await find("gemma4:e2b");
    checkEqual(model.files, [{ url: `${url}/v2/library/gemma4/blobs/sha256:${hex("a")}`, name: "gemma4-e2b.gguf", size: 70, sha256: hex("a") }], "model");
    checkEqual(model.media.map(({ sha256 }) => sha256), [hex("b")], "projector");
    checkEqual(model.drafter.map(({ sha256, name }) => [sha256, name]), [[hex("c"), "gemma4-e2b-drafter.gguf"]], "drafter");
    checkEqual((await find("ollama:user/gemma4")).files.length, 1, "a user's");
    checkEqual((await find("registry.ollama.ai/library/gemma4:e2b")).title, "gemma4:e2b", "with its host");
    await refused("gemma4:none", "not_found", /has no model gemma4:none/);
    await refused("liar", "network", /no valid digest/);
    await refused("huge", "network", /no valid digest or size/);
    await refused("textless", "unsupported_model", /no GGUF file/);
    await refused("odd", "unsupported_model", /no GGUF file/);
});

await test("addresses: several files of one model; what pages may not fetch is refused", async () => {
    const model = await find("https://a.example/m-00001-of-00002.gguf, https://a.example/m-00002-of-00002.gguf\nhttps://a.example/mmproj-m.gguf");
    checkEqual([model.title, model.files.length, model.media.length, model.files[0]?.sha256], ["m", 2, 1, null], "files");
    const drafting = await find("https://a.example/m-drafter.gguf https://a.example/m.gguf");
    checkEqual([drafting.title, drafting.files.map(({ name }) => name)], ["m", ["m.gguf", "m-drafter.gguf"]], "a drafter");
    checkEqual((await find("https://a.example/my-assistant.gguf")).title, "my-assistant", "a model whose name sounds like a drafter's");
    checkEqual((await find("https://a.example/my%20model.gguf")).title, "my model", "escaped");
    await refused("https://a.example/mmproj.gguf", "bad_request", /that is an mmproj file/i);
    await refused("http://a.example/m.gguf", "bad_request", /https addresses/);
    for (const text of ["", "  ", "a b", "org/repo other", "../../etc/passwd", "javascript:alert(1)", "file:///etc/passwd", "org/repo:Q4 K"]) {
        await refused(text, "bad_request", /Enter a Hugging Face name/);
    }
});

await test("the page's list: wrong entries are left out, the rest is used", () => {
    const messages: unknown[] = [];
    const { warn } = console;
    console.warn = (text: unknown) => void messages.push(text);
    const card = { name: "A", from: "o/r", about: "x", size: 5, abilities: ["text", "magic"] };
    const catalog = readCatalog({
        hosts: { huggingFace: "https://mirror.example/", ollama: "javascript:x" },
        models: [{ name: "P", url: "p.gguf", about: "", suggest: ["a", { text: "b", image: "c" }] }, { name: "Q" }, { name: "R", url: "r", about: "", suggest: [{ image: "c" }] }],
        cards: [card, { ...card, size: "5" }, { ...card, from: ["https://a.example/1.gguf", "https://a.example/2.gguf"] }, 7, null],
    });
    console.warn = warn;
    checkEqual([catalog.hosts.huggingFace, catalog.hosts.ollama], ["https://mirror.example", "https://registry.ollama.ai"], "hosts");
    checkEqual([catalog.offers.length, catalog.cards.length, messages.length], [1, 2, 5], "counts");
    checkEqual([catalog.cards[0]?.abilities, catalog.cards[1]?.from], [["text"], "https://a.example/1.gguf https://a.example/2.gguf"], "cards");
    for (const odd of [null, [], 5, "x", { models: {}, cards: "x" }]) {
        checkEqual(readCatalog(odd).offers.length, 0, JSON.stringify(odd));
    }
});

await test("whether a model fits: storage, memory, GPU, and what is not known", () => {
    const adapter = { name: "GPU", software: false } as Capabilities["adapter"];
    const base: Capabilities = { webgpu: true, adapter, simd: true, threads: true, workers: true, opfs: true, storage: { quota: 100e9, usage: 0, persisted: false }, deviceMemory: 8, processors: 8 };
    const verdict = (text: number, media: number, change: Partial<Capabilities>): [string, string] => {
        const { verdict: is, because } = fitOf({ text, media }, { ...base, ...change });
        return [is, because];
    };
    const expect = ([is, because]: [string, string], wanted: string, sentence: RegExp): void => check(is === wanted && sentence.test(because), `${is}: ${because}`);
    expect(verdict(3e9, 1e9, {}), "fits", /at least 8 GB/);
    expect(verdict(17e9, 1e9, {}), "unknown", /do not say how much/);
    expect(verdict(3e9, 1e9, { deviceMemory: 4 }), "not", /about 4 GB/);
    expect(verdict(3e9, 1e9, { deviceMemory: null }), "unknown", /4\.5 GB/);
    expect(verdict(3e9, 1e9, { storage: { quota: 5e9, usage: 2e9, persisted: true } }), "not", /allows the page 3\.0 GB more/);
    expect(verdict(3e9, 1e9, { storage: { quota: 5e9, usage: 2e9, persisted: true }, opfs: false }), "fits", /./);
    expect(verdict(3e9, 0, { adapter: null }), "fits", /slowly\.$/);
    expect(verdict(3e9, 1e9, { adapter: null }), "fits", /without images and sound/);
    expect(verdict(5e9, 1e9, { webgpu: false, adapter: null }), "not", /no WebGPU, and on the CPU .* 3\.5 GB/);
});

await test("rates, times left, names of browsers", () => {
    const rate = new Rate();
    checkEqual(rate.perSecond, null, "nothing yet");
    rate.add(1000, 0);
    rate.add(3000, 1000);
    checkEqual([rate.perSecond, rate.remaining(6000)], [2000, 3], "rate");
    rate.add(3000, 20_000); // what is older than the window does not count
    checkEqual([rate.perSecond, rate.remaining(1)], [null, null], "a pause");
    checkEqual([4, 44, 130, 7500].map(formatTimeLeft), ["5 s", "45 s", "2 min", "2 h 5 min"], "times");
    checkEqual(
        ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/150.0.0.0 Safari/537.36", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15", "Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0", "x"].map(browserName),
        ["Chrome 150 on Linux", "Safari 26 on macOS", "Firefox 140 on Windows", "a browser"],
        "browsers",
    );
});

http.close();
finish();
