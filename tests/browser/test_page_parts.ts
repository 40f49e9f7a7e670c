/** Parts of the page without a browser: the calculator, search by words, passages, branches, the full context, export and
 * import. */
import { readFile } from "node:fs/promises";
import { buildRequest } from "../../web/app/src/answer_request.js";
import { promptWithPassages } from "../../web/app/src/citation.js";
import { calculate } from "../../web/app/src/calculator.js";
import { dropTurns, firstMessage, nextMessage } from "../../web/app/src/context_shift.js";
import { WordIndex, wordsOf } from "../../web/app/src/bm25.js";
import { passageTexts } from "../../web/app/src/document_text.js";
import { fileName, toJson, toMarkdown } from "../../web/app/src/export.js";
import { readBackup, withNewIds } from "../../web/app/src/import.js";
import { treeOfRow, type ConversationOf1, type MessageOf1 } from "../../web/app/src/migrate.js";
import { faultOf } from "../../web/app/src/own_tools.js";
import { defaultSettings, type Conversation, type Message } from "../../web/app/src/store.js";
import { ToolBox } from "../../web/app/src/toolbox.js";
import { MessageTree } from "../../web/app/src/tree.js";
import { check, checkEqual, finish, test } from "../web/check.js";
import { collect, withPackage } from "../web/package.js";

async function refusal(act: () => unknown): Promise<string> {
    try {
        await act();
    } catch (reason) {
        return reason instanceof Error ? reason.message : String(reason);
    }
    return "";
}

// ---- calculator -----------------------------------------------------------------------------------------

await test("the calculator computes exactly, with the usual order of operations", () => {
    const cases: [string, string][] = [
        ["1 + 2 * 3", "7"],
        ["(1 + 2) * 3 =", "9"],
        ["0.1 + 0.2", "0.3 (exactly 3/10)"],
        ["1/3", "0.333333333333333 (exactly 1/3)"],
        ["-2^2", "-4"],
        ["2^3^2", "512"],
        ["2 ** 10", "1024"],
        ["2^-2", "0.25 (exactly 1/4)"],
        ["12345678901234567890 * 98765432109876543210", "1219326311370217952237463801111263526900"],
        ["2^200", "1606938044258990275541962092341162602522202993782792835301376"],
        ["20!", "2432902008176640000"],
        ["7 mod 3 + -7 % 3", "3"],
        ["sqrt(144) + sqrt(2)^2 * 0", "12"],
        ["round(2.5) + floor(-1.5) + ceil(0.2)", "2"],
        ["max(1, 2/3, 1.5)", "1.5 (exactly 3/2)"],
        ["sin(pi/2)", "1"],
        ["1_000.5e2 \u00d7 2 \u00f7 4 \u2212 1", "50024"],
        ["10^400 / 10^399", "10"],
        ["ln(10^100)", "230.258509299405"],
    ];
    cases.forEach(([expression, want]) => checkEqual(calculate(expression), want, expression));
});

await test("the calculator refuses what it cannot compute, and evaluates no code", async () => {
    const cases: [string, string][] = [
        ["1 +", "ends too early"],
        ["1 / (2 - 2)", "Division by zero"],
        ["5 % 0", "Division by zero"],
        ["alert(1)", '"alert" is not known'],
        ["constructor", '"constructor" is not known'],
        ["toString(1)", '"toString" is not known'],
        ["1; 2", "Unexpected"],
        ["2^1000000", "not a finite number"],
        ["2^100000", "digits"],
        ["9^9^9^9", "not a finite number"],
        ["1e9999", "digits"],
        ["ln(-1)", "not a finite number"],
        ["701!", "0 to 700"],
        ["(".repeat(200), "nested too deeply"],
        ["-".repeat(900) + "1", "nested too deeply"],
        ["1".repeat(2000), "longer than"],
    ];
    for (const [expression, want] of cases) {
        const message = await refusal(() => calculate(expression));
        check(message.toLowerCase().includes(want.toLowerCase()), `${expression.slice(0, 40)}: ${message}`);
    }
});

await test("a tool's call: its arguments are checked, long results are cut, tools that are off do not run", async () => {
    const box = new ToolBox(() => ["echo"]);
    const tool = (name: string) => ({ name, title: name, about: "", description: "", parameters: {}, run: ({ text }: Record<string, unknown>) => String(text) });
    box.set([tool("echo"), tool("off")]);
    const { signal } = new AbortController();
    checkEqual(box.definitions().map((one) => one.function.name), ["echo"], "offered");
    checkEqual(await box.run("echo", '{"text":"a"}', signal), "a", "result");
    check((await box.run("echo", JSON.stringify({ text: "x".repeat(9000) }), signal)).endsWith("[cut: 1000 more characters]"), "cut");
    check((await refusal(() => box.run("echo", "{", signal))).includes("not valid JSON"), "broken arguments");
    check((await refusal(() => box.run("echo", "[1]", signal))).includes("JSON object"), "a list");
    check((await refusal(() => box.run("off", "{}", signal))).includes("no tool named off"), "off");
    const own = { name: "a b", description: "d", parameters: "{}", code: "1" };
    check((faultOf(own, []) ?? "").includes("The name"), "name");
    check((faultOf({ ...own, name: "clock" }, ["clock"]) ?? "").includes("already"), "taken");
    check((faultOf({ ...own, name: "ok" }, []) ?? "").includes("describe an object"), "schema");
    check((faultOf({ ...own, name: "ok", parameters: "{" }, []) ?? "").includes("not valid JSON"), "broken schema");
    checkEqual(faultOf({ ...own, name: "ok", parameters: '{"type":"object"}' }, []), null, "fits");
});

// ---- documents --------------------------------------------------------------------------------------------

await test("search by words finds the passage with the rare words, in any case and script", () => {
    const texts = [
        "The bezel holds the stone in the ring.",
        "Quartz is a common mineral of silicon and oxygen, found in many rings.",
        "Opals contain water; they crack when they dry.",
        "\u5b9d\u77f3\u306f\u7f8e\u3057\u3044\u3002\u30aa\u30d1\u30fc\u30eb\u306f\u6c34\u3092\u542b\u3080\u3002",
    ];
    const index = new WordIndex(texts);
    const best = (question: string): number => index.search(question, 1)[0]?.index ?? -1;
    checkEqual([best("Why does an OPAL crack?"), best("what is quartz made of"), best("\u30aa\u30d1\u30fc\u30eb"), best("elephants"), best("the of and")], [2, 1, 3, -1, -1], "best");
    checkEqual(wordsOf("It's 3 Caf\u00e9s"), ["it", "s", "3", "caf\u00e9s"], "words");
});

await test("documents are cut into passages at paragraphs, without loss", () => {
    const paragraph = (i: number): string => `Paragraph ${i} ${"word ".repeat(60)}end${i}.`;
    const text = Array.from({ length: 20 }, (_, i) => paragraph(i)).join("\n\n");
    const pieces = passageTexts(text);
    check(pieces.every(({ length }) => length > 0 && length <= 900), "lengths");
    check(pieces.every((piece) => piece.startsWith("Paragraph") && /end\d+\.$/.test(piece)), "cut between paragraphs");
    checkEqual(pieces.join("\n\n").replace(/\s+/g, " "), text.replace(/\s+/g, " "), "whole");
    checkEqual(passageTexts("x".repeat(2000)).map(({ length }) => length), [900, 900, 200], "without any space");
    const prompt = promptWithPassages("Why?", [{ document: "d", name: "a]\n[9] b.txt", page: 2, text: "Because." }]);
    check(prompt.includes("[1] a 9 b.txt, page 2\nBecause.") && prompt.endsWith("Question: Why?"), prompt);
    checkEqual(promptWithPassages("Why?", []), "Why?", "without passages");
});

// ---- branches, context -----------------------------------------------------------------------------------

let clock = 0;
function message(id: string, parent: string | null, role: Message["role"], content = id): Message {
    return { id, conversation: "c", order: 0, parent, role, content, thinking: "", state: "done", note: null, error: null, figures: null, created: ++clock };
}

await test("a tree of messages: branches, versions, and a damaged one", () => {
    const tree = new MessageTree([
        message("q1", null, "user"), message("a1", "q1", "assistant"), message("a2", "q1", "assistant"),
        message("q2", "a2", "user"), message("q3", "a1", "user"), message("loop", "loop", "user"),
    ]);
    checkEqual(tree.pathTo("q2").map(({ id }) => id), ["q1", "a2", "q2"], "path");
    checkEqual(tree.versionsOf(message("x", "q1", "assistant")).map(({ id }) => id), ["a1", "a2"], "versions");
    checkEqual([tree.newestLeaf(null), tree.newestLeaf("a1"), tree.newestLeaf("q2")], ["q2", "q3", "q2"], "newest ends");
    checkEqual([tree.leadsTo("a2", "q2"), tree.leadsTo("a1", "q2")], [true, false], "leads to");
    checkEqual([tree.pathTo("loop").length, tree.newestLeaf("loop")], [1, "loop"], "a message that is its own parent");
});

await test("a full context: whole turns are left out, the oldest first, and at least one stays", () => {
    const path = Array.from({ length: 10 }, (_, i) => message(`m${i}`, i > 0 ? `m${i - 1}` : null, i % 2 === 0 ? "user" : "assistant", "x".repeat(350)));
    checkEqual(firstMessage(path, 4096), 0, "all fit");
    const from = firstMessage(path, 700);
    check(from > 0 && path[from]?.role === "user", `begins at ${from}`);
    checkEqual(dropTurns(path, 0, 0), 8, "only the last turn");
    checkEqual(dropTurns(path, 8, 0), null, "nothing is left to drop");
    check((nextMessage(path, 2, 1000, 3) ?? 0) > (nextMessage(path, 0, 1000, 1) ?? 9), "later attempts drop more");
    const answered = [...path.slice(0, 9), { ...message("m9", "m8", "assistant"), from: "m4" }, message("m10", "m9", "user")];
    checkEqual(firstMessage(answered, 4096), 4, "it stays where the last answer began, so that the prompt's beginning is reused");
});

// ---- export, import ---------------------------------------------------------------------------------------

const conversation: Conversation = { id: "c", title: "A <b>title</b>/..", named: true, system: "Be kind.", created: 1, updated: 2, pinned: true, leaf: "a2" };
const messages: Message[] = [
    { ...message("q1", null, "user", "Hello"), media: [{ kind: "image", name: "p.png", blob: new Blob([new Uint8Array([1, 2, 250])], { type: "image/png" }), width: 1, height: 2 }], passages: [{ document: "d", name: "f.pdf", page: 3, text: "P" }] },
    { ...message("a1", "q1", "assistant", "First"), figures: { promptTokens: 1, answerTokens: 2, tokensPerSecond: 3, promptPerSecond: 4, drafted: 6, accepted: 5 } },
    { ...message("a2", "q1", "assistant", "Second"), steps: [{ content: "", thinking: "t", calls: [{ id: "1", name: "clock", arguments: "{}", result: "``` now", state: "done" }] }], from: "q1" },
];

await test("what is exported is imported again, with branches, media, tools and passages", async () => {
    const text = await toJson([{ conversation, messages }]);
    const [back] = await readBackup(new File([text], "x.json"));
    checkEqual(back?.conversation, conversation, "conversation");
    const strip = (all: Message[] | undefined): unknown => all?.map(({ media, ...rest }) => ({ ...rest, media: media?.map(({ blob, ...item }) => ({ ...item, type: blob.type, size: blob.size })) })).map((one) => Object.entries(one).sort());
    checkEqual(strip(back?.messages), strip(messages), "messages");
    checkEqual([...new Uint8Array((await back?.messages[0]?.media?.[0]?.blob.arrayBuffer()) ?? new ArrayBuffer())], [1, 2, 250], "bytes");
    const copy = back && withNewIds(back, "other");
    checkEqual(new MessageTree(copy?.messages).pathTo(copy?.conversation.leaf ?? null).map(({ content }) => content), ["Hello", "Second"], "the branch of a copy");
    check(copy?.messages.every(({ id, conversation: c }) => c === "other" && !["q1", "a1", "a2"].includes(id)) === true, "new ids");
});

await test("Markdown has the branch that is shown, and a safe file name", () => {
    const text = toMarkdown(conversation, messages);
    for (const part of ["# A <b>title</b>", "> Be kind.", "## You\n\n*Image: p.png*\n\nHello\n\n> [1] f.pdf, page 3", "*Tool: clock*", "````\n``` now\n````", "Second"]) {
        check(text.includes(part), `${part} in ${text}`);
    }
    check(!text.includes("First"), "not the other branch");
    checkEqual([fileName(conversation.title, "md"), fileName("../../", "json")], ["A-btitleb.md", "conversation.json"], "names");
});

await test("a file of version 1 opens", async () => {
    const file = new File([await readFile("tests/browser/fixtures/export-v1.json")], "export-v1.json");
    const [one, two] = await readBackup(file);
    checkEqual([one?.conversation.title, one?.messages.length, two?.conversation.pinned], ["Gems", 4, true], "conversations");
    checkEqual(new MessageTree(one?.messages).pathTo(one?.conversation.leaf ?? null).map(({ content }) => content), ["What is a gem?", "A cut stone."], "the branch");
});

await test("a row of messages, as stored by the first version, becomes a tree with one branch", () => {
    const { pinned: _, leaf: __, ...old } = conversation;
    const row = messages.map(({ parent: ___, ...rest }, i) => ({ ...rest, order: 2 * (2 - i) }));
    const tree = treeOfRow(old satisfies ConversationOf1, row satisfies MessageOf1[]);
    checkEqual([tree.conversation.leaf, tree.conversation.pinned], ["q1", false], "conversation");
    checkEqual(tree.messages.map(({ id, parent, order }) => [id, parent, order]), [["a2", null, 0], ["a1", "a2", 1], ["q1", "a1", 2]], "messages");
});

await test("a damaged or hostile file is refused with a sentence", async () => {
    const good = JSON.parse(await toJson([{ conversation, messages }])) as { version: number; conversations: { messages: Record<string, unknown>[] }[] };
    const broken = async (change: (copy: typeof good) => void): Promise<string> => {
        const copy = structuredClone(good);
        change(copy);
        return refusal(() => readBackup(new File([JSON.stringify(copy)], "x.json")));
    };
    const first = (copy: typeof good): Record<string, unknown> => copy.conversations[0]?.messages[0] ?? {};
    const cases: [(copy: typeof good) => void, string][] = [
        [(copy) => (copy.version = 99), "reload the page"],
        [(copy) => (first(copy)["role"] = "system"), "role"],
        [(copy) => (first(copy)["content"] = { toString: 1 }), "not a text"],
        [(copy) => (first(copy)["parent"] = "nobody"), "do not fit together"],
        [(copy) => (first(copy)["media"] = [{ kind: "image", name: "x", data: "data:text/html;base64,PGI+" }]), "not an image"],
        [(copy) => (first(copy)["media"] = [{ kind: "image", name: "x", data: "https://evil.example/x.png" }]), "not an image"],
        [(copy) => (first(copy)["created"] = "now"), "not a number"],
        [(copy) => Object.assign(copy, { conversations: {} }), "not a list"],
        [(copy) => Object.assign(copy, { format: "other" }), "not exported by Bezel"],
    ];
    for (const [change, want] of cases) {
        const text = await broken(change);
        check(text.startsWith("x.json cannot be imported:") && text.includes(want), `${want}: ${text}`);
    }
    check((await refusal(() => readBackup(new File(["<html>"], "x.json")))).includes("not JSON"), "not JSON");
});

await test("the engine takes the page's requests: calls with broken arguments, results, passages, a continued answer", () =>
    withPackage("models/pebble.gguf", { device: "cpu" }, async (model) => {
        const call = { name: "calculator", result: "42", state: "done" as const };
        const calls = [{ ...call, id: "call_0", arguments: '{"expression":"6*7"}' }, { ...call, id: "call_1", arguments: "{broken" }, { ...call, id: "call_2", arguments: "" }];
        const parameters = { type: "object", properties: { expression: { type: "string" } } };
        for (const [resume, content] of [[false, ""], [true, "It is"]] as const) {
            const request = buildRequest({
                conversation: { ...conversation, system: "Be kind." },
                settings: { ...defaultSettings, temperature: 0, maxTokens: 4 },
                messages: [
                    { ...message("q", null, "user", "What is 6 * 7?"), passages: [{ document: "d", name: "f.txt", page: null, text: "Six times seven." }] },
                    { ...message("a", "q", "assistant", content), steps: [{ content: "", thinking: "Hm.", calls }] },
                ],
                takes: () => true, contextLength: 2048,
                tools: [{ type: "function", function: { name: "calculator", description: "Computes.", parameters } }],
                resume,
            });
            const chunks = await collect(await model.chat.completions.create(request));
            check((chunks.at(-1)?.usage?.completion_tokens ?? 0) > 0, `an answer, resume ${resume}`);
        }
    }));

finish();
