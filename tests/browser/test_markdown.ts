/** The Markdown parser: complete, incomplete and malicious input. */
import { parseBlocks, type Block } from "../../web/app/src/markdown.js";
import { parseInline, safeHref, type Inline } from "../../web/app/src/markdown_inline.js";
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
            return `${b.ordered ? `ol${b.start}` : "ul"}${b.tight ? "" : "~"}[${b.items.map(blocks).join(";")}]`;
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
    ["**bold** and *em* and ***both***", "p[strong(bold) and em(em) and strong(em(both))]"],
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
    ["- a\n\n  more\n- b", "ul[p[a] p[more];p[b]]"],
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

const sample = [
    "# Gems\n\nA *gem* is **cut**:\n\n1. table\n2. step\n   - baguette\n\n",
    "| a | b |\n|---|---|\n| 1 | `2` |\n\n> quoted\n\n```c\nint x;\n\n```\nend [l](https://x.y)\n",
].join("");

await test("while a text grows, all blocks but the last are final", () => {
    for (let n = 1; n <= sample.length; n++) {
        const whole = parseBlocks(sample);
        const part = parseBlocks(sample.slice(0, n));
        part.slice(0, -1).forEach((b, i) => checkEqual(block(b), block(whole[i] as Block), `block ${i} of ${n} characters`));
        const last = part.at(-1);
        if (last) {
            const again = parseBlocks(sample.slice(last.at, n), last.at);
            checkEqual(blocks(again), block(last), `the last block of ${n} characters, from where it begins`);
        }
    }
});

await test("parsing takes linear time for repeated and random marks", () => {
    const marks = ["*", "_", "`", "[", "](", "**a ", "~~", "> ", "- ", "  - ", "|-", "![", "<", "\\", "*a_", "```\n", "1. ", "[a](", "h", "http://"];
    for (const mark of marks) {
        const text = mark.repeat(Math.ceil(20000 / mark.length));
        const before = process.cpuUsage();
        parseBlocks(text);
        parseInline(text);
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
