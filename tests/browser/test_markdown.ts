/** The Markdown parser: complete, incomplete, growing and malicious input. */
import process from "node:process";
import { parseBlocks, safeHref, type Block, type Inline } from "../../web/app/src/markdown.js";
import { MarkdownStream } from "../../web/app/src/markdown_stream.js";
import { check, checkEqual, finish, test } from "../web/check.js";

/** A tree as text: p[...], strong(...). */
function inline(nodes: Inline[]): string {
    return nodes
        .map((node) => {
            switch (node.kind) {
                case "text":
                    return node.text;
                case "code":
                    return `code(${node.text})`;
                case "break":
                    return "/";
                case "math":
                    return `${node.display ? "display" : "math"}(${node.text})`;
                case "note":
                    return `note(${node.label})`;
                case "link":
                    return `link(${inline(node.children)} ${node.href})`;
                default:
                    return `${node.kind}(${inline(node.children)})`;
            }
        })
        .join("");
}

function block(b: Block): string {
    switch (b.kind) {
        case "heading":
            return `h${b.level}[${inline(b.children)}]`;
        case "paragraph":
            return `p[${inline(b.children)}]`;
        case "code":
            return `code${b.closed ? "" : "..."}[${b.language}|${b.text}]`;
        case "list":
            return `${b.ordered ? `ol${b.start}` : "ul"}${b.tight ? "" : "~"}[${b.items.map(({ done, children }) => `${done === null ? "" : done ? "x:" : "o:"}${blocks(children)}`).join(";")}]`;
        case "math":
            return `display${b.closed ? "" : "..."}[${b.text}]`;
        case "footnote":
            return `footnote[${b.label} ${inline(b.children)}]`;
        case "quote":
            return `quote[${blocks(b.children)}]`;
        case "table":
            return `table[${b.align.join(",")}|${[b.head, ...b.rows].map((row) => row.map(inline).join("&")).join("|")}]`;
        case "rule":
            return "rule";
    }
}

const blocks = (list: Block[]): string => list.map(block).join(" ");

async function testCases(name: string, cases: [string, string][]): Promise<void> {
    await test(name, () => {
        for (const [source, want] of cases) {
            checkEqual(blocks(parseBlocks(source)), want, JSON.stringify(source));
        }
    });
}

await testCases("paragraphs, headings, rules", [
    ["one\ntwo\n\nthree", "p[one two] p[three]"],
    ["# Title\ntext", "h1[Title] p[text]"],
    ["###### Six ##\n#no", "h6[Six] p[#no]"],
    ["# a # b ##  \n## ##\n#\n# C#", "h1[a # b] h2[] h1[] h1[C#]"],
    ["a\n\n---\n\nb\n***", "p[a] rule p[b] rule"],
    ["line  \nbreak\\\nagain", "p[line/break/again]"],
    ["\r\na\r\nb\r\n", "p[a b]"],
]);

await testCases("emphasis", [
    ["**bold** and *em* and ***both***", "p[strong(bold) and em(em) and em(strong(both))]"],
    ["__bold__ _em_ ~~gone~~", "p[strong(bold) em(em) del(gone)]"],
    ["snake_case_name and 2 * 3 * 4", "p[snake_case_name and 2 * 3 * 4]"],
    ["**a *b* c**", "p[strong(a em(b) c)]"],
    ["*a **b** c*", "p[em(a strong(b) c)]"],
    ["**open", "p[**open]"],
    ["`**not**` \\*not\\*", "p[code(**not**) *not*]"],
    ["``a ` b``", "p[code(a ` b)]"],
]);

await testCases("code", [
    ["```js\nlet a;\n\n# x\n```\nafter", "code[js|let a;\n\n# x] p[after]"],
    ["```\nopen", "code...[|open]"],
    ["~~~py\n```\n~~~", "code[py|```]"],
    ["````\n```\n````", "code[|```]"],
    ["```  js x  \na\n```  ", "code[js|a]"],
    ["` a ` `  ` ` b`", "p[code(a) code(  ) code( b)]"],
]);

await testCases("lists", [
    ["- a\n- b", "ul[p[a];p[b]]"],
    ["1. a\n2. b\n\ntext", "ol1[p[a];p[b]] p[text]"],
    ["3) a", "ol3[p[a]]"],
    ["- a\n  - b\n  - c\n- d", "ul[p[a] ul[p[b];p[c]];p[d]]"],
    ["1. a\n   - b\n2. c", "ol1[p[a] ul[p[b]];p[c]]"],
    ["- a\n\n- b", "ul~[p[a];p[b]]"],
    ["- a\n\n  more\n- b", "ul~[p[a] p[more];p[b]]"],
    ["* a\n  ```\n  x\n  ```", "ul[p[a] code[|x]]"],
    ["text\n- a", "p[text] ul[p[a]]"],
]);

await testCases("quotes and tables", [
    ["> a\n> b\nlazy\n\nc", "quote[p[a b lazy]] p[c]"],
    ["> - a", "quote[ul[p[a]]]"],
    ["| a | b |\n|:--|--:|\n| 1 | **2** |\n| 3 |\n\nx", "table[left,right|a&b|1&strong(2)|3&] p[x]"],
    ["a | b\n--- | :-:\n1 | x \\| y", "table[,center|a&b|1&x | y]"],
    ["| a | b |\n|--|", "p[| a | b | |--|]"],
]);

await testCases("links open only web pages and mail, images become links, HTML is text", [
    ["[a](https://x.org/a_(b)) <https://y.org> https://z.org.", "p[link(a https://x.org/a_(b)) link(https://y.org https://y.org) link(https://z.org https://z.org).]"],
    ["[a](javascript:alert(1)) [b](data:text/html,x) [c](/local)", "p[em(a) em(b) em(c)]"],
    ["![alt](https://x.org/p.png)", "p[link(alt https://x.org/p.png)]"],
    ['<img src=x onerror="alert(1)"><script>', 'p[<img src=x onerror="alert(1)"><script>]'],
    ["[a](https://x.org \"title\")", "p[link(a https://x.org)]"],
]);

await test("safe and unsafe URLs", () => {
    for (const good of ["https://a.b/c?d#e", "http://a", "mailto:a@b.c"]) {
        checkEqual(safeHref(good), good, good);
    }
    for (const bad of ["javascript:alert(1)", " https://a", "JaVaScRiPt:x", "data:x", "file:///x", "//a.b", "https://a b", "vbscript:x"]) {
        checkEqual(safeHref(bad), null, bad);
    }
});

await testCases("tasks, formulas, footnotes, entities", [
    ["- [ ] a\n- [x] b\n- c", "ul[o:p[a];x:p[b];p[c]]"],
    ["Costs $5 and $6. $x_1 * y_2$ and \\(a*b*c\\)", "p[Costs $5 and $6. math(x_1 * y_2) and math(a*b*c)]"],
    ["so\n\\[\nE = m c^2\n\\]\nwhere", "p[so] display[E = m c^2] p[where]"],
    ["$$\\frac{a}{b}$$\n\ntext $$x$$ here", "display[\\frac{a}{b}] p[text display(x) here]"],
    ["$$\nx +", "display...[x +]"],
    ["`$x$` and \\$x\\$ and $ x $", "p[code($x$) and $x$ and $ x $]"],
    ["A fact.[^1]\n\n[^1]: The *source*.", "p[A fact.note(1)] footnote[1 The em(source).]"],
    ["&lt;b&gt; &amp;amp; &#169; &nope; &#0;", "p[<b> &amp; \u00a9 &nope; \ufffd]"],
    ["[a][1]\n\n[1]: https://x.org", "p[link(a https://x.org)]"],
]);

const sample = [
    "# Gems\n\nA *gem* is **cut**:\n\n1. table\n2. step\n   - baguette\n   - asscher\n\n   with text\n3. rose\n\n",
    "| a | b |\n|---|---|\n| 1 | `2` |\n| 3 | $x$ |\n| 4 | 5 |\n\n> quoted\n> - inside\n\n```c\nint x;\n\n```\n$$\nx\n$$\n- [ ] a\n- [x] b\nlazy\n",
    "* other\n\nend [l](https://x.y)[^1]\n\n[^1]: note\n",
].join("");

const trees = (stream: MarkdownStream): string => blocks(stream.blocks);

await test("a growing text gives the same blocks as the whole one, and reports which may have changed", () => {
    const stream = new MarkdownStream();
    let before: Block[] = [];
    for (let n = 1; n <= sample.length; n++) {
        const from = stream.set(sample.slice(0, n));
        const now = stream.blocks;
        checkEqual(blocks(now), blocks(parseBlocks(sample.slice(0, n))), `${n} characters`);
        now.slice(0, from).forEach((one, i) => check(one === before[i], `${n} characters: block ${i} is another object`));
        before = now;
    }
    checkEqual(stream.end(), [], "changes at the end");
    stream.set("another text");
    checkEqual(trees(stream), "p[another text]", "another text");
});

await test("a growing list or table keeps the objects of its finished items and rows", () => {
    const list = Array.from({ length: 50 }, (_, i) => `- item **${i}**\n`).join("");
    const table = `| a | b |\n|---|---|\n${Array.from({ length: 50 }, (_, i) => `| ${i} | x |\n`).join("")}`;
    for (const text of [list, table]) {
        const stream = new MarkdownStream();
        let kept = 0;
        let parts: unknown[] = [];
        for (let n = 1; n <= text.length; n++) {
            stream.set(text.slice(0, n));
            const block = stream.blocks[0];
            const now = block?.kind === "list" ? block.items : block?.kind === "table" ? block.rows : [];
            kept += now.slice(0, -2).filter((one, i) => one === parts[i]).length;
            check(now.slice(0, -2).every((one, i) => one === parts[i]), `${n} characters: a finished part was parsed again`);
            parts = now;
        }
        check(kept > 1000, `${kept} kept`);
        checkEqual(stream.end(), [], "changes at the end");
    }
});

await test("at the end, random texts give the blocks of the whole one", () => {
    const pieces = ["- ", "1. ", "  ", "\n", "\n\n", "a", " b", "|", "|-|-|\n", "`", "```\n", "> ", "# ", "*", "$", "\\(", "\\)", "[^1]", "[x]: http://y\n", "[x]", "    ", "---\n", "[ ] "];
    let seed = 7;
    const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
    for (let i = 0; i < 300; i++) {
        const text = Array.from({ length: 60 }, () => pieces[random(pieces.length)] ?? "").join("");
        const stream = new MarkdownStream();
        for (let n = 0; n < text.length; n += 1 + random(8)) {
            stream.set(text.slice(0, n));
        }
        stream.set(text);
        stream.end();
        checkEqual(trees(stream), blocks(parseBlocks(text)), JSON.stringify(text));
    }
});

await test("parsing takes linear time for repeated and random marks", () => {
    const marks = [
        "*", "_", "`", "[", "](", "**a ", "~~", "> ", "- ", "  - ", "|-", "![", "<", "\\", "*a_", "```\n", "1. ", "[a](", "h", "http://",
        "$", "$a", "$$", "\\(", "\\[\n", "[^1]", "[^1]: ", "\n[^1]: a\n", "[a]: ", "&", "&lt;", "> - ", "www.a", "a@b.c ", "$$\n",
    ];
    for (const mark of marks) {
        const text = mark.repeat(Math.ceil(20000 / mark.length));
        const before = process.cpuUsage();
        parseBlocks(text);
        const { user, system } = process.cpuUsage(before);
        const took = (user + system) / 1e3; // CPU time, which does not depend on the machine's load
        check(took < 3000, `${JSON.stringify(mark)}: ${Math.round(took)} ms of CPU time for ${text.length} characters`);
    }
    // A long run between other characters, which makes a regular expression with two adjacent repetitions backtrack.
    const around: [string, string, string][] = [
        ["# a", " ", "b"], ["# a ", "#", "b"], ["# ", "# ", "b"], ["```", " ", "`"], ["```", "`", "x`"], ["a|b\n-", " ", "x"], ["a|b\n", "-|", "x"], ["a|b\n", "| ", "x"],
        ["` ", "a", "`"], ["` ", " ", "a`"], ["a", " ", "b  \nc"], ["- ", " ", "x"], ["*", " ", "x"], [">", " ", "x"], ["1", "1", "."], ["a\\", "|", "b\n-"], ["[a](<", " ", "x)"],
    ];
    for (const [before, repeated, after] of around) {
        const text = before + repeated.repeat(Math.ceil(32000 / repeated.length)) + after;
        const begin = process.cpuUsage();
        parseBlocks(text);
        const { user, system } = process.cpuUsage(begin);
        check(user + system < 1e6, `${JSON.stringify([before, repeated, after])}: ${Math.round((user + system) / 1e3)} ms of CPU time`);
    }
    let seed = 1;
    const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
    for (let i = 0; i < 300; i++) {
        parseBlocks(Array.from({ length: 200 }, () => [..."*_`[]()|>-#~\n \t1.<ahttp:/!\\"][random(28)] ?? "").join(""));
    }
});

finish();
